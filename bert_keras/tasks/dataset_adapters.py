"""Data sets that yield batches: each batch is checked, and encoded if it holds texts.

Strings cannot enter a model on JAX or PyTorch, so texts become arrays on the host, on each backend.
"""

import contextlib
import functools
from collections.abc import Iterator, Mapping

import keras
import numpy as np

from bert_keras import distribution
from bert_keras.checks import as_str, refuse_options
from bert_keras.engine.train_step import is_distributed
from bert_keras.preprocessing.batching import BucketedBatches, PreparedBatches, as_one_batch
from bert_keras.tasks.user_columns import (
    check_is_dataset,
    has_names,
    is_text,
    normalize_columns,
)


def adapt(task, columns, training=True):
    """Wraps a data set so that each batch is checked and its texts are encoded.

    If several processes share a batch, the wrapper yields the rows that this process computes.

    Args:
        task: a `Task`.
        columns: `Columns` of the kind `"batches"`: a `PyDataset`, a generator or another iterator,
            a torch `DataLoader`, or a `tf.data.Dataset`. A batch is ready inputs or texts, or a
            tuple `(x, y)` or `(x, y, sample_weight)`. Ready inputs of the last two data sets are
            not checked if the data set does not know its length, nor on TensorFlow in a
            `tf.data.Dataset`. The names of transformers are taken too, see `user_columns`.
        training: bool, whether texts have labels.

    Raises:
        TypeError: the data set yields no batches.
        ValueError: labels or weights are beside it, or processes cannot share its batches.
    """
    x, y, sample_weight, _ = columns
    check_is_dataset(x)
    rule = "A data set that is read batch by batch must yield its labels and weights itself"
    advice = "Make it a list, or let it yield `(x, y, sample_weight)`."
    refuse_options(rule, {"y": y, "sample_weight": sample_weight}, advice)
    share = None
    if training and is_distributed(task):
        share = distribution.shard_of(task)
    prepare = functools.partial(_prepared, task, training, share)
    if isinstance(x, keras.utils.PyDataset):
        skips_checks = isinstance(x, (BucketedBatches, PreparedBatches)) or x.use_multiprocessing
        if skips_checks and (share is None or share.replicas == 1):
            return x
        return PreparedBatches(x, share if skips_checks else prepare)
    if isinstance(x, Iterator):  # Like a generator, it can be read only once.
        return (prepare(batch, number) for number, batch in enumerate(x))
    if _can_pass_through_python(x) or _holds_texts(x):
        return IterableBatches(x, prepare)
    if share and share.shares > 1:
        raise ValueError(
            "Processes can share only batches that pass through Python. Received: a "
            f"{type(x).__name__}, of unknown length. Pass texts or arrays, a PyDataset, or a "
            "dataset that knows its length."
        )
    return x


def shard_batches(task, batches):
    """Returns batches of all examples, of which each process computes its rows."""
    share = distribution.shard_of(task, whole=True)
    if share.replicas == 1:
        return batches
    for rows, _ in batches.batches:
        share.check_rows(batches.batch_size if batches.pad_last_batch else len(rows))
    return PreparedBatches(batches, share)


def _can_pass_through_python(x):
    """Whether batches of ready inputs can pass through Python, where they are checked."""
    spec = getattr(x, "element_spec", None)
    first = spec[0] if isinstance(spec, tuple) else spec
    is_ours = spec is None or (isinstance(first, Mapping) and "input_ids" in first)
    with contextlib.suppress(TypeError):
        return (is_ours or keras.backend.backend() != "tensorflow") and len(x) > 0
    return False


def _prepared(task, training, share, batch, number):
    """Returns a batch as the model takes it; errors name the batch's number."""
    try:
        batch = _encoded(task, training, batch)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Batch {number} of the dataset: {error}") from error
    return share(batch) if share else batch


def _encoded(task, training, batch):
    """Returns a batch of ready inputs, and labels as the loss takes them."""
    texts = as_str(batch)
    are_texts = is_text(texts) and all(isinstance(x, (str, float, type(None))) for x in texts)
    is_whole = are_texts or _is_table(batch) or not isinstance(batch, (tuple, list))
    x, *rest = (batch,) if is_whole else batch
    if len(rest) > 2:
        raise ValueError(
            "A batch must be inputs, `(x, y)` or `(x, y, sample_weight)`. Received: a "
            f"{type(batch).__name__} of {len(batch)}."
        )
    x = columns = as_str(x)
    if isinstance(x, (list, tuple)) and not has_names(x):
        # torch's `DataLoader` makes columns tuples, and several columns a list.
        columns = list(x) if is_text(x) or _is_rows(x) else tuple(map(as_str, x))
    parts = columns if isinstance(columns, tuple) else (columns,)
    are_columns = all(is_text(part) or _is_rows(part) for part in parts)
    values = x.values() if isinstance(x, Mapping) else (x,)
    is_example = any(isinstance(value, str) for value in values)
    if is_example or not (are_columns or has_names(x)):
        raise TypeError(
            "It must begin with a dict of arrays as in bert_keras.inputs, a column of str, or a "
            f"tuple of such columns. Received: {type(x).__name__}, beginning with {x!r:.80}. "
            "Batch the dataset: `.batch(32)`, if it yields single examples."
        )
    columns = normalize_columns(task, columns, *rest)
    if not training:
        columns = columns._replace(y=None, sample_weight=None)
    return as_one_batch(task.encode_columns(columns, training))


def _is_table(batch):
    """Whether a batch is a list of dicts, an example each, rather than inputs and labels."""
    if not (isinstance(batch, list) and has_names(batch)):
        return False
    has_texts = any(isinstance(value, str) for value in batch[0].values())
    return has_texts or (len(batch) > 1 and all(row.keys() == batch[0].keys() for row in batch))


def _is_rows(column):
    """Whether a column holds lists of str: the words of sentences, or choices."""
    return isinstance(column, list) and all(isinstance(x, list) and is_text(x) for x in column)


class IterableBatches(keras.utils.PyDataset):
    """Batches of a data set that is read from its beginning in each epoch.

    Args:
        dataset: a `tf.data.Dataset`, or a torch `DataLoader`. If it does not know its length, it is
            read once to count its batches.
        prepare: see `PreparedBatches`.

    Raises:
        ValueError: the data set has no end.
    """

    checks_batches = True  # Then `predict` does not.

    def __init__(self, dataset, prepare):
        super().__init__()
        self.dataset, self.prepare = dataset, prepare
        self._length, self._iterator = _num_batches(dataset), None

    def __len__(self):
        return self._length

    def __getitem__(self, index):
        if index == 0 or self._iterator is None:
            self._iterator = iter(self.dataset)
        return self.prepare(next(self._iterator), index)


def _num_batches(dataset):
    if hasattr(dataset, "cardinality") and int(dataset.cardinality()) == -1:
        raise ValueError(
            "A dataset of texts must end, since each epoch reads it from its beginning. Received "
            "one that repeats. Leave out `.repeat()`, or pass `dataset.take(n)`."
        )
    try:
        return len(dataset)
    except TypeError:
        return sum(1 for _ in dataset)


def _holds_texts(x):
    """Whether the first batch of a data set contains a str."""
    if hasattr(x, "element_spec"):
        return any(spec.dtype == "string" for spec in keras.tree.flatten(x.element_spec))
    first = next(iter(x), ()) if hasattr(x, "__iter__") else ()
    return any(is_text(as_str(leaf)) for leaf in keras.tree.flatten(first))


def as_numpy(value):
    """Returns an array or a tensor of any library as a NumPy array; other values stay."""
    is_tensor = hasattr(value, "shape") and not isinstance(value, np.ndarray)
    return keras.ops.convert_to_numpy(value) if is_tensor else value
