"""Text split into sentences by rules, for European languages and for Chinese."""

import itertools
import re

# Closing quotes and brackets that belong to the sentence they end.
_CLOSING = "\"'”’»)\\]）】』」》〕"
_OPENING = "\"'“‘«(\\[（【『「《〔_*—–-"
# A stop and the white space after it; `_is_end` looks at the next character, group 1. Possessive
# repeats keep a megabyte of dots from taking quadratic time.
_SPACED_END = re.compile(
    rf"[.!?…](?<![.!?…]{{2}})[.!?…]*+[{_CLOSING}_*]*+\s++(?=[{_OPENING}]*(.))", re.DOTALL
)
# Chinese and Japanese stops need no white space. Many files have U+FF0E as a full stop.
_CJK_END = re.compile(
    rf"(?:[。！？｡]|(?<![0-9０-９])．(?![0-9０-９]))[。！？!?．…]*[{_CLOSING}]*\s*"
)
_HAS_CJK_END = re.compile("[。！？｡．]")
_LAST_WORD = re.compile(r"([^\W\d_]+(?:\.[^\W\d_]+)*)\.$")

_ABBREVIATED = """
mr mrs ms messrs mme mlle dr prof st rev hon gen col capt lieut lt sergt sgt maj adm gov esq jr sr
vs viz cf etc eg ie i.e e.g cp vol vols no nos fig figs ch chap pp op ed eds co inc ltd corp dept
approx jan feb mar apr jun jul aug sept oct nov dec a.m p.m u.s u.k ph.d b.c a.d hr hrs bros mt ft
"""
_ABBREVIATIONS = frozenset(_ABBREVIATED.split())
# These may also end a sentence. They do if a capital letter follows.
_MAY_END = frozenset(("etc", "esq", "jr", "sr", "inc", "ltd", "co", "a.m", "p.m", "u.s", "u.k"))


def split_sentences(text: str) -> list[str]:
    """Splits a passage into sentences.

    A sentence ends after `.`, `!`, `?` or an ellipsis and closing quotes, if white space and no
    small letter follow, but not after a title or another abbreviation (`Mr.`, `e.g.`) or after an
    initial (`J. Smith`). Chinese sentences end after `。`, `！` or `？` and closing quotes, with or
    without white space. Like any splitter without a dictionary, these rules make some errors;
    pre-training only needs borders that are mostly right.

    Args:
        text: str, a passage whose line breaks have no meaning.

    Returns:
        A list of str, none empty, without white space at their ends. Together they hold every
        character of the text except white space, in the same order.

    Example:

    >>> split_sentences('“Well!” thought Alice. She met Mr. Smith at 3 p.m. in town. Why?')
    ['“Well!” thought Alice.', 'She met Mr. Smith at 3 p.m. in town.', 'Why?']
    >>> split_sentences("宝玉笑道：“好！”黛玉不语。")
    ['宝玉笑道：“好！”', '黛玉不语。']
    """
    places = itertools.pairwise([0, *_sentence_ends(text), len(text)])
    return [part for start, end in places if (part := text[start:end].strip())]


def _sentence_ends(text):
    """Returns the places where sentences end, in ascending order."""
    ends = [match.end() for match in _SPACED_END.finditer(text) if _is_end(text, match)]
    if _HAS_CJK_END.search(text):
        ends = sorted({*ends, *(match.end() for match in _CJK_END.finditer(text))})
    return ends


def _is_end(text, match):
    """Whether a match of `_SPACED_END` ends a sentence."""
    follows = match[1]
    if follows.islower():
        return False
    if text[match.start()] != "." or match.end() - match.start() > 3:
        return True
    stop = match.start() + 1
    word = _LAST_WORD.search(text, max(0, stop - 12), stop)
    if word is None:
        return True
    word = word[1]
    if len(word) == 1:
        # "Henry J. Smith" goes on, "so did I. Then" does not.
        return word in "Ia" or not word.isupper()
    word = word.lower()
    return word not in _ABBREVIATIONS or (word in _MAY_END and follows.isupper())
