"""Classify sentences with a saved classifier, in a process that knows nothing else.

python examples/classify.py output/sentiment/model.keras "What a film!" "Never again."
"""

import sys

import keras

import bert_keras  # noqa: F401  (registers the classes that load_model looks up)


def main(path, *sentences):
    classifier = keras.models.load_model(path)
    for sentence, answer in zip(sentences, classifier.classify(list(sentences)), strict=True):
        probability = answer["probabilities"][answer["label"]]
        print(f"{answer['label']:>10}  {probability:.3f}  {sentence}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
