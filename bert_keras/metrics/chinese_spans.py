"""Exact match and F1 of Chinese answers, as CMRC 2018's official script computes them.

Chinese has no spaces, so each Chinese character is a unit, and so is each word of other scripts. F1
counts the longest run of units that answer and prediction share. DRCD's authors publish no script;
published results for it (Chinese-BERT-wwm, CLUE) use this one too.
"""

import difflib
import functools
import re
from collections.abc import Callable, Iterable, Mapping

from bert_keras.checks import require
from bert_keras.metrics.spans import f1_of_counts, mean_of_best

# The script's own list, without the ellipsis, which it has as two characters that never match.
_PUNCTUATION = "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』"
_WITHOUT_PUNCTUATION = str.maketrans("", "", _PUNCTUATION)
_CHINESE_OR_RUN = re.compile("[\u4e00-\u9fa5]|[^\u4e00-\u9fa5]+")


def split_words(text: str) -> list[str]:
    """Splits lower-case text of a script with spaces into words by Penn Treebank's rules.

    Double quotes become "``" and "''".

    Args:
        text: str, the part of an answer between two Chinese characters.

    Returns:
        List of words.

    Raises:
        ImportError: the package nltk is not installed.

    Example:
        >>> split_words("it's 1,000 km.")
        ['it', "'s", '1,000', 'km', '.']
    """
    advice = "Or pass a function of your own as `word_tokenize`."
    nltk = require("nltk", "split words in Chinese answers like the official script", advice=advice)
    return nltk.word_tokenize(text, preserve_line=True)


def segment(text: str, word_tokenize: Callable[[str], Iterable[str]] = split_words) -> list[str]:
    """Splits an answer into units: Chinese characters, and words of other scripts.

    The text is lower-cased first, and common Chinese and some ASCII punctuation is removed.

    Args:
        text: str.
        word_tokenize: function from a str without Chinese to a list of words. The official script
            uses `nltk.word_tokenize`, which needs NLTK's sentence model. It differs from the
            default only if a full stop ends a sentence within the text.

    Returns:
        List of strings.

    Example:
        >>> segment("《战国 Musou 3》")
        ['战', '国', 'musou', '3']
    """
    units = []
    for part in _CHINESE_OR_RUN.findall(_normalized(text)):
        units.extend(part if "\u4e00" <= part <= "\u9fa5" else word_tokenize(part))
    return units


def _normalized(text):
    return text.lower().strip().translate(_WITHOUT_PUNCTUATION)


def exact_match(answer: str, predicted: str) -> float:
    """Returns 1.0 if both texts are equal in lower case and without punctuation, else 0.0.

    White space inside the texts counts.

    Example:
        >>> exact_match("《三国志》", "三国志")
        1.0
    """
    return float(_normalized(answer) == _normalized(predicted))


def common_run_f1(
    answer: str, predicted: str, word_tokenize: Callable[[str], Iterable[str]] = split_words
) -> float:
    """Returns the F1 of the longest run of units that two texts share.

    With `n` units in the run, precision = n / units predicted and recall = n / units of the answer.
    Unlike in SQuAD's F1, the order counts, and two texts without units score 0.

    Args:
        answer: the right answer.
        predicted: the predicted text.
        word_tokenize: see `segment`.

    Returns:
        A float from 0 to 1.

    Example:
        >>> common_run_f1("光荣公司", "光荣")
        0.6666666666666666
    """
    answer_units = segment(answer, word_tokenize)
    predicted_units = segment(predicted, word_tokenize)
    matcher = difflib.SequenceMatcher(None, answer_units, predicted_units, autojunk=False)
    return f1_of_counts(matcher.find_longest_match().size, len(predicted_units), len(answer_units))


def cmrc_scores(
    answers: Mapping[str, Iterable[str]],
    predictions: Mapping[str, str],
    word_tokenize: Callable[[str], Iterable[str]] = split_words,
) -> dict[str, float]:
    """Returns exact match and F1 over a data set as `cmrc2018_evaluate.py` computes them.

    A question without a prediction scores 0 and is counted as skipped.

    Args:
        answers: dict from question id to a list of one or more right answers.
        predictions: dict from question id to the predicted text.
        word_tokenize: see `segment`.

    Returns:
        Dict with `exact_match`, `f1` and `average` (of the two), percentages, and `total` and
        `skipped`, numbers of questions.

    Raises:
        ValueError: there are no questions, a question has no answers, or a text is not a str.

    Example:
        >>> cmrc_scores({"q": ["光荣"]}, {"q": "光荣。"})["exact_match"]
        100.0

    Reference:
        Cui et al. (2019), A Span-Extraction Dataset for Chinese Machine Reading Comprehension.
    """
    f1 = functools.partial(common_run_f1, word_tokenize=word_tokenize)
    scores = mean_of_best(answers, predictions, {"exact_match": exact_match, "f1": f1})
    average = (scores["exact_match"] + scores["f1"]) * 0.5
    skipped = len(answers.keys() - predictions.keys())
    return {**scores, "average": average, "total": len(answers), "skipped": skipped}
