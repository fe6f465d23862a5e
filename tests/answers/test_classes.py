import numpy as np
from checks import refused

from bert_keras.answers.classes import (
    check_threshold,
    class_answers,
    log_softmax,
    sigmoid,
    softmax,
)

LOGITS = np.array([[0.0, 2.0, 2.0], [3.0, -1.0, 0.0]], "float32")
NAMES = ["a", "b", "c"]


def test_probabilities_are_those_of_their_formulas_for_logits_of_any_size():
    exponentials = np.exp(LOGITS.astype("float64"))
    expected = exponentials / exponentials.sum(-1, keepdims=True)
    np.testing.assert_allclose(softmax(LOGITS), expected, rtol=1e-6)
    np.testing.assert_allclose(log_softmax(LOGITS), np.log(expected), rtol=1e-5)
    np.testing.assert_allclose(sigmoid(LOGITS), exponentials / (1 + exponentials), rtol=1e-6)
    assert softmax(np.float32([1e9, -1e9])).tolist() == [1, 0]
    assert sigmoid(np.float32([1e9, -1e9])).tolist() == [1, 0]
    assert {f(LOGITS).dtype for f in (softmax, log_softmax, sigmoid)} == {np.dtype("float32")}


def test_answers_have_the_form_of_their_problem():
    single = class_answers(LOGITS, "single_label", NAMES)
    assert [answer["label"] for answer in single] == ["b", "a"]  # Of equals the first.
    assert list(single[0]["probabilities"]) == NAMES
    multi = class_answers(LOGITS, "multi_label", NAMES)
    assert [answer["labels"] for answer in multi] == [["a", "b", "c"], ["a", "c"]]
    assert class_answers(LOGITS[:, :1], "regression", [0]) == [{"score": 0.0}, {"score": 3.0}]
    assert class_answers(LOGITS, "regression", NAMES)[1] == {"scores": [3.0, -1.0, 0.0]}
    assert class_answers(LOGITS[:0], "single_label", NAMES) == []


@refused(
    ({"a": 0.5, "d": 1}, r"each label's name.*unknown: \['b', 'c', 'd'\]"),
    ([0.5, 0.5], r"each of the 3 labels. Received the shape \(2,\)"),
    ([0.5], r"Received the shape \(1,\)"),
    ([0.5, np.nan, 0.5], "a finite number from 0 to 1"),
    (np.inf, "from 0 to 1. Received: inf"),
    (2, "from 0 to 1. Received: 2"),
    ([0.5, -0.1, 0.5], "from 0 to 1. Received: -0.1"),
    ("0.5", "from 0 to 1. Received: '0.5'"),
    ({"a": 0.5, "b": 0.5, "c": None}, "from 0 to 1. Received: None"),
)
def test_other_thresholds_are_refused(threshold):
    check_threshold(threshold, NAMES)
