import doctest

import numpy as np
import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st

from bert_keras.preprocessing import Ragged, pack, packing
from bert_keras.preprocessing.packing import packed_lengths, truncate, truncated_lengths
from bert_keras.tokenizers import Layout

CLS, SEP, PAD = 2, 3, 0
LAYOUT = Layout((CLS,), (SEP,), (SEP,), 1)
IDS = {"layout": LAYOUT, "pad_id": PAD}
rows_of_ids = st.lists(st.lists(st.integers(5, 99), max_size=12), min_size=1, max_size=6)


def remove_one_at_a_time(first, second, budget):
    """The rule of Google's `_truncate_seq_pair`, step by step, on lengths."""
    while first + second > budget:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


def pack_one(first, second, length):
    """A packed row, written down plainly."""
    row, segments = [CLS, *first, SEP], [0] * (len(first) + 2)
    if second is not None:
        row += [*second, SEP]
        segments += [1] * (len(second) + 1)
    padding = length - len(row)
    return row + [PAD] * padding, segments + [0] * padding, [1] * len(row) + [0] * padding


def as_lists(inputs):
    names = ("token_ids", "segment_ids", "padding_mask")
    return [list(row) for row in zip(*(inputs[name].tolist() for name in names), strict=True)]


def test_examples_in_docstrings_hold():
    assert doctest.testmod(packing).failed == 0


def test_longest_first_removes_what_google_s_loop_removes():
    for first in range(14):
        for second in range(14):
            for budget in range(20):
                kept = truncated_lengths([first], [second], budget)
                expected = remove_one_at_a_time(first, second, budget)
                assert (kept[0][0], kept[1][0]) == expected


def test_longest_first_equals_hugging_face_s_where_the_budget_is_even(tmp_path):
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    theirs = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"))
    for first in (1, 2, 5, 8):
        for second in (1, 4, 7, 10):
            for max_length in (5, 7, 11, 15):
                ours = pack([[5] * first], [[6] * second], **IDS, max_length=max_length)
                expected = theirs(
                    "a " * first, "b " * second, truncation="longest_first", max_length=max_length
                )
                assert ours["token_ids"][0].tolist() == expected["input_ids"]
                assert ours["segment_ids"][0].tolist() == expected["token_type_ids"]
                assert ours["padding_mask"][0].tolist() == expected["attention_mask"]


@pytest.mark.parametrize("truncation", ["only_first", "only_second"])
def test_cutting_one_text_equals_hugging_face_s(tmp_path, truncation):
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    theirs = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"))
    for max_length in (10, 12, 20):
        ours = pack([[5] * 6], [[6] * 5], **IDS, max_length=max_length, truncation=truncation)
        expected = theirs("a " * 6, "b " * 5, truncation=truncation, max_length=max_length)
        assert ours["token_ids"][0].tolist() == expected["input_ids"]


@pytest.mark.parametrize(
    ("truncation", "message"),
    [("only_first", "Received 6 at the index 1"), ("only_second", "index 0")],
)
def test_a_text_that_may_not_be_cut_must_fit(truncation, message):
    with pytest.raises(ValueError, match=message):
        pack([[5] * 6, [5]], [[6], [6] * 6], **IDS, max_length=8, truncation=truncation)


@pytest.mark.parametrize(
    ("truncation", "expected"),
    [
        ("head", [0, 1, 2, 3, 4, 5]),
        ("longest_first", [0, 1, 2, 3, 4, 5]),
        ("only_first", [0, 1, 2, 3, 4, 5]),
        ("tail", [4, 5, 6, 7, 8, 9]),
        ("head_tail", [0, 1, 2, 7, 8, 9]),
    ],
)
def test_single_texts_keep_what_the_strategy_says(truncation, expected):
    inputs = pack([list(range(10)), [7]], **IDS, max_length=8, truncation=truncation)
    assert inputs["token_ids"].tolist() == [[CLS, *expected, SEP], [CLS, 7, SEP, 0, 0, 0, 0, 0]]


def test_head_and_tail_are_128_and_382_tokens_at_bert_s_512():
    text = np.arange(10_000, 11_000)
    inputs = pack([text, text[:510], text[:511]], **IDS, max_length=512, truncation="head_tail")
    content = inputs["token_ids"][:, 1:-1]
    assert content[0].tolist() == [*text[:128], *text[-382:]]
    assert content[1].tolist() == text[:510].tolist()
    assert content[2].tolist() == [*text[:128], *text[129:511]]
    head, tail = truncate([text], 510, "head_tail")
    assert (head.lengths[0], tail.lengths[0]) == (128, 382)


@given(rows_of_ids, st.integers(2, 16), st.sampled_from(packing.SINGLE_STRATEGIES))
def test_packed_single_texts_are_framed_and_never_too_long(rows, max_length, truncation):
    inputs = pack(rows, **IDS, max_length=max_length, truncation=truncation)
    lengths = inputs["padding_mask"].sum(axis=1)
    assert lengths.tolist() == packed_lengths(rows, layout=LAYOUT, max_length=max_length).tolist()
    assert inputs["token_ids"].shape == (len(rows), max(lengths)) and max(lengths) <= max_length
    for row, (ids, segments, mask) in zip(rows, as_lists(inputs), strict=True):
        head, tail = truncate([row], max_length - 2, truncation)
        kept = head[0].tolist() + tail[0].tolist()
        assert len(kept) == min(len(row), max_length - 2)
        assert [ids, segments, mask] == list(pack_one(kept, None, len(ids)))


@given(rows_of_ids, st.integers(3, 20), st.integers(0, 4), st.randoms())
def test_packed_pairs_are_framed_and_never_too_long(rows, max_length, extra, random):
    seconds = [random.choices(range(5, 99), k=random.randrange(12)) for _ in rows]
    length = max_length + extra
    inputs = pack(rows, seconds, **IDS, max_length=max_length, length=length)
    expected_lengths = packed_lengths(rows, seconds, layout=LAYOUT, max_length=max_length)
    assert inputs["padding_mask"].sum(axis=1).tolist() == expected_lengths.tolist()
    for first, second, packed in zip(rows, seconds, as_lists(inputs), strict=True):
        kept = remove_one_at_a_time(len(first), len(second), max_length - 3)
        assert packed == list(pack_one(first[: kept[0]], second[: kept[1]], length))


def test_arrays_are_int32_and_padded_to_the_length_asked():
    inputs = pack([[7]], [[]], **IDS, max_length=16, length=6)
    assert sorted(inputs) == ["padding_mask", "segment_ids", "token_ids"]
    assert {array.dtype for array in inputs.values()} == {np.dtype("int32")}
    assert inputs["token_ids"].tolist() == [[CLS, 7, SEP, SEP, PAD, PAD]]
    assert inputs["segment_ids"].tolist() == [[0, 0, 0, 1, 0, 0]]
    assert inputs["padding_mask"].tolist() == [[1, 1, 1, 1, 0, 0]]


def test_empty_texts_and_empty_batches_are_legal():
    assert pack([[]], **IDS, max_length=8)["token_ids"].tolist() == [[CLS, SEP]]
    assert pack([[]], [[]], **IDS, max_length=8)["token_ids"].tolist() == [[CLS, SEP, SEP]]
    assert pack([], **IDS, max_length=8)["token_ids"].shape == (0, 0)
    assert pack([], [], **IDS, max_length=8, length=4)["token_ids"].shape == (0, 4)


def test_rows_may_be_views_into_one_array():
    ids = Ragged(np.arange(10, 20), starts=[4, 0], lengths=[3, 2])
    inputs = pack(ids, **IDS, max_length=8)
    assert inputs["token_ids"].tolist() == [[CLS, 14, 15, 16, SEP], [CLS, 10, 11, SEP, PAD]]


def test_lengths_without_room_are_refused():
    with pytest.raises(ValueError, match=r"`max_length` must be an int from 2\. Received: 1"):
        pack([[7]], **IDS, max_length=1)
    with pytest.raises(ValueError, match=r"`max_length` must be an int from 3\. Received: 2"):
        pack([[7]], [[7]], **IDS, max_length=2)
    with pytest.raises(ValueError, match=r"`length` must be an int from 3\. Received: 2"):
        pack([[7]], **IDS, max_length=8, length=2)
    with pytest.raises(ValueError, match="1 first and 2 second"):
        pack([[7]], [[7], [8]], **IDS, max_length=8)


def test_strategies_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"'head', .*'only_second'\. Pairs allow"):
        pack([[7]], **IDS, max_length=8, truncation="only_second")
    for truncation in ("head", "tail", "head_tail", "longest"):
        with pytest.raises(ValueError, match=f"'only_second'.*'{truncation}'. Single"):
            pack([[7]], [[7]], **IDS, max_length=8, truncation=truncation)
