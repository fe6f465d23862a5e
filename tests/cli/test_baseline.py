"""What `train` says about its result: the interval, and the answer that needs no model."""

from types import SimpleNamespace

import numpy as np
import pytest
from checks import cases

from bert_keras import datasets
from bert_keras.cli import baseline, example_files
from bert_keras.cli.kinds import TASKS

pytestmark = pytest.mark.once


def texts(labels, names):
    return datasets.LabelledTexts(["a"] * len(labels), np.array(labels), names)


# By hand: Wilson's interval of 8 of 10 and of 10 of 10, Fisher's of r = 0.5 and of r = 1.
@cases(
    (0.8, 10, False, (0.4901625, 0.9433178)),
    (1.0, 10, False, (0.7224672, 1.0)),
    (0.0, 10, False, (0.0, 0.2775328)),
    (0.5, 28, True, (0.1560, 0.7358)),
    (1.0, 28, True, (1.0, 1.0)),
    (-1.0, 28, True, (-1.0, -1.0)),
    (0.9, 3, True, (-1.0, 1.0)),
)
def test_the_interval_of_a_score(value, count, is_correlation, expected):
    found = baseline.Verdict("x", value, count, "texts", 0.0, "x", is_correlation).interval()
    assert found == pytest.approx(expected, abs=1e-4)


TEXTS = "text_classification"
EXAMPLES = [SimpleNamespace(answers=[x] * (x < 3), is_impossible=x >= 3) for x in range(4)]
QUESTIONS = example_files.Questions(["c"] * 4, EXAMPLES, [True] * 4, "squad_v2")
SENTENCES = SimpleNamespace(tags=[["B-PER", "I-PER", "O"], ["O", "B-LOC"]])
WORDS = SimpleNamespace(tags=[["NOUN", "VERB", "NOUN"], ["NOUN"]])
CHOICES = datasets.MultipleChoiceExamples(["c", "d"], [["a", "b"], ["a", "b", "c", "d"]])


@cases(
    (TEXTS, {"accuracy": 0.9}, texts([0, 1, 1, 1], ("no", "yes")), "'yes' for"),
    (TEXTS, {"accuracy": 0.9}, texts([0, 1, 1, 1], ()), "1 for every text gets"),
    (TEXTS, {"micro_f1": 0.9}, texts([[1, 0], [1, 1]], ("x", "y")), "gets 0.800"),
    (TEXTS, {"pearson": 0.9}, texts([0.5, 1.0], ()), "one score for all texts"),
    ("token_classification", {"f1": 0.9}, SENTENCES, "on 2 entities"),
    ("token_classification", {"accuracy": 0.9}, WORDS, "'NOUN' for every word gets 0.750"),
    ("multiple_choice", {"accuracy": 0.9}, CHOICES, "guessing gets 0.375"),
    ("question_answering", {"f1": 90.0}, QUESTIONS, "never answering gets 0.250"),
    ("text_embedding", {"spearman": 0.9}, texts([0.0, 1.0], ()), "one score for all pairs"),
)
def test_a_score_is_set_beside_the_simplest_answer(name, scores, examples, said):
    found = TASKS[name].verdict(scores, examples)
    assert found.value == pytest.approx(0.9)
    assert said in found.in_words() and "0.900 on" in found.in_words()


def test_advice_is_given_where_the_interval_holds_the_simplest_answer():
    good = baseline.Verdict("Accuracy", 0.9, 100, "texts", 0.5, "'no' for every text")
    assert good.in_words().endswith("'no' for every text gets 0.500.")
    small = good._replace(count=4)
    assert "not clearly better" in small.in_words() and "--epochs" in small.in_words()
    assert "not clearly better" in good._replace(value=0.5).in_words()
    worse = good._replace(value=0.3).in_words()
    assert "That is worse." in worse and "--epochs" in worse
    # Six of six are between 0.610 and 1.
    few = good._replace(value=1.0, count=6, baseline_score=0.667).in_words()
    assert "No score on so few texts is clearly better" in few and "--dev_file" in few
    assert "--epochs" not in few
    assert "No score" not in good._replace(value=1.0, count=6, baseline_score=0.6).in_words()
    # All 60 of a file with one class: the interval ends at 1, not just below it.
    assert "worse" not in good._replace(value=1.0, count=60, baseline_score=1.0).in_words()
    assert good._replace(value=0.0, count=5).interval()[0] == 0.0
    assert "confidence 0.000 to 0.434" in good._replace(value=0.0, count=5).in_words()
