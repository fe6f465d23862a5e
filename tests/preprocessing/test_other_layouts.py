"""Preprocessing with a byte-pair tokenizer, whose layout is `<s> A </s></s> B </s>`."""

import keras
import numpy as np
import pytest
import transformers
from small_tokenizers import byte_pair_tokenizer

from bert_keras.corpora import PretrainingBatches, create_pretraining_data, open_shard
from bert_keras.preprocessing import BucketedBatches, Masking, TextPreprocessor, pack
from bert_keras.preprocessing.masked_batches import MaskedBatches
from bert_keras.preprocessing.masking import TokenKinds
from bert_keras.preprocessing.packing import packed_lengths
from bert_keras.preprocessing.question_windows import QuestionWindows
from bert_keras.preprocessing.word_windows import cut_words
from bert_keras.tokenizers import Layout

TEXTS = ["The old man and the sea.", "A ship sails, and the young woman came.", "Hemingway's", ""]
LAYOUT = Layout((0,), (2, 2), (2,), 0)
INPUTS = ("token_ids", "padding_mask")
PAD, MASK = 1, 4


@pytest.fixture(scope="module")
def tokenizer():
    return byte_pair_tokenizer(TEXTS * 3)


@pytest.fixture(scope="module")
def preprocessor(tokenizer):
    return TextPreprocessor(tokenizer, max_length=16).for_inputs(INPUTS)


def test_pairs_are_packed_in_the_layout():
    options = {"layout": LAYOUT, "pad_id": PAD, "max_length": 9}
    inputs = pack([[7, 8], [9]], [[5], [6, 6, 6, 6, 6]], **options)
    rows = [[0, 7, 8, 2, 2, 5, 2, 1, 1], [0, 9, 2, 2, 6, 6, 6, 6, 2]]
    assert inputs["token_ids"].tolist() == rows
    assert not inputs["segment_ids"].any()
    assert packed_lengths([[7, 8]], [[5]], layout=LAYOUT, max_length=9).tolist() == [7]
    assert pack([[7]], **options)["token_ids"].tolist() == [[0, 7, 2]]
    with pytest.raises(ValueError, match="`max_length` must be an int from 4"):
        pack([[7]], [[7]], layout=LAYOUT, pad_id=PAD, max_length=3)
    longer = Layout((8, 9), (7,), (), 1)
    inputs = pack([[3]], [[4]], layout=longer, pad_id=0, max_length=9, length=6)
    assert inputs["token_ids"].tolist() == [[8, 9, 3, 7, 4, 0]]
    assert inputs["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 0]]


@pytest.mark.parametrize("names", [("token_ids",), INPUTS, ("segment_ids", "token_ids")])
def test_only_the_named_inputs_are_made(tokenizer, names):
    inputs = pack([[7]], layout=LAYOUT, pad_id=PAD, max_length=9, input_names=names)
    assert set(inputs) == set(names)
    whole = TextPreprocessor(tokenizer, max_length=9)
    some = whole.for_inputs((*names, "mask_positions"))
    assert set(some(["a"])) == set(names) and some.tokenizer is tokenizer
    assert some.for_inputs(names) is some
    assert sorted(whole(["a"])) == ["padding_mask", "segment_ids", "token_ids"]
    with pytest.raises(ValueError, match=r"`input_names` must be one of .* Received: 'token'"):
        TextPreprocessor(tokenizer, input_names=("token",))


def test_inputs_equal_hugging_faces(preprocessor, tokenizer, tmp_path):
    tokenizer.save(tmp_path, input_names=INPUTS)
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    for columns in ((TEXTS,), (TEXTS, TEXTS[::-1])):
        # The budget is even: they give an odd token to the longer text.
        options = {"truncation": True, "max_length": 16, "padding": True}
        expected = theirs(*columns, **options, return_tensors="np")
        inputs = preprocessor(*columns)
        np.testing.assert_array_equal(inputs["token_ids"], expected["input_ids"])
        np.testing.assert_array_equal(inputs["padding_mask"], expected["attention_mask"])
    assert (preprocessor.room(), preprocessor.room(is_pair=True)) == (14, 12)


@keras.saving.register_keras_serializable(package="tests")
class Prefixed(TextPreprocessor):
    def __init__(self, tokenizer, prefix="", **options):
        super().__init__(tokenizer, **options)
        self.prefix = prefix

    def get_config(self):
        return {**super().get_config(), "prefix": self.prefix}


def test_a_subclass_with_more_arguments_is_restored(tokenizer, tmp_path):
    preprocessor = Prefixed(tokenizer, "query: ", max_length=9, input_names=INPUTS)
    saved = keras.saving.serialize_keras_object(preprocessor.for_inputs(["token_ids"]))
    preprocessor.save_assets(tmp_path)
    restored = keras.saving.deserialize_keras_object(saved)
    restored.load_assets(tmp_path)
    assert (type(restored), restored.prefix) == (Prefixed, "query: ")
    inputs, expected = restored("The old man"), preprocessor("The old man")
    assert list(inputs) == ["token_ids"]
    np.testing.assert_array_equal(inputs["token_ids"], expected["token_ids"])


def test_word_starts_are_packed_like_their_tokens(preprocessor, tokenizer):
    texts = [f"{text} Unsailed!" for text in TEXTS]
    for columns in ((texts,), (texts, texts[::-1])):
        ids, starts = preprocessor.tokenize(*columns), preprocessor.word_starts(*columns)
        packed = preprocessor.pack(*ids, length=16)
        flags = preprocessor.pack_word_starts(*starts, length=16)
        assert flags.dtype == bool and flags.shape == packed["token_ids"].shape
        for row, flag in zip(packed["token_ids"].tolist(), flags.tolist(), strict=True):
            for id, begins in zip(row, flag, strict=True):
                piece = tokenizer.id_to_token(id)
                if not piece[0].isalpha() or piece[0] == "Ġ":
                    assert begins, piece
        assert not flags.all(axis=1).any()


def test_whole_words_of_the_text_are_masked(tokenizer):
    preprocessor = TextPreprocessor(tokenizer, max_length=40)
    text = "Hemingway's old man, and the unquestionably youngish woman"
    ids, starts = preprocessor.tokenize([text] * 200), preprocessor.word_starts([text] * 200)
    kinds = TokenKinds.from_tokenizer(tokenizer)
    assert kinds.continues_word is None
    assert np.flatnonzero(kinds.is_special).tolist() == [0, 1, 2, 3, 4]

    def make_inputs(rows, length):
        inputs = preprocessor.pack(ids[0].take(rows), length=length)
        flags = preprocessor.pack_word_starts(starts[0].take(rows), length=length)
        return inputs | {"word_starts": flags}

    for shuffle in (True, False):
        lengths, labels = preprocessor.packed_lengths(*ids), np.zeros(200)
        batches = BucketedBatches(lengths, make_inputs, labels, shuffle=shuffle)
        masking = Masking(0.3, 1.0, 0.0, "whole_words")
        inputs, _, _ = MaskedBatches(batches, masking, kinds)[0]
        assert "word_starts" not in inputs
        encoding = tokenizer.encode(text)
        words = np.array([-1 if word is None else word for word in encoding.word_ids])
        assert np.max(np.bincount(words[words >= 0])) > 1
        hidden = inputs["token_ids"][:, : len(words)] == MASK
        assert hidden.any(axis=1).all()
        for word in range(words.max() + 1):
            inside = hidden[:, words == word]
            assert (inside.all(axis=1) == inside.any(axis=1)).all()
    with pytest.raises(ValueError, match="need `word_starts`"):
        masking(inputs["token_ids"], kinds, np.random.default_rng(0))


def test_each_word_is_assigned_to_its_first_piece(tokenizer):
    sentences = [["New", "York", "", "Hemingway's", "sea", "."] * 3, [], ["a"]]
    windows = cut_words(tokenizer, sentences, max_length=12, stride=5)
    found = []
    for ids, words in zip(windows.ids.to_lists(), windows.words.to_lists(), strict=True):
        assert len(words) == len(ids) + 2 <= 12
        assert words[0] == words[-1] == -1
        found += [word for word in words if word >= 0]
        for id, word in zip(ids, words[1:-1], strict=True):
            if word >= 0:
                text = [word for sentence in sentences for word in sentence][word]
                assert id == (tokenizer(" " + text)[0] if text else 3)
    assert sorted(found) == list(range(19))


def test_questions_and_contexts_are_packed_in_the_layout(preprocessor, tokenizer):
    context = "The old 😀 man  and the sea. " * 3
    options = {"stride": 3, "max_question_length": 5}
    windows = QuestionWindows(preprocessor, ["Who came?"], [context], **options)
    packed = windows.pack(np.arange(len(windows)), 16)
    assert sorted(packed) == ["padding_mask", "token_ids"]
    question, ids = tokenizer("Who came?")[:5], tokenizer(context)
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


@pytest.mark.parametrize("objective", ["full_sentences", "next_sentence"])
@pytest.mark.parametrize("word_segmenter", [None, characters_of])
def test_pretraining_data_has_the_tokenizers_layout(
    corpus, tokenizer, tmp_path, objective, word_segmenter
):
    options = {"sequence_length": 24, "objective": objective, "word_segmenter": word_segmenter}
    manifest = create_pretraining_data(corpus, tokenizer, str(tmp_path), num_workers=1, **options)
    arrays, _ = open_shard(tmp_path / manifest["shards"][0]["file"])
    assert manifest["counts"]["unknown_tokens"] == 0
    rows = np.split(np.array(arrays["token_ids"]), arrays["offsets"][1:-1])
    for row, second in zip(rows, arrays["second_starts"], strict=True):
        assert row[0] == 0 and row[-1] == 2 and MASK not in row and len(row) <= 24
        if objective == "next_sentence":
            assert row[second - 2 : second].tolist() == [2, 2]
            assert np.count_nonzero(row == 2) == 3
    pieces = [tokenizer.id_to_token(id) for id in arrays["token_ids"]]
    starts = np.array(arrays["word_starts"])
    assert starts[np.isin(arrays["token_ids"], [0, 2])].all() and not starts.all()
    if word_segmenter is None:
        assert all(flag for flag, piece in zip(starts, pieces, strict=True) if piece[0] == "Ġ")

    masking = Masking(strategy="whole_words")
    inputs, labels, _ = PretrainingBatches(str(tmp_path), 8, masking, input_names=INPUTS)[0]
    assert sorted(inputs) == ["mask_positions", "padding_mask", "token_ids"]
    assert isinstance(labels, dict) == (objective == "next_sentence")
    assert (inputs["token_ids"] == MASK).any() and (inputs["token_ids"][:, 0] == 0).all()
    assert (inputs["token_ids"][inputs["padding_mask"] == 0] == PAD).all()
    whole = PretrainingBatches(str(tmp_path), 8)[0][0]
    assert not whole["segment_ids"].any()


def test_a_segmenter_does_not_change_tokens(corpus, tokenizer, tmp_path):
    found = []
    for name, segmenter in (("without", None), ("with", characters_of)):
        options = {"objective": "full_sentences", "num_workers": 1, "word_segmenter": segmenter}
        create_pretraining_data(corpus, tokenizer, str(tmp_path / name), **options)
        arrays, _ = open_shard(tmp_path / name / "examples-00000-of-00001.safetensors")
        found.append(np.array(arrays["token_ids"]))
    np.testing.assert_array_equal(*found)
