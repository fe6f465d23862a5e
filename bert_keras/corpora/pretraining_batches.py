"""Batches of pre-training examples. Each depends only on the data, the seed and its number."""

import functools
import os
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np

from bert_keras.checks import check_choice, check_int
from bert_keras.corpora.pretraining_data import describe_vocabulary
from bert_keras.corpora.shards import check_shard, read_manifest, read_shard
from bert_keras.engine.atomic_files import reading
from bert_keras.inputs import MASK_POSITIONS, PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from bert_keras.preprocessing.collate import INPUT_NAMES
from bert_keras.preprocessing.masking import Masking, TokenKinds
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.tokenizers.tokenizer import Tokenizer
from bert_keras.types import Path

# What random numbers are drawn for, the second part of their seed: each has its own sequence.
_SHARDS, _ROWS, _MASKS = range(3)
# A batch may need the end of one shard and the beginning of the next.
SHARDS_OPEN = 3


class PretrainingBatches(keras.utils.PyDataset):
    """Reads a folder written by `bert-keras pretraining-data`.

    Batch `k` depends only on the folder, the arguments and `k`. So a run needs to save only the
    number of its step: with that as `start_step`, it continues exactly where it was killed.

    Shuffled data is an endless stream. Each epoch has another order of shards, and of rows within
    each shard; it skips the examples left over at its end, fewer than a batch. `fit` then needs
    `steps_per_epoch`: without it, its first epoch never ends. With `shuffle=False` there is one
    epoch in the order of the files. Rows of weight 0 fill up the last batch, and each row always
    has the same masks, whatever the seed and the batch size.

    A shard is compared with its checksum when it is first read.

    Args:
        folder: str.
        batch_size: int, rows in a batch.
        masking: `Masking`, how tokens are masked, anew in each epoch; `None` masks as the paper
            does.
        seed: int, for the order and the masks.
        shuffle: bool.
        start_step: int, the number of the batch that `batches[0]` returns.
        has_next_sentence: bool. `True` yields labels and weights as dicts with the keys `masked_lm`
            and `next_sentence`, for `Pretraining`; `False` yields only those of the masked tokens,
            for `MaskedLM`. `None` is `True` for pairs and `False` for full sentences.
        input_names: the inputs to make besides `mask_positions`, such as a backbone's; `None` for
            all three.

    Attributes:
        manifest: dict, the content of `manifest.json`.
        tokenizer: the `Tokenizer` that made the data.
        batches_per_epoch: int.
        masking: `Masking`, the one in use.

    Raises:
        FileNotFoundError: the folder is incomplete.
        ValueError: a shard is truncated or was altered, there is less than a batch of examples, or
            the arguments do not fit the data.

    Example:
    ```python
    batches = PretrainingBatches("data/train", batch_size=256, seed=1, start_step=1000)
    inputs, labels, weights = batches[0]          # the 1,001st batch
    inputs["token_ids"].shape                     # (256, 128)
    model.fit(batches, steps_per_epoch=1000)
    ```
    `inputs`: int32 `token_ids`, `segment_ids`, `padding_mask` `(batch, seq_len)` and
    `mask_positions` `(batch, num_predictions)`. `labels`: int32 `(batch, num_predictions)`, or a
    dict of these as `masked_lm` and `next_sentence` `(batch,)`, 0 if B follows A. `weights`:
    float32 of the same structure and shapes.
    """

    def __init__(
        self,
        folder: Path,
        batch_size: int,
        masking: Masking | None = None,
        seed: int = 0,
        shuffle: bool = True,
        start_step: int = 0,
        has_next_sentence: bool | None = None,
        input_names: Iterable[str] | None = None,
    ) -> None:
        super().__init__()
        self.folder = os.fspath(folder)
        self.manifest = read_manifest(self.folder)
        with reading(self.folder):
            has_pairs = self.manifest["objective"] != "full_sentences"
            self.sequence_length = check_int("sequence_length", self.manifest["sequence_length"])
        self.batch_size = check_int("batch_size", batch_size)
        self.seed = check_int("seed", seed, 0)
        self.shuffle = shuffle
        self.start_step = check_int("start_step", start_step, 0)
        self.input_names = (*(INPUT_NAMES if input_names is None else input_names), MASK_POSITIONS)
        if not has_pairs:
            advice = f"{self.folder} holds full sentences instead of pairs: train a MaskedLM."
            check_choice("has_next_sentence", has_next_sentence, (None, False), advice)
        self.has_next_sentence = has_pairs if has_next_sentence is None else has_next_sentence
        with reading(self.folder):
            self.tokenizer = self._checked_tokenizer()
        self.masking = Masking() if masking is None else masking
        self._kinds = TokenKinds.from_tokenizer(self.tokenizer)
        self._counts = np.array([shard["num_examples"] for shard in self.manifest["shards"]])
        self.batches_per_epoch = self._count_batches()
        self._shard = functools.lru_cache(SHARDS_OPEN)(self._read_shard)
        self._row_order = functools.lru_cache(SHARDS_OPEN)(self._draw_row_order)

    def _checked_tokenizer(self):
        tokenizer = Tokenizer.load(self.folder)
        if describe_vocabulary(tokenizer) != self.manifest["vocabulary"]:
            raise ValueError(
                "The tokenizer in a folder of pre-training data must be the one that made it. "
                f"Received: another one in {self.folder}, with {tokenizer.vocabulary_size} tokens "
                f"instead of {self.manifest['vocabulary']['size']}. Copy the whole folder again."
            )
        return tokenizer

    def _count_batches(self):
        total, size = int(self._counts.sum()), self.batch_size
        if not self.shuffle:
            count = -(-total // size)
            check_int("start_step", self.start_step, 0, count - 1, "Unshuffled data ends.")
            return count
        if total < size:
            raise ValueError(
                f"There must be {size} examples or more, one batch. Received: {total} examples in "
                f"{self.folder}. Lower `batch_size`, or make more data."
            )
        return total // size

    @property
    def num_batches(self) -> int | None:
        """Number of batches; `None` for shuffled data, which has no end and for which `fit` needs
        `steps_per_epoch`."""
        return None if self.shuffle else len(self)

    def __len__(self) -> int:
        """Returns the number of batches in an epoch, or of those left in unshuffled data."""
        return self.batches_per_epoch - (0 if self.shuffle else self.start_step)

    def __getitem__(self, index: int) -> tuple[Any, Any, Any]:
        """Returns `(inputs, labels, weights)` of the batch `start_step + index`."""
        step = self.start_step + index
        if index < 0 or (not self.shuffle and step >= self.batches_per_epoch):
            raise IndexError(f"There is no batch {step} of {self.batches_per_epoch}.")
        epoch, step_in_epoch = divmod(step, self.batches_per_epoch)
        begin = step_in_epoch * self.batch_size
        places = np.arange(begin, begin + self.batch_size)
        is_real = places < self._counts.sum()
        with reading(self.folder):
            parts = self._read(epoch, np.where(is_real, places, 0))
            inputs, labels, weights = self._assemble(parts, step, places)
        for value in weights.values():
            value[~is_real] = 0
        if not self.has_next_sentence:
            return inputs, labels["masked_lm"], weights["masked_lm"]
        return inputs, labels, weights

    def _read(self, epoch, places):
        """Returns a list of `(arrays of a shard, row in it)` for places in an epoch, in order."""
        order = np.arange(len(self._counts))
        if self.shuffle:
            order = self._generator(_SHARDS, epoch).permutation(order)
        ends = np.cumsum(self._counts[order])
        indices, parts = np.searchsorted(ends, places, side="right"), []
        for place, index in zip(places, indices, strict=True):
            shard = int(order[index])
            row = place - ends[index] + self._counts[shard]
            parts.append((self._shard(shard), self._row_order(epoch, shard)[row]))
        return parts

    def _draw_row_order(self, epoch, shard):
        rows = np.arange(self._counts[shard])
        return self._generator(_ROWS, epoch, shard).permutation(rows) if self.shuffle else rows

    def _read_shard(self, index):
        shard = self.manifest["shards"][index]
        check_shard(self.folder, shard)
        return read_shard(os.path.join(self.folder, shard["file"]))

    def _generator(self, *purpose):
        return np.random.default_rng([self.seed, *map(int, purpose)])

    def _assemble(self, parts, step, places):
        rows, length = _take_rows(parts, "token_ids"), self.sequence_length
        columns = np.arange(length)
        padding_mask = columns < rows.lengths[:, None]
        token_ids = rows.to_dense(length, self.tokenizer.pad_token_id).astype(np.int32)
        second_starts = np.array([arrays["second_starts"][row] for arrays, row in parts])
        is_second = padding_mask & (columns >= second_starts[:, None])
        segment_ids = is_second * self.tokenizer.layout.second_segment
        word_starts = None
        if "word_starts" in parts[0][0]:
            word_starts = _take_rows(parts, "word_starts").to_dense(length, False)
        arguments = padding_mask, word_starts
        if self.shuffle:
            generator = self._generator(_MASKS, step)
            masked = self.masking(token_ids, self._kinds, generator, *arguments)
        else:
            masked = self.masking.rows_alike(token_ids, self._kinds, places, *arguments)
        inputs = {
            TOKEN_IDS: masked[0],
            SEGMENT_IDS: segment_ids.astype(np.int32),
            PADDING_MASK: padding_mask.astype(np.int32),
            MASK_POSITIONS: masked[1],
        }
        inputs = {name: inputs[name] for name in inputs if name in self.input_names}
        labels, weights = {"masked_lm": masked[2]}, {"masked_lm": masked[3]}
        if self.has_next_sentence:
            not_next = [arrays["is_random_next"][row] for arrays, row in parts]
            labels["next_sentence"] = np.array(not_next, np.int32)
            weights["next_sentence"] = np.ones(self.batch_size, np.float32)
        return inputs, labels, weights


def _take_rows(parts, name):
    """Returns rows of shards as a `Ragged`."""
    borders = [(arrays, *arrays["offsets"][row : row + 2]) for arrays, row in parts]
    rows = [arrays[name][start:end] for arrays, start, end in borders]
    return Ragged.from_flat(np.concatenate(rows), list(map(len, rows)))
