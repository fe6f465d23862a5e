"""Labels as users give them, names or numbers, as the arrays that losses take."""

import contextlib

import numpy as np
from keras import ops

from bert_keras.checks import (
    as_array,
    as_column,
    check_choice,
    check_int,
    check_number,
    check_shape,
    is_column,
    is_int,
    raise_at_first,
    refuse_options,
)
from bert_keras.inputs import PADDING_MASK, TOKEN_IDS
from bert_keras.preprocessing.ragged import Ragged

PROBLEM_TYPES = ("single_label", "multi_label", "regression")


def check_label_names(label_names, num_classes):
    """Returns the names as a tuple of str, `None` for none.

    Raises:
        ValueError: they are not `num_classes` different names.
    """
    if label_names is None:
        return None
    names = None if isinstance(label_names, str) else list(label_names)
    are_str = names is not None and all(isinstance(name, str) for name in names)
    if not are_str or not len(names) == len(set(names)) == num_classes:
        raise ValueError(
            f"`label_names` must be num_classes={num_classes} different names, a list of str. "
            f"Received: {names or label_names!r}. Classes without names are numbers: "
            "label_names=None."
        )
    return tuple(map(str, names))


def check_num_classes(num_classes, problem_type):
    """Returns the number of classes, labels or scores, checked for the type of problem."""
    least = 2 if problem_type == "single_label" else 1
    advice = (
        "Two classes are num_classes=2 with the default loss. One label that is yes or no, with a "
        "binary loss: problem_type='multi_label'. A score: problem_type='regression'."
    )
    return check_int("num_classes", num_classes, least, 2**20, advice if least == 2 else "")


def encode_labels(labels, problem_type, num_classes, label_names=None):
    """Returns labels as the array that a classifier's loss takes, see `TextClassifier`.

    Args:
        labels: column of names or numbers, or a matrix with one column per class; for several
            labels also a column of lists of names. White space around a name is ignored.
        problem_type: one of `PROBLEM_TYPES`.
        num_classes: int.
        label_names: tuple of str, or `None`.

    Returns:
        int32 `(n,)` for classes; float32 `(n, num_classes)` for several labels and for scores, and
        for classes given as one-hot rows or as rows of probabilities.

    Raises:
        ValueError: a label is missing, not a number, not a class, or of the wrong shape.
    """
    if problem_type == "multi_label" and label_names is not None:
        is_of_names = getattr(getattr(labels, "dtype", None), "kind", "") in ("O", "U")
        rows = labels.tolist() if is_of_names else labels if isinstance(labels, list) else ()
        if rows := _rows_of_names(rows):
            labels = _multi_hot(rows, label_names)
    labels, name = as_label_array(labels), f"Labels of a {problem_type} problem"
    if problem_type == "single_label":
        labels = one_column(labels)
        are_names = labels.dtype.kind in "OUS"
        if labels.ndim == 2 and labels.shape[1] == num_classes and labels.dtype.kind in "iufb":
            return shares(labels)
        advice = (
            f"Or pass (num_examples, {num_classes}), a probability per class. For several labels "
            "per example, use problem_type='multi_label' and a matrix of 0 and 1 with one column "
            "per label."
        )
        name += f", one {'name' if are_names else 'class'} per example,"
        check_shape(name, labels, ("num_examples",), "" if are_names else "iufb", advice)
        if are_names:
            return _class_indices(labels, label_names)
    else:
        is_flat = num_classes == 1 and labels.ndim == 1
        shape = ("num_examples",) if is_flat else ("num_examples", num_classes)
        advice = "One label or score per example is num_classes=1."
        check_shape(name, labels, shape, "iufb", advice)
    advice = "Drop examples without a label first."
    raise_at_first(~np.isfinite(labels), labels, "Every example needs a label", advice)
    if problem_type == "single_label":
        wrong = (labels < 0) | (labels >= num_classes) | (labels != np.floor(labels))
        rule = f"Labels must be the ints 0 to {num_classes - 1}, num_classes={num_classes}"
        raise_at_first(wrong, labels, rule)
        return labels.astype("int32")
    if problem_type == "multi_label":
        wrong = (labels < 0) | (labels > 1)
        raise_at_first(wrong, labels, f"{name} must be 0 or 1, or between them")
    return labels.reshape(-1, num_classes).astype("float32")


def check_outputs(labels, outputs, advice):
    """Raises `ValueError` unless labels are a dict with the names of all outputs."""
    if not isinstance(labels, dict) or set(labels) != set(outputs):
        received = sorted(labels) if isinstance(labels, dict) else type(labels).__name__
        raise ValueError(
            f"Labels must be a dict with the keys {list(outputs)}. Received: {received}. {advice}"
        )


def shares(labels):
    """Returns rows with a probability per class as float32, after checking them."""
    wrong = ~np.isfinite(labels).all(axis=1) | (labels < 0).any(axis=1)
    wrong |= np.abs(labels.sum(axis=1) - 1) > 1e-2
    advice = "For labels of which several apply, use problem_type='multi_label'."
    raise_at_first(wrong, labels, "A row of labels must be probabilities whose sum is 1", advice)
    return (labels / labels.sum(axis=1, keepdims=True)).astype("float32")


def as_classes(labels):
    """Returns class indices; one-hot rows, see `encode_labels`, become indices too.

    Raises:
        ValueError: a row has several classes.
    """
    if labels.ndim == 1:
        return labels
    rule = "Each text must have one class here, a name, a number or a one-hot row"
    raise_at_first(labels.max(axis=1) < 1, labels, rule)
    return labels.argmax(axis=1).astype("int32")


def learn_label_names(task, labels):
    """Gives a new head the names among labels, sorted; returns a line that says so, or `None`.

    Args:
        task: a classifier with a `head`, `num_classes` and `label_names`.
        labels: a column of names, or of lists of names; from others it learns nothing.

    Raises:
        ValueError: there is another number of names than the user chose classes.
    """
    if getattr(task, "label_names", ()) is not None or bias_of_new(task.head) is None:
        return None
    rows = as_column(labels, "y") if is_column(labels) else ()
    names = tuple(sorted({name for row in _rows_of_names(rows) or () for name in row}))
    problem_type = getattr(task, "problem_type", None)
    if not names or problem_type == "regression":
        return None
    if len(names) != task.num_classes:
        least = 1 if problem_type == "multi_label" else 2
        if not getattr(task, "_may_count_classes", False) or len(names) < least:
            raise ValueError(
                f"Without `label_names` the labels must have num_classes={task.num_classes} "
                f"different names. Received {len(names)}: {list(names[:20])}. Pass "
                "label_names=[...] with all classes when making the task."
            )
        task.set_num_classes(len(names))
    task.label_names = names
    return "Labels by class: " + ", ".join(f"{i} {name!r}" for i, name in enumerate(names))


def bias_of_new(head):
    """Returns the bias of a head's last layer, or `None` if it has none or was trained."""
    bias = getattr(getattr(head, "dense", None), "bias", None)
    return None if bias is None or ops.convert_to_numpy(bias).any() else bias


def _class_indices(names, label_names):
    """Returns the class indices of labels given by name."""
    if label_names is None:
        raise ValueError(
            "Labels given by name need `label_names`. Received the label "
            f"{str(names.flat[0])!r}. Pass label_names=[...], in the order of the classes, when "
            "making the classifier; `fit` learns them from `y` only for a new head."
        )
    index_of = {name: number for number, name in enumerate(label_names)}
    indices = [index_of.get(name, index_of.get(name.strip(), -1)) for name in names.tolist()]
    indices = np.array(indices, "int32")
    raise_at_first(indices < 0, names, f"Every label must be one of {list(label_names)}")
    return indices


def _rows_of_names(rows):
    """Returns the names in each row, a name or a list of names; `None` if one is anything else."""
    found = []
    for row in rows:
        row = row.tolist() if hasattr(row, "tolist") else row
        row = [row] if isinstance(row, str) else row
        is_row = isinstance(row, (list, tuple, set))
        if not is_row or not all(isinstance(name, str) for name in row):
            return None
        found.append([name.strip() for name in row if name.strip()])
    return found


def _multi_hot(rows, label_names):
    """Returns 1 for each name of a row and 0 for all others: `(n, num_classes)`."""
    rows_of_names = [index for index, row in enumerate(rows) for _ in row]
    names = np.array([name for row in rows for name in row], dtype=str)
    labels = np.zeros((len(rows), len(label_names)), "int32")
    labels[rows_of_names, _class_indices(names, label_names)] = 1
    return labels


def one_column(labels):
    """Returns a matrix with one column as `(n,)`, other arrays as they are."""
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def as_label_array(labels, what="label"):
    """Returns labels as an array of strings, of numbers or of booleans.

    NumPy turns numbers, `None` and NaN among strings into strings; here they are errors.

    Args:
        labels: array, column or list of labels, or of rows of labels of the same length.
        what: str, the word for one label in messages.

    Returns:
        An array of the shape of `labels`; NaN among numbers stays.

    Raises:
        ValueError: a label is missing (`None`, NaN among strings, pandas' `NA`), strings stand
            among numbers, or rows differ in length. The message has the index.
    """
    with contextlib.suppress(ValueError):  # Rows of different lengths.
        array = np.asarray(labels)
        if array.dtype.kind in "biuf" or array.ndim == 0:
            return array
    array = np.array(labels, dtype=object)
    values = array.reshape(-1).tolist()
    for place, value in enumerate(values):
        row = place * len(array) // len(values)
        is_nan = isinstance(value, (float, np.floating)) and np.isnan(value)
        if is_nan or type(value).__name__ in ("NoneType", "NAType", "NaTType"):
            raise ValueError(
                f"Every example needs a {what}. Received {value!r} at the index {row}. Leave out "
                "the examples without one."
            )
        if isinstance(value, (str, bytes)) != isinstance(values[0], (str, bytes)):
            raise ValueError(
                f"The {what}s must be all strings or all numbers. Received {value!r} at the index "
                f"{row}, and {values[0]!r} at the index 0."
            )
    advice = (
        "For several labels per example, pass a matrix of 0 and 1, (num_examples, num_classes), or "
        "lists of names if the task has label_names."
    )
    return as_array("Labels", values, advice).reshape(array.shape) if values else array


def class_weight_by_index(task, class_weight, columns):
    """Returns the weights of `fit(class_weight=...)` by class index, after checking them.

    Args:
        task: a `Task`.
        class_weight: see `class_weighted`, also with label names as keys.
        columns: `Columns`, the examples to train on.

    Raises:
        ValueError: the task or the data set cannot weight examples by class, or the weights are
            neither `"balanced"` nor a dict of numbers from 0.
    """
    if not task.has_classes:
        rule = f"Examples of a {type(task).__name__} do not have one class each"
        advice = "Pass `sample_weight`, one for each example."
        refuse_options(rule, {"class_weight": class_weight}, advice)
    if isinstance(class_weight, dict):
        names = list(getattr(task, "label_names", None) or ())
        last, by_index = getattr(task, "num_classes", np.inf) - 1, {}
        for key, weight in class_weight.items():
            index = names.index(key) if key in names else key
            if not (is_int(index) and 0 <= index <= last):
                raise ValueError(
                    f"`class_weight` must have keys from 0 to {last}, or names of labels. "
                    f"Received: {key!r}."
                )
            by_index[index] = check_number(f"class_weight[{key}]", weight)
        class_weight = by_index
    else:
        advice = "Or a dict from class to weight."
        check_choice("class_weight", class_weight, ("balanced",), advice)
    task.check_class_weight(class_weight)
    # Keras would read a sentence's tags as the scores of one label.
    if columns.kind == "batches" and (task.label_per_token or class_weight == "balanced"):
        raise ValueError(
            "`class_weight` of tags, and 'balanced', which counts the examples of each class, take "
            f"all examples at once. Received: {type(columns.x).__name__}. Let it yield sample "
            "weights, or pass a dict for classes of texts."
        )
    return class_weight


def token_weights(inputs, sample_weight=None):
    """Returns weights of tokens, 0 for padding; weights of tokens stay as they are.

    Args:
        inputs: dict of arrays or tensors.
        sample_weight: float `(batch,)` or `(batch, 1)`, one for each example, or `(batch,
            seq_len)`; `None` for 1.
    """
    ids, mask = inputs[TOKEN_IDS], inputs.get(PADDING_MASK)
    if sample_weight is None and mask is None:
        return None
    cast = ops.cast if ops.is_tensor(ids) else np.asarray
    mask = cast(0 * ids + 1 if mask is None else mask, "float32")
    if sample_weight is None:
        return mask
    weights = cast(sample_weight, "float32")
    weights = weights[:, None] if len(weights.shape) == 1 else weights
    return weights * mask if weights.shape[1] == 1 else weights


def take_weights(sample_weight, rows):
    """Returns the weights of some examples, float32, in the form they have; `None` stays `None`.

    Args:
        sample_weight: float `(num_examples,)`, a dict of such, or `None`.
        rows: int64 `(size,)`, the indices of the examples.
    """
    if isinstance(sample_weight, dict):
        return {name: take_weights(weights, rows) for name, weights in sample_weight.items()}
    return None if sample_weight is None else np.asarray(sample_weight, "float32")[rows]


def class_weighted(labels, sample_weight, class_weight, num_classes=None):
    """Returns weights multiplied by those of classes.

    Args:
        labels: classes as the loss takes them, or a `Ragged` with one for each token.
        sample_weight: weights in the same form, or `None`.
        class_weight: dict from the number of a class to its weight, 1 for a class left out; or
            `"balanced"`, as in scikit-learn: examples / (classes * examples of the class).
        num_classes: int, or `None` to count the classes.
    """
    of_tokens = isinstance(labels, Ragged)
    labels = labels.values if of_tokens else labels
    if labels.ndim > 1 and labels.dtype.kind == "f":  # As in Keras, the likeliest class.
        num_classes, labels = labels.shape[-1], labels.argmax(axis=-1)
    if isinstance(class_weight, str):
        counts = np.bincount(labels, minlength=num_classes or 0)
        class_weight = dict(enumerate(len(labels) / (len(counts) * np.maximum(counts, 1))))
    weights = np.ones(labels.shape, "float32")
    for index, weight in class_weight.items():
        weights[labels == index] = weight
    if of_tokens:
        return Ragged.from_flat(weights * sample_weight.values, sample_weight.lengths)
    if sample_weight is not None:
        sample_weight = one_column(np.asarray(sample_weight, "float32"))
        weights = (weights.T * sample_weight.T).T  # The weight of a text is that of all its tokens.
    return weights
