"""Zero-shot classification follows the rule of transformers' pipeline."""

import numpy as np
import pytest
from checks import cases, refused
from tiny import tiny_backbone, tiny_preprocessor

import bert_keras
from bert_keras.answers.entailment import entailment_columns

pytestmark = pytest.mark.once

TEXT, LABELS, TEMPLATE = "a b cab", ["c", "d e", "f"], "g {} h"
NAMES = ["contradiction", "neutral", "entailment"]


def entailment_model(names):
    backbone = tiny_backbone(initializer_range=0.5)
    options = {"preprocessor": tiny_preprocessor(), "label_names": names}
    return bert_keras.TextClassifier(backbone, len(names or "abc"), **options)


@pytest.fixture(scope="module")
def classifier():
    return bert_keras.ZeroShotClassifier(entailment_model(NAMES))


@pytest.mark.parametrize("names", [NAMES, ["ENTAILMENT", "not_entailment"]])
def test_answers_equal_those_of_transformers_pipeline(names, tmp_path):
    transformers = pytest.importorskip("transformers")
    entailment_model(names).export_to_huggingface(tmp_path)
    theirs = transformers.pipeline("zero-shot-classification", model=str(tmp_path))
    ours = bert_keras.ZeroShotClassifier.from_preset(tmp_path)
    for labels, multi_label in ((LABELS, False), (LABELS, True), (LABELS[:1], False)):
        options = {"hypothesis_template": TEMPLATE, "multi_label": multi_label}
        expected = theirs(TEXT, labels, **options)
        expected = dict(zip(expected["labels"], expected["scores"], strict=True))
        found = ours.classify(TEXT, labels, TEMPLATE, multi_label)
        assert found["probabilities"] == pytest.approx(expected, abs=1e-5)
        if multi_label or len(labels) == 1:
            assert found["labels"] == [x for x in labels if expected[x] >= 0.5]
        else:
            assert found["label"] == max(expected, key=expected.get)
        columns = ours.classify(np.array(["d", TEXT]), labels, TEMPLATE, multi_label)
        assert columns[1]["probabilities"] == pytest.approx(expected, abs=1e-5)
    assert ours.classify([], LABELS) == []


@cases(
    (NAMES, (0, 2)),
    (["entailment", "neutral", "contradiction"], (2, 0)),
    (["entailment", "not_entailment"], (1, 0)),
    # Transformers would take "neutral" for contradiction.
    (["neutral", "entailment", "contradiction"], (2, 1)),
    (["b", "a", "Entailed"], (0, 2)),
)
def test_the_columns_of_entailment_and_contradiction_are_found_by_name(names, columns):
    assert entailment_columns(names) == columns


@pytest.mark.parametrize("names", [None, ["no", "yes"], ["LABEL_0", "LABEL_1", "LABEL_2"]])
def test_a_model_without_entailment_is_refused(names):
    with pytest.raises(ValueError, match=r"a label named 'entailment'.*label_names="):
        bert_keras.ZeroShotClassifier(entailment_model(names))


@refused(
    ("c", TEMPLATE, TypeError, "a list of str"),
    (["c", 3], TEMPLATE, TypeError, "a list of str"),
    ([], TEMPLATE, ValueError, "at least one"),
    (["c", " "], TEMPLATE, ValueError, "different names"),
    (["c", "d", "c"], TEMPLATE, ValueError, "different names"),
    (LABELS, "This example", ValueError, "one {} in the place"),
    (LABELS, "{} {}", ValueError, "one {} in the place"),
)
def test_labels_and_templates_that_do_not_fit_are_refused(classifier, labels, hypothesis):
    classifier.classify(TEXT, labels, hypothesis)
