"""Training of WordPiece vocabularies from text."""

import os
import re
import string
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable

import tokenizers

from bert_keras.checks import describe
from bert_keras.tokenizers.building_blocks import bert_normalizer
from bert_keras.tokenizers.tokenizer import replace_surrogates
from bert_keras.types import Path

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# Longer words are [UNK] to the tokenizer, and one of a megabyte would take hours to train on.
LONGEST_WORD = 100


def train_wordpiece(
    files: Path | Iterable[Path] | None = None,
    texts: Iterable[str] | None = None,
    *,
    vocabulary_size: int = 30522,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
    min_frequency: int = 2,
    limit_alphabet: int = 1000,
    special_tokens: Iterable[str] = SPECIAL_TOKENS,
) -> list[str]:
    """Trains a WordPiece vocabulary on text, read line by line.

    Starting from single characters, the pair of neighbouring pieces that occurs most often in the
    words of the text is merged into a new piece, again and again, until the vocabulary is full.
    Google never published the trainer behind BERT's vocabularies, which merged by gain in
    likelihood; this one merges by frequency, as Hugging Face's does. The same text gives the same
    vocabulary on every run: the library's own trainer numbers characters in the random order of a
    hash table, so they are counted and sorted here first. Words of more than 100 characters, which
    the tokenizer takes for unknown, are left out, and a warning tells how many.

    Args:
        files: path of a UTF-8 text file, or a list of such paths.
        texts: iterable of str, in place of `files`. An iterator that can be read only once is
            written to a temporary file, since the text is read several times.
        vocabulary_size: int, an upper bound: small texts give fewer tokens.
        lowercase: bool, as the tokenizer that will use the vocabulary.
        strip_accents: bool or None, likewise.
        split_chinese: bool, likewise.
        min_frequency: int, how often a pair must occur to be merged.
        limit_alphabet: int, how many different characters are kept, the most frequent first.
        special_tokens: tokens put at the beginning, in this order.

    Returns:
        A list of str for `WordPieceTokenizer`: special tokens, characters, continuing characters
        (`##a`), then merged pieces, the most frequent first.

    Raises:
        ValueError: there is no text, a file is not UTF-8, or the alphabet alone is larger than
            `vocabulary_size`.
        TypeError: `texts` gives something else than str.

    Example:

    >>> train_wordpiece(texts=["low lower lowest"] * 2, vocabulary_size=20)[-3:]
    ['##w', 'lo', 'low']
    """
    normalizer = bert_normalizer(lowercase, strip_accents, split_chinese)
    shorten = _shortener(normalizer, split_chinese)
    with tempfile.TemporaryDirectory() as folder:
        whole = _as_rereadable(files, texts, folder)

        def shortened():
            return (shorten(text)[0] for text in whole())

        num_long = sum(shorten(text)[1] for text in whole())
        if num_long:
            message = f"Left out {num_long} word(s) of more than {LONGEST_WORD} characters."
            warnings.warn(message, stacklevel=2)
        alphabet = _alphabet(shortened(), normalizer, limit_alphabet)
        # One merge-free run finds the characters that occur inside words.
        found = _train(shortened(), normalizer, [], alphabet, vocabulary_size=0, min_frequency=1)
        characters = sorted(alphabet) + sorted(piece for piece in found if len(piece) > 1)
        fixed = list(dict.fromkeys([*special_tokens, *characters]))
        if len(fixed) > vocabulary_size:
            raise ValueError(
                "`vocabulary_size` must hold the special tokens and the alphabet. Received: "
                f"vocabulary_size={vocabulary_size}, but there are {len(special_tokens)} special "
                f"tokens and {len(fixed) - len(special_tokens)} characters at the beginning and "
                "inside of words. Raise it, or lower `limit_alphabet`."
            )
        # Listed as special tokens, the characters get their ids in this order.
        ids = _train(shortened(), normalizer, fixed, alphabet, vocabulary_size, min_frequency)
    return sorted(ids, key=ids.get)


def _train(texts, normalizer, first_tokens, alphabet, vocabulary_size, min_frequency):
    """Runs the library's trainer and returns its vocabulary, a dict from token to id."""
    backend = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizer
    backend.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        min_frequency=min_frequency,
        special_tokens=first_tokens,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    return backend.get_vocab()


def _alphabet(texts, normalizer, limit):
    counts = Counter()
    for text in texts:
        counts.update(normalizer.normalize_str(text))
    characters = [character for character in counts if not character.isspace()]
    if not characters:
        raise ValueError("A vocabulary needs text to be trained on. Received: no characters.")
    characters.sort(key=lambda character: (-counts[character], character))
    if dropped := characters[limit:]:
        lost = sum(counts[character] for character in dropped)
        share = lost / sum(counts[character] for character in characters)
        warnings.warn(
            f"Left out {len(dropped)} rare characters, {share:.2%} of the text, such as "
            f"{''.join(dropped[:10])!r}: words with them are unknown. Raise `limit_alphabet` above "
            f"{limit} to keep them.",
            stacklevel=3,
        )
    return characters[:limit]


def _shortener(normalizer, split_chinese):
    """Returns a function that leaves too long words out of a text, and tells how many."""
    borders = re.escape(string.punctuation) + "。，、" + ("\u4e00-\u9fff" if split_chinese else "")
    may_be_long = re.compile(rf"[^\s{borders}]{{{LONGEST_WORD + 1}}}").search
    split = tokenizers.pre_tokenizers.BertPreTokenizer().pre_tokenize_str

    def shorten(text):
        if not may_be_long(text):
            return text, 0
        words = [word for word, _ in split(normalizer.normalize_str(text))]
        kept = [word for word in words if len(word) <= LONGEST_WORD]
        num_long = len(words) - len(kept)
        return " ".join(kept) if num_long else text, num_long

    return shorten


def _as_rereadable(files, texts, folder):
    """Returns a function that gives a fresh iterator over the texts each time it is called."""
    if (files is None) == (texts is None):
        raise ValueError("Pass either `files` or `texts`. Received: both, or neither.")
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"`texts` must be an iterable of str. Received: {describe(texts)}.")
    if texts is not None and iter(texts) is not texts:
        return lambda: map(_checked, texts)
    if texts is not None:
        files = os.path.join(folder, "texts.txt")
        with open(files, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(_checked(text) + "\n" for text in texts)
    paths = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    return lambda: _lines(paths)


def _lines(paths):
    for path in paths:
        with open(path, encoding="utf-8-sig", newline="\n") as file:
            try:
                yield from file
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"Text files must be UTF-8. Received: {os.fspath(path)} ({error.reason})."
                ) from error


def _checked(text):
    if not isinstance(text, str):
        raise TypeError(f"`texts` must give str only. Received: {describe(text)}.")
    return replace_surrogates(text)
