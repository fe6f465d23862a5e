"""Words of a text: where each one is, and how they are joined."""

import functools
import string
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_SPACE, _PUNCTUATION, _UNSPACED, _MARK = 1, 2, 4, 8
# Blocks of the scripts that put no spaces between words: Thai, Lao, Tibetan, Burmese, Khmer, Tai
# scripts, Japanese, Chinese.
_UNSPACED_BLOCKS = (
    *((0x0E00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1950, 0x19FF), (0x1A20, 0x1AAF)),
    *((0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x312F), (0x31A0, 0x31FF), (0x3400, 0x4DBF)),
    *((0x4E00, 0x9FFF), (0xA9E0, 0xA9FF), (0xAA60, 0xAADF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F)),
    *((0x16FE0, 0x18DFF), (0x1AFF0, 0x1B2FF), (0x20000, 0x3FFFF)),
)


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


@functools.cache
def _kinds():
    """Returns the kinds of all characters: space, punctuation (BERT's), script, mark."""
    kinds = np.zeros(0x110000, np.uint8)
    for code in (*range(0x20000), *range(0xE0000, 0xE0200)):
        character = chr(code)
        category = unicodedata.category(character)[0]
        kinds[code] |= _SPACE * character.isspace() | _MARK * (category == "M")
        kinds[code] |= _PUNCTUATION * (category == "P" or character in string.punctuation)
    for first, last in _UNSPACED_BLOCKS:
        kinds[first : last + 1] |= _UNSPACED
    # Joiners, and the voice marks of half-width kana, belong to the character before them.
    kinds[[0x200C, 0x200D, 0xFF9E, 0xFF9F]] |= _MARK
    return kinds


def number_words(
    text: str, word_ids: Sequence[int], offsets: Sequence[tuple[int, int]]
) -> NDArray[np.int64]:
    """Returns the number of each token's word, also where the tokenizer separates no words.

    A word begins where the tokenizer begins one, after white space, and before and after
    punctuation. In scripts without spaces between words, such as Chinese and Thai, every token is a
    word. A word never begins inside a character, nor at a mark, at which byte-level tokenizers
    separate; tokens of white space belong to the next word.

    Args:
        text: str.
        word_ids: for each token the number of the word that the tokenizer made; no special tokens.
        offsets: for each token `(start, end)` in characters.

    Returns:
        int64 `(num_tokens,)`, from 0 without a gap.
    """
    kinds = _kinds()[np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)]
    is_space = kinds & _SPACE > 0
    spaces = np.cumsum(np.append(0, is_space))
    places = np.append(np.where(is_space, len(text), np.arange(len(text))), len(text))
    starts, ends = np.array(offsets, np.int64).reshape(-1, 2).T
    # Where the text of each token begins, after white space.
    begins = np.minimum.accumulate(places[::-1])[::-1][starts]
    kinds, here = np.append(kinds, 0), begins[1:]
    kind, before = kinds[here], kinds[np.maximum(ends[:-1] - 1, 0)]
    is_cut = ((kind | before) & _UNSPACED > 0) | ((kind ^ before) & _PUNCTUATION > 0)
    is_cut &= (starts[1:] >= ends[:-1]) & (kind & _MARK == 0)
    is_cut |= (np.diff(word_ids) != 0) & ((kind | before) & _MARK == 0)
    is_cut |= spaces[here] > spaces[begins[:-1]]
    is_cut &= (here > begins[:-1]) & (here < len(text))
    return np.cumsum(np.append(np.zeros(min(1, len(begins)), bool), is_cut))


def find_words(
    text: str, word_ids: Iterable[int | None], offsets: Iterable[tuple[int, int]]
) -> Sequence[tuple[int, int]]:
    """Returns where the words of a text are, without white space around them.

    Marks on a word's last character belong to it.

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
    parts = [text[start:end] for start, end in spans]
    starts = [end - len(part.lstrip()) for part, (_, end) in zip(parts, spans, strict=True)]
    spans = [(start, start + len(p.strip())) for start, p in zip(starts, parts, strict=True)]
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
