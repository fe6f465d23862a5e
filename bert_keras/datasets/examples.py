"""Texts with their labels: what every reader of a classification set returns."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Examples:
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

    texts: list | tuple
    labels: np.ndarray | None = None
    label_names: tuple = ()
    problem_type: str = "single_label"

    def __post_init__(self):
        lengths = [len(column) for column in self._columns()]
        if self.labels is not None:
            lengths.append(len(self.labels))
        if len(set(lengths)) > 1:
            raise ValueError(
                "First texts, second texts and labels must be equally many. "
                f"Received lengths: {lengths}"
            )

    def __len__(self):
        return len(self._columns()[0])

    def take(self, indices):
        """Returns the `Examples` at the given positions, in the given order.

        Args:
            indices: sequence or array of int, or a slice.
        """
        if isinstance(indices, slice):
            indices = range(*indices.indices(len(self)))
        indices = [int(index) for index in indices]
        columns = [[column[index] for index in indices] for column in self._columns()]
        return dataclasses.replace(
            self,
            texts=tuple(columns) if isinstance(self.texts, tuple) else columns[0],
            labels=None if self.labels is None else np.asarray(self.labels)[indices],
        )

    def _columns(self):
        return self.texts if isinstance(self.texts, tuple) else (self.texts,)
