"""From texts to the inputs of a model: ids are cut, get special tokens, and are padded.

`TextPacker` does this for texts, and `Rows` for all examples, batch by batch. Live tasks, exported
folders and servers read the same rows. Only what computes their outputs differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks import as_str, as_texts, check_choice, check_int, check_pairs, raise_at_first
from ..inputs import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from ..tokenizers.text_encoder import TextEncoder
from ..types import Array, Texts, Truncation
from .ragged import Ragged

INPUT_NAMES = (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK)

PAIR_STRATEGIES = ("longest_first", "only_first", "only_second")
SINGLE_STRATEGIES = ("longest_first", "only_first", "head", "tail", "head_tail")
STRATEGIES = ("longest_first", "only_first", "only_second", "head", "tail", "head_tail")
# Sun et al. keep the first 128 of the 510 tokens that fit between [CLS] and [SEP].
HEAD_LENGTH = 128


def truncated_lengths(
    first: ArrayLike,
    second: ArrayLike,
    budget: int,
    truncation: Literal["longest_first", "only_first", "only_second"] = "longest_first",
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns how many tokens of each text of a pair are kept, so that both together fit.

    `longest_first` gives each text half of the budget, and what the other does not use. The odd
    token of an odd budget goes to the longer text, or to the second if both are equally long,
    exactly as in the `tokenizers` library. (Google's `_truncate_seq_pair` and KerasHub's
    `round_robin` give it to the first.) In closed form, with lengths `a`, `b`, budget `n` and the
    first text's half `h = floor((n + [a > b]) / 2)`: `a' = min(a, max(h, n - b))` and
    `b' = min(b, max(n - h, n - a))`.

    Args:
        first: int `(batch,)`, lengths of the first texts.
        second: int `(batch,)`, lengths of the second texts.
        budget: int, tokens that fit, without special tokens.
        truncation: `"longest_first"`, `"only_first"` or `"only_second"`.

    Returns:
        Two int arrays `(batch,)`.

    Raises:
        ValueError: the text that must not be cut does not fit.
    """
    first, second = np.asarray(first, np.int64), np.asarray(second, np.int64)
    check_choice("truncation", truncation, PAIR_STRATEGIES, "Single texts allow others.")
    if truncation == "longest_first":
        half = (budget + (first > second)) // 2
        kept_first = np.minimum(first, np.maximum(half, budget - second))
        return kept_first, np.minimum(second, np.maximum(budget - half, budget - first))
    whole = second if truncation == "only_first" else first
    rule = f"`truncation={truncation!r}` needs the other text to fit in {budget} tokens"
    advice = "Raise `max_length`, use 'longest_first', or cut the text into windows."
    raise_at_first(whole > budget, whole, rule, advice)
    if whole is second:
        return np.minimum(first, budget - second), second
    return first, np.minimum(second, budget - first)


def truncate(
    ids: Ragged, budget: int, truncation: Truncation = "longest_first"
) -> tuple[Ragged, Ragged]:
    """Cuts single texts to `budget` tokens.

    `head` keeps the first tokens (as do `longest_first` and `only_first`), `tail` the last ones.
    `head_tail` keeps the first 128 and fills up with the last ones: 128 + 382 for BERT's 510, after
    Sun et al.; if fewer than 256 fit, half of each.

    Args:
        ids: `Ragged`, a row for each text.
        budget: int, tokens that fit, without special tokens.
        truncation: `"head"`, `"tail"`, `"head_tail"`, `"longest_first"` or `"only_first"`.

    Returns:
        Two `Ragged` with a row for each text: its beginning and its end, which together are its
        tokens. The end is empty unless `head_tail` had to cut.

    Reference: Sun et al. 2019, https://arxiv.org/abs/1905.05583, section 5.3.1.
    """
    check_choice("truncation", truncation, SINGLE_STRATEGIES, "Pairs allow others.")
    lengths = np.minimum(ids.lengths, budget)
    ends = ids.starts + ids.lengths
    if truncation == "tail":
        return Ragged(ids.values, ends - lengths, lengths), Ragged(ids.values, ends, 0 * lengths)
    head = lengths
    if truncation == "head_tail":
        head = np.where(ids.lengths > budget, min(HEAD_LENGTH, budget // 2), lengths)
    tail = lengths - head
    return Ragged(ids.values, ids.starts, head), Ragged(ids.values, ends - tail, tail)


class TextPacker:
    """Tokenizes texts, cuts them to a length and packs them, see `TextPreprocessor`.

    Args:
        tokenizer: a `TextEncoder`.
        max_length: int, the longest sequence, special tokens included.
        truncation: one of `STRATEGIES`.
        input_names: tuple of str, the inputs to make.
    """

    def __init__(
        self,
        tokenizer: TextEncoder,
        max_length: int,
        truncation: str = "longest_first",
        input_names: tuple[str, ...] = INPUT_NAMES,
    ) -> None:
        self.tokenizer, self.max_length = tokenizer, max_length
        self.truncation = truncation
        self.input_names = tuple(check_choice("input_names", x, INPUT_NAMES) for x in input_names)

    def room(self, is_pair: bool = False) -> int:
        """Returns how many tokens fit beside the special tokens of a text, or of a pair."""
        return self.max_length - self.tokenizer.layout.num_special(is_pair)

    def check_all_fit(self, ids: Ragged, pair_ids: Ragged | None = None) -> None:
        """Raises `ValueError` if a text would be cut; `ids` and `pair_ids` as of `tokenize`."""
        room = self.room(is_pair=pair_ids is not None)
        lengths = ids.lengths if pair_ids is None else ids.lengths + pair_ids.lengths
        rule = f"Texts to score must fit whole: at most {room} tokens"
        raise_at_first(lengths > room, lengths, rule, "Split the text into sentences.")

    def tokenize(
        self,
        texts: str | Texts,
        pairs: str | Texts | None = None,
        word_starts: bool = False,
    ) -> tuple[Ragged, Ragged | None]:
        """Returns the token ids of the first and of the second texts, without special tokens.

        Args:
            texts, pairs: as for a call of `TextPreprocessor`.
            word_starts: bool. `True` returns, in place of each id, whether a word begins there.

        Returns:
            Two `Ragged` of int32, or of bool; the second is None for single texts.
        """
        found = []
        for column in split_pairs(texts, pairs):
            if column is not None:
                ids, lengths, *starts = self.tokenizer.flat_ids(column, word_starts)
                column = Ragged.from_flat(starts[0] if word_starts else ids, lengths)
            found.append(column)
        return tuple(found)

    def pack(
        self,
        ids: Ragged,
        pair_ids: Ragged | None = None,
        length: int | None = None,
        fill: int | None = None,
    ) -> Any:
        """Packs the result of `tokenize` into the inputs of a model.

        With BERT's layout, a single text becomes `[CLS] ids [SEP]` and a pair `[CLS] ids [SEP]
        pair_ids [SEP]`, cut to `max_length` (see `truncated_lengths` for pairs, `truncate` for
        single texts) and padded on the right.

        Args:
            ids: `Ragged`, one row per text, without special tokens.
            pair_ids: the same for the second texts, or None.
            length: int, the length to pad to, and the limit for truncation; None for the longest
                row of the batch.
            fill: int, to pack another value for each token: that of special tokens and of padding.

        Returns:
            A dict of int32 arrays `(batch, length)`, one for each of `input_names`: `token_ids`;
            `segment_ids`, which is the layout's `second_segment` from the second text on and 0
            before; `padding_mask`, 1 for real tokens and 0 for padding. With `fill` only the array
            of values.

        Raises:
            ValueError: there is no room for the special tokens, or `length` is above `max_length`.
        """
        layout, pad_id = self.tokenizer.layout, self.tokenizer.pad_token_id
        if fill is not None:
            layout, pad_id = layout.of(fill), fill
        is_pair, limit = pair_ids is not None, self.max_length
        if length is not None:
            advice = "Raise the preprocessor's max_length."
            limit = check_int("length", length, 0, limit, advice)
        num_special, between = layout.num_special(is_pair), layout.between if is_pair else ()
        advice = "The special tokens need room."
        budget = check_int("max_length", limit, num_special, advice=advice) - num_special
        if is_pair:
            lengths = ids.lengths, pair_ids.lengths
            kept = truncated_lengths(*lengths, budget, self.truncation)
            first = Ragged(ids.values, ids.starts, kept[0])
            second = Ragged(pair_ids.values, pair_ids.starts, kept[1])
        else:
            first, second = truncate(ids, budget, self.truncation)
        lengths = first.lengths + second.lengths + num_special
        length = int(lengths.max(initial=0)) if length is None else length
        first_ends = len(layout.before) + first.lengths
        second_begins = first_ends + len(between)
        token_ids = np.full((len(ids), length), pad_id, dtype=np.int32)
        rows = np.arange(len(ids))[:, None]
        token_ids[:, : len(layout.before)] = layout.before
        first.scatter(token_ids, len(layout.before))
        token_ids[rows, first_ends[:, None] + np.arange(len(between))] = between
        second.scatter(token_ids, second_begins)
        ends = second_begins + second.lengths
        token_ids[rows, ends[:, None] + np.arange(len(layout.after))] = layout.after
        if fill is not None:
            return token_ids
        columns = np.arange(length)
        padding_mask = columns < lengths[:, None]
        is_second = padding_mask & (columns >= second_begins[:, None]) & is_pair
        inputs = {TOKEN_IDS: token_ids, SEGMENT_IDS: is_second * layout.second_segment}
        inputs[PADDING_MASK] = padding_mask
        chosen = {}
        for name in self.input_names:
            chosen[name] = inputs[name].astype(np.int32, copy=False)
        return chosen

    def packed_lengths(self, ids: Ragged, pair_ids: Ragged | None = None) -> NDArray[np.int64]:
        """Returns the packed length of each row of `tokenize`'s result: int64 `(num_texts,)`."""
        room, lengths = self.room(pair_ids is not None), ids.lengths
        # Raises before the first batch is made if the strategy cannot make a text fit.
        if pair_ids is None:
            choices = SINGLE_STRATEGIES
            check_choice("truncation", self.truncation, choices, "Pairs have others.")
        else:
            truncated_lengths(lengths, pair_ids.lengths, room, self.truncation)
            lengths = lengths + pair_ids.lengths
        return np.minimum(lengths, room) + self.max_length - room


def split_pairs(
    texts: str | Texts, pairs: str | Texts | None = None
) -> tuple[list[str], list[str] | None]:
    """Returns the columns of first and second texts, after checking them.

    Args:
        texts: a str or a column of str, or a tuple of two columns if `pairs` is None.
        pairs: the second texts, or None.

    Returns:
        A list of str, and another of the same length or None.
    """
    texts, pairs = as_str(texts), as_str(pairs)
    if pairs is None and isinstance(texts, tuple) and len(texts) == 2:
        if all(isinstance(text, str) for text in texts):
            raise ValueError(
                "A tuple of two str could mean two texts or a pair. Received: "
                f"{tuple(text[:40] for text in texts)}. For two texts, pass a list; for a pair, "
                "`([first], [second])`, or the second text as `pairs`."
            )
        texts, pairs = texts
    texts = [texts] if isinstance(texts, str) else as_texts(texts)
    if pairs is None:
        return texts, None
    pairs = [pairs] if isinstance(pairs, str) else as_texts(pairs, "pairs")
    check_pairs(texts, pairs)
    return texts, pairs


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
        labels, sample_weight: what the rows are trained on, see `labelled`, or `None`.
        buckets: the lengths that batches must be padded to, because results depend on the padded
            length, or because a step costs next to nothing. `None`: `fit` may choose fewer.
        draw: method that changes each batch of these rows when it is read, such as one that masks
            tokens, or `None`. It takes the batch; its rows, int64 `(size,)`; and a NumPy
            `Generator`, another one in each epoch, or `None` where batches are not shuffled.
    """

    sequences_per_row = 1
    further_lengths: tuple[int, ...] = ()
    labels = sample_weight = buckets = draw = None

    def __init__(self, lengths: ArrayLike, max_length: int | None = None) -> None:
        self.lengths, self.max_length = np.asarray(lengths, np.int64), max_length

    def __len__(self) -> int:
        return len(self.lengths)

    def inputs(self, indices: NDArray[np.int64], length: int) -> dict[str, Array]:
        """Returns the inputs of some rows, padded to a length. Each subclass defines it.

        Args:
            indices: int64 `(size,)`.
            length: int, at least that of the longest of these rows.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `inputs`.")

    def labelled(self, labels: Any, sample_weight: Any = None) -> Self:
        """Sets what the rows are trained on, and returns them.

        Args:
            labels: labels as the loss takes them: an array `(num_rows, ...)`, a `Ragged` with one
                label per token, a dict of these, or `None`.
            sample_weight: weights in the same form.
        """
        self.labels, self.sample_weight = labels, sample_weight
        return self

    def collect(self, batches: Iterable[Batch]) -> Any:
        """Returns the outputs of all rows, in their order, in the structure of a batch's."""
        indices, outputs = zip(*batches, strict=True)
        return _joined(outputs, np.argsort(np.concatenate(indices)))

    def each(self, batches: Iterable[Batch], read: Callable[[int, Any], Any]) -> list[Any]:
        """Returns what `read` returns for each row's number and output, in the order of rows.

        Outputs that are large are not kept, unlike by `collect`.
        """
        found = [None] * len(self)
        for indices, outputs in batches:
            for row, output in zip(indices, outputs, strict=True):
                found[row] = read(row, output)
        return found


def _joined(outputs, order):
    """Returns arrays, or dicts, lists or tuples of arrays, as one, with its rows in an order."""
    first = outputs[0]
    if isinstance(first, dict):
        return {name: _joined([output[name] for output in outputs], order) for name in first}
    if isinstance(first, (list, tuple)):
        return type(first)(_joined(column, order) for column in zip(*outputs, strict=True))
    return np.concatenate(outputs)[order]


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

    @classmethod
    def of_lists(
        cls, packer: TextPacker, texts: list[str], lists: Sequence[Sequence[str]]
    ) -> GroupRows:
        """Returns a row for each text: its pairs with the texts of its list, which is not empty."""
        counts = np.array([len(row) for row in lists], int)
        ids, _ = packer.tokenize(texts)
        pair_ids, _ = packer.tokenize([text for row in lists for text in row])
        return cls(packer, ids.take(np.repeat(np.arange(len(texts)), counts)), pair_ids, counts)

    def inputs(self, indices, length):
        exists = self.exists[indices]
        inputs = self.packed(self.places[indices].reshape(-1), length)
        padding = {TOKEN_IDS: self.packer.tokenizer.pad_token_id}
        for key, array in inputs.items():
            array[~exists.reshape(-1)] = padding.get(key, 0)
        return {key: array.reshape(*exists.shape, length) for key, array in inputs.items()}
