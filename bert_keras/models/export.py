"""Programs of models for other runtimes, by exporters of others, for any number of tokens."""

import importlib.util

import keras

from bert_keras.checks import check_choice
from bert_keras.files import replacing, replacing_files

# On which backends a format takes any number of rows and tokens, and how its files are called.
FORMATS = {"tf_saved_model": ("tensorflow", "jax"), "torch": ("torch",), "onnx": ("torch",)}
_SAVED_MODEL = ("saved_model.pb", "fingerprint.pb", "variables", "assets")
_AXES = {2: ("batch", "length"), 3: ("batch", "choices", "length")}


def check_format(format):
    """Raises `ValueError` where the backend cannot write a format; it says which can."""
    backend = keras.backend.backend()
    advice = "There are no others yet that take any number of rows and tokens."
    backends = FORMATS[check_choice("format", format, FORMATS, advice)]
    if backend not in backends:
        here = [name for name, known in FORMATS.items() if backend in known]
        raise ValueError(
            f"With {backend} a model is exported as {here}. Received: format={format!r}. Save it "
            f"as a `.keras` file, and load and export that with KERAS_BACKEND={backends[0]}."
        )
    if format == "onnx" and importlib.util.find_spec("onnxscript") is None:
        raise ImportError("ONNX is written by onnxscript: pip install 'bert_keras[onnx]'.")


def write_onnx(model, path, verbose=None):
    """Writes a model as one ONNX file, with PyTorch.

    Its inputs have the names of the backbone's; its output is `logits`, or where a model has
    several each has its name.
    """
    import torch

    [specs], options = signature_of(model)
    inputs = {
        name: torch.ones((2,) * len(spec.shape), dtype=torch.int32) for name, spec in specs.items()
    }
    outputs = keras.tree.flatten_with_path(model(inputs, training=False))
    names = ["_".join(map(str, place)) or "logits" for place, _ in outputs]

    class Inference(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, inputs):
            return keras.tree.flatten(self.model(inputs, training=False))

    with torch.no_grad():
        torch.onnx.export(
            Inference().eval(),
            (inputs, {}),  # The last dict would be taken for named arguments.
            path,
            input_names=list(inputs),
            output_names=names,
            external_data=False,
            dynamo=True,
            verbose=bool(verbose),
            **options,
        )


def signature_of(model):
    """Returns the input signature of a model, any number of rows and tokens, and what it needs.

    Args:
        model: a `BuiltModel`.

    Returns:
        A list of a dict of `keras.layers.InputSpec`, and the backend's arguments of Keras's export.
    """
    backbone = getattr(model, "backbone", model)
    names, axes = backbone.input_names, _AXES[model.num_input_axes]
    shape = (None,) * len(axes)
    specs = {name: keras.layers.InputSpec(shape=shape, dtype="int32", name=name) for name in names}
    options = {}
    if keras.backend.backend() == "jax":
        shapes = [f"({', '.join(axes)})"]
        options["jax2tf_kwargs"] = {"native_serialization": True, "polymorphic_shapes": shapes}
    elif keras.backend.backend() == "torch":
        from torch.export import Dim

        sizes = [Dim(axis) for axis in axes[:-1]]
        sizes.append(Dim("length", max=backbone.max_sequence_length))
        options["dynamic_shapes"] = ({name: dict(enumerate(sizes)) for name in names},)
    return [specs], options


def writing_to(filepath, format):
    """Yields where to export to, so that `filepath` has the old files or the new ones."""
    is_folder = format == "tf_saved_model"
    return replacing_files(filepath, _SAVED_MODEL) if is_folder else replacing(filepath)
