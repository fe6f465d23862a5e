"""Sentences as tokens: texts, which keep their own words, or lists of words."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .words import number_words


class Pieces(NamedTuple):
    """The tokens of a sentence, without special tokens.

    Fields:
        ids: list of int.
        word_ids: list of int, the number of each token's word.
        offsets: list of `(start, end)`, characters of the text, or of its word in a list of words.
    """

    ids: list[int]
    word_ids: list[int]
    offsets: list[tuple[int, int]]


def needs_space(of_texts: Any, of_words: Any) -> bool:
    """Whether words that are encoded one by one lack the space that texts have before them.

    Args:
        of_texts: `tokenizers.Tokenizer`.
        of_words: likewise, for words.
    """
    words = of_words.encode(["a", "a"], is_pretokenized=True, add_special_tokens=False)
    text = of_texts.encode("a a", add_special_tokens=False)
    second = [id for id, word in zip(words.ids, words.word_ids, strict=True) if word == 1]
    return second != [id for id, (start, _) in zip(text.ids, text.offsets, strict=True) if start]


def after_spaces(words: Sequence[str]) -> list[str]:
    """Returns words with a space before each except the first, and except empty ones."""
    return [f" {word}" if i and word and word[0] != " " else word for i, word in enumerate(words)]


def encode_sentences(
    encode: Callable[[list[Any], bool], Any],
    sentences: Sequence[str | Sequence[str]],
    separates_words: bool,
    needs_space: bool,
) -> Iterator[Pieces]:
    """Yields the tokens of sentences.

    Args:
        encode: function of a list of sentences, and of whether they are lists of words, to their
            `tokenizers.Encoding`s.
        sentences: list of str or of lists of str.
        separates_words: bool, whether the tokenizer separates the words of a text.
        needs_space: bool, whether to put spaces before given words.
    """
    texts = [sentence for sentence in sentences if isinstance(sentence, str)]
    rows = [sentence for sentence in sentences if not isinstance(sentence, str)]
    of_texts = iter(encode(texts, False))
    of_words = iter(encode(list(map(after_spaces, rows)) if needs_space else rows, True))
    for sentence in sentences:
        is_text = isinstance(sentence, str)
        found = next(of_texts if is_text else of_words)
        words, offsets = found.word_ids, found.offsets
        if is_text and not separates_words:
            words = number_words(sentence, words, offsets).tolist()
        yield Pieces(found.ids, words, offsets)
