"""Batches of rows of similar length, so that short texts are not padded to long ones."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bert_keras.checks import (
    check_int,
    check_not_empty,
    check_same_length,
    raise_at_first,
)
from bert_keras.engine import kernels
from bert_keras.engine.jax_compilation_cache import COMPILES_SHAPES
from bert_keras.preprocessing.collate import Rows
from bert_keras.preprocessing.ragged import Ragged

DEFAULT_BATCH_SIZE = 32
# Tokens in a batch of `predict`: measured for PyTorch on the CPU, see docs/benchmarks.md, and an
# estimate for accelerators. XLA on the CPU gains nothing from more than the default number of rows.
TOKENS_AT_ONCE = {"cpu": 2048, "accelerator": 16384}
# The cost of compiling a step for one more length, in the tokens that JAX could train on in the
# same time, times `hidden_dim ** 2`: divide by that for a given encoder. (Both times grow with the
# number of layers, which cancels out.) Measured on two cores, see docs/benchmarks.md; a GPU trains
# on more tokens in that time. TensorFlow gains nothing from fewer lengths, and PyTorch compiles
# nothing.
COMPILE_COST = {"jax": 1e9}


def length_buckets(max_length: int, step: int = 8, first: int = 16) -> tuple[int, ...]:
    """Returns the lengths that batches may be padded to.

    Multiples of `step` up to 64, of twice `step` up to 128, and of four times `step` beyond. On JAX
    and TensorFlow each length is a shape to compile, see `choose_bucket_lengths`.

    Args:
        max_length: int, the last length.
        step: int, the distance between lengths up to 64.
        first: int, the first length.

    Example:

    >>> length_buckets(100), length_buckets(22, step=4, first=4)
    ((16, 24, 32, 40, 48, 56, 64, 80, 96, 100), (4, 8, 12, 16, 20, 22))
    """
    short = range(first, min(64, max_length), step)
    middle = range(64, min(128, max_length), 2 * step)
    return (*short, *middle, *range(128, max_length, 4 * step), max_length)


def buckets_of(max_length: int, step: int = 4) -> tuple[int, ...]:
    """Returns the lengths that batches are padded to: finer on PyTorch, which compiles nothing.

    They do not depend on the data, so that several calls of `evaluate` share most compiled lengths.
    On an accelerator they are multiples of 8, as its attention kernels need.

    Args:
        max_length: int, the last length.
        step: int, the distance between short lengths on PyTorch on a CPU. `predict` passes 1. In
            training, few sizes let the allocator reuse freed memory.
    """
    if COMPILES_SHAPES or kernels.has_accelerator():
        return length_buckets(max_length, first=8)
    return length_buckets(max_length, step, first=step)


def bucket_lengths(lengths: ArrayLike, buckets: Sequence[int]) -> NDArray[np.int64]:
    """Returns, for each length, the smallest bucket that holds it.

    Args:
        lengths: int or int array.
        buckets: increasing ints.

    Raises:
        ValueError: a length is above the last bucket.
    """
    buckets = np.asarray(buckets, dtype=np.int64)
    places = np.searchsorted(buckets, lengths)
    longest, advice = int(np.max(lengths, initial=0)), "The last bucket must hold the longest row."
    check_int("buckets[-1]", int(buckets[-1]), longest, advice=advice)
    return buckets[places]


def choose_bucket_lengths(batches, buckets, num_epochs, price):
    """Returns the lengths whose programs save more time than they cost to compile.

    Fewer lengths mean more padding, more lengths more programs. Dynamic programming over the
    lengths finds the smallest total cost.

    Args:
        batches: list of pairs of rows and padded length, those of an epoch.
        buckets: increasing ints, which contain the padded lengths.
        num_epochs: int, how often the batches are computed.
        price: float, how many tokens could be computed in the time that a program takes to compile.

    Returns:
        Increasing ints. The last is the longest padded length: no batch may be longer.

    Example:

    >>> batches = [(range(32), 16)] * 20 + [(range(32), 24), (range(32), 32)]
    >>> choose_bucket_lengths(batches, (16, 24, 32, 40), num_epochs=1, price=8192)
    (16, 32)
    """
    rows = collections.Counter()
    for indices, length in batches:
        rows[length] += len(indices)
    used_lengths = sorted(+rows)
    # For each length: the smallest price of all batches up to it, and the lengths with that price.
    best = [(0.0, ())]
    for end, length in enumerate(used_lengths, start=1):
        choices = []
        for start, (cost, chosen) in enumerate(best):
            num_rows = sum(rows[shorter] for shorter in used_lengths[start:end])
            choices.append((cost + price + num_rows * length * num_epochs, (*chosen, length)))
        best.append(min(choices))
    return best[-1][1]


def sorted_batches(
    lengths: ArrayLike,
    batch_size: int = 32,
    token_budget: int | None = None,
    buckets: Sequence[int] | None = None,
) -> list[tuple[NDArray[np.int64], int]]:
    """Splits rows into batches by length, the longest first, for prediction.

    The longest rows come first, so that a batch that does not fit into memory fails at once. With a
    token budget, the number of rows depends on the length, and there is one shape per bucket.

    Args:
        lengths: int `(num_rows,)`.
        batch_size: int, rows in a batch without a `token_budget`.
        token_budget: int, the most tokens in a batch, padding included: a batch of padded length
            `n` has `max(1, token_budget // n)` rows; above 4, rounded down to a multiple of 4.
        buckets: increasing ints to pad to; None for `length_buckets` of the longest row.

    Returns:
        A list of pairs: the batch's rows, int64 `(size,)`, and the length to pad to, int.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    if not len(lengths):
        return []
    padded = bucket_lengths(lengths, buckets or length_buckets(int(lengths.max())))
    # Sorted by their own length, not by the padded one, so that the rows of batches of a fixed size
    # do not depend on the buckets.
    order = np.argsort(-lengths, kind="stable")
    batches, start = [], 0
    while start < len(order):
        length = int(padded[order[start]])
        size = batch_size
        if token_budget is not None:
            size = max(1, token_budget // length)
            size -= size % 4 if size > 4 else 0
        batches.append((order[start : start + size], length))
        start += size
    return batches


class BucketedBatches(keras.utils.PyDataset):
    """Batches for `fit` and `evaluate` whose rows have similar lengths.

    In each epoch the rows are shuffled, sorted by length within windows of `window` batches, and
    cut into batches, which are shuffled again. A batch is padded to the smallest of some fixed
    lengths that holds it, so that XLA compiles few shapes. The order depends only on `seed` and the
    number of the epoch: set `epoch` to continue a run where it stopped.

    The epoch advances when every batch has been read between `on_epoch_begin` and `on_epoch_end`;
    the second event alone is not enough, since Keras also sends it before the first epoch.
    `keras.Model.fit` shuffles the batches again with Python's global `random`. Pass
    `fit(shuffle=False)` to keep the order of this class, which is random too. The first two batches
    differ in length if any batches do: on TensorFlow, Keras treats an axis on which the two agree
    as one that never changes.

    Args:
        rows: `Rows`, an entry of a batch each: texts, windows, choices. Batches are padded to
            their `buckets`, or else to `buckets_of` their `max_length`; ready inputs have one
            length. With labels per token, the default of their weights is 1 for every token with a
            label and 0 for padding.
        batch_size: int, 32 by default.
        shuffle: bool. False gives the same batches in each epoch, sorted by length over all rows,
            the longest first.
        seed: int.
        window: int, how many batches are sorted together. Larger windows waste less on padding, but
            mix lengths less; if labels correlate with lengths, a batch of one length is a biased
            sample, which costs accuracy on small sets. By default a quarter of the epoch's
            batches, at least 4 and at most 100. 1 is a random order.
        pad_last_batch: bool, whether to fill the one batch that is smaller than the others with
            copies of a row that have weight 0, which saves XLA a shape. Losses and metrics must
            then be weighted means (`reduction="mean_with_sample_weight"`, `weighted_metrics`).

    Example:

    ```python
    rows = TextRows(preprocessor, *preprocessor.tokenize(texts))
    batches = BucketedBatches(rows.labelled(labels))
    model.fit(batches, epochs=3)
    ```
    """

    # Rows are checked when they are made; `predict` need not check them again.
    is_checked = True

    def __init__(
        self,
        rows: Rows,
        *,
        batch_size: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        window: int | None = None,
        pad_last_batch: bool = False,
    ) -> None:
        # Without `workers`: batches are cheap to make, and for a model that is not built yet,
        # Keras's workers read a whole epoch ahead, which would count as an epoch.
        super().__init__()
        check_not_empty(rows, "Batches need at least one row")
        batch_size = DEFAULT_BATCH_SIZE if batch_size is None else batch_size
        self.batch_size = check_int("batch_size", batch_size)
        if window is None:
            window = min(max(len(rows) // (4 * batch_size), 4), 100)
        self.window = check_int("window", window)
        self.rows = rows
        self.labels = self.sample_weight = None
        if rows.labels is not None:
            if isinstance(rows.sample_weight, dict):
                check_weights_by_output(rows.labels, rows.sample_weight)
            self.labels = _as_columns(rows.labels, rows, "labels")
            weights = _as_columns(rows.sample_weight, rows, "sample_weight")
            columns = keras.tree.flatten(self.labels)
            of_tokens = any(isinstance(column, Ragged) for column in columns)
            if pad_last_batch or of_tokens or weights is not None:
                self.sample_weight = _weights_of(self.labels, weights)
        self.shuffle = shuffle
        self.seed = seed
        self.pad_last_batch = pad_last_batch
        if rows.buckets or rows.max_length is None:
            self.buckets = tuple(rows.buckets or (int(rows.lengths.max()),))
        else:
            self.buckets = buckets_of(rows.max_length) + rows.further_lengths
        self._within_epoch = False
        self.epoch = 0

    @property
    def epoch(self) -> int:
        """The number of the current epoch. Setting it puts the rows in the order of that epoch."""
        return self._epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._epoch, self._read = epoch, set()
        lengths, batches = self.rows.lengths, []
        rows, size = np.arange(len(lengths)), len(lengths)
        if self.shuffle:
            generator = np.random.default_rng([self.seed, self._epoch])
            rows, size = generator.permutation(len(rows)), self.window * self.batch_size
        for start in range(0, len(rows), size):
            window = rows[start : start + size]
            pieces = sorted_batches(lengths[window], self.batch_size, buckets=self.buckets)
            batches += [(window[piece], length) for piece, length in pieces]
        if self.shuffle:
            order = generator.permutation(len(batches))
            batches = list(map(batches.__getitem__, order))
        longest = np.array([lengths[rows].max() for rows, _ in batches])
        # The longest batch first and the shortest second: every axis that varies in the data set
        # differs between these two. Two arbitrary batches could agree on it by chance.
        for place, extreme in zip(range(len(batches)), (np.argmax, np.argmin), strict=False):
            chosen = place + int(extreme(longest[place:]))
            batches[place], batches[chosen] = batches[chosen], batches[place]
            longest[[place, chosen]] = longest[[chosen, place]]
        # (rows, padded length) of each batch.
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        """Returns `(inputs,)`, `(inputs, labels)` or `(inputs, labels, sample_weight)`."""
        rows, length = self.batches[index]
        if self._within_epoch:
            self._read.add(index)
        num_rows = len(rows)
        if self.pad_last_batch:
            rows = np.concatenate([rows, np.repeat(rows[:1], self.batch_size - num_rows)])
        inputs = self.rows.inputs(rows, length)
        if self.labels is None:
            return (inputs,)

        def take(column):
            is_ragged = isinstance(column, Ragged)
            return column.take(rows).to_dense(length) if is_ragged else column[rows]

        batch = (inputs, keras.tree.map_structure(take, self.labels))
        if self.sample_weight is not None:
            weights = keras.tree.map_structure(take, self.sample_weight)
            for column in keras.tree.flatten(weights):
                column[num_rows:] = 0  # Rows that only fill the batch.
            batch = (*batch, weights)
        if self.rows.draw is None:
            return batch
        seed = [self.seed, self.epoch, index]
        return self.rows.draw(batch, rows, np.random.default_rng(seed) if self.shuffle else None)

    def on_epoch_begin(self):
        """Starts to note which batches are read."""
        self._within_epoch = True

    def on_epoch_end(self):
        """Reorders the rows if all batches have been read since the epoch began."""
        self._within_epoch = False
        if self.shuffle and len(self._read) == len(self):
            self.epoch = self._epoch + 1


class PreparedBatches(keras.utils.PyDataset):
    """A `PyDataset` whose batches pass through a function before a model sees them.

    An id outside its table is an error on some backends and NaN on JAX, where it spreads to every
    weight. Order, length, workers, and what happens between epochs are the data set's own.

    Args:
        batches: a `keras.utils.PyDataset`.
        prepare: function of a batch and its number that returns the batch, or raises.
    """

    checks_batches = True  # Then `predict` does not.

    def __init__(self, batches, prepare):
        super().__init__(workers=batches.workers, max_queue_size=batches.max_queue_size)
        self.batches = batches
        self.prepare = prepare

    @property
    def num_batches(self):
        """The number of batches of an epoch, or `None` for a data set without end."""
        return self.batches.num_batches

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        return self.prepare(self.batches[index], index)

    def on_epoch_begin(self):
        """Passes the event on."""
        self.batches.on_epoch_begin()

    def on_epoch_end(self):
        """Passes the event on."""
        self.batches.on_epoch_end()


def _as_columns(columns, rows, name):
    if columns is None:
        return None
    if isinstance(columns, dict):
        return {k: _as_columns(v, rows, f"{name}[{k!r}]") for k, v in columns.items()}
    is_ragged = isinstance(columns, Ragged)
    columns = columns if is_ragged else np.asarray(columns)
    check_same_length(f"`{name}` must have one entry for each row", rows=rows, **{name: columns})
    if is_ragged:
        lengths = list(zip(columns.lengths.tolist(), rows.lengths.tolist(), strict=True))
        rule = f"`{name}` must have as many entries as a row has tokens, special tokens included"
        raise_at_first(columns.lengths != rows.lengths, lengths, rule)
    return columns


def check_weights_by_output(labels: Any, sample_weight: Mapping[str, Any]) -> None:
    """Raises `ValueError` unless the names of a dict of weights are those of a dict of labels."""
    outputs = [*labels] if isinstance(labels, dict) else []
    if unknown := {*sample_weight} - {*outputs}:
        raise ValueError(
            "A dict of sample weights must have the names of outputs, "
            f"{outputs or 'of which this task has one: pass an array'}. Received: "
            f"{sorted(map(str, unknown))}."
        )


def _weights_of(labels, weights):
    """Returns weights in the form of the labels, by default 1."""
    if isinstance(labels, dict):
        by_name = weights if isinstance(weights, dict) else dict.fromkeys(labels, weights)
        return {name: _weights_of(labels[name], by_name.get(name)) for name in labels}
    if isinstance(weights, Ragged):
        return weights
    weights = np.ones(len(labels), np.float32) if weights is None else weights
    if isinstance(labels, Ragged):
        of_tokens = np.repeat(weights * np.float32(1), labels.lengths)
        return Ragged.from_flat(of_tokens, labels.lengths)
    return weights


def batches_in_order(rows: Rows, batch_size: int | None = None) -> BucketedBatches:
    """Returns batches of rows in their order, all padded to one length."""
    batches = BucketedBatches(rows, batch_size=batch_size, shuffle=False)
    _, length = batches.batches[0]
    starts = range(batches.batch_size, len(rows), batches.batch_size)
    batches.batches = [(part, length) for part in np.split(np.arange(len(rows)), starts)]
    return batches


def as_one_batch(rows: Rows) -> tuple[Any, ...]:
    """Returns all rows as one batch, in their order, see `BucketedBatches`."""
    return batches_in_order(rows, len(rows))[0]


def prediction_batches(
    rows: Rows, batch_size: int | None = None
) -> tuple[list[tuple[NDArray[np.int64], int]], int]:
    """Returns the batches that `predict` reads, see `sorted_batches`, and their least size.

    Args:
        rows: `Rows`, at least one.
        batch_size: int; by default 32, on an accelerator the number of rows that hold 16,384
            tokens, on PyTorch on the CPU the number that hold 2,048.

    Returns:
        The batches, and an int. With XLA, a smaller batch is filled up to that many rows: to
        compile it anew would cost more than to compute further rows. Otherwise 0.
    """
    kind = "accelerator" if kernels.has_accelerator() else "cpu"
    size = DEFAULT_BATCH_SIZE if batch_size is None else check_int("batch_size", batch_size)
    # Few rows are rounded up to 1, 2, 4, 8, 12, 16, 24 or 32, so that few shapes are compiled.
    num_rows = len(rows.lengths)
    power = 1 << (num_rows - 1).bit_length()
    size = min(size, power * 3 // 4 if 8 < num_rows <= power * 3 // 4 else power)
    budget, buckets = None, None
    if rows.max_length:
        buckets = rows.buckets or buckets_of(rows.max_length, step=1) + rows.further_lengths
        if batch_size is None and (kind != "cpu" or not COMPILES_SHAPES):
            budget = max(1, TOKENS_AT_ONCE[kind] // rows.sequences_per_row)
    batches = sorted_batches(rows.lengths, size, budget, buckets)
    return batches, size if COMPILES_SHAPES and budget is None else 0
