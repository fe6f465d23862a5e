"""Text and pairs of texts to the inputs of a model."""

import keras

from bert_keras.preprocessing.packing import (
    STRATEGIES,
    pack,
    packed_lengths,
    truncate,
    truncated_lengths,
)
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.tokenizers.texts import as_texts

DEFAULT_MAX_LENGTH = 512


@keras.saving.register_keras_serializable(package="bert_keras")
class TextPreprocessor:
    """Turns texts, or pairs of texts, into `token_ids`, `segment_ids` and `padding_mask`.

    Args:
        tokenizer: a `WordPieceTokenizer`.
        max_length: int, the longest sequence made, special tokens included. None takes the
            tokenizer's `model_max_length`, or 512 where it has none.
        truncation: how longer texts are cut, one of `"longest_first"`, `"only_first"`,
            `"only_second"` for pairs; single texts take `"longest_first"` (the beginning stays),
            `"head"`, `"tail"` or `"head_tail"`. See `bert_keras.preprocessing.packing`.

    Example:

    ```python
    preprocessor = TextPreprocessor(WordPieceTokenizer("vocab.txt"), max_length=128)
    preprocessor(["a good film", "not one for me"])
    preprocessor((["Is it raining?"], ["The streets are wet."]))
    ```
    """

    def __init__(self, tokenizer, max_length=None, truncation="longest_first"):
        if truncation not in STRATEGIES:
            raise ValueError(f"`truncation` must be one of {STRATEGIES}. Received: {truncation!r}.")
        if max_length is None:
            max_length = tokenizer.model_max_length or DEFAULT_MAX_LENGTH
        if not isinstance(max_length, int) or max_length < 3:
            raise ValueError(
                "`max_length` must be an int of at least 3, room for the special tokens of a "
                f"pair. Received: {max_length!r}."
            )
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.truncation = truncation

    def __call__(self, texts, pairs=None, length=None):
        """Tokenizes, truncates, packs and pads.

        Args:
            texts: a str, or a list, tuple, NumPy array or pandas column of str; or, with `pairs`
                left out, a tuple of two such columns, first and second texts.
            pairs: the second texts, likewise, or None.
            length: int, the length to pad to, which then also is the limit for truncation. None
                pads to the longest row.

        Returns:
            A dict of int32 arrays `(batch, length)`: see `pack`. A single str is a batch of one.

        Raises:
            TypeError: something is not text.
            ValueError: numbers of first and second texts differ, or `length` is above
                `max_length`.
        """
        return self.pack(*self.tokenize(texts, pairs), length=length)

    def tokenize(self, texts, pairs=None):
        """Returns the token ids of the first and of the second texts, without special tokens.

        Args:
            texts: as for a call.
            pairs: as for a call.

        Returns:
            Two `Ragged` of int32; the second is None for single texts.
        """
        texts, pairs = split_pairs(texts, pairs)
        first = Ragged.from_flat(*self.tokenizer.flat_ids(texts))
        if pairs is None:
            return first, None
        return first, Ragged.from_flat(*self.tokenizer.flat_ids(pairs))

    def pack(self, ids, pair_ids=None, length=None):
        """Packs what `tokenize` returned; `length` as for a call."""
        if length is not None and length > self.max_length:
            raise ValueError(
                f"`length` must be at most max_length={self.max_length}. Received: {length}."
            )
        return pack(
            ids,
            pair_ids,
            cls_id=self.tokenizer.cls_token_id,
            sep_id=self.tokenizer.sep_token_id,
            pad_id=self.tokenizer.pad_token_id,
            max_length=self.max_length if length is None else length,
            truncation=self.truncation,
            length=length,
        )

    def packed_lengths(self, ids, pair_ids=None):
        """Returns how long each row of `tokenize`'s result will be: int64 `(num_texts,)`."""
        # Raises for every text that the strategy cannot fit, before the first batch is made.
        if pair_ids is None:
            truncate(ids, self.max_length - 2, self.truncation)
        else:
            budget = self.max_length - 3
            truncated_lengths(ids.lengths, pair_ids.lengths, budget, self.truncation)
        return packed_lengths(ids, pair_ids, max_length=self.max_length)

    def save_assets(self, folder):
        """Writes the tokenizer's vocabulary into an existing folder."""
        self.tokenizer.save_assets(folder)

    def load_assets(self, folder):
        """Reads the tokenizer's vocabulary from a folder that `save_assets` wrote."""
        self.tokenizer.load_assets(folder)

    def get_config(self):
        """Returns the constructor's arguments; the vocabulary travels as an asset."""
        return {
            "tokenizer": keras.saving.serialize_keras_object(self.tokenizer),
            "max_length": self.max_length,
            "truncation": self.truncation,
        }

    @classmethod
    def from_config(cls, config):
        """Makes a preprocessor whose tokenizer waits for its vocabulary."""
        tokenizer = keras.saving.deserialize_keras_object(config["tokenizer"])
        return cls(**(config | {"tokenizer": tokenizer}))


def split_pairs(texts, pairs=None):
    """Returns the columns of first and of second texts, checked.

    Args:
        texts: a str or a column of str, or a tuple of two columns where `pairs` is None.
        pairs: the second texts, or None.

    Returns:
        A list of str, and another of the same length or None.
    """
    if pairs is None and isinstance(texts, tuple) and len(texts) == 2:
        if all(isinstance(text, str) for text in texts):
            raise ValueError(
                "A tuple of two str can mean two texts or a pair. Received: "
                f"{tuple(text[:40] for text in texts)}. Pass a list for two texts; "
                "`([first], [second])`, or the second as `pairs`, for a pair."
            )
        texts, pairs = texts
    texts = [texts] if isinstance(texts, str) else as_texts(texts)
    if pairs is None:
        return texts, None
    pairs = [pairs] if isinstance(pairs, str) else as_texts(pairs, "pairs")
    if len(texts) != len(pairs):
        raise ValueError(
            "First and second texts must be equally many. Received: "
            f"{len(texts)} first and {len(pairs)} second texts."
        )
    return texts, pairs
