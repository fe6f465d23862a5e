"""Where a token ends for a reader: behind the marks on its last character."""

import unicodedata

# Zero-width characters that hold a word or an emoji together.
_JOINERS = "\u200c\u200d"
# The first mark of Unicode is U+0300.
_BEFORE_MARKS = "\u02ff"


def with_marks(text, spans):
    """Lengthens spans over the marks that follow them and that no span covers.

    A lower-casing tokenizer strips accents, so where an accent is a character of its own
    ("cafe\\u0301") the offsets of the token end before it. Cut there, the text would lose it.

    Args:
        text: str.
        spans: list of `(begin, end)` in characters, in order.

    Returns:
        List of `(begin, end)`, each lengthened over combining marks, variation selectors and
        joiners, at most up to where the next span begins.

    Example:

    >>> with_marks("cafe\\u0301 noir", [(0, 4), (6, 10)])
    [(0, 5), (6, 10)]
    """
    if text.isascii():
        return spans
    limits = [*(begin for begin, _ in spans), len(text)][1:]
    return [
        (begin, _end_of_marks(text, end, limit))
        for (begin, end), limit in zip(spans, limits, strict=True)
    ]


def _end_of_marks(text, end, limit):
    while end < limit and _is_mark(text[end]):
        end += 1
    return end


def _is_mark(character):
    return character > _BEFORE_MARKS and (
        unicodedata.category(character)[0] == "M" or character in _JOINERS
    )
