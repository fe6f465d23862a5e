"""How good a trained model is, in words: its score, how sure that is, and what guessing would get.

A score of right answers among `n`, and F1 as an approximation, has Wilson's interval:

```
(p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n),  z = 1.96
```

A correlation has Fisher's, `tanh(atanh(r) ± z / sqrt(n - 3))`.
"""

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from bert_keras.answers.entity_tags import extract_entities
from bert_keras.cli.training_files import answered

Z = 1.96
ADVICE = (
    "That is not clearly better. To try: more labelled examples; several settings of `train`, "
    "--epochs 10,20 --learning_rate 1e-4,3e-4; a --preset in the language of the texts; and "
    "whether the labels belong to their rows."
)


class Verdict(NamedTuple):
    """A score on held-out examples, and that of a baseline that needs no model.

    Attributes:
        name: str, the score.
        value: float.
        count: int, how many labels it was measured on.
        counted: str, what they are, in the plural.
        baseline_score: float, the score of always giving the simplest answer.
        baseline: str, that answer in words.
        is_correlation: bool.
    """

    name: str
    value: float
    count: int
    counted: str
    baseline_score: float
    baseline: str
    is_correlation: bool = False

    def interval(self):
        """Returns the 95 % confidence interval, two floats."""
        if self.is_correlation:
            if self.count <= 3:
                return -1.0, 1.0
            r = min(max(self.value, -1 + 1e-9), 1 - 1e-9)
            center, width = math.atanh(r), Z / math.sqrt(self.count - 3)
            return math.tanh(center - width), math.tanh(center + width)
        p, n = self.value, self.count
        width = Z * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
        center, scale = p + Z**2 / (2 * n), 1 + Z**2 / n
        return (center - width) / scale, (center + width) / scale

    def in_words(self):
        """Returns the verdict as a line for people."""
        low, high = self.interval()
        advice = "" if low > self.baseline_score else f" {ADVICE}"
        return (
            f"{self.name} {self.value:.3f} on {self.count} {self.counted}, 95 % confidence "
            f"{low:.3f} to {high:.3f}; {self.baseline} gets {self.baseline_score:.3f}.{advice}"
        )


def defined(scores):
    """Returns the scores, `None` in place of NaN, and prints which are not defined."""
    undefined = [name for name, value in scores.items() if value is None or value != value]
    for name in undefined:
        print(f"{name} is not defined; a correlation is not if all predictions are equal.")
    return {**scores, **dict.fromkeys(undefined)}


def of_texts(scores, parts):
    """Returns the verdict on a classification or regression of texts."""
    dev, labels = parts.dev, np.asarray(parts.dev.labels)
    if labels.dtype.kind == "f":
        baseline = "one score for all texts"
        return Verdict("Pearson", scores["pearson"], len(labels), "texts", 0.0, baseline, True)
    names = dev.label_names
    if labels.ndim == 2:
        counts = labels.sum(axis=0)
        f1 = 2 * counts / (len(labels) + counts.sum())
        baseline = f"{names[f1.argmax()]!r} for every text"
        score = "micro F1", scores["micro_f1"], int(counts.sum()), "labels"
        return Verdict(*score, float(f1.max()), baseline)
    shares = np.bincount(labels) / len(labels)
    commonest = int(shares.argmax())
    baseline = f"{names[commonest] if names else commonest!r} for every text"
    score = "Accuracy", scores["accuracy"], len(labels), "texts"
    return Verdict(*score, shares[commonest], baseline)


def of_tags(scores, parts):
    """Returns the verdict on tagged words."""
    tags = parts.dev.tags
    if "f1" in scores:
        count = sum(len(extract_entities(row)) for row in tags)
        return Verdict("Entity F1", scores["f1"], count, "entities", 0.0, "finding none")
    counts = Counter(tag for row in tags for tag in row)
    (tag, commonest_count), count = counts.most_common(1)[0], counts.total()
    score = "Accuracy", scores["accuracy"], count, "words"
    return Verdict(*score, commonest_count / count, f"{tag!r} for every word")


def of_choices(scores, parts):
    """Returns the verdict on multiple choice."""
    chance = float(np.mean([1 / len(choices) for choices in parts.dev.choices]))
    count = len(parts.dev.choices)
    return Verdict("Accuracy", scores["accuracy"], count, "questions", chance, "guessing")


def of_questions(scores, parts):
    """Returns the verdict on answers to questions."""
    examples = answered(parts.further["metric"], parts.dev)
    impossible = sum(not example.answers for example in examples) / max(1, len(examples))
    f1, count = scores["f1"] / 100, len(examples)
    return Verdict("F1", f1, count, "questions", impossible, "never answering")


def of_pairs(scores, parts):
    """Returns the verdict on the likeness of pairs."""
    baseline, count = "one score for all pairs", len(parts.dev.labels)
    return Verdict("Spearman", scores["spearman"], count, "pairs", 0.0, baseline, True)
