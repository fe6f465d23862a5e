"""Words of a text: where each stands, and how they are joined."""

import unicodedata
from collections.abc import Iterable, Sequence


def with_marks(text: str, spans: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Extends spans over the marks that follow them and that no span covers.

    A lower-casing tokenizer strips accents, so where an accent is a character of its own
    ("cafe\\u0301") the offsets of the token end before it. Cut there, the text would lose it.

    Args:
        text: str.
        spans: list of `(start, end)` in characters, in order.

    Returns:
        List of `(start, end)`, each extended over combining marks, variation selectors and joiners,
        at most up to the start of the next span.

    Example:

    >>> with_marks("cafe\\u0301 noir", [(0, 4), (6, 10)])
    [(0, 5), (6, 10)]
    """
    if text.isascii():
        return spans
    found, limits = [], [start for start, _ in spans[1:]] + [len(text)] * bool(spans)
    for (start, end), limit in zip(spans, limits, strict=True):
        while end < limit and (
            unicodedata.category(text[end])[0] == "M" or text[end] in "\u200c\u200d"
        ):
            end += 1
        found.append((start, end))
    return found


def find_words(
    text: str, word_ids: Iterable[int | None], offsets: Iterable[tuple[int, int]]
) -> Sequence[tuple[int, int]]:
    """Returns where the words of a text stand; marks on a word's last character belong to it.

    Args:
        text: str.
        word_ids: for each token the number of its word; `None` for special tokens.
        offsets: for each token `(start, end)` in characters.

    Returns:
        List of `(start, end)`, the characters of each word.
    """
    spans, last = [], None
    for word, (start, end) in zip(word_ids, offsets, strict=True):
        if word is None:
            continue
        if word == last:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
        last = word
    return with_marks(text, spans)


def join_words(words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Joins words to a text: by spaces, or by nothing where each is a single character.

    Args:
        words: list of str; Chinese comes as characters.

    Returns:
        The text, and a list of `(start, end)`, the characters of each word.

    Example:

    >>> join_words(["a", "film"]), join_words(["北", "京"])
    (('a film', [(0, 1), (2, 6)]), ('北京', [(0, 1), (1, 2)]))
    """
    between = "" if all(len(word) <= 1 for word in words) else " "
    spans, start = [], 0
    for word in words:
        spans.append((start, start + len(word)))
        start += len(word) + len(between)
    return between.join(words), spans
