import numpy as np
import pytest
import tokenizers
from checks import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_keras.corpora import documents, train_wordpiece
from bert_keras.corpora.documents import CachedTokenizer, cut_long_sentences
from bert_keras.tokenizers import Tokenizer, WordPieceTokenizer

TEXTS = [
    "The quick brown fox, the lazy dog: Größe naïve façade.",
    "中文字符 and  two spaces\ttab\u00a0nbsp \u200b zero\u0301 width ΟΔΟΣ [MASK] x[SEP]y",
    "",
    " ",
    "\ud800 lone surrogate",
    "a\u0085b c\x1cd \u0301 e",
    "don't “quote” — it’s 3.14… [MASK][MASK] [CLS [SEP]] x" + "y" * 120,
    "line\nend\r\n",
    "《天》，地。「人」’\u0301a",
]


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(train_wordpiece(texts=TEXTS * 2, vocabulary_size=120))


def check_same(tokenizer, cached, texts):
    np.testing.assert_equal(cached.flat_ids(texts), tokenizer.flat_ids(texts))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.text(st.one_of(st.sampled_from(" aß.#[文\u0301\n"), st.characters()), max_size=12))
)
def test_cached_words_have_the_same_ids_for_any_text(tokenizer, texts):
    check_same(tokenizer, CachedTokenizer(tokenizer), texts)


def test_emptying_a_full_cache_changes_no_ids(tokenizer, monkeypatch):
    monkeypatch.setattr(documents, "WORDS_REMEMBERED", 3)
    cached = CachedTokenizer(tokenizer)
    for texts in (TEXTS, TEXTS[:2], TEXTS):
        check_same(tokenizer, cached, texts)


def test_added_tokens_with_spaces_are_not_split():
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "a b"]
    tokenizer = WordPieceTokenizer(vocabulary, added_tokens=["a b"])
    ids, _ = CachedTokenizer(tokenizer).flat_ids(["a b", "b"])
    assert ids.tolist() == [7, 6]


@cases(
    ("normalizer", tokenizers.normalizers.Replace("-", ""), "ab"),
    ("pre_tokenizer", tokenizers.pre_tokenizers.WhitespaceSplit(), "a-b"),
)
def test_a_tokenizer_that_splits_at_other_places_gets_whole_texts(part, other, token):
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a-b", "a", "-", "b", "ab"]
    backend = tokenizers.Tokenizer.from_str(WordPieceTokenizer(vocabulary).to_json())
    setattr(backend, part, other)
    ids, _ = CachedTokenizer(Tokenizer(backend)).flat_ids(["a-b"])
    assert ids.tolist() == [vocabulary.index(token)]


def test_long_sentences_are_cut():
    pieces, counts = cut_long_sentences(np.array([3, 0, 10, 4]), 4)
    assert pieces.tolist() == [3, 4, 4, 2, 4]
    assert counts.tolist() == [1, 0, 3, 1]
