"""Words of tokenizers that separate none: of SentencePiece, of Gemma's kind, of bytes."""

import keras
import numpy as np
import pytest
import tokenizers
from small_tokenizers import byte_pair_tokenizer, sentence_pieces
from tiny import tiny_backbone
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

import bert_keras
from bert_keras.answers.tagged_texts import place_words
from bert_keras.tokenizers import Tokenizer, UnigramTokenizer
from bert_keras.tokenizers.text_encoder import ROLES, TextEncoder
from bert_keras.tokenizers.words import find_words, number_words

LINES = ["我 爱 北京 天安门", "the cat sat", "東京 に 行く", "ไป กรุงเทพ"] * 60 + ["我爱北京"] * 40
LINES += ["on (mat).", "sat,"] * 20
# Kind -> text, and its words.
WORDS = {
    "unigram": [
        ("我爱北京天安门", "我|爱|北京|天|安|门"),
        ("the cat sat, on (mat).", "the|cat|sat|,|on|(|mat|)."),
        ("  the\u3000cat ", "the|cat"),
        ("the我爱the", "the|我|爱|the"),
        ("ไปรุ", "ไ|ป|รุ"),
    ],
    "gemma": [
        ("the cat sat.", "the|cat|sat|."),
        ("  the   cat ", "the|cat"),
        ("猫a猫", "猫|a|猫"),
        ("don't", "don|'|t"),
    ],
    "byte_pair": [
        ("我爱北京", "我爱|北京"),
        ("the  cat, sat ", "the|cat|,|sat"),
        ("ไปรุ", "ไ|ป|รุ"),
        ("wow!!! cat", "wow|!!!|cat"),
    ],
}


def gemma():
    """A tokenizer of Gemma's kind: a space is `▁`, a part of the piece after it, or a piece."""
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    letters = list("abcdefghijklmnopqrstuvwxyz.'▁")
    merges = [("▁", "c"), ("▁c", "a"), ("▁ca", "t"), ("t", "h"), ("th", "e"), ("▁", "▁")]
    vocabulary = [*special, *(f"<0x{i:02X}>" for i in range(256)), *letters, *map("".join, merges)]
    model = {token: id for id, token in enumerate(vocabulary)}
    backend = tokenizers.Tokenizer(models.BPE(model, merges, unk_token="<unk>", byte_fallback=True))
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    backend.decoder = decoders.Replace("▁", " ")
    backend.post_processor = processors.TemplateProcessing(
        single="<bos> $A <eos>",
        pair="<bos> $A <eos> $B <eos>",
        special_tokens=[("<bos>", 2), ("<eos>", 1)],
    )
    backend.add_special_tokens(special)
    return Tokenizer(backend, cls_token="<bos>", sep_token="<eos>")


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    path = tmp_path_factory.mktemp("unigram") / "sentencepiece.bpe.model"
    path.write_bytes(sentence_pieces(LINES))
    byte_pairs = byte_pair_tokenizer(["the cat sat", "我爱 北京"] * 9, 330)
    return {"unigram": UnigramTokenizer(path), "gemma": gemma(), "byte_pair": byte_pairs}


@pytest.mark.parametrize(
    ("kind", "text", "words"), [(kind, *row) for kind, rows in WORDS.items() for row in rows]
)
def test_words_of_a_text_end_at_spaces_and_punctuation_and_are_pieces_without_spaces(
    kinds, kind, text, words
):
    tokenizer, words = kinds[kind], words.split("|")
    encoding = tokenizer.encode(text, special_tokens=False)
    for spans in (
        find_words(text, encoding.word_ids, encoding.offsets),
        place_words(tokenizer, [text])[0][1],
    ):
        assert [text[start:end] for start, end in spans] == words
    both = tokenizer.encode("the " + text, text)
    second = [w for w, o in zip(both.word_ids, both.offsets, strict=True) if w is not None]
    assert max(encoding.word_ids) + 1 == len(words) and second[-1] == len(words) - 1
    starts = tokenizer.flat_ids([text], word_starts=True)[2]
    assert starts.tolist() == [True, *(np.diff(encoding.word_ids) == 1).tolist()]


def test_a_word_begins_neither_inside_a_character_nor_at_a_mark():
    offsets = [(0, 2), (1, 3), (3, 4), (4, 5), (5, 5)]
    assert number_words("北京市\u0301。", [0] * 5, offsets).tolist() == [0, 0, 0, 1, 1]
    assert number_words("ｶﾞｷﾞ", [0] * 4, [(i, i + 1) for i in range(4)]).tolist() == [0, 0, 1, 1]
    assert number_words("", [], []).tolist() == []


def test_given_words_have_the_pieces_of_their_text_and_keep_their_number(kinds):
    words = ["the", "cat", "", " sat.", "北京"]
    for kind, tokenizer in kinds.items():
        [encoding] = tokenizer.encode_sentences([words])
        assert sorted(set(encoding.word_ids)) == [0, 1, 3, 4]
        for (start, end), word in zip(encoding.offsets, encoding.word_ids, strict=True):
            assert 0 <= start <= end <= len(words[word]) + 1
        text = " the cat" if kind == "byte_pair" else "the cat"
        [encoding] = tokenizer.encode_sentences([text.split()])
        assert encoding.ids == tokenizer(text)


@pytest.mark.parametrize("kind", WORDS)
def test_a_text_is_tagged_by_its_own_pieces_here_and_in_an_exported_folder(kinds, kind):
    keras.utils.set_random_seed(0)
    tokenizer = kinds[kind]
    size = tokenizer.vocabulary_size
    backbone = tiny_backbone(vocabulary_size=size, max_sequence_length=40)
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=38)
    names = ["O", "B-X", "I-X"]
    task = bert_keras.TokenClassifier(backbone, 3, preprocessor=preprocessor, label_names=names)
    texts = [text for text, _ in WORDS[kind]]
    words = [words.split("|") for _, words in WORDS[kind]]
    found = task.tag(texts)
    assert [[word for word, _ in answer["words"]] for answer in found] == words
    for text, logits in zip(texts, task.predict(texts), strict=True):
        prefix = " " if kind == "byte_pair" else ""
        encoding = tokenizer.encode(prefix + text)
        places = np.flatnonzero(np.diff([-1 if w is None else w for w in encoding.word_ids]) > 0)
        expected = task.predict({"token_ids": np.array([encoding.ids])})[0][places + 1]
        np.testing.assert_allclose(logits, expected, atol=1e-5)
    task.compile()
    task.fit(texts, [["O"] * len(row) for row in words], epochs=1, verbose=0)
    task.fit(words, [["O"] * len(row) for row in words], epochs=1, verbose=0)
    roles = {role: getattr(tokenizer, role) for role in ROLES}
    exported = TextEncoder(tokenizer._backend, tokenizer.layout, roles)
    sentences = [*texts, *words]
    theirs = list(exported.encode_sentences(sentences))
    assert theirs == list(tokenizer.encode_sentences(sentences))
