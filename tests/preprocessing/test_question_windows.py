"""Windows of a question and a part of its context."""

import re

import numpy as np
import pytest
import transformers
from checks import cases, refusals
from hypothesis import given
from hypothesis import strategies as st

import bert_keras
from bert_keras.preprocessing.question_windows import QuestionWindows

pytestmark = pytest.mark.once

LETTERS = "abcdefgh"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *"東京タワーüı."]
VOCABULARY += ["##" + letter for letter in LETTERS]


def preprocessor(max_length=12, **options):
    tokenizer = bert_keras.WordPieceTokenizer(VOCABULARY, **options)
    return bert_keras.TextPreprocessor(tokenizer, max_length=max_length)


def windows_of(questions, contexts, max_length=12, **options):
    options = {"stride": 3, "max_question_length": 64, **options}
    return QuestionWindows(preprocessor(max_length), questions, contexts, **options)


def pieces(windows, row):
    ids = windows.inputs(np.array([row]), int(windows.lengths[row]))["token_ids"][0]
    return " ".join(VOCABULARY[i] for i in ids)


def test_a_window_is_the_question_and_a_part_of_the_context():
    windows = windows_of(["a b", "c"], ["a b c d e f g h", "h"], max_length=10)
    assert [pieces(windows, row) for row in range(len(windows))] == [
        "[CLS] a b [SEP] a b c d e [SEP]",
        "[CLS] a b [SEP] d e f g h [SEP]",
        "[CLS] c [SEP] h [SEP]",
    ]
    assert windows.lengths.tolist() == [10, 10, 5]
    packed = windows.inputs(np.array([2, 0]), 10)
    assert packed["segment_ids"].tolist() == [[0] * 3 + [1, 1] + [0] * 5, [0] * 4 + [1] * 6]
    assert packed["padding_mask"].sum(1).tolist() == [5, 10]
    windows.buckets = (16,)
    taken = windows.take(np.array([2, 1]))
    assert [pieces(taken, row) for row in range(2)] == [pieces(windows, row) for row in (2, 1)]
    assert (taken.lengths.tolist(), taken.windows.documents.tolist()) == ([5, 10], [1, 0])
    assert (taken.buckets, len(windows)) == ((16,), 3)


@cases(({"max_question_length": 2}, "a b"), ({}, "a b c d"))
def test_a_long_question_leaves_half_the_room_to_the_context(options, question):
    windows = windows_of(["a b c d e f g h"], ["h g"], **options)
    assert pieces(windows, 0) == f"[CLS] {question} [SEP] h g [SEP]"


def test_the_windows_equal_those_of_hugging_faces_tokenizer():
    vocabulary = {token: i for i, token in enumerate(VOCABULARY)}
    theirs = transformers.BertTokenizer(vocab=vocabulary)
    question, context = "a b c", "abc defg h " * 7
    ours = windows_of([question], [context], max_length=16, stride=4)
    options = {"max_length": 16, "truncation": "only_second", "padding": "max_length"}
    # They count the overlap: 16 - 3 - 3 tokens of context a window, one every 4.
    options |= {"stride": 6, "return_overflowing_tokens": True}
    encoded = theirs(question, context, **options)
    packed = ours.inputs(np.arange(len(ours)), 16)
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids"}
    for name, array in packed.items():
        np.testing.assert_array_equal(array, encoded[names.get(name, "attention_mask")])


TEXTS = st.text("abcdefgh  東京ü\u0308.\u200b", min_size=1)


@given(TEXTS, st.data())
def test_tokens_cover_characters_and_characters_cover_tokens(text, data):
    contexts = ["b", "a" + text]
    windows = windows_of(["b", "b"], contexts)
    # A mark is stripped; it belongs to the token before it.
    offsets = [
        (begin, end + len(re.match("\u0308*", contexts[1][end:])[0]))
        for begin, end in preprocessor().tokenizer.encode(contexts[1]).offsets[1:-1]
    ]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start + 1, len(text) + 1))
    covering = [i for i, (a, b) in enumerate(offsets) if a < end and b > start]
    place = (np.array([x]) for x in (1, start, end))
    first, last = (int(x[0]) for x in windows.tokens_of(*place))
    if covering:
        assert (first, last) == (covering[0], covering[-1])
        assert windows.offsets[1].tolist() == list(map(list, offsets))
    else:
        assert last < first


def test_labels_point_to_the_answer_in_windows_that_hold_it_whole_and_to_cls_in_others():
    # Windows: a b c d e, d e f g h. The same context three times; the last has no answer.
    windows = windows_of(["a b"] * 3, ["a b c d e f g h"] * 3, max_length=10)
    starts, ends = windows.columns_of(np.array([3, 4, -1]), np.array([4, 5, -1]))
    assert starts.tolist() == [7, 4, 0, 5, 0, 0]
    assert ends.tolist() == [8, 5, 0, 6, 0, 0]


def test_an_answer_keeps_the_marks_that_the_tokenizer_strips():
    contexts = ["a bu\u0308 c", "a\r\nb\u0301\u0323\r\nc", "a \u2764\ufe0f c", "a bü\u200d c"]
    answers = ["bu\u0308", "b\u0301\u0323", "\u2764\ufe0f", "bü\u200d"]
    windows = windows_of(["a"] * 4, contexts)
    questions = np.arange(4)
    starts = np.array(list(map(str.index, contexts, answers)))
    ends = starts + np.array(list(map(len, answers)))
    first, last = windows.tokens_of(questions, starts, ends)
    # The tokens are the same with and without the marks at the end.
    bare = windows.tokens_of(questions, starts, starts + np.array([2, 1, 1, 2]))
    np.testing.assert_array_equal((first, last), bare)
    rows = zip(contexts, windows.offsets, first, last, strict=True)
    assert [text[x[a, 0] : x[b, 1]] for text, x, a, b in rows] == answers


test_no_question_and_no_room_are_refused = refusals(
    (lambda: windows_of([], []), "At least one question"),
    (lambda: windows_of(["a"], ["a"], max_length=4), "room for a question"),
)
