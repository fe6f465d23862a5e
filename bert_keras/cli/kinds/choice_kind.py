"""Contexts with several choices, one of which is right."""

import numpy as np

from bert_keras import datasets
from bert_keras.cli.baseline import Verdict
from bert_keras.cli.kinds.kind import BATCH_SIZE, POOLING, Kind, task_of


class ChoiceKind(Kind):
    """Contexts with their choices."""

    name = "multiple_choice"
    model_class = task_of("choice")
    model = (POOLING,)

    def read_file(self, path, part):
        return datasets.read_multiple_choice(path)

    def evaluate(self, model, examples, tune=False):
        """Returns the share of examples for which the model chooses the right choice."""
        answers = model.choose(examples.contexts, examples.choices, BATCH_SIZE)
        scores = {}
        if examples.labels is not None:
            predicted = np.array([answer["index"] for answer in answers])
            scores["accuracy"] = float((predicted == examples.labels).mean())
        return scores, lambda: {"predictions.jsonl": answers}

    def true_labels(self, examples):
        choices = zip(examples.choices, examples.labels, strict=True)
        return [choices[label] for choices, label in choices]

    def predicted_label(self, answer):
        return answer["choice"]

    def verdict(self, scores, examples):
        chance = float(np.mean([1 / len(choices) for choices in examples.choices]))
        count = len(examples)
        return Verdict("Accuracy", scores["accuracy"], count, "questions", chance, "guessing")

    def rows(self, examples):
        pairs = zip(examples.contexts, examples.choices, strict=True)
        return [(context, *choices) for context, choices in pairs]
