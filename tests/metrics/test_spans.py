"""SQuAD's scores, against a second reading of the official scripts."""

import collections
import random
import re
import string

import pytest

from bert_keras.metrics import spans

WORDS = ["the", "The", "a", "An", "cat", "Cat", "cat.", "sat", "3.5", "U.S.", "theory", "-", "été"]
WORDS += ["a-b", "’s", "\t", "猫", "¿", "$5"]


def random_text(rng, longest=4):
    return rng.choice(["", " "]).join(rng.choices(WORDS, k=rng.randint(0, longest)))


def random_questions(rng, unanswerable):
    """Answers, predictions that often hit, and no-answer scores with ties."""
    answers, predictions, scores = {}, {}, {}
    for number in range(rng.randint(1, 8)):
        name = str(number)
        lowest = 0 if unanswerable and rng.random() < 0.5 else 1
        count = lowest and rng.randint(lowest, 3)
        answers[name] = [random_text(rng) for _ in range(count)]
        predictions[name] = random_text(rng)
        if answers[name] and rng.random() < 0.5:
            predictions[name] = rng.choice(answers[name]) + rng.choice(["", ".", " cat"])
        scores[name] = rng.choice([rng.random(), 0.25, 0.5, -1.0])
    return answers, predictions, scores


def reference_words(text):
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()


def reference_f1(answer, predicted, both_empty=1):
    left, right = reference_words(answer), reference_words(predicted)
    if left == right == []:
        return both_empty
    same = (collections.Counter(left) & collections.Counter(right)).total()
    if same == 0:
        return 0
    precision, recall = same / len(right), same / len(left)
    return 2 * precision * recall / (precision + recall)


def reference_exact(answer, predicted):
    return int(reference_words(answer) == reference_words(predicted))


def reference_v1(answers, predictions):
    exact = f1 = 0
    for name, predicted in predictions.items():
        exact += max(reference_exact(text, predicted) for text in answers[name])
        f1 += max(reference_f1(text, predicted, 0) for text in answers[name])
    return {"exact_match": 100 * exact / len(answers), "f1": 100 * f1 / len(answers)}


def reference_best(raw, answers, predictions, no_answer):
    current = len([name for name in answers if not answers[name]])
    best, threshold = current, 0.0
    for name, value in sorted(no_answer.items(), key=lambda item: item[1]):
        if answers[name]:
            current = current + raw[name]
        elif predictions[name] != "":
            current = current - 1
        if current > best:
            best, threshold = current, value
    return 100 * best / len(answers), threshold


def reference_v2(answers, predictions, no_answer, limit):
    result = {}
    for key, metric in (("exact", reference_exact), ("f1", reference_f1)):
        raw, final = {}, {}
        for name, texts in answers.items():
            texts = [text for text in texts if reference_words(text)]
            raw[name] = max(metric(text, predictions[name]) for text in texts or [""])
            final[name] = raw[name]
            if no_answer is not None and no_answer[name] > limit:
                final[name] = 0 if answers[name] else 1
        for prefix, wanted in (("", (True, False)), ("HasAns_", (True,)), ("NoAns_", (False,))):
            chosen = [final[name] for name in answers if bool(answers[name]) in wanted]
            if chosen:
                result[prefix + key] = 100 * sum(chosen) / len(chosen)
                result[prefix + "total"] = len(chosen)
        if no_answer is not None:
            found = reference_best(raw, answers, predictions, no_answer)
            result[f"best_{key}"], result[f"best_{key}_thresh"] = found
    return result


def test_v1_scores_equal_the_official_definition():
    rng = random.Random(0)
    for _ in range(300):
        answers, predictions, _ = random_questions(rng, unanswerable=False)
        predictions = {name: text for name, text in predictions.items() if rng.random() < 0.9}
        expected = reference_v1(answers, predictions)
        assert spans.squad_v1_scores(answers, predictions) == pytest.approx(expected, rel=1e-12)


def test_v2_scores_equal_the_official_definition():
    rng = random.Random(1)
    for case in range(600):
        answers, predictions, no_answer = random_questions(rng, unanswerable=True)
        if case % 3 == 0:
            no_answer = None
        limit = rng.choice([1.0, 0.5, 0.25, 0.0])
        expected = reference_v2(answers, predictions, no_answer, limit)
        found = spans.squad_v2_scores(answers, predictions, no_answer, limit)
        assert found == pytest.approx(expected, rel=1e-12)


def test_predictions_of_other_questions_are_ignored():
    answers = {"q": ["Nile"]}
    more = {"q": "Nile", "x": "Rhine"}
    assert spans.squad_v1_scores(answers, more)["exact_match"] == 100.0
    scores = spans.squad_v2_scores(answers, more, {"x": 0.1, "q": 0.2})
    assert scores["total"] == 1 and scores["best_exact"] == 100.0
