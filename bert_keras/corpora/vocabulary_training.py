"""Training of WordPiece vocabularies on text."""

import os
import re
import string
import warnings
from collections import Counter
from collections.abc import Iterable

import tokenizers

from bert_keras.checks import check_not_empty, check_type
from bert_keras.datasets.files import read_lines
from bert_keras.tokenizers.components import bert_normalizer
from bert_keras.tokenizers.text_encoder import replace_surrogates
from bert_keras.types import Path

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# The tokenizer maps longer words to [UNK], and training on a word of a megabyte would take hours.
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

    Starting from single characters, the most frequent pair of adjacent pieces in the words of the
    text is merged into a new piece, until the vocabulary is full. Google never published the
    trainer of BERT's vocabularies, which merged by gain in likelihood; this one merges by
    frequency, like Hugging Face's. The same text always gives the same vocabulary: characters are
    counted and sorted first, since the `tokenizers` library would number them in the random order
    of a hash table. Words of more than 100 characters, which are unknown to the tokenizer, are left
    out with a warning.

    Args:
        files: path of a UTF-8 text file, plain or gzip, or a list of paths.
        texts: iterable of str, instead of `files`. It is read several times: an iterator that can
            be read only once becomes a list.
        vocabulary_size: int, an upper bound: small texts give fewer tokens.
        lowercase: bool, as in the tokenizer that will use the vocabulary.
        strip_accents: bool or `None`, likewise.
        split_chinese: bool, likewise.
        min_frequency: int, how often a pair must occur to be merged.
        limit_alphabet: int, the number of different characters to keep, the most frequent ones.
        special_tokens: tokens put at the beginning, in this order.

    Returns:
        A list of str for `WordPieceTokenizer`: special tokens, characters, continuing characters
        (`##a`), then merged pieces, the most frequent first.

    Raises:
        ValueError: there is no text, a file is not UTF-8, or the alphabet alone is larger than
            `vocabulary_size`.
        TypeError: `texts` yields something other than str.

    Example:

    >>> train_wordpiece(texts=["low lower lowest"] * 2, vocabulary_size=20)[-3:]
    ['##w', 'lo', 'low']
    """
    normalizer = bert_normalizer(lowercase, strip_accents, split_chinese)
    shorten = _shortener(normalizer, split_chinese)
    whole = _as_rereadable(files, texts)

    def shortened():
        return (shorten(text)[0] for text in whole())

    num_long = sum(shorten(text)[1] for text in whole())
    if num_long:
        message = f"Left out {num_long} word(s) of more than {LONGEST_WORD} characters."
        warnings.warn(message, stacklevel=2)
    alphabet = _alphabet(shortened(), normalizer, limit_alphabet)
    # A run without merges finds the characters that occur inside words.
    found = _train(shortened(), normalizer, [], alphabet, vocabulary_size=0, min_frequency=1)
    characters = sorted(alphabet) + sorted(piece for piece in found if len(piece) > 1)
    fixed = list(dict.fromkeys([*special_tokens, *characters]))
    if len(fixed) > vocabulary_size:
        raise ValueError(
            "`vocabulary_size` must hold the special tokens and the alphabet. Received: "
            f"vocabulary_size={vocabulary_size} for {len(fixed) - len(characters)} special "
            f"tokens and {len(characters)} characters at the beginning and inside of words. "
            "Raise it, or lower `limit_alphabet`."
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
    check_not_empty(characters, "A vocabulary needs characters to be trained on")
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
    """Returns a function that returns a text without overlong words, and their number."""
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


def _as_rereadable(files, texts):
    """Returns a function whose every call returns a new iterator over the texts."""
    if (files is None) == (texts is None):
        raise ValueError("Pass either `files` or `texts`. Received: both, or neither.")
    if texts is not None:
        if isinstance(texts, (str, bytes)):
            check_type("texts", texts, (), "an iterable of str")
        texts = list(texts) if iter(texts) is texts else texts
        return lambda: map(_checked, texts)
    paths = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    return lambda: (line for path in paths for line in read_lines(path))


def _checked(text):
    return replace_surrogates(check_type("texts", text, str, "an iterable of str"))
