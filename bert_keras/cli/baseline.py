"""How good a trained model is, in words: its score, how sure that is, and what guessing would get.

A score of right answers among `n`, and F1 as an approximation, has Wilson's interval:

```
(p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n),  z = 1.96
```

A correlation has Fisher's, `tanh(atanh(r) ± z / sqrt(n - 3))`.
"""

import math
from typing import NamedTuple

Z = 1.96
ADVICE = (
    "Check that the labels belong to their rows. Then try more labelled examples, several settings "
    "of `train` (--epochs 10,20 --learning_rate 1e-4,3e-4), or a --preset in the language of the "
    "texts."
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
        low, high = (center - width) / scale, (center + width) / scale
        # Rounding would move the ends of a score of 0 or 1 beyond it, or short of it.
        return max(0.0, min(p, low)), min(1.0, max(p, high))

    def report(self):
        """Prints the verdict; returns it with its interval as values for JSON, `{}` for none."""
        if not self.count or self.value is None:
            return {}
        print(self.in_words())
        low, high = self.interval()
        return {**self._asdict(), "low": low, "high": high}

    def in_words(self):
        """Returns the verdict as a line for people."""
        low, high = self.interval()
        advice = ""
        if high < self.baseline_score:
            advice = f" That is worse. {ADVICE}"
        elif self._replace(value=1.0).interval()[0] <= self.baseline_score:
            advice = (
                f" No score on so few {self.counted} is clearly better. Evaluate the model on more "
                "of them, in a larger file or `train`'s --dev_file."
            )
        elif low <= self.baseline_score:
            advice = f" That is not clearly better. {ADVICE}"
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
