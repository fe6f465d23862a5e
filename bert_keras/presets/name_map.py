"""Name maps say which of our variables is which tensor of a checkpoint, in both directions.

A map is a list of rows `(our layer, their layer, kind)`. A format defines, for each kind, the
variables of the layer on both sides and how to transform the arrays. Letters in braces stand for
numbers: `{i}` for every encoder layer. A fourth entry is the first number, for layers before which
the tensor is missing or has another name.
"""

import itertools
import math

import numpy as np


def expand(rows, kinds, **counts):
    """Returns `{our variable path: (their tensor name, transform)}` for all numbers.

    Args:
        rows: list of `(our layer, their layer, kind)` or `(..., first number)`.
        kinds: dict, kind -> list of `(our variable, suffix of their layer's name, transform)`. See
            `transformed`.
        **counts: int, the count of numbers for each letter.
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
    """Returns their array in our form. Transposing twice restores `array`."""
    if transform == "transpose":
        return np.transpose(array)
    return np.reshape(array, transformed_shape(np.shape(array), transform))


def transformed_back(array, transform, num_heads):
    """Returns our array in their form, the inverse of `transformed`."""
    if transform == "merge_first":
        return np.reshape(array, (num_heads, -1, *array.shape[1:]))
    if transform == "merge_last":
        return np.reshape(array, (*array.shape[:-1], num_heads, -1))
    return transformed(array, transform)


def transformed_shape(shape, transform):
    """Returns the shape of `transformed(array, transform)` for an array of that shape.

    Args:
        shape: tuple of int.
        transform: `None`, `"transpose"`, `"merge_first"` or `"merge_last"`. The latter two merge
            the first or last two axes, heads and width of a head, for which we have one axis.
    """
    if transform == "transpose":
        return tuple(shape[::-1])
    if transform == "merge_first":
        return (math.prod(shape[:2]), *shape[2:])
    if transform == "merge_last":
        return (*shape[:-2], math.prod(shape[-2:]))
    return tuple(shape)
