"""Truncation and packing: token ids to `[CLS] first [SEP] second [SEP]`, padded to a rectangle."""

import numpy as np

from bert_keras.preprocessing.ragged import Ragged

PAIR_STRATEGIES = ("longest_first", "only_first", "only_second")
SINGLE_STRATEGIES = ("longest_first", "only_first", "head", "tail", "head_tail")
STRATEGIES = ("longest_first", "only_first", "only_second", "head", "tail", "head_tail")
# Sun et al. keep the first 128 of the 510 tokens that fit between [CLS] and [SEP].
HEAD_LENGTH = 128


def truncated_lengths(first, second, budget, truncation="longest_first"):
    """Returns how many tokens of each text of a pair stay so that both together fit.

    `longest_first` removes one token at a time from the end of the longer text, of the second where
    both are equally long, exactly as Google's `_truncate_seq_pair`. In closed form, with lengths
    `a`, `b` and budget `n`: `a' = min(a, max(ceil(n / 2), n - b))` and
    `b' = min(b, max(floor(n / 2), n - a))`. (Hugging Face's library gives the odd token to the
    longer text instead.)

    Args:
        first: int `(batch,)`, lengths of the first texts.
        second: int `(batch,)`, lengths of the second texts.
        budget: int, tokens that fit, special tokens not counted.
        truncation: `"longest_first"`, `"only_first"` or `"only_second"`.

    Returns:
        Two int arrays `(batch,)`.

    Raises:
        ValueError: the text that may not be cut leaves no room.
    """
    first, second = np.asarray(first, np.int64), np.asarray(second, np.int64)
    if truncation == "longest_first":
        kept_first = np.minimum(first, np.maximum((budget + 1) // 2, budget - second))
        kept_second = np.minimum(second, np.maximum(budget // 2, budget - first))
        return kept_first, kept_second
    if truncation == "only_first":
        return _cut_to(first, budget - second, truncation, budget), second
    if truncation == "only_second":
        return first, _cut_to(second, budget - first, truncation, budget)
    raise ValueError(
        f"`truncation` of pairs must be one of {PAIR_STRATEGIES}. Received: {truncation!r}."
    )


def _cut_to(lengths, room, truncation, budget):
    if np.any(room < 0):
        row = int(np.argmax(room < 0))
        raise ValueError(
            f"`truncation={truncation!r}` needs the other text to fit. Received: in row {row} the "
            f"other text has {budget - int(room[row])} tokens where {budget} fit. Raise "
            "`max_length`, use 'longest_first', or cut the text into windows."
        )
    return np.minimum(lengths, room)


def truncate(ids, budget, truncation="longest_first"):
    """Cuts single texts down to `budget` tokens.

    `head` keeps the first tokens (`longest_first` and `only_first` do the same), `tail` the last
    ones, `head_tail` the first 128 and fills up with the last ones: 128 + 382 at BERT's 510, after
    Sun et al.; where fewer than 256 fit, one half each.

    Args:
        ids: `Ragged` or list of lists of int.
        budget: int, tokens that fit, special tokens not counted.
        truncation: `"head"`, `"tail"`, `"head_tail"`, `"longest_first"` or `"only_first"`.

    Returns:
        Two `Ragged` with as many rows, the beginnings and the ends; a row's tokens are its
        beginning followed by its end. The end is empty except where `head_tail` had to cut.

    Reference: Sun et al. 2019, https://arxiv.org/abs/1905.05583, section 5.3.1.
    """
    ids = Ragged.from_rows(ids)
    if truncation not in SINGLE_STRATEGIES:
        raise ValueError(
            f"`truncation` of single texts must be one of {SINGLE_STRATEGIES}. Received: "
            f"{truncation!r}."
        )
    kept = np.minimum(ids.lengths, budget)
    ends = ids.starts + ids.lengths
    if truncation == "tail":
        return Ragged(ids.values, ends - kept, kept), Ragged(ids.values, ends, 0 * kept)
    if truncation == "head_tail":
        head = np.where(ids.lengths > budget, min(HEAD_LENGTH, budget // 2), kept)
    else:
        head = kept
    tail = kept - head
    return Ragged(ids.values, ids.starts, head), Ragged(ids.values, ends - tail, tail)


def packed_lengths(ids, pair_ids=None, *, max_length):
    """Returns how long each packed sequence is, special tokens included: int64 `(batch,)`."""
    lengths = Ragged.from_rows(ids).lengths + 2
    if pair_ids is not None:
        lengths = lengths + Ragged.from_rows(pair_ids).lengths + 1
    return np.minimum(lengths, max_length)


def pack(
    ids,
    pair_ids=None,
    *,
    cls_id,
    sep_id,
    pad_id,
    max_length,
    truncation="longest_first",
    length=None,
):
    """Packs token ids into the inputs of a model.

    A single text becomes `[CLS] ids [SEP]`, a pair `[CLS] ids [SEP] pair_ids [SEP]`, cut to
    `max_length` and padded on the right.

    Args:
        ids: `Ragged` or list of lists of int, one row per text, no special tokens.
        pair_ids: the same for the second texts, or None.
        cls_id: int, id of `[CLS]`.
        sep_id: int, id of `[SEP]`.
        pad_id: int, id of `[PAD]`.
        max_length: int, the longest sequence allowed, special tokens included.
        truncation: one of `"longest_first"`, `"only_first"`, `"only_second"` for pairs (see
            `truncated_lengths`), `"head"`, `"tail"`, `"head_tail"` for single texts (see
            `truncate`).
        length: int, the length to pad to; None for that of the batch's longest row.

    Returns:
        A dict of int32 arrays `(batch, length)`: `token_ids`; `segment_ids`, 0 for the first text
        and its special tokens, 1 for the second text and its `[SEP]`, 0 for padding;
        `padding_mask`, 1 for real tokens and 0 for padding.

    Raises:
        ValueError: a length is too small, or rows do not match.

    Example:

    >>> pack([[7, 8]], [[9]], cls_id=2, sep_id=3, pad_id=0, max_length=8, length=7)["token_ids"]
    array([[2, 7, 8, 3, 9, 3, 0]], dtype=int32)
    """
    ids = Ragged.from_rows(ids)
    num_special = 2 if pair_ids is None else 3
    if max_length < num_special:
        raise ValueError(
            f"`max_length` must leave room for the {num_special} special tokens. Received: "
            f"max_length={max_length}."
        )
    budget = max_length - num_special
    if pair_ids is None:
        first, second = truncate(ids, budget, truncation)
    else:
        first, second = _truncate_pairs(ids, Ragged.from_rows(pair_ids), budget, truncation)
    lengths = first.lengths + second.lengths + num_special
    longest = int(lengths.max(initial=0))
    length = longest if length is None else length
    if longest > length:
        raise ValueError(
            f"`length` must hold the longest packed row. Received: length={length}, longest row "
            f"{longest}. Lower `max_length` to cut rows."
        )
    columns = np.arange(length)
    padding_mask = columns < lengths[:, None]
    token_ids = np.full((len(ids), length), pad_id, dtype=np.int32)
    token_ids[:, :1] = cls_id
    first.scatter(token_ids, 1)
    rows = np.arange(len(ids))
    token_ids[rows, lengths - 1] = sep_id
    segment_ids = np.zeros((len(ids), length), dtype=np.int32)
    if pair_ids is None:
        second.scatter(token_ids, 1 + first.lengths)
    else:
        second_begins = 2 + first.lengths
        token_ids[rows, second_begins - 1] = sep_id
        second.scatter(token_ids, second_begins)
        segment_ids[padding_mask & (columns >= second_begins[:, None])] = 1
    return {
        "token_ids": token_ids,
        "segment_ids": segment_ids,
        "padding_mask": padding_mask.astype(np.int32),
    }


def _truncate_pairs(ids, pair_ids, budget, truncation):
    if len(ids) != len(pair_ids):
        raise ValueError(
            "First and second texts must be equally many. Received: "
            f"{len(ids)} first and {len(pair_ids)} second texts."
        )
    first, second = truncated_lengths(ids.lengths, pair_ids.lengths, budget, truncation)
    return (
        Ragged(ids.values, ids.starts, first),
        Ragged(pair_ids.values, pair_ids.starts, second),
    )
