"""Moves a checkpoint's arrays into variables: each exactly once, or nothing at all."""

import warnings

from bert_keras.presets.name_maps.name_map import transformed, transformed_shape


def assign(variables, names, tensors, *, optional=(), ignored=(), source="the checkpoint"):
    """Assigns every variable its tensor, after checking that all names and shapes fit.

    Args:
        variables: dict, our path -> `keras.Variable`.
        names: dict, our path -> `(tensor name, transform)`, see `name_maps.name_map.expand`.
        tensors: mapping, tensor name -> `np.ndarray`, read one at a time; its attribute `shapes` is
            a dict of their shapes, known without reading.
        optional: prefixes of our paths that may keep their initial values; a warning lists them.
        ignored: prefixes of tensor names that are skipped on purpose.
        source: str, what to call the checkpoint in messages.

    Raises:
        ValueError: a variable has no tensor, a tensor no variable, or a shape differs. No variable
            was changed.
    """
    wanted = {path: names[path] for path in variables if path in names}
    missing = [path for path in variables if path not in names or wanted[path][0] not in tensors]
    initial = [path for path in missing if path.startswith(tuple(optional))]
    used = {name for name, _ in wanted.values()}
    unused = [name for name in tensors if name not in used and not name.startswith(tuple(ignored))]
    wrong = []
    for path, (name, transform) in wanted.items():
        if name in tensors:
            shape = transformed_shape(tensors.shapes[name], transform)
            if shape != tuple(variables[path].shape):
                wrong.append(f"{path} {tuple(variables[path].shape)} <- {name} {shape}")
    required = [path for path in missing if path not in initial]
    if required or unused or wrong:
        raise ValueError(
            f"Every weight of the model must have exactly one tensor of its shape in {source}, and "
            "every tensor a weight. No weight was changed.\n"
            f"Weights without a tensor ({len(required)}): {listed(required)}\n"
            f"Tensors without a weight ({len(unused)}): {listed(unused)}\n"
            f"Shapes that differ ({len(wrong)}): {listed(wrong)}\n"
            "Does the config belong to these weights?"
        )
    for path, (name, transform) in wanted.items():
        if path not in initial:
            variables[path].assign(transformed(tensors[name], transform))
    if initial:
        warnings.warn(
            f"{source} has no values for these weights. They start at random, as a new head does, "
            f"and need training before they mean anything: {', '.join(initial)}.",
            stacklevel=4,  # the line that called from_preset
        )


def relative_path(variable):
    """Returns a variable's path below its model: `"encoder/layer_0/attention/query/kernel"`.

    The first component is the model's name, which may carry a counter (`bert_backbone_1`).
    """
    return variable.path.split("/", 1)[1]


def listed(names, most=30):
    """Returns names as one line for a message, the first `most` of them."""
    if not names:
        return "none"
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, and {len(names) - most} more"
