"""What a command's SOURCE is: loaded as what it was saved as, described, and converted."""

import warnings

import keras
import numpy as np

from bert_keras.inputs import PADDING_MASK, SEGMENT_IDS
from bert_keras.models.backbone import Backbone
from bert_keras.models.keras_file import load_model
from bert_keras.presets.presets import open_preset

# Ways to write a model: a method, and its arguments.
TARGETS = {
    "keras": ("save", {}),
    "preset": ("save_to_preset", {}),
    "huggingface": ("export_to_huggingface", {}),
    "saved_model": ("export", {"format": "tf_saved_model"}),
    "pt2": ("export", {"format": "torch"}),
    "onnx": ("export", {"format": "onnx"}),
}


def load(source, wanted=None):
    """Returns a model and what loading it warned of.

    Args:
        source: str, a `.keras` file or what `from_preset` takes.
        wanted: class, where the source holds no task that is one; `None` for what is there.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        if str(source).endswith(".keras"):
            model = load_model(source)
        else:
            model = _class_of(open_preset(source), wanted).from_preset(source)
    return model, [str(x.message) for x in caught if x.category is UserWarning]


def _class_of(preset, wanted):
    found = keras.saving.get_registered_object(preset.task_name() or "")
    if wanted is None:
        return found or preset.backbone_class(Backbone)
    return found if found is not None and issubclass(found, wanted) else wanted


def description(source):
    """Returns what a source holds, a dict of what to show."""
    model, warned = load(source)
    backbone = getattr(model, "backbone", model)
    preprocessor = getattr(model, "preprocessor", None)
    tokenizer = getattr(preprocessor, "tokenizer", None)
    sizes = {name: x for name, x in backbone.get_config().items() if type(x) in (int, float, str)}
    found = {
        "model": type(model).__name__,
        "backbone": type(backbone).__name__,
        **{name: size for name, size in sizes.items() if name not in ("name", "dtype")},
        "parameters": f"{model.count_params():,}",
        "dtype": backbone.dtype_policy.name,
        "labels": getattr(model, "label_names", None) and ", ".join(map(str, model.label_names)),
        "problem_type": getattr(model, "problem_type", None),
        "tokenizer": tokenizer
        and f"{type(tokenizer).__name__}, {tokenizer.vocabulary_size} tokens",
        "max_length": preprocessor and preprocessor.max_length,
        "not loaded": " ".join(warned) or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def convert(source, target, to):
    """Writes a source in another format, and reads it again.

    Args:
        source, target: str.
        to: one of `TARGETS`.

    Returns:
        What loading the source warned of, and the largest difference of an output to the source's.

    Raises:
        ValueError: the format does not take such a model.
    """
    model, warned = load(source)
    method, arguments = TARGETS[to]
    getattr(model, method)(target, **arguments)
    inputs = _inputs(model)
    outputs = zip(_flat(_read_again(model, target, to)(inputs)), _flat(model(inputs)), strict=True)
    return warned, max(float(np.abs(found - expected).max()) for found, expected in outputs)


def _inputs(model):
    backbone, rng = getattr(model, "backbone", model), np.random.default_rng(0)
    shape = (2,) * (model.num_input_axes - 1) + (min(32, backbone.max_sequence_length),)
    ids = rng.integers(0, backbone.vocabulary_size, shape).astype("int32")
    others = {PADDING_MASK: np.ones_like(ids), SEGMENT_IDS: np.zeros_like(ids)}
    return {name: others.get(name, ids) for name in backbone.input_names}


def _flat(outputs):
    return [
        np.asarray(keras.ops.convert_to_numpy(x), "float32") for x in keras.tree.flatten(outputs)
    ]


def _read_again(model, target, to):
    if to == "keras":
        return keras.saving.load_model(target)
    if to in ("preset", "huggingface"):
        return type(model).from_preset(target)
    if to == "pt2":
        import torch

        program = torch.export.load(target).module()
        return lambda inputs: program({name: torch.tensor(x) for name, x in inputs.items()})
    if to == "onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(target)
        return lambda inputs: session.run(None, inputs)
    import tensorflow

    loaded = tensorflow.saved_model.load(target)  # Its functions do not keep its variables alive.
    return lambda inputs: loaded.serve({name: tensorflow.constant(x) for name, x in inputs.items()})
