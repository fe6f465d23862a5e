import random
import warnings
from collections import Counter

import pytest

from bert_keras.corpora import train_wordpiece
from bert_keras.tokenizers import WordPieceTokenizer

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = [
    "The quick brown fox jumps over the lazy dog, again and again.",
    "Language models read text; a text has words, words have pieces.",
    "Größere Wörter: naïve façade, 中文字符, ΟΔΟΣ!",
    "reading reader reads read; walking walker walks walk",
] * 3


def merge_by_frequency(words, pieces, vocabulary_size, min_frequency=2):
    """The trainer written down plainly: merge the most frequent pair, ties by the lower ids."""
    split = {word: [word[0], *("##" + c for c in word[1:])] for word in words}
    pieces = list(pieces)
    while len(pieces) < vocabulary_size:
        pairs = Counter()
        for word, count in words.items():
            for pair in zip(split[word], split[word][1:], strict=False):
                pairs[pair] += count
        if not pairs:
            break
        ids = {piece: index for index, piece in enumerate(pieces)}
        best = min(pairs, key=lambda pair: (-pairs[pair], ids[pair[0]], ids[pair[1]]))
        if pairs[best] < min_frequency:
            break
        merged = best[0] + best[1].removeprefix("##")
        if merged not in ids:
            pieces.append(merged)
        for word, old in split.items():
            new, position = [], 0
            while position < len(old):
                if tuple(old[position : position + 2]) == best:
                    new.append(merged)
                    position += 2
                else:
                    new.append(old[position])
                    position += 1
            split[word] = new
    return pieces


def test_pieces_are_those_of_merging_by_frequency():
    texts = ["low lower lowest newer newest wide wider widest"] * 3 + ["new low wide"] * 2
    words = Counter(" ".join(texts).split())
    letters = sorted(set("".join(words)))
    inside = sorted({"##" + letter for word in words for letter in word[1:]})
    expected = merge_by_frequency(words, [*SPECIAL_TOKENS, *letters, *inside], 48)
    assert train_wordpiece(texts=texts, vocabulary_size=48) == expected


def test_the_same_text_gives_the_same_vocabulary():
    vocabularies = [train_wordpiece(texts=TEXTS, vocabulary_size=200) for _ in range(5)]
    assert all(vocabulary == vocabularies[0] for vocabulary in vocabularies)
    assert len(set(vocabularies[0])) == len(vocabularies[0]) <= 200


def test_special_tokens_come_first_then_characters():
    vocabulary = train_wordpiece(texts=["ab ba [MASK]"], special_tokens=["[UNK]", "[X]"])
    assert vocabulary[:2] == ["[UNK]", "[X]"]
    assert vocabulary[2:] == [*sorted("[]abkms"), "##a", "##b", "##k", "##s"]


def test_special_tokens_may_be_an_iterator():
    with pytest.raises(ValueError, match="for 5 special tokens and 6 characters"):
        train_wordpiece(texts=["abc cab"], vocabulary_size=8, special_tokens=iter(SPECIAL_TOKENS))


def test_the_vocabulary_covers_its_text():
    tokenizer = WordPieceTokenizer(train_wordpiece(texts=TEXTS, vocabulary_size=300))
    ids, _ = tokenizer.flat_ids(TEXTS)
    assert tokenizer.unknown_token_id not in ids


def test_case_and_accents_are_kept_when_asked():
    uncased = train_wordpiece(texts=TEXTS)
    assert "Ö" not in uncased and "ö" not in uncased
    cased = train_wordpiece(texts=TEXTS, lowercase=False)
    assert "G" in cased and "##ö" in cased


def test_chinese_characters_are_words():
    assert "##文" not in train_wordpiece(texts=TEXTS)
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
    assert train_wordpiece(texts=(text for text in TEXTS), vocabulary_size=150) == expected
    whole = tmp_path / "whole.txt"
    whole.write_text("\n".join(TEXTS), encoding="utf-8")
    assert train_wordpiece(str(whole), vocabulary_size=150) == expected


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


def test_lone_surrogates_do_not_stop_training():
    assert "a" in train_wordpiece(texts=["a\ud800 b"])
    assert "a" in train_wordpiece(texts=iter(["a\ud800 b"]))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "either `files` or `texts`"),
        ({"files": "a", "texts": ["a"]}, ValueError, "either `files` or `texts`"),
        ({"texts": "one text"}, TypeError, "iterable of str"),
        ({"texts": ["a", None]}, TypeError, "None"),
        ({"texts": ["", " \n"]}, ValueError, r"needs characters.* Received: none"),
        ({"files": "missing.txt"}, FileNotFoundError, "missing"),
        ({"files": "latin.txt"}, ValueError, r"latin\.txt"),
        ({"texts": ["abc cab"], "vocabulary_size": 8}, ValueError,
         "vocabulary_size=8 for 5 special tokens and 6"),
    ],
)  # fmt: skip
def test_sources_that_give_no_vocabulary_are_refused(
    tmp_path, monkeypatch, arguments, error, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin.txt").write_bytes("é".encode("latin-1"))
    with pytest.raises(error, match=message):
        train_wordpiece(**arguments)
