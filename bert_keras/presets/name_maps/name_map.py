"""A name map: which variable of ours is which tensor of a checkpoint, read in both directions.

A map is a list of rows `(our layer, their layer, kind)`. The kind says which variables the layer
has on each side and how their arrays relate; `{i}` stands for every encoder layer. A map of another
format than Hugging Face's brings kinds of its own.
"""

import math

import numpy as np

# kind: (our variable, their tensor, transform). Each transform is its own inverse.
KINDS = {
    "embedding": [("embeddings", "weight", None)],
    "norm": [("gamma", "weight", None), ("beta", "bias", None)],
    "dense": [("kernel", "weight", "transpose"), ("bias", "bias", None)],
    "bias": [("bias", "bias", None)],
}


def expand(rows, num_layers, kinds=KINDS, separator="."):
    """Returns `{our variable path: (their tensor name, transform)}` for every encoder layer.

    Args:
        rows: list of `(our layer, their layer, kind)`.
        num_layers: int, what `{i}` runs over.
        kinds: dict, the kinds of these rows.
        separator: str, what stands between their layer's and their tensor's name.
    """
    names = {}
    for ours, theirs, kind in rows:
        for i in range(num_layers) if "{i}" in ours else (0,):
            for our_variable, their_tensor, transform in kinds[kind]:
                names[f"{ours.format(i=i)}/{our_variable}"] = (
                    f"{theirs.format(i=i)}{separator}{their_tensor}",
                    transform,
                )
    return names


def transformed(array, transform):
    """Returns `array` as the other side stores it; a transposition, twice, gives `array` back."""
    if transform == "transpose":
        return np.transpose(array)
    return np.reshape(array, transformed_shape(np.shape(array), transform))


def transformed_shape(shape, transform):
    """Returns the shape of `transformed(array, transform)` for an array of that shape.

    Args:
        shape: tuple of int.
        transform: `None`; `"transpose"`; or, where the other side has an axis for the heads and one
            for each head's width and we have one for both, `"merge_first"` or `"merge_last"`: the
            two are the first or the last axes.
    """
    if transform == "transpose":
        return tuple(shape[::-1])
    if transform == "merge_first":
        return (math.prod(shape[:2]), *shape[2:])
    if transform == "merge_last":
        return (*shape[:-2], math.prod(shape[-2:]))
    return tuple(shape)
