"""The tokenizer in a TensorFlow graph gives what the tokenizer itself gives."""

import unicodedata

import numpy as np
import pytest
from hard_texts import HARD_TEXTS, HARDER_TEXTS, mixed_texts, random_texts
from small_tokenizers import byte_pair_tokenizer
from tokenizers import AddedToken, normalizers

from bert_keras import TextPreprocessor, WordPieceTokenizer
from bert_keras.export import tokenizer_in_graph
from bert_keras.export.text_program import GraphPreprocessor
from bert_keras.export.tokenizer_in_graph import GraphTokenizer

# A graph of TensorFlow, whatever computes the model.
pytestmark = pytest.mark.once
SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MIXED = HARD_TEXTS + HARDER_TEXTS + random_texts(200, seed=1) + mixed_texts(200, seed=1)
NFD = normalizers.NFD().normalize_str
# Marks younger than the library's tables of Unicode, which do not sort them.
YOUNG = {
    mark
    for mark in filter(unicodedata.combining, {letter for text in MIXED for letter in text})
    if NFD(f"\u0345{mark}") == f"\u0345{mark}" and NFD(f"{mark}\u0334")[0] == mark
}
TEXTS = ["".join(letter for letter in text if letter not in YOUNG) for text in MIXED]
# In a list of their characters nothing hides behind `[UNK]`.
LETTERS = {letter for text in TEXTS for letter in text + text.lower()} - {*"\n\r"}
LETTERS |= set(unicodedata.normalize("NFD", "".join(LETTERS)))
VOCABULARY = [
    *SPECIAL_TOKENS,
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
    "abc",
    "##bc",
    "##",
]
SETTINGS = {
    "uncased": {},
    "cased": {"lowercase": False},
    "with accents, unsplit": {"strip_accents": False, "split_chinese": False},
    "cased without accents": {"lowercase": False, "strip_accents": True},
}
CLEANING = {"clean_text": True, "handle_chinese_chars": True}
CLEANING |= {"strip_accents": None, "lowercase": True}


@pytest.fixture(autouse=True, scope="module")
def without_graph_optimization():
    """Graphs run as they were traced: rewriting them takes longer than the tests."""
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


def ids_in_graph(tokenizer, texts):
    import tensorflow as tf

    return GraphTokenizer(tokenizer)(tf.constant(texts)).to_list()


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_any_text_has_the_same_ids(settings):
    import tensorflow as tf

    tokenizer = WordPieceTokenizer(VOCABULARY, **settings)
    spec = tf.TensorSpec((None,), tf.string)
    graph = tf.function(GraphTokenizer(tokenizer), [spec], autograph=False)
    found, wanted = graph(tf.constant(TEXTS)).to_list(), tokenizer(TEXTS)
    assert [row for row in zip(TEXTS, found, wanted, strict=True) if row[1] != row[2]] == []
    assert np.mean([tokenizer.unknown_token_id in ids for ids in wanted]) < 0.15
    assert graph(tf.constant([], tf.string)).to_list() == []


def test_marks_that_vocabularies_lack_change_no_ids():
    assert 1 < len(YOUNG) < 60
    tokenizer = WordPieceTokenizer(VOCABULARY)
    texts = [text for text in MIXED if not YOUNG.isdisjoint(text)]
    assert ids_in_graph(tokenizer, texts) == tokenizer(texts)


@pytest.mark.parametrize("options", [{}, {"lowercase": False, "strip_accents": True}], ids=str)
def test_marks_are_sorted_by_class_but_not_across_other_characters(monkeypatch, options):
    table = tokenizer_in_graph._table_of(**CLEANING)  # A table of its own takes seconds.
    monkeypatch.setattr(tokenizer_in_graph, "_table_of", lambda **cleaning: table)
    high, low = "\U0001d16d", "\U0001d165"  # Marks of class 226 and 216, which are no accents.
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a", f"##{high}", f"##{low}"], **options)
    # U+034F is an accent that goes, but first it keeps marks apart, as U+0345 does not; U+200B goes
    # before all.
    texts = [
        f"a{high}{low}{high}{low}",
        f"a{high}\u034f{low}",
        f"a{high}\u200b{low}",
        f"a{high}\u0345{low}",
        f"a{high} {low}",
    ]
    assert tokenizer(texts[:3]) == [[5, 7, 7, 6, 6], [5, 6, 7], [5, 7, 6]]
    assert ids_in_graph(tokenizer, texts) == tokenizer(texts)


def test_special_tokens_are_found_in_their_exact_spelling():
    added = ["(*", "(*)(", "É1", "two words", "b" * 120]
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a", "mask", "##a", "[", "]", "(", ")", "e"])
    tokenizer._backend.add_special_tokens([*added, AddedToken("[a", lstrip=True, special=True)])
    tokenizer._use(tokenizer._backend)
    texts = [
        "a[MASK]a[mask]",
        "(*)(*(*)((*)",
        "É1 é1 E\u03011 aÉ1",
        "two wordstwo  words two words",
    ]
    texts += ["b" * 121, "[MA\U000f0000SK] [MA\ufffdSK] \U000f0001\U000f0002", "[a  [aa[ a", "[SEP"]
    wanted = tokenizer(texts)
    assert {id for row in wanted for id in row} >= {tokenizer.token_to_id(token) for token in added}
    assert ids_in_graph(tokenizer, texts) == wanted
    assert ids_in_graph(tokenizer.plain(), texts) == tokenizer.plain()(texts)


def test_words_are_unknown_beyond_the_limit_of_characters():
    texts = ["é" * 7 + " " + "é" * 8, "e\u0301" * 7]
    settings = SETTINGS["with accents, unsplit"]  # Whose table there is.
    tokenizer = WordPieceTokenizer(
        [*SPECIAL_TOKENS, "é", "##é"], max_characters_per_word=7, **settings
    )
    assert tokenizer(texts)[0] == [5, 6, 6, 6, 6, 6, 6, 1]
    assert ids_in_graph(tokenizer, texts) == tokenizer(texts)


def test_inputs_are_cut_and_packed_as_by_the_preprocessor():
    import tensorflow as tf

    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *"abcdefgh"])
    texts = [" ".join("abcdefgh"[:n]) for n in (0, 1, 2, 3, 5, 8, 8)]
    for columns in ((texts,), (texts, texts[::-1])):
        for max_length in (8, 9):
            preprocessor = TextPreprocessor(tokenizer, max_length)
            found = GraphPreprocessor(preprocessor)(*map(tf.constant, columns))
            # The graph pads to the longest row; the preprocessor does so on PyTorch alone.
            length = int(preprocessor.packed_lengths(*preprocessor.tokenize(*columns)).max())
            wanted = preprocessor(*columns, length=length)
            assert list(found) == list(wanted)
            for name in wanted:
                np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)
                assert found[name].dtype == "int32"


def test_what_a_graph_cannot_do_exactly_is_refused():
    with pytest.raises(ValueError, match=r"Unigram tensorflow-text has no exact form.*'BPE'"):
        GraphTokenizer(byte_pair_tokenizer(["a b"]))
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a"])
    tokenizer._backend.add_tokens(["new"])
    tokenizer._use(tokenizer._backend)
    with pytest.raises(ValueError, match="before cleaning"):
        GraphTokenizer(tokenizer)
