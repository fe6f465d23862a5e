"""From texts and pairs of texts to the inputs of a model."""

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Self

import keras
import numpy as np
from numpy.typing import NDArray

from bert_keras.checks import check_choice, check_int, check_type
from bert_keras.engine.jax_compilation_cache import COMPILES_SHAPES
from bert_keras.migration_hints import NotHere
from bert_keras.preprocessing import collate
from bert_keras.preprocessing.batching import bucket_lengths, buckets_of
from bert_keras.preprocessing.collate import TextPacker, split_pairs
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.signatures import check_arguments
from bert_keras.tokenizers.tokenizer import Tokenizer
from bert_keras.types import Path, Texts, Truncation

DEFAULT_MAX_LENGTH = 512


@keras.saving.register_keras_serializable(package="bert_keras")
class TextPreprocessor(TextPacker):
    """Turns texts, or pairs of texts, into `token_ids`, `segment_ids` and `padding_mask`.

    Args:
        tokenizer: a `Tokenizer`.
        max_length: int, the longest sequence, special tokens included. None takes the tokenizer's
            `model_max_length`, or 512 if it has none.
        truncation: how longer texts are cut: `"longest_first"`, `"only_first"` or `"only_second"`
            for pairs; `"longest_first"` (the beginning stays), `"head"`, `"tail"` or `"head_tail"`
            for single texts. See `bert_keras.preprocessing.collate`.
        input_names: the inputs to make; a task sets those of its backbone.
        text_columns: name of the column that a task reads in a table, such as a `DataFrame`, or a
            list of one or two names; `None` for the only column that holds str.

    Raises:
        TypeError: `tokenizer` is something else.
        ValueError: an argument is out of range.

    Example:

    ```python
    preprocessor = TextPreprocessor(WordPieceTokenizer("vocab.txt"), max_length=128)
    preprocessor(["a good film", "not one for me"])
    preprocessor((["Is it raining?"], ["The streets are wet."]))
    ```
    """

    sequence_length = NotHere()

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_length: int | None = None,
        truncation: Truncation = "longest_first",
        input_names: Iterable[str] = collate.INPUT_NAMES,
        text_columns: str | Sequence[str] | None = None,
    ) -> None:
        advice = "Read files with `Tokenizer.load`."
        check_type("tokenizer", tokenizer, Tokenizer, "a `Tokenizer`", advice)
        if max_length is None:
            max_length = tokenizer.model_max_length or DEFAULT_MAX_LENGTH
        advice = "The special tokens of a pair need room."
        super().__init__(
            tokenizer,
            check_int("max_length", max_length, 3, advice=advice),
            check_choice("truncation", truncation, collate.STRATEGIES),
            input_names,
        )
        self.text_columns = [text_columns] if isinstance(text_columns, str) else text_columns

    def for_inputs(self, names: Iterable[str]) -> Self:
        """Returns a preprocessor that makes the named inputs: itself, or a copy.

        Args:
            names: names of inputs, such as a backbone's `input_names`. Names of inputs that are not
                made from text, such as `mask_positions`, are ignored.
        """
        names = tuple(name for name in collate.INPUT_NAMES if name in names)
        if names == self.input_names:
            return self
        preprocessor = copy.copy(self)
        preprocessor.input_names = names
        return preprocessor

    def __call__(
        self, texts: str | Texts, pairs: str | Texts | None = None, length: int | None = None
    ) -> dict[str, NDArray[np.int32]]:
        """Tokenizes, truncates, packs and pads.

        Args:
            texts: a str, or a list, tuple, NumPy array or pandas column of str; or, without
                `pairs`, a tuple of two such columns, first and second texts.
            pairs: the second texts in the same form, or None.
            length: int, the length to pad to, which is then also the limit for truncation. None
                pads to the longest row; on JAX and TensorFlow, which compile a program for each
                length, to the next of the lengths that `fit` pads texts to.

        Returns:
            A dict of int32 arrays `(batch, length)`: see `TextPacker.pack`. A single str is a batch
            of one.

        Raises:
            TypeError: something is not text.
            ValueError: there are not as many second as first texts, or `length` is above
                `max_length`.
        """
        ids, pair_ids = self.tokenize(texts, pairs)
        return self.pack(ids, pair_ids, length=self._padded_length(ids, pair_ids, length))

    def offsets(
        self, texts: str | Texts, pairs: str | Texts | None = None, length: int | None = None
    ) -> NDArray[np.int32]:
        """Returns the characters of each token of a call with the same arguments.

        Args:
            texts, pairs, length: as for a call.

        Returns:
            int32 `(batch, length, 2)`, where each token begins and ends in its text, the first or
            the second; 0 and 0 for special tokens and padding.

        Example:
        ```python
        inputs = preprocessor(questions, contexts)
        offsets = preprocessor.offsets(questions, contexts)
        start, end = offsets[0, 7]
        contexts[0][start:end]  # Where inputs["segment_ids"][0, 7] is 1.
        ```
        """
        starts, ends = [], []
        for column in split_pairs(texts, pairs):
            found = column and self.tokenizer.encode(column, special_tokens=False)
            for bounds, end in ((starts, 0), (ends, 1)):
                rows = column and [[offset[end] for offset in row.offsets] for row in found]
                bounds.append(None if column is None else Ragged.from_rows(rows))
        length = self._padded_length(*starts, length)
        return np.stack([self.pack(*x, length, fill=0) for x in (starts, ends)], axis=-1)

    def _padded_length(self, ids, pair_ids, length):
        if length is not None or not COMPILES_SHAPES:
            return length
        longest = self.packed_lengths(ids, pair_ids).max(initial=1)
        return int(bucket_lengths(longest, buckets_of(self.max_length)))

    @classmethod
    def from_preset(cls, preset: Path, **kwargs: Any) -> Self:
        """Returns a preprocessor with the tokenizer of a preset.

        Args:
            preset: str or path, see `Task.from_preset`.
            **kwargs: arguments of the constructor.

        Raises:
            TypeError: there is no such argument.
        """
        check_arguments(kwargs, cls)
        return cls(Tokenizer.from_preset(preset), **kwargs)

    def save_assets(self, folder: Path) -> None:
        """Writes the tokenizer's tokenizer.json into an existing folder."""
        self.tokenizer.save_assets(folder)

    def load_assets(self, folder: Path) -> None:
        """Reads the tokenizer's tokenizer.json from a folder that `save_assets` wrote."""
        self.tokenizer.load_assets(folder)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments; the vocabulary travels as an asset."""
        return {
            "tokenizer": self.tokenizer.get_config(),
            "max_length": self.max_length,
            "truncation": self.truncation,
            "input_names": list(self.input_names),
            "text_columns": self.text_columns,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Returns a preprocessor whose tokenizer gets its vocabulary from `load_assets`."""
        return cls(**(config | {"tokenizer": Tokenizer.from_config(config["tokenizer"])}))
