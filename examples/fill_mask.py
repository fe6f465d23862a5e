"""Fill the [MASK]s of sentences with a masked language model, whatever its own mask is called.

    python examples/fill_mask.py pretrained/final "She opened the [MASK] and went in."

KERAS_BACKEND chooses the backend.
"""

import sys

import bert_keras


def main(preset, *texts):
    model = bert_keras.MaskedLM.from_preset(preset)
    mask = model.preprocessor.tokenizer.mask_token
    texts = [text.replace("[MASK]", mask) for text in texts]
    for text, masks in zip(texts, model.fill_mask(texts), strict=True):
        print(text)
        for answers in masks:
            print("  " + ", ".join(f"{token} {probability:.3f}" for token, probability in answers))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
