"""The variables of a model: their paths, and when layers replace them.

Why: a compiled function keeps computing with the old variables when an adapter is added or merged,
or when a layer is quantized. `version` counts such changes. They are rare, and models may share
layers, so one number serves all models.

Remove when `test_keras_computes_with_variables_that_were_replaced` fails.
"""

import itertools

import keras

from bert_keras.engine.keras_internals import track_variables

_numbers = itertools.count(1)
version = 0


def changed(*layers: keras.layers.Layer) -> None:
    """Records that layers now have other variables.

    Args:
        *layers: those that hold variables of another layer; PyTorch would keep the old ones too.
    """
    global version
    version = next(_numbers)
    if keras.backend.backend() == "torch":
        for layer in layers:
            track_variables(layer)


def relative_path(variable: keras.Variable) -> str:
    """Returns a variable's path below its model: `"encoder/layer_0/attention/query/kernel"`.

    The first component is the model's name, which may have a counter (`bert_backbone_1`).
    """
    return variable.path.split("/", 1)[1]
