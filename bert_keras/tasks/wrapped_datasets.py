"""Batches of somebody else's dataset: checked, and where they are of texts, tokenized as they come.

Strings cannot enter a JAX or PyTorch model, so texts become arrays on the host, on each backend.
"""

import contextlib
import inspect

import keras
import numpy as np
from keras.src.trainers import data_adapters

from bert_keras import distribution
from bert_keras.preprocessing.batching import BucketedBatches
from bert_keras.tasks.cached_features import has_features
from bert_keras.tasks.user_columns import as_column, check_is_dataset, is_text


def checked(task, x, training=True):
    """Returns a dataset that raises at a batch that does not fit, with its texts tokenized.

    Args:
        task: a `Task`.
        x: what yields batches: ready inputs, or texts, or tuples `(x, y)` or `(x, y,
            sample_weight)` that begin with them. A `PyDataset`, a generator, a torch `DataLoader`,
            a `tf.data.Dataset`. Of ready inputs the last two stay as they are where they do not
            know their length, and on TensorFlow its own.
        training: bool, whether texts come with labels.

    Raises:
        TypeError: `x` yields nothing.
    """
    check_is_dataset(x)
    if isinstance(x, keras.utils.PyDataset):
        own = isinstance(x, (BucketedBatches, PreparedBatches)) or x.use_multiprocessing
        return x if own else PreparedBatches(x, _Prepare(task, training))
    if inspect.isgenerator(x):
        prepare = _Prepare(task, training)
        return (prepare(batch) for batch in x)
    is_read = _can_be_read_here(x) or _holds_texts(x)
    return Stream(x, _Prepare(task, training)) if is_read else x


def shared(task, x):
    """Returns a dataset that yields the rows of each batch that this process computes.

    Args:
        task: a `Task`.
        x: what `checked` returned, of which every process has the same.

    Raises:
        ValueError: its batches cannot be taken apart here.
    """
    share = distribution.share_of(task)
    if share.replicas == 1:
        return x
    if isinstance(x, keras.utils.PyDataset):
        return PreparedBatches(x, share)
    if inspect.isgenerator(x):
        return (share(batch) for batch in x)
    if share.shares > 1:
        raise ValueError(
            "Processes take their rows of batches that Python makes. Received: a "
            f"{type(x).__name__}, of unknown length. Pass texts or arrays, a PyDataset, or a "
            "dataset that knows its length."
        )
    return x


def _can_be_read_here(x):
    """Whether batches of ready inputs may come by way of Python, so that they can be checked."""
    is_tensors = hasattr(x, "element_spec") and keras.backend.backend() != "tensorflow"
    with contextlib.suppress(TypeError):
        return (is_tensors or data_adapters.is_torch_dataloader(x)) and len(x) > 0
    return False


class _Prepare:
    """Function of a batch that returns it as a model takes it."""

    def __init__(self, task, training):
        self.task, self.training, self.number = task, training, 0

    def __call__(self, batch, number=None):
        number = self.number if number is None else number
        self.number += 1
        try:
            return self._prepared(batch)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"Batch {number} of the dataset: {error}") from error

    def _prepared(self, batch):
        whole = is_text(_as_str(batch)) or not isinstance(batch, (tuple, list))
        x, *others = (batch,) if whole else batch
        if isinstance(x, dict):
            x, *others = keras.tree.map_structure(_as_array, (x, *others))
            self.task.check_inputs(x)
            if self.training and others and others[0] is not None:
                others[0] = self._labels(x, others[0])
            return x, *others
        x = _column(_as_str(x))
        others = [_as_str(column) for column in others] if self.training else []
        return _one_batch(self.task.examples(x, *others, training=self.training), self.task)

    def _labels(self, inputs, labels):
        """Returns the labels of ready inputs as the loss takes them, after checking every one."""
        if has_features(inputs):
            return self.task.encode_labels(labels)
        return self.task.ready_examples(inputs, labels, training=True).labels


def _column(x):
    """Returns a column of texts as a list, and several columns as a tuple, or raises."""
    if isinstance(x, str):
        raise TypeError(
            f"It is no batch but one example, {x:.80}. Batch the dataset: `.batch(32)`."
        )
    if is_text(x) or _is_rows(x):
        return as_column(x)
    # torch's `DataLoader` makes a list of tuples of rows that are tuples.
    columns = tuple(map(_as_str, x)) if isinstance(x, (list, tuple)) else ()
    if columns and all(is_text(column) or _is_rows(column) for column in columns):
        return columns
    raise TypeError(
        "It must begin with a dict of arrays as in bert_keras.inputs, a column of str, or a tuple "
        f"of such columns. Received: {type(x).__name__}, beginning with {x!r:.80}."
    )


def _is_rows(column):
    """Whether it holds lists of str: the words of sentences, or choices."""
    return isinstance(column, list) and all(isinstance(x, list) and is_text(x) for x in column)


def _one_batch(examples, task):
    """Returns all examples as one batch, in their order."""
    batches = examples.batches(len(examples), shuffle=False)
    ((_, length),) = batches.batches
    batches.batches = [(np.arange(len(examples)), length)]
    return (batches if examples.finish is None else examples.finish(batches))[0]


class PreparedBatches(keras.utils.PyDataset):
    """A `PyDataset` of batches that are looked at before a model sees them.

    An id outside its table is an error on some backends and NaN on JAX, where it spreads to every
    weight. All else is the dataset's own: order, length, workers, and what it does between epochs.

    Args:
        batches: a `keras.utils.PyDataset`.
        prepare: function of a batch and its number that returns the batch, or raises.
    """

    def __init__(self, batches, prepare):
        super().__init__(workers=batches.workers, max_queue_size=batches.max_queue_size)
        self.batches = batches
        self.prepare = prepare

    @property
    def num_batches(self):
        """Number of batches of an epoch, or `None` for a dataset without end."""
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


class Stream(keras.utils.PyDataset):
    """Batches of a dataset that is read from its beginning in each epoch.

    Args:
        dataset: a `tf.data.Dataset`, a torch `DataLoader`. One that does not know
            its length is read once to count its batches.
        prepare: see `PreparedBatches`.

    Raises:
        ValueError: the dataset has no end.
    """

    def __init__(self, dataset, prepare):
        super().__init__()
        self.dataset, self.prepare = dataset, prepare
        self._number, self._next = _num_batches(dataset), None

    def __len__(self):
        return self._number

    def __getitem__(self, index):
        if index == 0 or self._next is None:
            self._next = iter(_batches(self.dataset))
        return self.prepare(next(self._next), index)


def _batches(dataset):
    return dataset.as_numpy_iterator() if hasattr(dataset, "as_numpy_iterator") else dataset


def _num_batches(dataset):
    if hasattr(dataset, "cardinality") and int(dataset.cardinality()) == -1:
        raise ValueError(
            "A dataset of texts must end. Received one that repeats: `.take(n)` of it."
        )
    try:
        return len(dataset)
    except TypeError:
        return sum(1 for _ in _batches(dataset))


def _holds_texts(x):
    """Whether the first example of a dataset, or its first batch, has a str in it."""
    if data_adapters.is_torch_dataloader(x):
        has_places = hasattr(x.dataset, "__getitem__") and hasattr(x.dataset, "__len__")
        first = x.dataset[0] if has_places and len(x.dataset) else next(iter(x.dataset), ())
    elif hasattr(x, "element_spec"):
        return any(spec.dtype == "string" for spec in keras.tree.flatten(x.element_spec))
    elif hasattr(x, "__getitem__"):
        first = x[0]
    else:
        first = next(iter(x), ()) if hasattr(x, "__iter__") else ()
    return any(is_text(_as_str(leaf)) for leaf in keras.tree.flatten(first))


def _as_array(value):
    return keras.ops.convert_to_numpy(value) if hasattr(value, "shape") else value


def _as_str(column):
    """Returns a column with the bytes that `tf.data` makes of str decoded; others as they are."""
    is_array = getattr(getattr(column, "dtype", None), "kind", "") in ("O", "S")
    return _decoded(column.tolist() if is_array else column)


def _decoded(value):
    if isinstance(value, list) and any(isinstance(entry, (bytes, list)) for entry in value):
        return [_decoded(entry) for entry in value]
    return value.decode() if isinstance(value, bytes) else value
