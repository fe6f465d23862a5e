import time

import pytest
from checks import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_keras.corpora import split_sentences


@cases(
    ["It was late.", "She left."],
    ["“Well!” thought Alice.", "‘Is it?’ he asked."],
    ['"Go!"', "He went."],
    ["Mr. and Mrs. Bennet had five daughters.", "One sang."],
    ["Henry J. Smith of St. Louis met Dr. Watson, e.g. on Monday.", "So did I.",
     "Then he left."],
    ["He came at 3 p.m. on a Friday.", "It cost 3.50 dollars."],
    ["They sold fruit, nuts, etc. and left.", "They sold fruit, nuts, etc.", "We left."],
    ["Wait... what?", "Nothing!!", "(Really.)", "1890 was dry."],
    ["No stop at all"],
    ["Él no viene.", "¿Por qué?", "Ölfässer sind schwer."],
)  # fmt: skip
def test_english_and_its_neighbours(expected):
    assert split_sentences(" ".join(expected)) == expected


@cases(
    ["宝玉笑道：“好！”", "黛玉不语。", "怎么？！", "走罢"],
    ["士隐笑道：“非也．", "适因小女啼哭．”", "众人不解."],
    ["「何人？」", "他說：『我。』", "共３．５里．"],
    ["价格3．5元。", "我用Python 3.5写。"],
)
def test_chinese_needs_no_spaces(expected):
    assert split_sentences("".join(expected)) == expected


def test_nothing_gives_nothing():
    assert split_sentences("") == split_sentences(" \t ") == []


@settings(max_examples=200, deadline=None)
@given(st.text(st.one_of(st.sampled_from('.!?…。！ ’”"A a1'), st.characters()), max_size=40))
def test_no_character_is_lost(text):
    parts = split_sentences(text)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(part == part.strip() and part for part in parts)


@pytest.mark.parametrize("unit", [".", "。", "a.", "A. ", '"', ".’", "!? ", " ", "．", "——", "1．"])
def test_megabytes_of_anything_take_linear_time(unit):
    started = time.process_time()
    split_sentences("x" + unit * (200_000 // len(unit)))
    assert time.process_time() - started < 2
