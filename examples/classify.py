"""Classify texts with a saved classifier, in a process that knows nothing else.

    python examples/classify.py output/sentiment/model.keras "What a film!" "Never again."
    python examples/classify.py output/model.keras --pairs "A plane lands." "A plane touches down."

One line a text: its label and how likely that is, its labels, or its score. Models of pairs take
the texts two by two, by `--pairs`. What follows `--` may begin with a hyphen.
"""

import keras
from absl import app, flags

import bert_keras  # noqa: F401  (registers the classes that load_model looks up)

FLAGS = flags.FLAGS
flags.DEFINE_bool("pairs", False, "Takes the texts two by two, for a model that compares.")


def main(argv):
    if len(argv) < 3:
        raise SystemExit("Pass the path of a .keras file and at least one text.")
    path, texts = argv[1], argv[2:]
    if FLAGS.pairs and len(texts) % 2:
        raise SystemExit(f"--pairs needs an even number of texts. Received: {len(texts)}.")
    classifier = keras.models.load_model(path)
    answers = classifier.classify((texts[::2], texts[1::2]) if FLAGS.pairs else texts)
    if FLAGS.pairs:
        texts = [" | ".join(pair) for pair in zip(texts[::2], texts[1::2], strict=True)]
    for text, answer in zip(texts, answers, strict=True):
        print(f"{told(answer):>17}  {text}")


def told(answer):
    """Returns an answer of `classify` as a short text."""
    if "label" in answer:
        return f"{answer['label']}  {answer['probabilities'][answer['label']]:.3f}"
    if "labels" in answer:
        return ", ".join(map(str, answer["labels"])) or "no label"
    return ", ".join(f"{score:.3f}" for score in answer.get("scores", [answer.get("score")]))


if __name__ == "__main__":
    app.run(main)
