"""Labels as users give them, names or numbers, to the arrays that losses take."""

import numpy as np

from bert_keras.checks import check_int
from bert_keras.metrics.labels import as_label_array

PROBLEM_TYPES = ("single_label", "multi_label", "regression")


def check_label_names(label_names, num_classes):
    """Returns the names as a tuple of str, `None` for none.

    Raises:
        ValueError: there are not as many different names as classes.
    """
    if label_names is None:
        return None
    is_str = isinstance(label_names, str)
    if is_str or not all(isinstance(name, str) for name in label_names):
        raise ValueError(
            "`label_names` must be a list of str. Received: "
            f"{label_names if is_str else list(label_names)!r}. Classes without names are numbers: "
            "label_names=None."
        )
    if len(label_names) != num_classes or len(set(label_names)) != num_classes:
        raise ValueError(
            f"`label_names` must be num_classes={num_classes} different names. Received: "
            f"{list(label_names)}."
        )
    return tuple(map(str, label_names))


def check_num_classes(num_classes, problem_type):
    """Returns the number of classes, labels or scores, which must make sense for the problem."""
    least = 2 if problem_type == "single_label" else 1
    advice = "For a score: problem_type='regression'." if least == 2 else ""
    return check_int("num_classes", num_classes, least, 2**20, advice)


def encode_labels(labels, problem_type, num_classes, label_names=None):
    """Returns labels as the array that a classifier's loss takes, see `TextClassifier`.

    Args:
        labels: column of names or numbers, or a matrix with one column a class.
        problem_type: one of `PROBLEM_TYPES`.
        num_classes: int.
        label_names: tuple of str, or `None`.

    Returns:
        int32 `(n,)`, float32 `(n, num_classes)`, or for scores float32 `(n, num_classes)`.

    Raises:
        ValueError: a label is missing, not a number, no class, or of the wrong shape.
    """
    labels = as_label_array(labels)
    if labels.dtype.kind in "OUS" and problem_type == "single_label":
        labels = _numbers_of(labels, label_names)
    if labels.dtype.kind not in "iufb":
        raise ValueError(
            f"Labels of a {problem_type} problem must be numbers. Received the dtype "
            f"{labels.dtype}."
        )
    if not np.isfinite(labels).all():
        row = int(np.argwhere(~np.isfinite(labels))[0, 0])
        raise ValueError(
            f"Every example needs a label. Received {labels[row]} at the index {row}. Drop "
            "examples without a label first."
        )
    encode = {"single_label": _classes, "multi_label": _label_sets, "regression": _scores}
    return encode[problem_type](labels, num_classes)


def _numbers_of(names, label_names):
    if label_names is None:
        raise ValueError(
            f"Labels given by name need `label_names`. Received the label {names.flat[0]!r}. Pass "
            "label_names=[...] when making the classifier."
        )
    names = _one_column(names, "name an example")
    numbers = {name: i for i, name in enumerate(label_names)}
    for row, name in enumerate(names.tolist()):
        if name not in numbers:
            raise ValueError(
                f"Every label must be one of {list(label_names)}. Received {name!r} at the index "
                f"{row}."
            )
    return np.array([numbers[name] for name in names.tolist()])


def one_column(labels):
    """Returns a matrix of one column as `(n,)`, other arrays as they are."""
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def _one_column(labels, what):
    """Returns labels `(n,)`, also of a matrix of one column."""
    labels = one_column(labels)
    if labels.ndim != 1:
        raise ValueError(
            f"Labels of a single_label problem must have the shape (num_examples,), one {what}"
            f". Received {labels.shape}. One-hot rows: labels.argmax(axis=-1). Several labels "
            "an example: problem_type='multi_label', and a matrix of 0 and 1 with a column a label."
        )
    return labels


def _classes(labels, num_classes):
    labels = _one_column(labels, "class each")
    wrong = (labels < 0) | (labels >= num_classes) | (labels != np.floor(labels))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"Labels must be the ints 0 to {num_classes - 1}, num_classes={num_classes}. Received "
            f"{labels[row]} at the index {row}."
        )
    return labels.astype("int32")


def _label_sets(labels, num_classes):
    if labels.ndim != 2 or labels.shape[1] != num_classes:
        raise ValueError(
            "Labels of a multi_label problem must have the shape (num_examples, "
            f"{num_classes}). Received {labels.shape}."
        )
    wrong = (labels != 0) & (labels != 1)
    if wrong.any():
        row = int(np.argwhere(wrong)[0, 0])
        raise ValueError(
            f"Labels of a multi_label problem must be 0 or 1. Received {labels[row]} at the index "
            f"{row}."
        )
    return labels.astype("float32")


def _scores(labels, num_classes):
    shapes = [(len(labels), num_classes)] + [(len(labels),)] * (num_classes == 1)
    if labels.shape not in shapes:
        raise ValueError(
            f"Labels of a regression with num_classes={num_classes} scores must have the shape "
            f"{' or '.join(map(str, shapes))}. Received {labels.shape}. One score an example: "
            "num_classes=1."
        )
    return labels.reshape(-1, num_classes).astype("float32")
