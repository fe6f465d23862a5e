"""Keeps in a model's config which layers are quantized, so that a file restores them.

Why: `keras.Model.quantize` replaces weights inside the layers. When a file is loaded, the
constructor makes plain layers, and the quantized weights do not fit them.

Remove when `test_keras_loads_no_model_whose_inner_layer_is_quantized` fails.
"""

import contextlib
import gc

import keras

from bert_keras.checks import check_choice
from bert_keras.engine import variable_paths
from bert_keras.engine.keras_internals import all_layers

# Modes whose weights depend only on the layer and its `config`.
MODES = ("int8", "int4", "float8")


def check_can_quantize(model, mode, config):
    """Returns the mode; raises `ValueError` if the result could not be saved or would break."""
    mode = check_choice("mode", getattr(config, "mode", None) if mode is None else mode, MODES)
    if any(getattr(layer, "has_adapter", False) for layer in all_layers(model)):
        raise ValueError(
            f"Adapters cannot be quantized, and {model.name} has some. Merge them first, by "
            "`merge_lora()` of the task or `merge_adapters()` of the backbone."
        )
    return mode


def quantized_config(model):
    """Returns the part of a model's config that lists quantized layers, `{}` without any.

    A layer is identified by its index among all layers with weights, since names may have counters.
    """
    layers = [
        [
            place,
            layer.quantization_mode,
            keras.saving.serialize_keras_object(getattr(layer, "quantization_config", None)),
        ]
        for place, layer in enumerate(_leaves(model))
        if _is_quantized(layer)
    ]
    return {"quantized_layers": layers} if layers else {}


def quantize_again(model, layers):
    """Quantizes the layers that `quantized_config` listed, before their weights are loaded."""
    if not layers:
        return
    leaves = _leaves(model)
    with replacing_weights():
        for place, mode, config in layers:
            if not _is_quantized(leaves[place]):
                config = keras.saving.deserialize_keras_object(config)
                leaves[place].quantize(mode, config=config)
        variable_paths.changed(*all_layers(model))


@contextlib.contextmanager
def replacing_weights():
    """A context in which layers are quantized; at its end, earlier compiled functions are dropped.

    Keras collects garbage for each weight that it replaces. Every collection would scan all objects
    of the process, libraries included, which took nearly all the time of `quantize`. Within the
    context only new objects are scanned; older ones are scanned once, at the end.
    """
    was_frozen = gc.get_freeze_count()  # Objects that the user froze stay frozen.
    if not was_frozen:
        gc.freeze()
    try:
        yield
    finally:
        variable_paths.changed()
        if not was_frozen:
            gc.unfreeze()
            gc.collect()


def check_not_quantized(model):
    """Raises `ValueError` for a quantized model, which only a `.keras` file can hold."""
    modes = sorted({layer.quantization_mode for layer in _leaves(model) if _is_quantized(layer)})
    if modes:
        raise ValueError(
            "Presets and Hugging Face's folders hold weights as they were trained. The weights of "
            f"{model.name} are quantized to {', '.join(modes)}. Save it as a .keras file, or write "
            "the folder before `quantize`."
        )


def _leaves(model):
    """Returns the innermost layers that have weights."""
    layers = all_layers(model, include_self=False)
    return [x for x in layers if x.weights and not all_layers(x, include_self=False)]


def _is_quantized(layer):
    return getattr(layer, "quantization_mode", None) is not None
