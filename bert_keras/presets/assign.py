"""Assigns a checkpoint's arrays to variables: each exactly once, or none at all."""

import os
import sys
import warnings

import keras

from bert_keras.engine.atomic_files import PACKAGE
from bert_keras.engine.variable_paths import relative_path
from bert_keras.presets.name_map import transformed, transformed_shape

_LIBRARY_FOLDERS = PACKAGE, os.path.dirname(keras.__file__) + os.sep


def assign(variables, names, tensors, optional=(), left_out=(), source="the checkpoint"):
    """Assigns every variable its tensor after checking that all names and shapes fit.

    Args:
        variables: dict, our path -> `keras.Variable`.
        names: dict, our path -> `(tensor name, transform)`. See `name_map.expand`.
        tensors: `tensors.Tensors`, the checkpoint.
        optional: prefixes of our paths that may keep their initial values; a warning lists them.
        left_out: names of tensors of the checkpoint that belong to no variable; a warning lists
            them.
        source: str, the name of the checkpoint in messages.

    Raises:
        ValueError: a variable has no tensor, a tensor has no variable, or a shape differs; then no
            variable was changed. Or a tensor does not hold floats; tensors before it were assigned.
    """
    used = {k: names[k] for k in variables if k in names and names[k][0] in tensors}
    missing = [path for path in variables if path not in used]
    required = [path for path in missing if not path.startswith(tuple(optional))]
    unused = sorted(tensors.keys() - {name for name, _ in used.values()})
    mismatches = []
    for path, (name, transform) in used.items():
        theirs, ours = transformed_shape(tensors.shapes[name], transform), variables[path].shape
        if theirs != tuple(ours):
            mismatches.append(f"{path} {tuple(ours)} <- {name} {theirs}")
    if required or unused or mismatches:
        raise ValueError(
            f"{source} must have exactly one tensor of the right shape for every weight of the "
            "model, and no others. No weight was changed.\n"
            f"Weights without a tensor ({len(required)}): {_listed(required)}\n"
            f"Tensors without a weight ({len(unused) + len(left_out)}): "
            f"{_listed([*unused, *left_out])}\n"
            f"Shapes that differ ({len(mismatches)}): {_listed(mismatches)}\n"
            "Does the config belong to these weights?"
        )
    for path, (name, transform) in used.items():
        array = tensors[name]
        if array.dtype.kind != "f":
            what = f"{name!r} of dtype {array.dtype} in {source}"
            raise ValueError(f"Weights must be floats. Received: {what}. Save it unquantized.")
        variables[path].assign(transformed(array, transform))
    if missing:
        is_head = all(path.startswith("head/") for path in missing)
        warn(
            f"{source} has no values for these weights: {', '.join(missing)}. They start at "
            "random, as a new head does. Train them with `fit`.",
            NewHead if is_head else UserWarning,
        )
    if left_out:
        warn(
            f"{source} holds tensors of a part that this model does not have. They were left out: "
            f"{_listed(left_out)}. The model computes without that part."
        )


class NewHead(UserWarning):
    """A task's head starts at random. Ignore it if you train the head anyway."""


def warn(message, category=UserWarning):
    """Warns, and points to the line of the user's code that called this package or Keras."""
    # Remove when Python 3.12 is the oldest: `skip_file_prefixes` of `warnings.warn` does this.
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_code.co_filename.startswith(_LIBRARY_FOLDERS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def by_path(weights):
    """Returns a dict of weights by relative path."""
    return {relative_path(weight): weight for weight in weights}


def arrays_of(weights):
    """Returns the values of a dict of variables as NumPy arrays."""
    return {path: keras.ops.convert_to_numpy(weight.value) for path, weight in weights.items()}


def head_weights(task):
    """Returns a task's weights without its backbone's, by paths that begin with `head/`."""
    backbone = {id(weight) for weight in task.backbone.weights}
    weights = {}
    for weight in task.weights:
        if id(weight) not in backbone:
            path = relative_path(weight)
            weights[path if path.startswith("head/") else f"head/{path}"] = weight
    return weights


def _listed(names, limit=30):
    """Returns the first `limit` names as one line for a message."""
    if not names:
        return "none"
    first = ", ".join(names[:limit])
    return first if len(names) <= limit else f"{first}, and {len(names) - limit} more"
