"""An exported folder answers as its task does, where nothing but three libraries is installed."""


import numpy as np
import pytest
from tiny import tiny_backbone, tiny_preprocessor

import bert_keras
from bert_keras import runtime

TEXTS = ["a b cab", "dd, ee", "", "h" * 9, "a b c d e f g h a b c d e f g h", "caf\u0301é \ud800b"]
NAMES = ["O", "B-A", "I-A", "B-B", "E-B", "[PAD]"]


def biased(task):
    """Returns a task whose answers differ clearly."""
    rng = np.random.default_rng(0)
    for weight in task.weights:
        weight.assign(rng.normal(0, 0.5, weight.shape))
    return task


def task_of(cls, *args, max_length=16, truncation="longest_first", **options):
    preprocessor = tiny_preprocessor(max_length, truncation=truncation)
    return biased(cls(tiny_backbone(), *args, preprocessor=preprocessor, **options))


def classifier(**options):
    return lambda: task_of(bert_keras.TextClassifier, **options)


QUESTIONS = ["a b", "c? d d d d d d d d d d"]
CONTEXTS = ["a b, c d e f g h a b c d e f g h a b c d e f e\u0301 g h.", "h a a a c"]
CASES = {
    "single": (classifier(num_classes=3), "classify", [TEXTS]),
    "one": (classifier(label_names=["no", "yes"]), "classify", ["a b"]),
    "pairs": (classifier(max_length=9), "classify", [(TEXTS, TEXTS[::-1])]),
    "pair": (
        classifier(truncation="only_second", max_length=9),
        "classify",
        [("a b", "c d e f g h")],
    ),
    "multi": (classifier(num_classes=3, problem_type="multi_label"), "classify", [TEXTS]),
    "regression": (classifier(num_classes=1, problem_type="regression"), "classify", [TEXTS]),
    "scores": (classifier(num_classes=2, problem_type="regression"), "classify", [TEXTS]),
    "tail": (classifier(truncation="tail", max_length=6), "classify", [TEXTS]),
    "head_tail": (classifier(truncation="head_tail", max_length=8), "classify", [TEXTS]),
    "long": (
        lambda: task_of(
            bert_keras.LongTextClassifier, max_length=6, truncation="head_tail", num_windows=3
        ),
        "classify",
        [TEXTS],
    ),
    "tag": (
        lambda: task_of(bert_keras.TokenClassifier, 6, label_names=NAMES, max_length=8),
        "tag",
        [[*TEXTS, ["ab", "", "\u0000", "c d"], ["a", "b"], []]],
    ),
    "crf": (
        lambda: task_of(bert_keras.TokenClassifier, 6, label_names=NAMES, max_length=8, crf=True),
        "tag",
        [TEXTS],
    ),
    "numbers": (lambda: task_of(bert_keras.TokenClassifier, 3), "tag", ["ab, c"]),
    "answer": (
        lambda: task_of(bert_keras.QuestionAnswering, stride=3, max_answer_length=4),
        "answer",
        [QUESTIONS, CONTEXTS, 3],
    ),
    "answer_one": (
        lambda: task_of(bert_keras.QuestionAnswering, stride=2),
        "answer",
        [QUESTIONS[0], CONTEXTS[0]],
    ),
    "no_answer": (
        lambda: task_of(
            bert_keras.QuestionAnswering,
            normalization="per_window",
            no_answer_threshold=-9.0,
            stride=3,
        ),
        "answer",
        [QUESTIONS, CONTEXTS[0], 4],
    ),
    "choose": (
        lambda: task_of(bert_keras.MultipleChoice),
        "choose",
        [["a b", "c"], [["a", "b b b", "c"], ["d e", "f"]]],
    ),
    "embed": (lambda: task_of(bert_keras.TextEmbedder), "embed", [TEXTS]),
    "fill_mask": (
        lambda: task_of(bert_keras.MaskedLM),
        "fill_mask",
        [["a [MASK] b", "[MASK] c [MASK] d e f"], 3],
    ),
    "both": (lambda: task_of(bert_keras.Pretraining), "fill_mask", ["a [MASK] b"]),
    "is_next": (
        lambda: task_of(bert_keras.NextSentencePrediction),
        "is_next",
        [TEXTS, TEXTS[::-1]],
    ),
    "is_next_both": (lambda: task_of(bert_keras.Pretraining), "is_next", ["a b", "c"]),
    "is_replaced": (lambda: task_of(bert_keras.ReplacedTokenDetector), "is_replaced", [TEXTS[:3]]),
}


def assert_same(found, expected):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, (list, tuple, np.ndarray)):
        assert type(found) is type(expected) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, (float, np.floating)):
        assert abs(found - expected) < 1e-5
    else:
        assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize("name", CASES)
def test_answers_are_the_tasks_own(name, tmp_path):
    make, method, arguments = CASES[name]
    task = make()
    task.export(tmp_path / "served", format="onnx")
    served = runtime.load(tmp_path / "served")
    assert_same(getattr(served, method)(*arguments), getattr(task, method)(*arguments))
