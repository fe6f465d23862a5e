"""What a model's config tells of its quantized layers, so that a file can bring them back.

`keras.Model.quantize` replaces weights inside the layers. Layers that a constructor makes anew do
not know of it, and the weights of a file would not fit them.
"""

import contextlib
import gc

import keras

from bert_keras.engine import structure

# Modes whose weights depend on nothing but the layer and its `config`.
MODES = ("int8", "int4", "float8")


def check_can_quantize(model, mode, config):
    """Raises `ValueError` for what could not be saved or would break halfway, before any change."""
    if mode is None:
        mode = getattr(config, "mode", None)
    if mode not in MODES:
        raise ValueError(f"`mode` must be one of {MODES}. Received: {mode!r}.")
    if any(getattr(layer, "has_adapter", False) for layer in model._flatten_layers()):
        raise ValueError(
            f"Adapters cannot be quantized, and {model.name} has some. Merge them first, by "
            "`merge_lora()` of the task or `merge_adapters()` of the backbone."
        )


def quantized_config(model):
    """Returns what the config of a model has to hold: empty without quantized layers.

    A layer is known by its place among all that have weights, since names may carry counters.
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
    """Quantizes the layers that `quantized_config` told of, before their weights are loaded."""
    if not layers:
        return
    leaves = _leaves(model)
    with replacing_weights():
        for place, mode, config in layers:
            if not _is_quantized(leaves[place]):
                config = keras.saving.deserialize_keras_object(config)
                leaves[place].quantize(mode, config=config)
        # On PyTorch the layers above still hold the weights of before.
        model._post_quantize(mode)


@contextlib.contextmanager
def replacing_weights():
    """Inside, layers are quantized. At the end, functions that were compiled before are given up.

    Keras collects garbage for each weight it replaces; inside, that is new objects' only. Every
    collection looked at all that a process holds, libraries included, which took nearly all the
    time of `quantize`. What was there before is looked at once, at the end.
    """
    was_frozen = gc.get_freeze_count()  # Somebody froze objects already, and wants them to stay so.
    if not was_frozen:
        gc.freeze()
    try:
        yield
    finally:
        structure.changed()
        if not was_frozen:
            gc.unfreeze()
            gc.collect()


def check_not_quantized(model):
    """Raises `ValueError` for a model whose weights stand in no other file than Keras's own."""
    modes = sorted({layer.quantization_mode for layer in _leaves(model) if _is_quantized(layer)})
    if modes:
        raise ValueError(
            "Presets and Hugging Face's folders hold weights as they were trained. Those of "
            f"{model.name} are quantized to {', '.join(modes)}. Save it as a .keras file, or write "
            "the folder before `quantize`."
        )


def _leaves(model):
    """Returns the innermost layers that have weights."""
    layers = model._flatten_layers(include_self=False)
    return [layer for layer in layers if layer.weights and not layer._layers]


def _is_quantized(layer):
    return getattr(layer, "quantization_mode", None) is not None
