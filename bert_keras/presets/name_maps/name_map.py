"""A name map: which variable of ours is which tensor of a checkpoint, read in both directions.

A map is a list of rows `(our layer, their layer, kind)`. The kind says which variables the layer
has on each side and how their arrays relate; `{i}` stands for every encoder layer.
"""

import numpy as np

# kind: (our variable, their tensor, transform). Each transform is its own inverse.
KINDS = {
    "embedding": [("embeddings", "weight", None)],
    "norm": [("gamma", "weight", None), ("beta", "bias", None)],
    "dense": [("kernel", "weight", "transpose"), ("bias", "bias", None)],
    "bias": [("bias", "bias", None)],
}


def expand(rows, num_layers):
    """Returns `{our variable path: (their tensor name, transform)}` for every encoder layer.

    Args:
        rows: list of `(our layer, their layer, kind)`.
        num_layers: int, what `{i}` runs over.
    """
    names = {}
    for ours, theirs, kind in rows:
        for i in range(num_layers) if "{i}" in ours else (0,):
            for our_variable, their_tensor, transform in KINDS[kind]:
                names[f"{ours.format(i=i)}/{our_variable}"] = (
                    f"{theirs.format(i=i)}.{their_tensor}",
                    transform,
                )
    return names


def transformed(array, transform):
    """Returns `array` as the other side stores it; applying it twice gives `array` back."""
    return np.transpose(array) if transform == "transpose" else array
