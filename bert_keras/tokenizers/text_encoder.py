"""Texts to token ids and back, with the `tokenizers` library and NumPy alone.

An exported folder has a copy of this module, so its imports of this package are relative.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import tokenizers
from numpy.typing import NDArray

from ..checks import as_texts, check_pairs
from ..types import Array, Texts
from .words import number_words

# The library's results take many times the memory of the arrays made from them.
TEXTS_AT_ONCE = 512
# Role -> its usual tokens, for files that name none.
ROLES = {
    "cls_token": ("[CLS]", "<s>"),
    "sep_token": ("[SEP]", "</s>"),
    "pad_token": ("[PAD]", "<pad>"),
    "mask_token": ("[MASK]", "<mask>"),
    "unknown_token": ("[UNK]", "<unk>"),
}
# Starts the name of a token that must not be found in text, see `Tokenizer.plain`.
HIDDEN = "\0"
# Characters that BERT splits: not the letters and the half-width kana among full-width forms.
_CHINESE = (
    "[\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff0f\uff1a-\uff20"
    "\uff3b-\uff40\uff5b-\uff65\U00020000-\U0002fa1f]"
)
_BETWEEN_CHINESE = re.compile(f"(?<={_CHINESE}) (?={_CHINESE})")
# Makes a text of one token, whose id no special token has.
_ONE_TOKEN = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 2**31}))


class Layout(NamedTuple):
    """The special tokens around a text, `before A after`, or a pair, `before A between B after`.

    BERT's is `[CLS] A [SEP] B [SEP]`, RoBERTa's `<s> A </s></s> B </s>`.

    Attributes:
        before: tuple of int, ids before the first text.
        between: tuple of int, ids between the two texts of a pair.
        after: tuple of int, ids after the last text.
        second_segment: int, 0 or 1, the segment id of the second text and of what follows it.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    second_segment: int

    def num_special(self, is_pair: bool = False) -> int:
        """Returns the number of special tokens around a text, or around a pair."""
        return len(self.before) + len(self.after) + (len(self.between) if is_pair else 0)

    def of(self, value: int) -> Layout:
        """Returns the layout with a value for every id, for values that are packed like tokens."""
        return Layout(*((value,) * len(part) for part in self[:3]), self.second_segment)


def read_layout(processor: tokenizers.processors.PostProcessor | None) -> Layout | None:
    """Returns the `Layout` of a post-processor, or None without a template of special tokens.

    Raises:
        ValueError: single texts and pairs do not have the form that `Layout` describes.
    """
    steps = processor if isinstance(processor, tokenizers.processors.Sequence) else [processor]
    if all(step is None or isinstance(step, tokenizers.processors.ByteLevel) for step in steps):
        return None
    token = _ONE_TOKEN.encode("a")
    single, pair = processor.process(token), processor.process(token, token)
    ids, texts, segments = pair.ids, pair.sequence_ids, pair.type_ids
    if ids.count(token.ids[0]) == 2 and [x for x in texts if x is not None] == [0, 1]:
        a, b = texts.index(0), texts.index(1)
        layout = Layout(tuple(ids[:a]), tuple(ids[a + 1 : b]), tuple(ids[b + 1 :]), segments[b])
        if (
            single.ids == [*layout.before, *token.ids, *layout.after]
            and not any(single.type_ids)
            and segments == [0] * b + [segments[b]] * (len(ids) - b)
            and segments[b] in (0, 1)
        ):
            return layout
    raise ValueError(
        "The special tokens of a tokenizer.json must be before and after a text and between two "
        "texts, the same for single texts and pairs, with segment 0 or, from the second text on, "
        f"1. Received: {single.ids} and {ids}, with segments {single.type_ids} and {segments}, "
        f"where texts are {token.ids}."
    )


class Encoding(NamedTuple):
    """A text, or a pair of texts, as a model sees it.

    All fields are lists of the same length with one entry per piece, including special tokens
    unless they are left out.

    Attributes:
        ids: int, the id in the vocabulary.
        pieces: str, the piece itself.
        offsets: (start, end), the characters `text[start:end]` of the original text that the piece
            stands for, or of its word in a list of words. (0, 0) for special tokens. Pieces that
            are parts of one character all have the offsets of that character.
        word_ids: int, the index of the piece's word, from 0 in each text. None for special tokens.
            Except for WordPiece, a run of punctuation is a word of its own, and so is each piece in
            scripts without spaces between words.
        segment_ids: int, 0, or 1 for the second text of a pair if the tokenizer has segments.
    """

    ids: list[int]
    pieces: list[str]
    offsets: list[tuple[int, int]]
    word_ids: list[int | None]
    segment_ids: list[int]


def _role_id(role: str, meaning: str) -> property:
    """Returns the property `<role>_id`."""

    def get(tokenizer: TextEncoder) -> int:
        token = getattr(tokenizer, role)
        id = tokenizer.find(token)
        if id is None:
            raise ValueError(
                f"The vocabulary must hold a `{role}`. Received: {tokenizer.vocabulary_size} tokens"
                f" without {token or ROLES[role]}. Add one, or pass the name that it has: "
                f"`Tokenizer.load(folder, {role}=...)`."
            )
        return id

    return property(get, doc=f"Id of the token that {meaning}.")


class TextEncoder:
    """Turns texts into token ids, words and offsets, and ids into texts; see `Tokenizer`.

    Args:
        backend: a `tokenizers.Tokenizer` without truncation and padding.
        layout: `Layout`, the special tokens around texts.
        roles: dict, `"pad_token"`, `"mask_token"`, ... -> token or `None`.
    """

    def __init__(
        self, backend: tokenizers.Tokenizer, layout: Layout, roles: Mapping[str, str | None]
    ) -> None:
        self._backend, self.layout = backend, layout
        for role in ROLES:
            setattr(self, role, roles[role])

    @functools.cached_property
    def _tokens(self):
        tokens = map(self._backend.id_to_token, itertools.count())
        tokens = [x.removeprefix(HIDDEN) for x in iter(tokens.__next__, None)]
        # A token that occurs twice in vocab.txt has a number after a line break.
        return [x.partition("\n")[0] for x in tokens] if self._is_wordpiece else tokens

    @property
    def vocabulary(self) -> list[str]:
        """The tokens, a new list of str; the index is the id."""
        return list(self._tokens)

    @property
    def vocabulary_size(self) -> int:
        """The number of ids, which is the number of rows that an embedding table needs."""
        return len(self._tokens)

    def get_vocabulary(self) -> list[str]:
        """Returns the tokens, a list of str; the index is the id."""
        return self.vocabulary

    cls_token_id = _role_id("cls_token", "starts every sequence")
    sep_token_id = _role_id("sep_token", "ends every text")
    pad_token_id = _role_id("pad_token", "pads a batch")
    mask_token_id = _role_id("mask_token", "hides a word in pretraining")
    unknown_token_id = _role_id("unknown_token", "replaces what the vocabulary cannot spell")

    @property
    def special_token_ids(self) -> list[int]:
        """The sorted ids of the special tokens in the vocabulary."""
        return sorted({*self.ids_of(getattr(self, role) for role in ROLES)})

    @property
    def _is_wordpiece(self):
        return isinstance(self._backend.model, tokenizers.models.WordPiece)

    @functools.cached_property
    def continues_word(self) -> NDArray[np.bool_] | None:
        """Bool `(vocabulary_size,)`, whether each token continues a word, such as those with `##`.

        None if that depends on the text, not on the vocabulary.
        """
        prefix = self._backend.model.continuing_subword_prefix if self._is_wordpiece else ""
        if not prefix:
            return None
        return np.array([token.startswith(prefix) for token in self.vocabulary])

    def continued_words(self, text: str, encoding: Encoding) -> list[bool]:
        """Returns for each piece of a text whether it continues a word, as transformers has it.

        WordPiece's pieces say so by `##`; others continue a word if they follow no space.

        Args:
            text: str.
            encoding: its `Encoding` without special tokens.
        """
        if self._is_wordpiece:
            return [piece.startswith("##") for piece in encoding.pieces]
        return [
            start > 0 and " " not in text[start - 1 : start + 1] for start, _ in encoding.offsets
        ]

    def find(self, token: str | None) -> int | None:
        """Returns the id of a token, or `None` if the vocabulary does not hold it."""
        if token is None:
            return None
        id = self._backend.token_to_id(token)
        return self._backend.token_to_id(HIDDEN + token) if id is None else id

    def token_to_id(self, token: str) -> int:
        """Returns the id of a token; raises a ValueError if the vocabulary does not hold it."""
        id = self.find(token)
        if id is None:
            raise ValueError(
                f"The vocabulary does not hold {token!r}. It has {self.vocabulary_size} tokens."
            )
        return id

    def ids_of(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of those tokens that are in the vocabulary."""
        return [id for id in map(self.find, tokens) if id is not None]

    def id_to_token(self, id: int) -> str:
        """Returns the token of an id; raises a ValueError if there is none."""
        if not 0 <= id < self.vocabulary_size:
            raise ValueError(f"An id must be in [0, {self.vocabulary_size}). Received: {id}.")
        return self._tokens[id]

    def readable(self, id: int) -> str:
        """Returns the token of an id in readable form: `é` for the bytes `Ã©`, without `▁`.

        `##` is kept. A token that would become empty, or is half a character, is not changed.
        """
        token = self.id_to_token(id)
        if self._is_wordpiece:
            return token
        text = self._backend.decode([id], skip_special_tokens=False).strip()
        return token if "\ufffd" in text else text or token

    # Text to ids

    @overload
    def __call__(self, texts: str) -> list[int]: ...
    @overload
    def __call__(self, texts: Texts) -> list[list[int]]: ...
    def __call__(self, texts):
        """Returns the ids of a text, or of each text in a column, without special tokens.

        Args:
            texts: str, or a list, array or column of str.

        Returns:
            A list of int, or a list of such lists.
        """
        if isinstance(texts, str):
            return self([texts])[0]
        return [encoding.ids for encoding in self.encode_batch(as_texts(texts), fast=True)]

    def flat_ids(self, texts: Texts, word_starts: bool = False) -> tuple[Array, ...]:
        """Tokenizes a column of texts into one flat array, which is faster than lists.

        Args:
            texts: list, array or column of str.
            word_starts: bool, also return where words start.

        Returns:
            ids: int32 `(total,)`, the concatenated ids of all texts, without special tokens.
            lengths: int64 `(num_texts,)`, the number of ids of each text.
            starts: bool `(total,)`, whether a word starts at each token; only if `word_starts`.
        """
        texts = as_texts(texts)
        # Word ids cost a quarter of the time, so the vocabulary is used if it is enough.
        by_text = word_starts and self.continues_word is None
        ids, lengths, starts = [np.empty(0, np.int32)], [np.empty(0, np.int64)], [np.empty(0, bool)]
        for begin in range(0, len(texts), TEXTS_AT_ONCE):
            batch = texts[begin : begin + TEXTS_AT_ONCE]
            part = self.encode_batch(batch, fast=not by_text)
            rows = list(map(operator.attrgetter("ids"), part))
            lengths.append(np.fromiter(map(len, rows), np.int64, len(rows)))
            ids.append(np.fromiter(itertools.chain.from_iterable(rows), np.int32))
            for text, encoding in zip(batch, part, strict=True) if by_text else ():
                words = number_words(text, encoding.word_ids, encoding.offsets)
                starts.append(np.diff(words, prepend=-1) != 0)
        ids, lengths = np.concatenate(ids), np.concatenate(lengths)
        if not word_starts:
            return ids, lengths
        return ids, lengths, np.concatenate(starts) if by_text else ~self.continues_word[ids]

    @overload
    def tokenize(self, text: str) -> list[str]: ...
    @overload
    def tokenize(self, text: Texts) -> list[list[str]]: ...
    def tokenize(self, text):
        """Returns the pieces of a text, or of each text in a column, as str."""
        if isinstance(text, str):
            return self.tokenize([text])[0]
        return [encoding.tokens for encoding in self.encode_batch(as_texts(text))]

    @overload
    def encode(
        self, text: str, pair: str | None = None, special_tokens: bool = True
    ) -> Encoding: ...
    @overload
    def encode(
        self, text: Texts, pair: Texts | None = None, special_tokens: bool = True
    ) -> list[Encoding]: ...
    def encode(self, text, pair=None, special_tokens=True):
        """Returns the `Encoding` of a text or a pair, or of each in a column.

        Args:
            text: str, or a list, array or column of str.
            pair: str or column of str of the same length, or None.
            special_tokens: bool, whether to add special tokens around the texts.

        Returns:
            An `Encoding`, or a list of them for a column.
        """
        if isinstance(text, str):
            pair = None if pair is None else as_texts([pair], "pair")
            return self.encode([text], pair, special_tokens)[0]
        texts = as_texts(text, "text")
        if pair is not None:
            pairs = as_texts(pair, "pair")
            check_pairs(texts, pairs)
            texts = list(zip(texts, pairs, strict=True))
        found = self.encode_batch(texts, special_tokens)
        encodings = _encodings(found)
        if self.continues_word is None:
            for encoding, e, text in zip(encodings, found, texts, strict=True):
                _number_words(encoding, e.sequence_ids, (text,) if isinstance(text, str) else text)
        return encodings

    def encode_sentences(self, sentences: Sequence[str | Sequence[str]]) -> Iterator[Encoding]:
        """Yields an `Encoding` without special tokens for each sentence, a text or a list of words.

        In a list of words, `word_ids` count the words of the list, even if one contains spaces or
        punctuation. A word that is empty, or has only control characters, has no pieces. If spaces
        are parts of tokens, every word is tokenized as after a space; where nothing else puts one
        before the first word of a text, every word but the first. If every word gets a space, a
        text begins with one too. Offsets count characters of the text, or of the word and the space
        that it gets.

        Args:
            sentences: list of str and of lists of str.
        """
        texts = [sentence for sentence in sentences if isinstance(sentence, str)]
        rows = [sentence for sentence in sentences if not isinstance(sentence, str)]
        rows = list(map(after_spaces, rows)) if self._needs_space else rows
        of_texts, of_words = (
            iter(
                _encodings(self.encode_batch(batch, are_words=of_words, backend=self._word_backend))
            )
            for batch, of_words in ((texts, False), (rows, True))
        )
        for sentence in sentences:
            encoding = next(of_texts if isinstance(sentence, str) else of_words)
            if isinstance(sentence, str) and self.continues_word is None:
                words = number_words(sentence, encoding.word_ids, encoding.offsets)
                encoding = encoding._replace(word_ids=words.tolist())
            yield encoding

    @functools.cached_property
    def _word_backend(self):
        text = self._backend.to_str()
        prefixed = text.replace('"add_prefix_space":false', '"add_prefix_space":true')
        return self._backend if prefixed == text else tokenizers.Tokenizer.from_str(prefixed)

    @functools.cached_property
    def _needs_space(self):
        """Whether words that are encoded one by one lack the space that texts have before them."""
        options = {"add_special_tokens": False}
        words = self._word_backend.encode(["a", "a"], is_pretokenized=True, **options)
        text = self._backend.encode("a a", **options)
        second = [id for id, word in zip(words.ids, words.word_ids, strict=True) if word == 1]
        return second != [
            id for id, (start, _) in zip(text.ids, text.offsets, strict=True) if start
        ]

    def encode_batch(
        self,
        texts: Sequence[Any],
        special_tokens: bool = False,
        are_words: bool = False,
        fast: bool = False,
        backend: tokenizers.Tokenizer | None = None,
    ) -> list[tokenizers.Encoding]:
        """Returns what the library `tokenizers` makes of texts.

        Args:
            texts: list of str, of pairs of str, or of lists of words.
            special_tokens: bool, whether to add special tokens around the texts.
            are_words: bool, whether texts are lists of words, each tokenized as it is given.
            fast: bool, whether to return ids alone.
            backend: another `tokenizers.Tokenizer`, or `None` for this one's.

        Raises:
            ValueError: the tokenizer's settings fail on a text.
        """
        backend = backend or self._backend
        # The fast variant skips pieces, words and offsets, which cost a quarter of the time.
        encode_batch = backend.encode_batch_fast if fast else backend.encode_batch
        options = {"is_pretokenized": are_words, "add_special_tokens": special_tokens}
        try:
            return encode_batch(texts, **options)
        except TypeError:
            # All are str by now, so the library refused lone surrogates.
            return encode_batch(_without_surrogates(texts), **options)
        except BaseException as error:  # A panic of the library is not an `Exception`.
            if type(error).__name__ != "PanicException":
                raise
            raise ValueError(
                "This tokenizer's settings fail on one of the texts. Received: "
                f"{error!s} Leave the text out, or use another tokenizer.json."
            ) from error

    @overload
    def detokenize(self, ids: Sequence[int], special_tokens: bool = False) -> str: ...
    @overload
    def detokenize(
        self, ids: Sequence[Sequence[int]], special_tokens: bool = False
    ) -> list[str]: ...
    @overload
    def detokenize(self, ids: NDArray[Any], special_tokens: bool = False) -> Any: ...
    def detokenize(self, ids, special_tokens=False):
        """Joins the pieces of ids to a text, without `[CLS]`, `[SEP]` and padding.

        Case, accents and spaces that normalization removed are not restored. There is no space
        between Chinese characters, each of which is a word to BERT.

        Args:
            ids: list or array of int, or a batch of them.
            special_tokens: bool, whether to keep `[CLS]`, `[SEP]` and padding.

        Returns:
            str, or a list of str for a batch.
        """
        if hasattr(ids, "tolist"):
            ids = ids.tolist()
        if ids and isinstance(ids[0], (list, tuple, np.ndarray)):
            return [self.detokenize(row, special_tokens) for row in ids]
        left_out = () if special_tokens else (self.cls_token, self.sep_token, self.pad_token)
        kept = [int(id) for id in ids if self.id_to_token(int(id)) not in left_out]
        text = self._backend.decode(kept, skip_special_tokens=False)
        return _BETWEEN_CHINESE.sub("", text) if self._is_wordpiece else text

    def join(self, pieces: Sequence[str]) -> str:
        """Returns the text of pieces, such as `"unhappy"` for `["un", "##happy"]`."""
        decoder = self._backend.decoder
        return " ".join(pieces) if decoder is None else decoder.decode(list(pieces))


def _encodings(found):
    return [Encoding(e.ids, e.tokens, e.offsets, e.word_ids, e.type_ids) for e in found]


def _number_words(encoding, sequences, texts):
    """Changes the `word_ids` of an `Encoding` to those of `number_words`."""
    for number, text in enumerate(texts):
        places = [place for place, sequence in enumerate(sequences) if sequence == number]
        words, offsets = ([row[i] for i in places] for row in (encoding.word_ids, encoding.offsets))
        for place, word in zip(places, number_words(text, words, offsets).tolist(), strict=True):
            encoding.word_ids[place] = word


def replace_surrogates(text):
    """Replaces each lone surrogate, which UTF-8 cannot encode, with U+FFFD.

    BERT's normalizer drops U+FFFD, so such characters disappear from the pieces, but the offsets of
    all other pieces stay the same.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _without_surrogates(texts):
    if isinstance(texts, str):
        return replace_surrogates(texts)
    return type(texts)(_without_surrogates(text) for text in texts)


def after_spaces(words: Sequence[str]) -> list[str]:
    """Returns words with a space before each except the first, and except empty ones."""
    return [f" {word}" if i and word and word[0] != " " else word for i, word in enumerate(words)]
