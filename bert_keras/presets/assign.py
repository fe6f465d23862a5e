"""Assigns a checkpoint's arrays to variables: each exactly once, or none at all."""

import logging
import os
import pathlib
import sys
import warnings

from bert_keras.engine.structure import relative_path
from bert_keras.presets.name_map import transformed, transformed_shape

_LOG = logging.getLogger(__name__)
_PACKAGE = str(pathlib.Path(__file__).resolve().parent.parent) + os.sep


def assign(
    variables, names, tensors, *, optional=(), unread=(), left_out=(), source="the checkpoint"
):
    """Assigns every variable its tensor after checking that all names and shapes fit.

    Args:
        variables: dict, our path -> `keras.Variable`.
        names: dict, our path -> `(tensor name, transform)`. See `name_map.expand`.
        tensors: `tensors.Tensors`, the checkpoint.
        optional: prefixes of our paths that may keep their initial values; a warning lists them.
        unread: prefixes of our paths that may keep their initial values without a warning, since
            nothing reads them.
        left_out: names of further tensors of the checkpoint, which nothing here needs; a warning
            lists them.
        source: str, the name of the checkpoint in messages.

    Raises:
        ValueError: a variable has no tensor, a tensor has no variable, or a shape differs; then no
            variable was changed. Or a tensor does not hold floats, which shows when it is read.
    """
    wanted = {path: names[path] for path in variables if path in names}
    missing = [path for path in variables if path not in names or wanted[path][0] not in tensors]
    required = [path for path in missing if not path.startswith((*optional, *unread))]
    used = {name for name, _ in wanted.values()}
    unused = [name for name in tensors if name not in used]
    wrong = []
    for path, (name, transform) in wanted.items():
        if name in tensors:
            shape = transformed_shape(tensors.shapes[name], transform)
            if shape != tuple(variables[path].shape):
                wrong.append(f"{path} {tuple(variables[path].shape)} <- {name} {shape}")
    if required or unused or wrong:
        raise ValueError(
            f"{source} must have exactly one tensor of the right shape for every weight of the "
            "model, and no others. No weight was changed.\n"
            f"Weights without a tensor ({len(required)}): {_listed(required)}\n"
            f"Tensors without a weight ({len(unused) + len(left_out)}): "
            f"{_listed([*unused, *left_out])}\n"
            f"Shapes that differ ({len(wrong)}): {_listed(wrong)}\n"
            "Does the config belong to these weights?"
        )
    for path, (name, transform) in wanted.items():
        if path not in missing:
            array = tensors[name]
            if array.dtype.kind != "f":
                found = f"{name!r} of dtype {array.dtype} in {source}"
                raise ValueError(f"Weights must be floats. Received: {found}. Save it unquantized.")
            variables[path].assign(transformed(array, transform))
    _LOG.debug("Tensors of %s that became weights: %s", tensors, used.intersection(tensors))
    if initial := [path for path in missing if not path.startswith(tuple(unread))]:
        is_head, names = all(path.startswith("head/") for path in initial), ", ".join(initial)
        if is_head and len(initial) == len(variables):
            found = f"no head for this task: {names} start at random. Train them with `fit`."
        else:
            found = (
                "no values for these weights. They start at random, as a new head does, and must "
                f"be trained first: {names}."
            )
        warn(f"{source} has {found}", NewHead if is_head else UserWarning)
    if left_out:
        warn(
            f"{source} holds tensors of a part that this model does not have. They were left out: "
            f"{_listed(left_out)}. The model computes without that part."
        )


class NewHead(UserWarning):
    """A task's head starts at random. Ignore it if you train the head anyway."""


def warn(message, category=UserWarning):
    """Warns at the line outside this package that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def by_path(weights):
    """Returns a dict of weights by relative path."""
    return {relative_path(weight): weight for weight in weights}


def own_weights(task):
    """Returns a task's weights except its backbone's, by paths that begin with `head/`."""
    backbone = {id(weight) for weight in task.backbone.weights}
    own = by_path(weight for weight in task.weights if id(weight) not in backbone)
    return {p if p.startswith("head/") else f"head/{p}": weight for p, weight in own.items()}


def _listed(names, most=30):
    """Returns the first `most` names as one line for a message."""
    if not names:
        return "none"
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, and {len(names) - most} more"
