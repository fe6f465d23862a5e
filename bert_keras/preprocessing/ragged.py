"""Rows of different lengths in one flat array."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..checks import check_int
from ..types import Array
from .windows import Windows, positions_of


class Ragged:
    """Rows of different lengths: row `i` is `values[starts[i] : starts[i] + lengths[i]]`.

    Rows are views into the shared `values`. They may overlap, leave gaps and come in any order, so
    truncating rows, selecting rows and cutting windows copies no values.

    Args:
        values: array `(total, ...)`.
        starts: int64 `(num_rows,)`, where each row begins.
        lengths: int64 `(num_rows,)`.

    Example:

    >>> rows = Ragged.from_rows([[1, 2, 3], [], [4]])
    >>> rows.lengths.tolist(), rows[0].tolist(), rows.to_lists()
    ([3, 0, 1], [1, 2, 3], [[1, 2, 3], [], [4]])
    """

    def __init__(self, values: ArrayLike, starts: ArrayLike, lengths: ArrayLike) -> None:
        self.values = np.asarray(values)
        self.starts = np.asarray(starts, dtype=np.int64)
        self.lengths = np.asarray(lengths, dtype=np.int64)

    @classmethod
    def from_flat(cls, values: ArrayLike, lengths: ArrayLike) -> Self:
        """Returns rows that follow one another in `values`."""
        lengths = np.asarray(lengths, dtype=np.int64)
        if lengths.sum() != len(values):
            raise ValueError(
                "`lengths` must add up to the number of values. Received: sum "
                f"{lengths.sum()}, {len(values)} values."
            )
        return cls(values, np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def from_rows(
        cls, rows: Ragged | Sequence[Iterable[float]], dtype: DTypeLike | None = None
    ) -> Self:
        """Returns rows from a list of lists or arrays of numbers; a `Ragged` stays as it is.

        Args:
            rows: the rows.
            dtype: dtype of the values; `None` for int32, or float32 if one of them is a float.
        """
        if isinstance(rows, cls):
            return rows
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        values = list(itertools.chain.from_iterable(rows))
        if dtype is None:
            dtype = np.float32 if np.asarray(values).dtype.kind == "f" and values else np.int32
        return cls.from_flat(np.fromiter(values, dtype, len(values)), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> Array:
        """Returns one row as an array."""
        start = self.starts[row]
        return self.values[start : start + self.lengths[row]]

    def flat(self) -> Array:
        """Returns the concatenated values of the rows."""
        row, position = positions_of(self.lengths)
        return self.values[self.starts[row] + position]

    def take(self, rows: ArrayLike) -> Ragged:
        """Returns the rows that an index array selects, in its order."""
        return Ragged(self.values, self.starts[rows], self.lengths[rows])

    def windows(self, windows: Windows) -> Ragged:
        """Returns windows over the rows as rows of their own, without copying any values."""
        starts = self.starts[windows.documents] + windows.starts
        return Ragged(self.values, starts, windows.lengths)

    def to_lists(self) -> list[list[Any]]:
        """Returns the rows as a list of lists."""
        return [self[row].tolist() for row in range(len(self))]

    def scatter(self, out: Array, columns: ArrayLike) -> None:
        """Writes row `i` into `out[i, columns[i] :]`.

        Args:
            out: array `(num_rows, width)`, changed in place.
            columns: int or int `(num_rows,)`, where each row starts.
        """
        position = np.arange(out.shape[1]) - np.reshape(columns, (-1, 1))
        is_value = (position >= 0) & (position < self.lengths[:, None])
        out[is_value] = self.values[(self.starts[:, None] + position)[is_value]]

    def to_dense(self, width: int | None = None, padding: Any = 0) -> Array:
        """Returns the rows as an array `(num_rows, width, ...)`, padded on the right.

        Args:
            width: int, at least the length of the longest row; None for that length.
            padding: the value that fills rows.
        """
        longest = int(self.lengths.max(initial=0))
        width = longest if width is None else width
        check_int("width", width, longest, advice="It must hold the longest row.")
        shape = (len(self), width, *self.values.shape[1:])
        out = np.full(shape, padding, dtype=self.values.dtype)
        self.scatter(out, 0)
        return out
