"""A name map: which variable of ours is which tensor of a checkpoint, read in both directions.

A map is a list of rows `(our layer, their layer, kind)`. The kind, of the format, says which
variables the layer has on each side and how their arrays relate. Letters in braces stand for
numbers: `{i}` for every encoder layer. A row with a fourth entry counts from that number on, where
the layers before it lack the part or call it otherwise.
"""

import itertools
import math

import numpy as np


def expand(rows, kinds, **counts):
    """Returns `{our variable path: (their tensor name, transform)}` for all numbers.

    Args:
        rows: list of `(our layer, their layer, kind)` or `(..., first number)`.
        kinds: dict, kind -> list of `(our variable, what follows their layer's name, transform)`;
            see `transformed`.
        **counts: int, how many numbers each letter stands for.
    """
    names = {}
    for ours, theirs, kind, *first in rows:
        letters = [letter for letter in counts if f"{{{letter}}}" in ours]
        for place in itertools.product(*(range(*first, counts[letter]) for letter in letters)):
            numbers = dict(zip(letters, place, strict=True))
            for variable, tensor, transform in kinds[kind]:
                path = f"{ours.format(**numbers)}/{variable}"
                names[path] = (f"{theirs.format(**numbers)}{tensor}", transform)
    return names


def transformed(array, transform):
    """Returns `array` of theirs as ours; a transposition, twice, gives `array` back."""
    if transform == "transpose":
        return np.transpose(array)
    return np.reshape(array, transformed_shape(np.shape(array), transform))


def transformed_back(array, transform, num_heads):
    """Returns `array` of ours as the other side stores it, the inverse of `transformed`."""
    if transform == "merge_first":
        return np.reshape(array, (num_heads, -1, *array.shape[1:]))
    if transform == "merge_last":
        return np.reshape(array, (*array.shape[:-1], num_heads, -1))
    return transformed(array, transform)


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
