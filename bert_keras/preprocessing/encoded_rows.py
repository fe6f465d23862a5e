"""Examples as rows of token ids: how long each row is, and the inputs of some rows.

Live tasks, exported folders and servers read the same rows. Only what computes their outputs
differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks import raise_at_first
from ..inputs import MASK_POSITIONS, PADDING_MASK, SCORING_MASK, TOKEN_IDS
from ..types import Array
from .collate import TextPacker
from .ragged import Ragged
from .windows import document_windows

# The indices of rows, and what a model returns for them.
Batch = tuple[NDArray[np.int64], Any]


class Rows:
    """Examples as rows of token ids.

    Args:
        lengths: int `(num_rows,)`, the length of each row, special tokens included.
        max_length: int, the longest row that texts can give; `None` for ready inputs.

    Attributes:
        sequences_per_row: int, the sequences of the largest row: 1 except for choices.
        further_lengths: tuple of int, lengths above `max_length` that a batch may have.
    """

    sequences_per_row = 1
    further_lengths: tuple[int, ...] = ()

    def __init__(self, lengths: ArrayLike, max_length: int | None = None) -> None:
        self.lengths, self.max_length = np.asarray(lengths, np.int64), max_length

    def __len__(self) -> int:
        return len(self.lengths)

    def inputs(self, indices: NDArray[np.int64], length: int) -> dict[str, Array]:
        """Returns the inputs of some rows, padded to a length.

        Args:
            indices: int64 `(size,)`.
            length: int, at least that of the longest of these rows.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `inputs`.")

    def collect(self, batches: Iterable[Batch]) -> Any:
        """Returns the outputs of all rows, in their order, as an array or a dict of arrays."""
        order, parts = [], []
        for indices, outputs in batches:
            order.append(indices)
            parts.append(outputs)
        places = np.argsort(np.concatenate(order))
        if isinstance(parts[0], dict):
            return {key: np.concatenate([x[key] for x in parts])[places] for key in parts[0]}
        return np.concatenate(parts)[places]


class SomeRows(Rows):
    """Some of other rows.

    Args:
        rows: `Rows`.
        places: int64 `(num_rows,)`, which of them.
    """

    def __init__(self, rows: Rows, places: NDArray[np.int64]) -> None:
        super().__init__(rows.lengths[places], rows.max_length)
        self.rows, self.places = rows, places

    def inputs(self, indices, length):
        return self.rows.inputs(self.places[indices], length)


class ReadyRows(Rows):
    """A dict of checked NumPy arrays, see `bert_keras.inputs`."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        num_rows, *_, length = arrays[TOKEN_IDS].shape
        super().__init__(np.full(num_rows, length))
        self.arrays = arrays

    def inputs(self, indices, length):
        return {name: array[indices] for name, array in self.arrays.items()}


class TextRows(Rows):
    """Texts or pairs, one row each.

    Args:
        packer: a `TextPacker`.
        ids: `Ragged` of token ids, see `TextPacker.tokenize`.
        pair_ids: `Ragged` of the second texts, or `None`.
    """

    def __init__(self, packer: TextPacker, ids: Ragged, pair_ids: Ragged | None = None) -> None:
        super().__init__(packer.packed_lengths(ids, pair_ids), packer.max_length)
        self.packer, self.ids, self.pair_ids = packer, ids, pair_ids

    def packed(self, indices: NDArray[np.int64], length: int) -> dict[str, Array]:
        """Returns the inputs of some texts, see `inputs`."""
        pairs = None if self.pair_ids is None else self.pair_ids.take(indices)
        return self.packer.pack(self.ids.take(indices), pairs, length=length)

    inputs = packed


class GroupRows(TextRows):
    """Rows of several texts or pairs each. All texts of a batch are padded to one length.

    `inputs` returns int32 arrays `(size, group, length)`, with the size of the largest group. A
    text that does not exist is all padding.

    Args:
        packer, ids, pair_ids: see `TextRows`; the texts of a group follow one another.
        counts: int `(num_groups,)`, texts in each group, at least 1.
    """

    def __init__(self, packer: TextPacker, ids: Ragged, pair_ids: Any, counts: Any) -> None:
        super().__init__(packer, ids, pair_ids)
        self.exists = np.arange(counts.max(initial=1)) < counts[:, None]
        # The row of each text among `ids`.
        self.places = np.cumsum(self.exists).reshape(self.exists.shape) - 1
        self.sequences_per_row = self.exists.shape[1]
        self.lengths = np.where(self.exists, self.lengths[self.places], 0).max(axis=1)

    def inputs(self, indices, length):
        exists = self.exists[indices]
        inputs = self.packed(self.places[indices].reshape(-1), length)
        padding = {TOKEN_IDS: self.packer.tokenizer.pad_token_id}
        for key, array in inputs.items():
            array[~exists.reshape(-1)] = padding.get(key, 0)
        return {key: array.reshape(*exists.shape, length) for key, array in inputs.items()}


class DocumentRows(GroupRows):
    """Documents as rows of windows.

    A document's length stands for both the number and the length of its windows, so that batches of
    similar documents have few different shapes: up to `max_length` it is the length of the
    document's only window, and beyond that `max_length` times the number of its windows.

    Args:
        packer: a `TextPacker`; its `max_length` is that of a window.
        ids: `Ragged` of token ids, one row per document.
        num_windows, stride: see `LongTextClassifier`.
    """

    def __init__(
        self, packer: TextPacker, ids: Ragged, num_windows: int, stride: int | None
    ) -> None:
        max_length, room = packer.max_length, packer.room()
        windows = document_windows(
            ids.lengths, room, stride or room, num_windows, packer.truncation
        )
        counts = np.bincount(windows.documents, minlength=len(ids))
        super().__init__(packer, ids.windows(windows), None, counts)
        self.sequences_per_row = 1  # Lengths count the tokens of all windows.
        self.lengths = np.where(counts == 1, self.lengths, counts * max_length)
        self.further_lengths = tuple(
            range(2 * max_length, num_windows * max_length + 1, max_length)
        )

    def inputs(self, indices, length):
        max_length = self.packer.max_length
        inputs = super().inputs(indices, min(length, max_length))
        return {key: x[:, : max(1, length // max_length)] for key, x in inputs.items()}


class TokenRows(TextRows):
    """Texts whose tokens each have an output."""

    def collect(self, batches):
        """Returns for each text an array `(num_tokens, ...)`, special tokens included."""
        found = [None] * len(self)
        for indices, outputs in batches:
            for row, values in zip(indices, outputs, strict=True):
                found[row] = values[: self.lengths[row]]
        return found


class MaskRows(Rows):
    """Packed texts with the positions of their `[MASK]` tokens.

    Args:
        packer: a `TextPacker`.
        inputs: dict of int32 arrays `(num_rows, length)`, see `TextPacker.pack`.
        positions: `Ragged` of int32, one row per text.
    """

    def __init__(self, packer: TextPacker, inputs: dict[str, Array], positions: Ragged) -> None:
        super().__init__(inputs[PADDING_MASK].sum(axis=1), packer.max_length)
        self.packed, self.positions = inputs, positions
        self.padding = {TOKEN_IDS: packer.tokenizer.pad_token_id}
        self.width = max(1, int(positions.lengths.max(initial=0)))

    @classmethod
    def of_texts(cls, packer: TextPacker, texts: Any) -> MaskRows:
        """Returns texts, or pairs, with the positions of their `[MASK]` tokens.

        Args:
            packer: a `TextPacker`.
            texts: texts or pairs.

        Raises:
            ValueError: a `[MASK]` lies beyond the end of what is read.
        """
        ids, pair_ids = packer.tokenize(texts)
        mask_id = packer.tokenizer.mask_token_id
        longest = int(packer.packed_lengths(ids, pair_ids).max(initial=1))
        packed = packer.pack(ids, pair_ids, length=longest)
        rows, columns = np.nonzero(packed[TOKEN_IDS] == mask_id)
        counts = np.bincount(rows, minlength=len(ids))
        parts = [part for part in (ids, pair_ids) if part is not None]
        num_all = sum(np.array([np.sum(x == mask_id) for x in part], int) for part in parts)
        rule = (
            f"No {packer.tokenizer.mask_token} may fall off the end of a text, "
            f"max_length={packer.max_length}"
        )
        num_lost = num_all - counts
        raise_at_first(num_lost > 0, num_lost, rule, "Shorten the text around it.")
        return cls(packer, packed, Ragged.from_flat(columns.astype("int32"), counts))

    def inputs(self, indices, length):
        inputs = {}
        for name, array in self.packed.items():
            inputs[name] = np.full((len(indices), length), self.padding.get(name, 0), array.dtype)
            inputs[name][:, : array.shape[1]] = array[indices, :length]
        return {**inputs, MASK_POSITIONS: self.positions.take(indices).to_dense(self.width)}


class _Marked:
    """Mixin that fills up queries with `[MASK]` and marks the tokens that count in scores.

    Args:
        settings: dict, see `bert_keras.answers.text_vectors.TokenVectors`.
        is_query: bool `(num_texts,)`, which texts are queries.
        *arguments: of `TextRows` or `GroupRows`.
    """

    def __init__(self, settings, is_query, *arguments):
        super().__init__(*arguments)
        self.settings, self.is_query = settings, is_query
        tokenizer = self.packer.tokenizer
        self.skipped_ids = tokenizer.ids_of(settings["skipped_tokens"])
        if is_query.any() and settings["query_expansion"]:
            # Each row of training has a query.
            self.lengths = np.maximum(self.lengths, settings["query_expansion"])

    def packed(self, indices, length):
        inputs, expansion = super().packed(indices, length), self.settings["query_expansion"]
        is_query = self.is_query[indices][:, None]
        ids, mask = inputs[TOKEN_IDS], inputs[PADDING_MASK]
        is_scored = (mask == 1) & (is_query | ~np.isin(ids, self.skipped_ids))
        if expansion:
            is_expansion = is_query & (mask == 0) & (np.arange(length) < expansion)
            ids[is_expansion] = self.packer.tokenizer.mask_token_id
            is_scored |= is_expansion
            if self.settings["attend_to_expansion"]:
                mask[is_expansion] = 1
        return {**inputs, SCORING_MASK: is_scored.astype("int32")}


class MarkedRows(_Marked, TextRows):
    """Queries, or documents, each token of which has a vector."""

    inputs = _Marked.packed

    def collect(self, batches):
        """Returns for each text the vectors of the tokens that count, `(num_tokens, dim)`."""
        found = [None] * len(self)
        for indices, vectors in batches:
            masks = self.inputs(indices, vectors.shape[1])[SCORING_MASK]
            for row, mask, of_text in zip(indices, masks, vectors, strict=True):
                found[row] = of_text[mask == 1]
        return found


class MarkedGroupRows(_Marked, GroupRows):
    """Rows of a query and its documents."""
