"""Rows of ids become padded arrays with special tokens, and long ones are truncated."""

import types

import numpy as np
import pytest
import transformers
from checks import cases
from hypothesis import given
from hypothesis import strategies as st

from bert_keras.preprocessing import Ragged, collate
from bert_keras.preprocessing.collate import TextPacker, truncate, truncated_lengths
from bert_keras.tokenizers import Layout
from bert_keras.tokenizers.vocabulary import write_vocabulary

pytestmark = pytest.mark.once

CLS, SEP, PAD = 2, 3, 0
LAYOUT = Layout((CLS,), (SEP,), (SEP,), 1)
ROBERTA = Layout((0,), (2, 2), (2,), 0)
rows_of_ids = st.lists(st.lists(st.integers(5, 99), max_size=12), min_size=1, max_size=6)


def packer(max_length, truncation="longest_first", layout=LAYOUT, pad_id=PAD):
    tokenizer = types.SimpleNamespace(layout=layout, pad_token_id=pad_id)
    return TextPacker(tokenizer, max_length, truncation)


def pack(*rows, length=None, **options):
    return packer(**options).pack(*map(Ragged.from_rows, rows), length=length)


def packed_lengths(*rows, **options):
    return packer(**options).packed_lengths(*map(Ragged.from_rows, rows))


def pack_one(first, second, length):
    """Returns a packed row: ids, segments and mask."""
    row, segments = [CLS, *first, SEP], [0] * (len(first) + 2)
    if second is not None:
        row += [*second, SEP]
        segments += [1] * (len(second) + 1)
    padding = length - len(row)
    return row + [PAD] * padding, segments + [0] * padding, [1] * len(row) + [0] * padding


def as_lists(inputs):
    names = ("token_ids", "segment_ids", "padding_mask")
    return [list(row) for row in zip(*(inputs[name].tolist() for name in names), strict=True)]


@cases(
    *(("longest_first", a, b, range(4, 20)) for a in (1, 2, 5, 8) for b in (1, 4, 7, 10)),
    ("only_first", 6, 5, (10, 12, 20)),
    ("only_second", 6, 5, (10, 12, 20)),
)
def test_pairs_are_truncated_as_by_hugging_face(tmp_path, truncation, first, second, max_lengths):
    write_vocabulary(tmp_path / "vocab.txt", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"ab"])
    theirs = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"))
    for max_length in max_lengths:
        options = {"max_length": max_length, "truncation": truncation}
        ours = pack([[5] * first], [[6] * second], **options)
        expected = theirs("a " * first, "b " * second, **options)
        names = ("input_ids", "token_type_ids", "attention_mask")
        assert as_lists(ours) == [[expected[name] for name in names]]


@cases(
    *((name, [0, 1, 2, 3, 4, 5]) for name in ("head", "longest_first", "only_first")),
    ("tail", [4, 5, 6, 7, 8, 9]),
    ("head_tail", [0, 1, 2, 7, 8, 9]),
)
def test_the_strategy_decides_which_tokens_of_a_single_text_are_kept(truncation, expected):
    inputs = pack([list(range(10)), [7]], max_length=8, truncation=truncation)
    assert inputs["token_ids"].tolist() == [[CLS, *expected, SEP], [CLS, 7, SEP, 0, 0, 0, 0, 0]]


def test_head_and_tail_are_128_and_382_tokens_at_berts_512():
    text = np.arange(10_000, 11_000)
    inputs = pack([text, text[:510], text[:511]], max_length=512, truncation="head_tail")
    expected = [[*text[:128], *text[-382:]], text[:510], [*text[:128], *text[129:511]]]
    np.testing.assert_array_equal(inputs["token_ids"][:, 1:-1], expected)
    head, tail = truncate(Ragged.from_rows([text]), 510, "head_tail")
    assert (head.lengths[0], tail.lengths[0]) == (128, 382)


@given(rows_of_ids, st.integers(2, 16), st.sampled_from(collate.SINGLE_STRATEGIES))
def test_packed_single_texts_are_framed_and_never_too_long(rows, max_length, truncation):
    inputs = pack(rows, max_length=max_length, truncation=truncation)
    lengths = inputs["padding_mask"].sum(axis=1)
    assert lengths.tolist() == packed_lengths(rows, max_length=max_length).tolist()
    assert inputs["token_ids"].shape == (len(rows), max(lengths)) and max(lengths) <= max_length
    for row, (ids, segments, mask) in zip(rows, as_lists(inputs), strict=True):
        head, tail = truncate(Ragged.from_rows([row]), max_length - 2, truncation)
        kept = head[0].tolist() + tail[0].tolist()
        assert len(kept) == min(len(row), max_length - 2)
        assert [ids, segments, mask] == list(pack_one(kept, None, len(ids)))


@given(rows_of_ids, st.integers(3, 20), st.randoms())
def test_packed_pairs_have_special_tokens_and_are_never_too_long(rows, length, random):
    seconds = [random.choices(range(5, 99), k=random.randrange(12)) for _ in rows]
    inputs = pack(rows, seconds, max_length=20, length=length)
    expected_lengths = packed_lengths(rows, seconds, max_length=length)
    assert inputs["padding_mask"].sum(axis=1).tolist() == expected_lengths.tolist()
    for first, second, packed in zip(rows, seconds, as_lists(inputs), strict=True):
        kept = truncated_lengths(len(first), len(second), length - 3)
        assert packed == list(pack_one(first[: kept[0]], second[: kept[1]], length))


@cases(
    ([[[]]], [[CLS, SEP]]),
    ([[[]], [[]]], [[CLS, SEP, SEP]]),
    ([[]], []),
    ([[], []], []),
    (  # Views into one array.
        [Ragged(np.arange(10, 20), starts=[4, 0], lengths=[3, 2])],
        [[CLS, 14, 15, 16, SEP], [CLS, 10, 11, SEP, PAD]],
    ),
)
def test_empty_texts_empty_batches_and_views_are_packed(rows, expected):
    assert pack(*rows, max_length=8)["token_ids"].tolist() == expected


OF_ROBERTA = [[0, 7, 8, 2, 2, 5, 2, 1, 1], [0, 9, 2, 2, 6, 6, 6, 6, 2]]


@cases(
    (([[7, 8], [9]], [[5], [6] * 5]), ROBERTA, OF_ROBERTA),
    (([[7]],), ROBERTA, [[0, 7, 2]]),
    (([[3]], [[4]]), Layout((8, 9), (7,), (), 1), [[8, 9, 3, 7, 4]]),
)
def test_rows_are_packed_in_any_layout(rows, layout, expected):
    inputs = pack(*rows, layout=layout, pad_id=1, max_length=9)
    assert inputs["token_ids"].tolist() == expected
    second = [[0, 0, 0, 0, 1]] if layout.second_segment else np.zeros_like(expected).tolist()
    assert inputs["segment_ids"].tolist() == second
    lengths = packed_lengths(*rows, layout=layout, max_length=9)
    assert lengths.tolist() == inputs["padding_mask"].sum(1).tolist()
