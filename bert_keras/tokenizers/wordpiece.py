"""BERT's tokenizer: clean, split at spaces and punctuation, then longest match first."""

import itertools
import os
from typing import NamedTuple

import keras
import numpy as np
import tokenizers

from bert_keras.tokenizers.saved_settings import read_saved_tokenizer, write_saved_tokenizer
from bert_keras.tokenizers.texts import as_texts, describe, replace_surrogates
from bert_keras.tokenizers.vocabulary import (
    check_vocabulary,
    looks_lowercased,
    named_lowercased,
    read_vocabulary,
    write_vocabulary,
)

VOCABULARY_FILE = "vocab.txt"
TEXTS_AT_ONCE = 2048


class Encoding(NamedTuple):
    """One text, or pair of texts, as BERT sees it, special tokens included.

    All fields are lists of the same length, one entry per piece.

    Fields:
        ids: int, the id in the vocabulary.
        pieces: str, the piece itself.
        offsets: (start, end), characters of the original text: `text[start:end]` is what the piece
            stands for; of its own word for `encode_words`. (0, 0) for special tokens.
        word_ids: int, the index of the word the piece comes from; starts again at 0 in the second
            text. None for special tokens.
        segment_ids: int, 0 for `[CLS]`, the first text and its `[SEP]`, 1 for the second and its.
    """

    ids: list
    pieces: list
    offsets: list
    word_ids: list
    segment_ids: list


@keras.saving.register_keras_serializable(package="bert_keras")
class WordPieceTokenizer:
    """Splits text into the WordPiece tokens of a BERT vocabulary.

    Control characters are dropped, every CJK character becomes a word of its own, text is
    lowercased and stripped of accents if asked, then split at white space and around each
    punctuation sign. Every word is cut into the longest pieces that the vocabulary holds, from left
    to right (`"unaffable"` gives `un ##aff ##able`); a word that cannot be cut becomes `[UNK]`. The
    work is done by the `tokenizers` library, which runs a batch on all cores unless the environment
    variable `TOKENIZERS_PARALLELISM` is `false`. A call never changes a tokenizer, so threads may
    share it.

    The pieces are those of Google's tokenization.py, tried with every character of Unicode, but for
    four corners where the library, and with it Hugging Face's tokenizer, goes its own way: a
    capital sigma at the end of a word becomes `σ` where Python writes `ς`; private use characters
    are dropped; U+2B820 to U+2B91F, rare Chinese characters, are not set apart; and characters that
    entered Unicode after the library's tables (version 8) are neither punctuation nor accents.

    Args:
        vocabulary: path of a vocab.txt file, or a list of str where the index is the id. None makes
            a tokenizer that must be filled by `load_vocabulary` or `load_assets` before use.
        lowercase: bool, lowercase the text.
        strip_accents: bool, or None for "as `lowercase` says", which is BERT's rule.
        split_chinese: bool, put spaces around CJK characters.
        unknown_token: str.
        cls_token: str.
        sep_token: str.
        pad_token: str.
        mask_token: str; may be absent from the vocabulary as long as nobody asks for its id.
        added_tokens: list of str, further tokens of the vocabulary that are never split in text,
            such as the `[E1]` of relation extraction.
        special_tokens_in_text: bool, take `[MASK]`, `[SEP]` and the others in text for the tokens
            they name, as BERT's reference does. False reads them as ordinary characters.
        max_characters_per_word: int, longer words become `unknown_token`. Google's code says 200,
            Hugging Face's 100.
        model_max_length: int or None, the longest sequence the checkpoint takes; kept for
            preprocessing, not applied here.

    Example:

    >>> tokenizer = WordPieceTokenizer(
    ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "!"])
    >>> tokenizer.tokenize("Unaffable!")
    ['un', '##aff', '##able', '!']
    >>> tokenizer(["unaffable", "!"])
    [[5, 6, 7], [8]]
    >>> tokenizer.encode("unaffable").offsets
    [(0, 0), (0, 2), (2, 5), (5, 9), (0, 0)]

    Reference: Devlin et al. 2019, https://arxiv.org/abs/1810.04805; Wu et al. 2016,
    https://arxiv.org/abs/1609.08144, section 4.1.
    """

    def __init__(
        self,
        vocabulary=None,
        lowercase=True,
        strip_accents=None,
        split_chinese=True,
        unknown_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        mask_token="[MASK]",
        added_tokens=(),
        special_tokens_in_text=True,
        max_characters_per_word=100,
        model_max_length=None,
    ):
        self.lowercase = bool(lowercase)
        self.strip_accents = None if strip_accents is None else bool(strip_accents)
        self.split_chinese = bool(split_chinese)
        self.unknown_token = unknown_token
        self.cls_token = cls_token
        self.sep_token = sep_token
        self.pad_token = pad_token
        self.mask_token = mask_token
        self.added_tokens = list(added_tokens)
        self.special_tokens_in_text = bool(special_tokens_in_text)
        self.max_characters_per_word = int(max_characters_per_word)
        self.model_max_length = None if model_max_length is None else int(model_max_length)
        self._vocabulary = None
        self._ids = None
        self._backend = None
        if vocabulary is not None:
            self.load_vocabulary(vocabulary)

    # The vocabulary

    def load_vocabulary(self, vocabulary):
        """Fills the tokenizer from the path of a vocab.txt file or from a list of str."""
        if isinstance(vocabulary, (str, os.PathLike)):
            vocabulary = read_vocabulary(vocabulary)
        required = {
            "unknown_token": self.unknown_token,
            "cls_token": self.cls_token,
            "sep_token": self.sep_token,
            "pad_token": self.pad_token,
        }
        required |= {f"added_tokens[{i}]": token for i, token in enumerate(self.added_tokens)}
        self._vocabulary = check_vocabulary(vocabulary, required)
        self._ids = {token: index for index, token in enumerate(self._vocabulary)}
        self._backend = self._build_backend()

    def _build_backend(self):
        backend = tokenizers.Tokenizer(
            tokenizers.models.WordPiece(
                self._ids,
                unk_token=self.unknown_token,
                max_input_chars_per_word=self.max_characters_per_word,
            )
        )
        backend.normalizer = tokenizers.normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.split_chinese,
            strip_accents=self.strip_accents,
            lowercase=self.lowercase,
        )
        backend.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        backend.decoder = tokenizers.decoders.WordPiece(prefix="##")
        cls, sep = self.cls_token, self.sep_token
        backend.post_processor = tokenizers.processors.TemplateProcessing(
            single=[cls, "$A", sep],
            pair=[cls, "$A", sep, "$B:1", f"{sep}:1"],
            special_tokens=[(cls, self._ids[cls]), (sep, self._ids[sep])],
        )
        never_split = list(self.added_tokens)
        if self.special_tokens_in_text:
            never_split += [self.pad_token, self.unknown_token, cls, sep, self.mask_token]
        backend.add_special_tokens([token for token in never_split if token in self._ids])
        return backend

    def _ready(self):
        if self._backend is None:
            raise ValueError(
                "This tokenizer has no vocabulary yet: its config does not carry one. Call "
                "`load_vocabulary(path_or_list)` or `load_assets(folder)` first."
            )
        return self._backend

    @property
    def has_vocabulary(self):
        """Whether the tokenizer can be used: one made from a config waits for its vocabulary."""
        return self._backend is not None

    @property
    def vocabulary(self):
        """List of str, a copy; the index is the id."""
        self._ready()
        return list(self._vocabulary)

    @property
    def vocabulary_size(self):
        """Number of ids, the rows that an embedding table needs."""
        self._ready()
        return len(self._vocabulary)

    def token_to_id(self, token):
        """Returns the id of a token; raises a ValueError if the vocabulary does not hold it."""
        self._ready()
        if token not in self._ids:
            raise ValueError(
                f"The vocabulary does not hold {token!r}. It has {len(self._vocabulary)} tokens; "
                f"pieces that continue a word begin with '##'."
            )
        return self._ids[token]

    def id_to_token(self, id):
        """Returns the token of an id; raises a ValueError if there is none."""
        self._ready()
        if not 0 <= id < len(self._vocabulary):
            raise ValueError(f"An id must lie in [0, {len(self._vocabulary)}). Received: {id}.")
        return self._vocabulary[id]

    @property
    def unknown_token_id(self):
        """Id of the token that stands for words the vocabulary cannot spell."""
        return self.token_to_id(self.unknown_token)

    @property
    def cls_token_id(self):
        """Id of the token that opens every sequence."""
        return self.token_to_id(self.cls_token)

    @property
    def sep_token_id(self):
        """Id of the token that closes every text."""
        return self.token_to_id(self.sep_token)

    @property
    def pad_token_id(self):
        """Id of the token that fills a batch."""
        return self.token_to_id(self.pad_token)

    @property
    def mask_token_id(self):
        """Id of the token that hides a word in pre-training."""
        return self.token_to_id(self.mask_token)

    @property
    def special_token_ids(self):
        """List of the ids of the special tokens that the vocabulary holds, sorted."""
        self._ready()
        names = (
            self.unknown_token,
            self.cls_token,
            self.sep_token,
            self.pad_token,
            self.mask_token,
        )
        return sorted({self._ids[name] for name in names if name in self._ids})

    # Text to ids

    def __call__(self, texts):
        """Returns the ids of a text, or of each of a column of texts, without special tokens.

        Args:
            texts: str, or a list, array or column of str.

        Returns:
            A list of int, or a list of such lists.
        """
        if isinstance(texts, str):
            return self._encode_batch_ids([texts])[0].ids
        return [encoding.ids for encoding in self._encode_batch_ids(as_texts(texts))]

    def flat_ids(self, texts):
        """Tokenizes a column of texts into one flat array, the quick way to arrays.

        Args:
            texts: list, array or column of str.

        Returns:
            ids: int32 `(total,)`, the ids of all texts one after the other, no special tokens.
            lengths: int64 `(num_texts,)`, the number of ids of each text.
        """
        texts = as_texts(texts)
        ids, lengths = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        # In parts, since the library's results take many times the memory of the arrays.
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            part = self._encode_batch_ids(texts[start : start + TEXTS_AT_ONCE])
            rows = [encoding.ids for encoding in part]
            lengths.append(np.fromiter(map(len, rows), np.int64, len(rows)))
            ids.append(np.fromiter(itertools.chain.from_iterable(rows), np.int32))
        return np.concatenate(ids), np.concatenate(lengths)

    def tokenize(self, text):
        """Returns the pieces of a text, or of each of a column of texts, as str."""
        if isinstance(text, str):
            return self.tokenize([text])[0]
        encode_batch = self._ready().encode_batch
        encodings = self._run(encode_batch, as_texts(text), add_special_tokens=False)
        return [encoding.tokens for encoding in encodings]

    def encode(self, text, pair=None):
        """Returns everything known about a text or a pair: an `Encoding`, special tokens included.

        Args:
            text: str, or a list, array or column of str.
            pair: str or column of str of the same length, or None.

        Returns:
            An `Encoding`, or a list of them for a column.
        """
        if isinstance(text, str):
            text = [text]
            pair = None if pair is None else as_texts([pair], "pair")
            return self._encode_batch(text, pair)[0]
        pair = None if pair is None else as_texts(pair, "pair")
        return self._encode_batch(as_texts(text, "text"), pair)

    def encode_words(self, words):
        """Returns the `Encoding` of a text that comes as words, or of each of a list of such texts.

        `word_ids` count the given words, also where a word holds spaces or punctuation, and offsets
        count characters within the word. A word of which nothing is left (empty, or control
        characters alone) has no pieces.

        Args:
            words: list of str, or a list of such lists.
        """
        if not isinstance(words, (list, tuple)) and hasattr(words, "tolist"):
            words = words.tolist()
        if not isinstance(words, (list, tuple)):
            raise TypeError(
                "`words` must be a list of str or a list of such lists. Received: "
                f"{describe(words)}."
            )
        if not words or isinstance(words[0], str):
            return self._encode_batch([as_texts(words, "words")], None, are_words=True)[0]
        rows = [as_texts(row, f"words[{index}]") for index, row in enumerate(words)]
        return self._encode_batch(rows, None, are_words=True)

    def detokenize(self, ids):
        """Returns ids as text: pieces joined, `[CLS]`, `[SEP]` and `[PAD]` left out.

        What cleaning removed (case, accents, spaces) does not come back.

        Args:
            ids: list or array of int, or a batch of them.

        Returns:
            str, or a list of str for a batch.
        """
        if hasattr(ids, "tolist"):
            ids = ids.tolist()
        if ids and isinstance(ids[0], (list, tuple, np.ndarray)):
            return [self.detokenize(row) for row in ids]
        left_out = (self.cls_token, self.sep_token, self.pad_token)
        kept = [int(id) for id in ids if self.id_to_token(int(id)) not in left_out]
        return self._ready().decode(kept, skip_special_tokens=False)

    def _encode_batch_ids(self, texts):
        # The quick variant leaves out pieces and offsets, which cost a quarter of the time.
        return self._run(self._ready().encode_batch_fast, texts, add_special_tokens=False)

    def _encode_batch(self, texts, pairs, are_words=False):
        if pairs is not None:
            if len(pairs) != len(texts):
                raise ValueError(
                    "First and second texts must be equally many. Received: "
                    f"{len(texts)} first and {len(pairs)} second texts."
                )
            texts = list(zip(texts, pairs, strict=True))
        encodings = self._run(self._ready().encode_batch, texts, is_pretokenized=are_words)
        return [Encoding(e.ids, e.tokens, e.offsets, e.word_ids, e.type_ids) for e in encodings]

    @staticmethod
    def _run(encode_batch, texts, **options):
        try:
            return encode_batch(texts, **options)
        except TypeError:
            # All are str by now: what the library refuses are lone surrogates.
            return encode_batch(_without_surrogates(texts), **options)

    # Files

    @classmethod
    def load(cls, source, **overrides):
        """Reads a tokenizer from a folder or file of Google's, Hugging Face's, KerasHub's or ours.

        The vocabulary comes from vocab.txt, else from tokenizer.json. The settings come, in this
        order, from `overrides`, tokenizer_config.json, tokenizer.json. Where none of them tells
        whether to lowercase (Google's folders), the folder's name does if it is one of Google's
        (`uncased_L-...`, `cased_L-...`, `chinese_L-...`); else the vocabulary: one with no upper
        case letter was made from lowercased text.

        Args:
            source: path of a folder, of a vocab.txt or of a tokenizer.json.
            **overrides: arguments of the constructor.

        Raises:
            FileNotFoundError: there is no vocabulary.
            ValueError: tokenizer.json is not BERT's kind of tokenizer.
        """
        settings = read_saved_tokenizer(source) | overrides
        if "lowercase" not in settings:
            named = named_lowercased(source)
            looked = looks_lowercased(settings["vocabulary"])
            settings["lowercase"] = looked if named is None else named
        return cls(**settings)

    def save(self, folder):
        """Writes vocab.txt, tokenizer.json and tokenizer_config.json.

        Both `load` and Hugging Face's `BertTokenizerFast.from_pretrained` read the folder.
        """
        os.makedirs(folder, exist_ok=True)
        self.save_assets(folder)
        write_saved_tokenizer(folder, self._ready(), self.get_config())

    def save_assets(self, folder):
        """Writes vocab.txt, all that the config lacks, into an existing folder."""
        write_vocabulary(os.path.join(folder, VOCABULARY_FILE), self.vocabulary)

    def load_assets(self, folder):
        """Fills the tokenizer from a folder that `save_assets` wrote."""
        self.load_vocabulary(os.path.join(folder, VOCABULARY_FILE))

    def get_config(self):
        """Returns the constructor's arguments, `vocabulary` as None: it travels as an asset."""
        return {
            "vocabulary": None,
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "split_chinese": self.split_chinese,
            "unknown_token": self.unknown_token,
            "cls_token": self.cls_token,
            "sep_token": self.sep_token,
            "pad_token": self.pad_token,
            "mask_token": self.mask_token,
            "added_tokens": list(self.added_tokens),
            "special_tokens_in_text": self.special_tokens_in_text,
            "max_characters_per_word": self.max_characters_per_word,
            "model_max_length": self.model_max_length,
        }

    @classmethod
    def from_config(cls, config):
        """Makes a tokenizer from `get_config`'s dict; it waits for its vocabulary."""
        return cls(**config)


def _without_surrogates(texts):
    if isinstance(texts, str):
        return replace_surrogates(texts)
    return type(texts)(_without_surrogates(text) for text in texts)
