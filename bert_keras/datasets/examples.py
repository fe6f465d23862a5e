"""Texts with their labels: what every reader of a classification set returns."""

import dataclasses
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from bert_keras.types import ProblemType


class Rows:
    """A dataclass of columns, each a sequence with a value a row, or a tuple of such, or `None`.

    A subclass sets `columns`, the names of these fields; the first is never `None`.
    """

    columns = ()

    def __len__(self) -> int:
        first = getattr(self, self.columns[0])
        return len(first[0] if isinstance(first, tuple) else first)

    def take(self, indices: ArrayLike | slice) -> Self:
        """Returns the same of the rows at the given positions, in the given order.

        Args:
            indices: sequence or array of int, or a slice.
        """
        if isinstance(indices, slice):
            indices = range(*indices.indices(len(self)))
        rows = [int(index) for index in indices]
        taken = {name: _taken(getattr(self, name), rows) for name in self.columns}
        return dataclasses.replace(self, **taken)


def _taken(column, rows):
    if column is None or isinstance(column, np.ndarray):
        return None if column is None else column[rows]
    if isinstance(column, tuple):
        return tuple(_taken(part, rows) for part in column)
    return [column[row] for row in rows]


@dataclasses.dataclass(frozen=True)
class Examples(Rows):
    """Texts, or pairs of texts, with their labels.

    Args:
        texts: list of n str; for sentence pairs a tuple of two such lists.
        labels: NumPy array, or None where the file has no labels (GLUE's test sets). int32
            `(n,)` for `"single_label"`, int32 `(n, num_classes)` of 0 and 1 for `"multi_label"`,
            float32 `(n,)` for `"regression"`.
        label_names: tuple of str, the name of each class in the order of its number; empty for
            regression.
        problem_type: `"single_label"`, `"multi_label"` or `"regression"`.

    Example:
        ```python
        examples = Examples(["good", "bad"], np.array([1, 0]), ("negative", "positive"))
        len(examples)                            # 2
        classifier.fit(examples.texts, examples.labels)
        ```
    """

    texts: list[str] | tuple[list[str], list[str]]
    labels: Any = None
    label_names: tuple[str, ...] = ()
    problem_type: ProblemType = "single_label"

    columns = ("texts", "labels")

    def __post_init__(self) -> None:
        texts = self.texts if isinstance(self.texts, tuple) else (self.texts,)
        lengths = [len(column) for column in texts]
        if self.labels is not None:
            lengths.append(len(self.labels))
        if len(set(lengths)) > 1:
            raise ValueError(
                "First texts, second texts and labels must be equally many. "
                f"Received lengths: {lengths}"
            )
