"""Exact match and F1 of answer texts, as SQuAD's official scripts compute them.

Answers are compared as bags of words after lower-casing and dropping punctuation and articles. A
question may have several right answers; the best counts. Scores of a data set are percentages.
For Chinese see `chinese_spans`.
"""

import functools
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bert_keras.checks import check_not_empty, raise_at_first

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Lower-cases, and removes ASCII punctuation, the articles a, an, the, and extra white space.

    Example:
        >>> normalize_answer("The  Eiffel-Tower!")
        'eiffeltower'
    """
    text = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(answer: str, predicted: str) -> float:
    """1.0 if both texts are equal once normalised, else 0.0.

    Example:
        >>> exact_match("the cat", "Cat.")
        1.0
    """
    return float(normalize_answer(answer) == normalize_answer(predicted))


def word_f1(answer: str, predicted: str, both_empty: float = 1.0) -> float:
    """F1 of the words that two texts share, each as often as it occurs in both.

    Args:
        answer: the right answer.
        predicted: the predicted text.
        both_empty: score where no word is left in either. SQuAD 2.0 gives 1.0, since an empty
            text says that there is no answer; SQuAD 1.1 gives 0.0.

    Returns:
        A float from 0 to 1.

    Example:
        >>> word_f1("in the garden", "in a big garden")
        0.8
    """
    answer_words = normalize_answer(answer).split()
    predicted_words = normalize_answer(predicted).split()
    if not answer_words and not predicted_words:
        return both_empty
    common = (Counter(answer_words) & Counter(predicted_words)).total()
    return f1_of_counts(common, len(predicted_words), len(answer_words))


def f1_of_counts(common: int, num_predicted: int, num_right: int) -> float:
    """Returns the F1 of units in both texts, in the predicted one and in the right one."""
    if common == 0:
        return 0.0
    precision, recall = common / num_predicted, common / num_right
    return 2 * precision * recall / (precision + recall)


def check_texts(answers: Mapping[Any, Iterable[str]], predictions: Mapping[Any, str]) -> None:
    """Raises a ValueError unless answers are lists of texts and predictions are texts."""
    check_not_empty(answers, "Answer scores need at least one question")
    wrong = [isinstance(x, str) or not all(isinstance(y, str) for y in x) for x in answers.values()]
    raise_at_first(wrong, [*answers.items()], "`answers` must map an id to a list of texts")
    wrong = [not isinstance(text, str) for text in predictions.values()]
    rule = "`predictions` must map an id to a text, '' for no answer"
    raise_at_first(wrong, [*predictions.items()], rule)


def squad_v1_scores(
    answers: Mapping[Any, Iterable[str]], predictions: Mapping[Any, str]
) -> dict[str, float]:
    """Exact match and F1 over a data set as `evaluate-v1.1.py` computes them.

    A question without a prediction scores 0; predictions of unknown questions are ignored.

    Args:
        answers: dict from question id to the list of its right answers, one at least.
        predictions: dict from question id to the predicted text.

    Returns:
        Dict with `exact_match` and `f1`, percentages.

    Raises:
        ValueError: on no questions, a question without answers, or texts that are not strings.

    Example:
        >>> squad_v1_scores({"q": ["the Nile", "Nile"]}, {"q": "River Nile"})["exact_match"]
        0.0

    Reference:
        Rajpurkar et al. (2016), SQuAD: 100,000+ Questions for Machine Comprehension of Text.
    """
    f1 = functools.partial(word_f1, both_empty=0.0)
    return mean_of_best(answers, predictions, {"exact_match": exact_match, "f1": f1})


def mean_of_best(
    answers: Mapping[Any, Iterable[str]],
    predictions: Mapping[Any, str],
    functions: Mapping[str, Callable[[str, str], float]],
) -> dict[str, float]:
    """Returns the means of scores over all questions, percentages; of several answers the best.

    Args:
        answers, predictions: see `squad_v1_scores`.
        functions: dict from the name of a score to its function of an answer and a prediction.

    Raises:
        ValueError: see `squad_v1_scores`.
    """
    check_texts(answers, predictions)
    rule = "Each question needs an answer"
    advice = "Use `squad_v2_scores` for questions without answers."
    raise_at_first([not texts for texts in answers.values()], [*answers.items()], rule, advice)
    pairs = [(texts, predictions[name]) for name, texts in answers.items() if name in predictions]
    return {
        key: 100.0 * sum(max(score(x, y) for x in texts) for texts, y in pairs) / len(answers)
        for key, score in functions.items()
    }


def squad_v2_scores(
    answers: Mapping[Any, Iterable[str]],
    predictions: Mapping[Any, str],
    no_answer_scores: Mapping[Any, float] | None = None,
    threshold: float = 1.0,
) -> dict[str, float]:
    """Exact match and F1 over a data set with questions without answers, as `evaluate-v2.0.py`.

    Predict `""` for "no answer". With `no_answer_scores`, a question that scores above
    `threshold` counts as predicted to have none, and the thresholds are found that would have
    given the best exact match and the best F1. The best thresholds regard the predicted texts,
    so predict the best span for every question, even where "no answer" scores higher.

    The thresholds are those of the very data they are scored on, as in the official script: an
    upper bound. Tune on the dev set, and pass what was found as `threshold` on the test set.

    Args:
        answers: dict from question id to the list of its right answers, empty if it has none.
        predictions: dict from question id to the predicted text, for all questions. Others are
            ignored.
        no_answer_scores: optional dict from question id to a number, the higher the likelier it
            is that there is no answer: a probability, or the null score minus the best span's.
        threshold: see above; 1.0 is the official default, meant for probabilities.

    Returns:
        Dict with the official keys: `exact`, `f1`, `total`; of the questions with and without
        answers, where there are any, `HasAns_exact`, `HasAns_f1`, `HasAns_total`,
        `NoAns_exact`, `NoAns_f1`, `NoAns_total`; and with `no_answer_scores`, `best_exact`,
        `best_exact_thresh`, `best_f1`, `best_f1_thresh`. Scores are percentages.

    Raises:
        ValueError: on no questions, missing predictions or scores, or texts that are no strings.

    Example:
        >>> scores = squad_v2_scores({"q": ["Nile"], "r": []}, {"q": "the Nile", "r": "Rhine"})
        >>> scores["exact"], scores["HasAns_exact"], scores["NoAns_exact"]
        (50.0, 100.0, 0.0)

    Reference:
        Rajpurkar et al. (2018), Know What You Don't Know: Unanswerable Questions for SQuAD.
    """
    check_texts(answers, predictions)
    for argument, value in (("predictions", predictions), ("no_answer_scores", no_answer_scores)):
        missing = [value is not None and name not in value for name in answers]
        raise_at_first(missing, [*answers], f"`{argument}` must hold every question")
    exact, f1 = {}, {}
    for name, texts in answers.items():
        # An answer that is empty after normalisation, such as "The", counts as none.
        texts = [text for text in texts if normalize_answer(text)] or [""]
        exact[name] = max(exact_match(text, predictions[name]) for text in texts)
        f1[name] = max(word_f1(text, predictions[name]) for text in texts)

    has_answer = {name: bool(texts) for name, texts in answers.items()}
    kept = {"exact": exact, "f1": f1}
    if no_answer_scores is not None:
        kept = {
            key: {
                name: float(not has_answer[name])
                if no_answer_scores[name] > threshold
                else scores[name]
                for name in scores
            }
            for key, scores in kept.items()
        }
    result = {}
    for prefix, names in (
        ("", list(answers)),
        ("HasAns_", [name for name in answers if has_answer[name]]),
        ("NoAns_", [name for name in answers if not has_answer[name]]),
    ):
        if names:
            for key, scores in kept.items():
                result[prefix + key] = 100.0 * sum(scores[name] for name in names) / len(names)
            result[prefix + "total"] = len(names)
    if no_answer_scores is not None:
        for key, scores in (("exact", exact), ("f1", f1)):
            best, best_threshold = find_best_threshold(
                predictions, scores, no_answer_scores, has_answer
            )
            result[f"best_{key}"] = best
            result[f"best_{key}_thresh"] = best_threshold
    return result


def find_best_threshold(
    predictions: Mapping[Any, str],
    scores: Mapping[Any, float],
    no_answer_scores: Mapping[Any, float],
    has_answer: Mapping[Any, bool],
) -> tuple[float, float]:
    """Finds the no-answer threshold with the best mean score, as `evaluate-v2.0.py` does.

    Starts with "no answer" everywhere, then lets questions answer in ascending order of their
    no-answer score: one that has an answer adds its score, one that has none costs a point if a
    text was predicted. The threshold is the no-answer score of the last question let through at
    the best moment, the first such moment in a tie, and 0.0 if none beats the start.

    Equal no-answer scores are let through one by one, in the order of `no_answer_scores`, so the
    best mean can be one that no threshold reaches. That is the official behaviour; distinct
    scores, as real models give, avoid it.

    Args:
        predictions: dict from question id to the predicted text.
        scores: dict from question id to its score, 0 to 1, without regard to a threshold.
        no_answer_scores: dict from question id to a number; ids not in `scores` are ignored.
        has_answer: dict from question id to whether it has an answer.

    Returns:
        The best mean as a percentage, and the threshold: above it, predict no answer.
    """
    current = best = sum(not has for has in has_answer.values())
    threshold = 0.0
    for name in sorted(no_answer_scores, key=no_answer_scores.get):
        if name not in scores:
            continue
        if has_answer[name]:
            current += scores[name]
        elif predictions[name]:
            current -= 1
        if current > best:
            best, threshold = current, no_answer_scores[name]
    return 100.0 * best / len(scores), threshold
