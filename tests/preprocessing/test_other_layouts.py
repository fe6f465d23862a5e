"""Preprocessing with a byte-pair tokenizer, whose layout is `<s> A </s></s> B </s>`."""

import types

import numpy as np
import pytest

from bert_keras.corpora import PretrainingBatches, create_pretraining_data, read_shard
from bert_keras.preprocessing import Masking, TextPreprocessor
from bert_keras.preprocessing.batching import BucketedBatches
from bert_keras.preprocessing.question_windows import QuestionWindows
from bert_keras.tasks.masked_lm import TextsToMask

pytestmark = pytest.mark.once

INPUTS = ("token_ids", "padding_mask")
PAD, MASK = 1, 4


@pytest.fixture(scope="module")
def preprocessor(byte_pair):
    return TextPreprocessor(byte_pair, max_length=16).for_inputs(INPUTS)


def test_word_starts_are_packed_like_their_tokens(preprocessor, byte_pair):
    texts = ["The old man and the sea. Unsailed!", "Hemingway's Unsailed!", " Unsailed!"]
    for columns in ((texts,), (texts, texts[::-1])):
        ids, starts = (preprocessor.tokenize(*columns, word_starts=x) for x in (False, True))
        packed = preprocessor.pack(*ids, length=16)["token_ids"]
        flags = preprocessor.pack(*starts, length=16, fill=1).astype(bool)
        assert flags.shape == packed.shape
        pieces = [byte_pair.id_to_token(id) for id in packed.ravel()]
        begins = [not piece[0].isalpha() or piece[0] == "Ġ" for piece in pieces]
        assert flags.ravel()[begins].all()
        assert not flags.all(axis=1).any()


@pytest.mark.parametrize("shuffle", [True, False])
def test_whole_words_of_the_text_are_masked(byte_pair, shuffle):
    text = "Hemingway's old man, and the unquestionably youngish woman"
    options = {"masking": Masking(0.3, 1.0, 0.0, "whole_words"), "has_next_sentence": False}
    preprocessor = TextPreprocessor(byte_pair, max_length=40)
    task = types.SimpleNamespace(preprocessor=preprocessor, **options)
    rows = TextsToMask(task, [text] * 200)
    kinds = rows.kinds
    assert kinds.continues_word is None
    assert np.flatnonzero(kinds.is_special).tolist() == [0, 1, 2, 3, 4]
    batches = BucketedBatches(rows.labelled(np.zeros(200)), shuffle=shuffle)
    inputs, _, _ = batches[0]
    words = np.array([-1 if word is None else word for word in byte_pair.encode(text).word_ids])
    assert np.max(np.bincount(words[words >= 0])) > 1
    hidden = inputs["token_ids"][:, : len(words)] == MASK
    assert hidden.any(axis=1).all()
    for word in range(words.max() + 1):
        inside = hidden[:, words == word]
        np.testing.assert_array_equal(inside.all(axis=1), inside.any(axis=1))
    with pytest.raises(ValueError, match="need `word_starts`"):
        rows.masking(inputs["token_ids"], kinds, np.random.default_rng(0), inputs["padding_mask"])


def test_questions_and_contexts_are_packed_in_the_layout(preprocessor, byte_pair):
    assert (preprocessor.room(), preprocessor.room(is_pair=True)) == (14, 12)
    context = "The old 😀 man  and the sea. " * 3
    options = {"stride": 3, "max_question_length": 5}
    windows = QuestionWindows(preprocessor, ["Who came?"], [context], **options)
    packed = windows.inputs(np.arange(len(windows)), 16)
    assert sorted(packed) == ["padding_mask", "token_ids"]
    question, ids = byte_pair("Who came?")[:5], byte_pair(context)
    places = zip(windows.windows.starts, windows.windows.lengths, strict=True)
    for row, (start, length) in enumerate(places):
        expected = [0, *question, 2, 2, *ids[start : start + length], 2]
        assert packed["token_ids"][row, : len(expected)].tolist() == expected
        assert windows.lengths[row] == len(expected)
        assert packed["token_ids"][row, windows.first_columns[row]] == ids[start]
    for answer in ("old", "😀", "man  and", "sea", "The old 😀 man"):
        begin = context.index(answer)
        span = np.array([begin]), np.array([begin + len(answer)])
        first, last = windows.tokens_of(np.array([0]), *span)
        (characters,) = windows.offsets
        assert context[characters[first[0], 0] : characters[last[0], 1]] == answer


def characters_of(sentence):
    """A word segmenter that makes a word of every two characters, spaces left out."""
    text = "".join(sentence.split())
    return [text[start : start + 2] for start in range(0, len(text), 2)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    sentences = ["The old man came.", "A ship sails, and <mask> went.", "The sea.", "老人与海。"]
    rows = [sentences[i % 4] + "\n" + sentences[(i + i // 4) % 4] for i in range(24)]
    path.write_text("\n\n".join(rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=["full_sentences", "next_sentence"])
def shards(request, corpus, byte_pair, tmp_path_factory):
    """Folders of pre-training data, without and with a word segmenter, by that."""
    folders = {}
    for segmenter in (None, characters_of):
        folders[segmenter] = tmp_path_factory.mktemp("shards")
        options = {"sequence_length": 24, "objective": request.param, "num_workers": 1}
        manifest = create_pretraining_data(
            corpus, byte_pair, str(folders[segmenter]), word_segmenter=segmenter, **options
        )
        assert manifest["counts"]["unknown_tokens"] == 0
    return request.param == "next_sentence", folders


@pytest.mark.parametrize("segmenter", [None, characters_of])
def test_pretraining_data_has_the_tokenizers_layout(shards, byte_pair, segmenter):
    has_second, folders = shards
    arrays = read_shard(*folders[segmenter].glob("*.safetensors"))
    ids, starts = (np.array(arrays[name]) for name in ("token_ids", "word_starts"))
    rows = np.split(ids, arrays["offsets"][1:-1])
    for row, second in zip(rows, arrays["second_starts"], strict=True):
        assert row[0] == 0 and row[-1] == 2 and MASK not in row and len(row) <= 24
        if has_second:
            assert row[second - 2 : second].tolist() == [2, 2]
            assert np.count_nonzero(row == 2) == 3
    assert starts[np.isin(ids, [0, 2])].all() and not starts.all()
    if segmenter is None:
        assert all(starts[[byte_pair.id_to_token(id)[0] == "Ġ" for id in ids]])

    folder = str(folders[segmenter])
    masking = Masking(strategy="whole_words")
    inputs, labels, _ = PretrainingBatches(folder, 8, masking, input_names=INPUTS)[0]
    assert sorted(inputs) == ["mask_positions", "padding_mask", "token_ids"]
    assert isinstance(labels, dict) == has_second
    assert (inputs["token_ids"] == MASK).any() and (inputs["token_ids"][:, 0] == 0).all()
    assert (inputs["token_ids"][inputs["padding_mask"] == 0] == PAD).all()
    assert not PretrainingBatches(folder, 8)[0][0]["segment_ids"].any()


def test_a_segmenter_does_not_change_tokens(shards):
    _, folders = shards
    tokens = (read_shard(*x.glob("*.safetensors"))["token_ids"] for x in folders.values())
    np.testing.assert_array_equal(*map(np.array, tokens))
