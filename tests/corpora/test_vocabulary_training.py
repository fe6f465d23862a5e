import random
import warnings

import pytest
from checks import refused

from bert_keras.corpora import train_wordpiece
from bert_keras.tokenizers import WordPieceTokenizer

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = [
    "The quick brown fox jumps over the lazy dog, again and again.",
    "Language models read text; a text has words, words have pieces.",
    "Größere Wörter: naïve façade, 中文字符, ΟΔΟΣ!",
    "reading reader reads read; walking walker walks walk",
] * 3


def test_pieces_are_merged_by_frequency_and_among_equals_by_the_lower_ids():
    texts = ["ab " * 5 + "abc " * 3 + "bc " * 2 + "ca " * 3 + "cb"]
    letters = ["a", "b", "c", "##a", "##b", "##c"]
    # `ab` occurs 8 times, `ca` and `abc` 3 times each, `bc` twice; `cb` once is too seldom.
    merged = ["ab", "ca", "abc", "bc"]
    for size in (12, 13, 14, 48):
        vocabulary = train_wordpiece(texts=texts, vocabulary_size=size)
        assert vocabulary == [*SPECIAL_TOKENS, *letters, *merged][:size]


def test_special_tokens_come_first_then_characters_and_may_be_an_iterator():
    vocabulary = train_wordpiece(texts=["ab ba [MASK]"], special_tokens=["[UNK]", "[X]"])
    assert vocabulary[:2] == ["[UNK]", "[X]"]
    assert vocabulary[2:] == [*sorted("[]abkms"), "##a", "##b", "##k", "##s"]
    with pytest.raises(ValueError, match="for 5 special tokens and 6 characters"):
        train_wordpiece(texts=["abc cab"], vocabulary_size=8, special_tokens=iter(SPECIAL_TOKENS))


def test_the_vocabulary_covers_its_text_as_the_normalizer_reads_it():
    tokenizer = WordPieceTokenizer(train_wordpiece(texts=TEXTS, vocabulary_size=300))
    ids, _ = tokenizer.flat_ids(TEXTS)
    assert tokenizer.unknown_token_id not in ids
    assert not {"Ö", "ö", "##文"} & {*train_wordpiece(texts=TEXTS)}
    assert {"G", "##ö"} <= {*train_wordpiece(texts=TEXTS, lowercase=False)}
    assert "##文" in train_wordpiece(texts=TEXTS, split_chinese=False)


def test_the_alphabet_is_limited_to_the_most_frequent_characters():
    with pytest.warns(UserWarning, match=r"2 rare characters.*'cd'.*limit_alphabet"):
        vocabulary = train_wordpiece(texts=["aaa bb bb c d"], limit_alphabet=2, min_frequency=5)
    assert vocabulary == [*SPECIAL_TOKENS, "a", "b", "##a", "##b"]


def test_files_lists_and_iterators_give_the_same(tmp_path):
    expected = train_wordpiece(texts=TEXTS, vocabulary_size=150)
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text("".join(text + "\n" for text in TEXTS[:5]), encoding="utf-8")
    second.write_text("\r\n".join(TEXTS[5:]), encoding="utf-8-sig", newline="")
    assert train_wordpiece([first, str(second)], vocabulary_size=150) == expected
    assert train_wordpiece(texts=iter(TEXTS), vocabulary_size=150) == expected
    whole = tmp_path / "whole.txt"
    whole.write_text("\n".join(TEXTS), encoding="utf-8")
    assert train_wordpiece(str(whole), vocabulary_size=150) == expected
    for texts in (["a\ud800 b"], iter(["a\ud800 b"])):  # Lone surrogates do not stop training.
        assert "a" in train_wordpiece(texts=texts)


def test_words_that_are_too_long_are_left_out_and_counted():
    generator = random.Random(0)
    noise = "".join(generator.choices("jklmnopq", k=100_000))
    expected = train_wordpiece(texts=TEXTS, vocabulary_size=150)
    texts = [*TEXTS, noise, f"the {noise[:101]}, {noise[:300]}"]
    with pytest.warns(UserWarning, match="Left out 3 word.s. of more than 100 characters"):
        found = train_wordpiece(texts=texts, vocabulary_size=150)
    # But for one more "the" and a comma.
    assert len(set(found) & set(expected)) > 140
    # Neither signs nor Chinese characters are one word, however many stand together.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "中" in train_wordpiece(texts=["中文字符" * 50 + "," * 200 + "a" * 100])


@refused(
    ({}, "either `files` or `texts`"),
    ({"files": "a", "texts": ["a"]}, "either `files` or `texts`"),
    ({"texts": "one text"}, TypeError, "iterable of str"),
    ({"texts": ["a", None]}, TypeError, "None"),
    ({"texts": ["", " \n"]}, r"needs characters.* Received: none"),
    ({"files": "missing.txt"}, FileNotFoundError, "missing"),
    ({"files": "latin.txt"}, r"latin\.txt"),
    ({"texts": ["abc cab"], "vocabulary_size": 8}, "vocabulary_size=8 for 5 special tokens and 6"),
)
def test_sources_that_give_no_vocabulary_are_refused(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin.txt").write_bytes("é".encode("latin-1"))
    train_wordpiece(**arguments)
