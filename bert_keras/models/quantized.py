"""What a model's config tells of its quantized layers, so that a file can bring them back.

`keras.Model.quantize` replaces weights inside the layers. Layers that a constructor makes anew do
not know of it, and the weights of a file would not fit them.
"""

import keras

from bert_keras.presets.assign import relative_path


def quantized_config(model):
    """Returns what the config of a model has to hold: empty without quantized layers."""
    layers = {
        path: {
            "mode": layer.quantization_mode,
            "config": keras.saving.serialize_keras_object(layer.quantization_config),
        }
        for path, layer in _layers_by_path(model).items()
        if _is_quantized(layer)
    }
    return {"quantized": layers} if layers else {}


def quantize_again(model, layers):
    """Quantizes the layers that `quantized_config` told of, before their weights are loaded."""
    found = _layers_by_path(model)
    for path, how in layers.items():
        if not _is_quantized(found[path]):
            config = keras.saving.deserialize_keras_object(how["config"])
            found[path].quantize(how["mode"], config=config)


def check_not_quantized(model):
    """Raises `ValueError` for a model whose weights stand in no other file than Keras's own."""
    modes = sorted({how["mode"] for how in quantized_config(model).get("quantized", {}).values()})
    if modes:
        raise ValueError(
            f"Presets and Hugging Face's folders hold weights as they were trained. Those of "
            f"{model.name} are quantized to {', '.join(modes)}. Save it as a .keras file, or write "
            "the folder before `quantize`."
        )


def _layers_by_path(model):
    """Returns the innermost layers that have weights, by the path of these in the model."""
    return {
        relative_path(layer.weights[0]).rpartition("/")[0]: layer
        for layer in model._flatten_layers(include_self=False)
        if layer.weights and not layer._layers
    }


def _is_quantized(layer):
    return getattr(layer, "quantization_mode", None) is not None
