"""Name maps: which of our variables corresponds to which tensor of a checkpoint, both ways.

A map is a list of rows `(our layer, their layer, kind)`. The kind, which the format defines, says
which variables the layer has on each side and how their arrays are converted. Letters in braces
stand for numbers, such as `{i}` for all encoder layers. A fourth entry is the first number that a
row is for: earlier layers lack the part or have another name for it.
"""

import math

import numpy as np


def expand(rows, kinds, counts=(), backbone=None):
    """Returns `{our variable path: (their tensor name, transform)}` for all numbers.

    Args:
        rows: list of `(our layer, their layer, kind)` or `(..., first number)`.
        kinds: dict, kind -> list of `(our variable, ending of their tensor's name, transform)`, see
            `transformed`.
        counts: dict, letter in the rows -> attribute of the backbone that counts its numbers.
        backbone: a `Backbone`, for rows with letters.
    """
    names = {}
    for ours, theirs, kind, *first in rows:
        places = [{}]
        for letter in counts:
            if f"{{{letter}}}" in ours:
                numbers = range(*first, getattr(backbone, counts[letter]))
                places = [{**place, letter: i} for place in places for i in numbers]
        for numbers in places:
            for variable, tensor, transform in kinds[kind]:
                path = f"{ours.format(**numbers)}/{variable}"
                names[path] = (f"{theirs.format(**numbers)}{tensor}", transform)
    return names


def transformed(array, transform):
    """Returns one of their arrays as ours. A transposition is its own inverse."""
    if transform == "transpose":
        return np.transpose(array)
    return np.reshape(array, transformed_shape(np.shape(array), transform))


def transformed_back(array, transform, num_heads):
    """Returns one of our arrays as theirs, the inverse of `transformed`."""
    if transform == "merge_first":
        return np.reshape(array, (num_heads, -1, *array.shape[1:]))
    if transform == "merge_last":
        return np.reshape(array, (*array.shape[:-1], num_heads, -1))
    return transformed(array, transform)


def transformed_shape(shape, transform):
    """Returns the shape of `transformed(array, transform)` for an array of that shape.

    Args:
        shape: tuple of int.
        transform: `None`; `"transpose"`; or `"merge_first"` or `"merge_last"` if they have one axis
            for heads and one for the width of a head (their first two or last two), and we have
            one axis for both.
    """
    if transform == "transpose":
        return tuple(shape[::-1])
    if transform == "merge_first":
        return (math.prod(shape[:2]), *shape[2:])
    if transform == "merge_last":
        return (*shape[:-2], math.prod(shape[-2:]))
    return tuple(shape)
