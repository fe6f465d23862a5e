"""From what a user gives to `fit`, `evaluate` and `predict` to checked examples and batches."""

import keras

from bert_keras import distribution
from bert_keras.inputs import check_keys
from bert_keras.preprocessing.batching import buckets_worth_compiling
from bert_keras.tasks import compatibility as parts
from bert_keras.tasks import user_columns as columns
from bert_keras.tasks.cached_features import check_reader
from bert_keras.tasks.encoded_examples import Examples, check_class_weight
from bert_keras.tasks.wrapped_datasets import PreparedBatches, Stream, checked, shared

# Tokens trained on while JAX compiles a step for one more length, times the square of the width:
# both grow with the layers alike. Measured on two cores, see docs/benchmarks.md; a GPU computes
# more in that time. TensorFlow gains nothing by fewer lengths, PyTorch compiles none.
COMPILATION = {"jax": 1e9}


def are_examples(task, x):
    """Whether `x` holds all examples at once, rather than being a dataset of batches."""
    return isinstance(x, (dict, Examples)) or columns.is_table(x) or task.is_raw(x)


def examples_of(task, x, y=None, sample_weight=None, training=True):
    """Returns the `Examples` of texts or of ready inputs, see `Task.examples`."""
    if isinstance(x, Examples):
        check_reader(task, x)
        if y is not None or sample_weight is not None:
            raise ValueError(
                "`Examples` have their labels and weights, from `encode_features`. Received others."
            )
        return x
    if training and y is None and task.needs_labels:
        raise ValueError(
            f"{type(task).__name__} needs labels to train or to be evaluated. Received: y=None."
        )
    if not isinstance(x, dict):
        parts.check_has_preprocessor(task)
        (x, y), make = columns_of(task, x, y), task.raw_examples
    else:
        check_keys(x, task.input_names)
        x = {name: keras.ops.convert_to_numpy(value) for name, value in x.items()}
        make = task.ready_examples
    columns.check_same_length(x, y, sample_weight)
    return make(x, y, sample_weight, training)


def columns_of(task, x, y=None):
    """Returns raw examples and their labels as lists, what is ready as it is."""
    if isinstance(x, (dict, Examples)):
        return x, y
    if columns.is_table(x):
        x = columns.of_table(x, getattr(task.preprocessor, "text_columns", None))
    return columns.as_columns(x, task.takes_pairs), columns.as_labels(y)


def batches_of(task, examples, batch_size=None, shuffle=False, epoch=0, num_epochs=None):
    """Returns what `fit` or `evaluate` read of `Examples`, see `Task.batches`.

    Args:
        num_epochs: int, how often `fit` reads them, by which JAX compiles more lengths or fewer;
            `None` for the lengths of `examples`.
    """
    # XLA compiles a last batch of its own size anew, which costs more than rows that weigh 0. In
    # `evaluate` it does not pad: Keras's mean of the losses counts rows, not weights.
    pads = keras.backend.backend() != "torch" and shuffle and task.ignores_weight_0()
    recipe = task.recipe
    batches = examples.batches(
        batch_size,
        shuffle=shuffle,
        seed=recipe.seed or 0,
        window=recipe.sort_window if shuffle else None,
        pad_last_batch=pads,
        unpadded=parts.is_unpadded(task),
    )
    cost = COMPILATION.get(keras.backend.backend(), 0)
    fixed = batches.unpadded or examples.depends_on_padding or examples.read_by
    if num_epochs and cost and not fixed:
        # Those of epoch 0 in any case: a run that goes on has the lengths it began with.
        price = cost / (task.backbone.hidden_dim**2 * examples.sequences_a_row)
        batches.buckets = buckets_worth_compiling(
            batches.batches, batches.buckets, num_epochs, price
        )
        batches.epoch = 0
    if epoch:
        batches.epoch = epoch
    finished = batches if examples.finish is None else examples.finish(batches)
    share = distribution.share_of(task)
    distribution.check_texts_are_shared()
    if share.replicas == 1:
        return finished
    for rows, _ in batches.batches:
        share.check_rows(batches.batch_size if pads else len(rows))
    return PreparedBatches(finished, share)


def data_of(
    task,
    x,
    y=None,
    sample_weight=None,
    batch_size=None,
    class_weight=None,
    shuffle=None,
    epoch=0,
):
    """Returns the keywords for the data that Keras's `fit` and `evaluate` get, all checked.

    Args:
        task: a compiled `Task`.
        x, y, sample_weight, batch_size, class_weight: see `Task.fit`.
        shuffle: bool for `fit`, `None` for `evaluate`.
        epoch: int, number of the first epoch.
    """
    if class_weight is not None:
        class_weight = columns.by_number(class_weight, getattr(task, "label_names", None))
        task.check_class_weight(class_weight, x)
    if are_examples(task, x):
        examples = examples_of(task, x, y, sample_weight)
        if class_weight is not None:
            examples = examples.weighted(class_weight, getattr(task, "num_classes", None))
        num_epochs = None if shuffle is None else task.recipe.num_epochs
        batches = batches_of(task, examples, batch_size, bool(shuffle), epoch, num_epochs)
        # They come shuffled, by the seed and the number of the epoch.
        return {"x": batches} if shuffle is None else {"x": batches, "shuffle": False}
    if class_weight is not None:
        check_class_weight(class_weight, getattr(task, "num_classes", None))
    if class_weight == "balanced":
        raise ValueError(
            "`class_weight='balanced'` counts the examples of each class, which a dataset does not "
            f"show. Received: {type(x).__name__}. Pass the weights, a dict."
        )
    given = {"x": shared(task, checked(task, x)), "y": y, "sample_weight": sample_weight}
    if y is not None and isinstance(given["x"], Stream):
        raise ValueError(
            "What is read one by one yields labels too, `(text, label)`. Received: labels apart, "
            f"and texts in a {type(x).__name__}. Make it a list, in the order of the labels."
        )
    shuffle = None if shuffle is None else shuffle and not isinstance(given["x"], Stream)
    given |= {"batch_size": batch_size, "class_weight": class_weight, "shuffle": shuffle}
    return {name: value for name, value in given.items() if value is not None}


def validation_data_of(task, given, batch_size=None):
    """Returns what Keras validates on: batches of examples, or somebody's dataset."""
    if isinstance(given, list) and not task.is_raw(given):
        given = tuple(given)
    if isinstance(given, tuple) and len(given) in (2, 3) and not columns.is_text(given):
        return data_of(task, *given, batch_size=batch_size)["x"]
    if given is None or not are_examples(task, given):
        return given if given is None else shared(task, checked(task, given))
    return data_of(task, given, batch_size=batch_size)["x"]
