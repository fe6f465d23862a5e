"""All private names of Keras and PyTorch that the package reads; each can vanish in a new version.

Why: Keras has no public name for these. Beside each stands what happens without it.

Remove what `test_keras_has_no_public_names_for_what_we_read` no longer finds.
"""

import operator
from collections.abc import Iterable
from typing import Any

import keras

# Without it the package cannot be imported: layers read the present call and precision here.
from keras.src.backend.common.global_state import GLOBAL_STATE_TRACKER as scopes

# Without it the package cannot be imported: `predict` on PyTorch makes one for each batch.
from keras.src.layers.layer import CallContext

# Without it the package cannot be imported: `predict` and `fit` read data sets through it.
from keras.src.trainers import data_adapters

__all__ = ["CallContext", "data_adapters", "scopes"]

# `save` and `load_model` look for the attributes that no layer saves under this name. Keras 3.15
# stores them under another name, so it would make a layer to find them for each layer of a file.
# Without the name, in other threads and after `keras.utils.clear_session()`: files are saved and
# loaded more slowly. Remove when
# `test_keras_looks_under_another_name_for_what_no_layer_saves` fails.
scopes.saving_attr_skiplist_Layer = {
    "_self_unconditional_dependency_names",
    *dir(keras.layers.Layer(name="layer")),
}

# PyTorch's hooks of a layer.
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


# Without it the package cannot be imported on PyTorch. `torch.optim.adamw.adamw` makes the same
# step, but for small tensors it takes four times as long.
fused_adamw = None
if keras.backend.backend() == "torch":
    import torch

    fused_adamw = torch._fused_adamw_


def all_layers(layer: keras.layers.Layer, include_self: bool = True) -> list[keras.layers.Layer]:
    """Returns a layer and all layers inside it.

    Without the name: an `AttributeError` from `fit`, `save`, `quantize` and exports.
    """
    return list(layer._flatten_layers(include_self=include_self))


def takes_training(layer: keras.layers.Layer) -> bool:
    """Whether `call` has an argument `training`. Without the name: an `AttributeError`."""
    return layer._call_has_training_arg


def is_plain(attributes: dict[str, Any]) -> bool:
    """Whether nothing is computed around a layer's `call`.

    A plain layer has no hooks of PyTorch and no activity regularizer, and was not made in a
    `keras.RematScope`. Without one of the names: a `KeyError` from a layer on PyTorch.

    Args:
        attributes: those of the layer, `vars(layer)`.
    """
    one, two, three, four = _HOOKS
    return attributes["activity_regularizer"] is None and not (
        attributes["_remat_mode"]
        or attributes[one]
        or attributes[two]
        or attributes[three]
        or attributes[four]
    )


def track_variables(layer: keras.layers.Layer) -> None:
    """Lets PyTorch list a layer's present variables.

    Without the name `parameters()` of a model with adapters would list the earlier variables.
    """
    if hasattr(layer, "_track_variables"):
        layer._track_variables()


def tracker_of(layer: keras.layers.Layer) -> Any:
    """Returns what records a layer's variables and sublayers.

    Without the name: an `AttributeError` where adapters are added or layers shared.
    """
    return layer._tracker


def value(variable: keras.Variable) -> Any:
    """Returns a variable's tensor or, before it is created, `None`, see `values`."""
    return variable._value


def values(variables: Iterable[keras.Variable]) -> list[Any]:
    """Returns the variables' tensors, without Keras's search for scopes that replace them.

    The variables must have been created. Without the name: an `AttributeError` from the first step.
    """
    return list(map(operator.attrgetter("_value"), variables))


def own_metrics(model: keras.Model) -> list[keras.metrics.Metric]:
    """Returns the metrics of a model, without those of its layers.

    Without the name: an `AttributeError` from the first step.
    """
    return model._get_own_metrics()


def function_of(metric: keras.metrics.Metric) -> Any:
    """Returns the function that Keras made a metric of, or `None` for another kind of metric.

    Without the name: `None`, so that a user's function gets labels as the loss takes them.
    """
    is_function = type(metric) is keras.metrics.MeanMetricWrapper
    return getattr(metric, "_fn", None) if is_function else None


def schedule_of(optimizer: keras.optimizers.Optimizer) -> Any:
    """Returns an optimizer's learning-rate schedule, or `None` if it has another kind of rate.

    Without the name: an `AttributeError` where `fit` makes an optimizer.
    """
    rate = optimizer._learning_rate
    return rate if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule) else None
