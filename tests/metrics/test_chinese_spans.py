"""CMRC 2018's scores, against a second reading of its official script."""

import difflib
import random
import re

import nltk
import pytest

from bert_keras.metrics import chinese_spans

LETTERS = list("国国三三中國光荣，。《》、…·-:/ abAé1.,'\"?!()“”’‘\tカ$%")
LETTERS += ["Koei", "it's", "1,000", "cannot", "n't ", "U.S. ", "gonna ", "''", "..", "'tis"]
# The list in CMRC 2018's script.
PUNCTUATION = [*"-:_*^/\\~`+=，。：？！“”；’《》", "……", *"·、「」（）－～『』"]


def random_text(rng, longest=9):
    return "".join(rng.choices(LETTERS, k=rng.randint(0, longest)))


def nltk_words(text):
    return nltk.word_tokenize(text, preserve_line=True)


def reference_units(text):
    units, run = [], ""
    for letter in text.lower().strip():
        if letter in PUNCTUATION:
            continue
        if re.match("[\u4e00-\u9fa5]", letter):
            units += nltk_words(run) if run else []
            units, run = [*units, letter], ""
        else:
            run += letter
    return units + (nltk_words(run) if run else [])


def reference_f1(answer, predicted):
    left, right = reference_units(answer), reference_units(predicted)
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    common = matcher.find_longest_match().size
    if not common:
        return 0
    precision, recall = common / len(right), common / len(left)
    return 2 * precision * recall / (precision + recall)


def reference_exact(answer, predicted):
    texts = (text.lower().strip() for text in (answer, predicted))
    left, right = ([letter for letter in text if letter not in PUNCTUATION] for text in texts)
    return left == right


def test_scores_equal_the_official_definition():
    rng = random.Random(1)
    for _ in range(100):
        answers, predictions = {}, {}
        for number in range(rng.randint(1, 4)):
            texts = [random_text(rng) for _ in range(rng.randint(1, 3))]
            answers[str(number)] = texts
            if rng.random() < 0.9:
                near = rng.choice(texts)[rng.randint(0, 2) :] + rng.choice(["", "。", "国"])
                predictions[str(number)] = rng.choice([near, random_text(rng)])
        expected = {}
        for score, function in (("exact_match", reference_exact), ("f1", reference_f1)):
            best = [max(function(text, x) for text in answers[k]) for k, x in predictions.items()]
            expected[score] = 100 * sum(best) / len(answers)
        expected["average"] = (expected["exact_match"] + expected["f1"]) / 2
        expected |= {"total": len(answers), "skipped": len(answers) - len(predictions)}
        assert chinese_spans.cmrc_scores(answers, predictions) == pytest.approx(expected)


def test_the_word_tokenizer_can_be_replaced():
    scores = chinese_spans.cmrc_scores({"q": ["ab"]}, {"q": "ac"}, word_tokenize=list)
    assert scores["f1"] == 50.0
