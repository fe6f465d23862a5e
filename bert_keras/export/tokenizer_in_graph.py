"""WordPiece inside a TensorFlow graph, with exactly the tokenizer's own tokens."""

import functools
import re

import numpy as np
from tokenizers import normalizers, pre_tokenizers

from bert_keras.checks import require

# Private use characters. BERT's cleaning drops them, so that they are in no cleaned text. `_MARK`
# separates special tokens from text, and the characters after it stand for special tokens.
_MARK = "\U000f0000"
_PRIVATE, _DROPPED = "[\U000f0000-\U000ffffd]", "\ufffd"
_NOT_IN_TEXT = f"{_PRIVATE}|{_DROPPED}"
# What BERT's cleaning drops, besides private use characters. It is dropped before marks are sorted.
_INVISIBLE = (
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\ufffd\U000110bd"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)
_PAGE = 256


class GraphTokenizer:
    """Turns a string tensor into token ids as a `Tokenizer` does, with the operations of a graph.

    Each character's cleaned text, with spaces around words, comes from a table that the tokenizer's
    own normalizer and pre-tokenizer made. Two things depend on a character's neighbours and are
    done separately: NFD's order of combining marks, if accents are stripped, by
    `tensorflow_text.normalize_utf8`; and special tokens in text.
    `tensorflow_text.FastWordpieceTokenizer` splits words into pieces; a process that loads the
    graph must import it. Invalid UTF-8 counts as U+FFFD, which cleaning drops.

    Args:
        tokenizer: a WordPiece `Tokenizer` with BERT's cleaning.

    Raises:
        ImportError: tensorflow-text is missing.
        ValueError: a graph cannot return exactly the tokenizer's tokens.
    """

    def __init__(self, tokenizer):
        import tensorflow as tf

        check_can_be_in_graph(tokenizer)
        settings, model = tokenizer.settings, tokenizer.settings["model"]
        special = {token["content"]: token["id"] for token in settings["added_tokens"]}
        names = [chr(ord(_MARK) + 1 + number) for number in range(len(special))]
        options = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
        cleaning = {option: settings["normalizer"][option] for option in options}
        pages, texts = _table_of(**cleaning)
        # Eager tensors: a SavedModel holds them once, however many functions use them.
        self._places, self._pages = (tf.constant(part) for part in pages)
        self._texts = tf.constant(texts)
        strips = cleaning["strip_accents"]
        self._strips_accents = cleaning["lowercase"] if strips is None else strips
        self._special = tf.constant(list(special), tf.string)
        self._names = tf.constant([f" {name} " for name in names], tf.string)
        longest_first = sorted(special, key=len, reverse=True)
        self._pattern = f"({'|'.join(map(re.escape, longest_first))})" if special else None
        self._ids = tf.constant([*range(tokenizer.vocabulary_size), *special.values()], tf.int32)
        self._unknown = model["unk_token"]
        self._longest = model["max_input_chars_per_word"]
        self._wordpiece = _wordpiece_of(tokenizer, names)

    def __call__(self, texts):
        """Returns the ids of texts, without special tokens around them.

        Args:
            texts: string tensor `(batch,)`, UTF-8.

        Returns:
            An int32 `tf.RaggedTensor` `(batch, None)`.
        """
        import tensorflow as tf

        words = tf.strings.split(self._spaced(self._with_names(texts)))
        lengths = tf.strings.length(words.values, unit="UTF8_CHAR")
        shortened = tf.where(lengths > self._longest, self._unknown, words.values)
        pieces = self._wordpiece.tokenize(shortened)
        ids = pieces.with_values(tf.gather(self._ids, pieces.values))
        return words.with_values(ids).merge_dims(1, 2)

    def _with_names(self, texts):
        """Returns texts in which each special token is replaced by its single-character name."""
        import tensorflow as tf

        texts = tf.strings.regex_replace(texts, _PRIVATE, _DROPPED)
        if self._pattern is None:
            return texts
        marked = tf.strings.regex_replace(texts, self._pattern, rf"{_MARK}\1{_MARK}")
        parts = tf.strings.split(marked, _MARK)
        # Text and special tokens alternate.
        is_special = tf.ragged.range(parts.row_lengths()).values % 2 == 1
        index = tf.argmax(parts.values[:, None] == self._special, axis=1)
        with_names = tf.where(is_special, tf.gather(self._names, index), parts.values)
        return _joined(parts.with_values(with_names))

    def _spaced(self, texts):
        """Returns texts cleaned, with spaces between words."""
        import tensorflow as tf

        if self._strips_accents:
            texts = tf.strings.regex_replace(texts, _INVISIBLE, "")
            texts = _tensorflow_text().normalize_utf8(texts, "NFD")
        codes = tf.strings.unicode_decode(texts, "UTF-8", errors="replace")
        code = codes.values
        page = tf.gather(self._places, code // _PAGE)
        kind = tf.gather_nd(self._pages, tf.stack([page, code % _PAGE], axis=1))
        itself = tf.strings.unicode_encode(code[:, None], "UTF-8")
        space = tf.gather(tf.constant(["", " "]), tf.cast(kind == 1, tf.int32))
        spaced = tf.strings.join([space, itself, space])
        return _joined(codes.with_values(tf.where(kind < 2, spaced, tf.gather(self._texts, kind))))


def check_can_be_in_graph(tokenizer):
    """Raises `ValueError` unless a graph can return exactly the tokenizer's tokens."""
    settings, added = tokenizer.settings, tokenizer.settings["added_tokens"]
    normalizer = settings["normalizer"] or {}
    kinds = [part.get("type") for part in (normalizer, settings["pre_tokenizer"] or {})]
    kinds = [settings["model"]["type"], *kinds, normalizer.get("clean_text")]
    advice = (
        "Serve the program that takes token ids, as a SavedModel or ONNX, with this tokenizer "
        "before it, or the task's own `predict`."
    )
    if kinds != ["WordPiece", "BertNormalizer", "BertPreTokenizer", True]:
        raise ValueError(
            "Inside a graph there is WordPiece with all of BERT's cleaning; for byte pairs and "
            f"Unigram tensorflow-text has no exact form. Received: {kinds}. {advice}"
        )
    unfit = [token["content"] for token in added if token["normalized"] or token["single_word"]]
    unfit += [token["content"] for token in added if re.search(_NOT_IN_TEXT, token["content"])]
    if unfit:
        raise ValueError(
            "Inside a graph special tokens are found unchanged, before cleaning, and also within "
            f"words. Received tokens that are found otherwise: {unfit[:5]}. {advice}"
        )


def _wordpiece_of(tokenizer, names):
    """Returns a `FastWordpieceTokenizer` for words; the names of special tokens come last."""
    import tensorflow as tf

    model = tokenizer.settings["model"]
    prefix = model["continuing_subword_prefix"]
    # No word contains a line break, so these names for ids without a token match no piece.
    tokens = [f"\n{id}" for id in range(tokenizer.vocabulary_size)]
    for token, id in tokenizer._backend.get_vocab(with_added_tokens=False).items():
        if token not in ("", prefix) and not re.search(f"{_PRIVATE}|\0", token):
            tokens[id] = token
    return _tensorflow_text().FastWordpieceTokenizer(
        [*tokens, *names],
        suffix_indicator=prefix,
        max_bytes_per_word=4 * max(model["max_input_chars_per_word"], len(model["unk_token"])),
        token_out_type=tf.int32,
        unknown_token=model["unk_token"],
        no_pretokenization=True,
    )


def _tensorflow_text():
    return require("tensorflow_text", "write a graph that takes texts", "tensorflow")


def _joined(parts):
    """Joins each row of a ragged string tensor into one string."""
    import tensorflow as tf

    return tf.strings.unsorted_segment_join(parts.values, parts.value_rowids(), parts.nrows())


@functools.lru_cache(4)
def _table_of(**cleaning):
    """Returns the result of BERT's cleaning and splitting for every character.

    Args:
        **cleaning: arguments of `tokenizers.normalizers.BertNormalizer`.

    Returns:
        pages: int32 `(num_pages,)`, for each page of 256 characters its row in the second array;
            and int32 `(num_rows, 256)`, the kind of each character: 0 stays, 1 stays as a word,
            others are replaced by a text.
        texts: list of str, the text of each kind.
    """
    normalizer = normalizers.BertNormalizer(**cleaning)
    splitter = pre_tokenizers.BertPreTokenizer()

    def spaced(text):
        words = splitter.pre_tokenize_str(f"x{normalizer.normalize_str(text)}x")
        return " ".join(word for word, _ in words)[1:-1]

    kinds, found = np.zeros(0x110000, "int32"), {}
    for code in range(0, len(kinds), _PAGE):
        if 0xD800 <= code < 0xE000:  # Surrogates, which are in no text.
            continue
        page = "".join(map(chr, range(code, code + _PAGE)))
        whole = spaced(page)
        # Most pages are of one kind, which one call shows.
        if whole in (page, f" {' '.join(page)} "):
            kinds[code : code + _PAGE] = whole != page
        else:
            found |= {character: whole and spaced(character) for character in page}
    texts = {text for character, text in found.items() if text not in (character, f" {character} ")}
    texts = sorted(texts)
    kind_of = {text: kind for kind, text in enumerate(texts, 2)}
    for character, text in found.items():
        kinds[ord(character)] = kind_of.get(text, text != character)
    kinds[ord(_MARK) : ord(_MARK) + 0xFFFE] = 1  # The names of special tokens.
    rows, places = np.unique(kinds.reshape(-1, _PAGE), axis=0, return_inverse=True)
    return (places.astype("int32").ravel(), rows), ["", "", *texts]
