"""Writes models as programs for other runtimes, for any number of rows and tokens."""

import contextvars
import errno
import functools
import importlib.util
import logging
import operator
import os
import pathlib
import tempfile
import warnings
from collections import namedtuple

import keras

from bert_keras.checks import check_choice
from bert_keras.engine import kernels
from bert_keras.engine.keras_internals import all_layers
from bert_keras.export import other_backend, text_program
from bert_keras.inputs import SEGMENT_IDS, TOKEN_IDS

_AXES = {2: ("batch", "length"), 3: ("batch", "parts", "length")}
# Their runtimes lack operations on other dtypes.
_OF_FLOAT32 = ("onnx", "openvino", "litert")
_RULE = "Ids must be within their tables, and no more tokens than the model has positions."


def check_format(format, filepath):
    """Raises `ValueError` if a format or a path does not fit."""
    advice = "A `.keras` file, a preset and a folder for Hugging Face have methods of their own."
    suffix = FORMATS[check_choice("format", format, FORMATS, advice)].suffix
    if suffix and pathlib.Path(filepath).suffix != suffix:
        raise ValueError(
            f"A model is exported to {format!r} in a file `*{suffix}`. Received: {str(filepath)!r}."
        )


def check_packages(format):
    """Raises `ImportError` if a package that writes a format is not installed."""
    _, backends, packages, _ = WRITERS[format]
    packages = {*packages, *(() if keras.backend.backend() in backends else backends[:1])}
    missing = sorted(name for name in packages if importlib.util.find_spec(name) is None)
    if missing:
        raise ImportError(
            f"To write {format!r}, {' and '.join(missing)} must be installed: "
            f"`pip install {' '.join(missing)}`."
        )


def write(format, model, path, verbose=None):
    """Writes a model's program to a path, in another process if this backend has no exporter.

    Args:
        format: a key of `WRITERS`.
        model: a `BuiltModel`.
        path: str. The weights of a large ONNX program go to `*.onnx.data`.
        verbose: bool, whether PyTorch prints its steps.

    Raises:
        ValueError: the format is only for float32, and the model computes in another dtype.
    """
    policies = {layer.dtype_policy.name for layer in all_layers(model)} - {"float32"}
    if policies and format in _OF_FLOAT32:
        raise ValueError(
            f"{format!r} takes models in float32. Received layers in {sorted(policies)}. Load the "
            "model in float32, not quantized, and quantize the program, see docs/export.md."
        )
    # PyTorch traces a program for the kind of device that it is on.
    needs_cpu = keras.backend.backend() == "torch" and kernels.has_accelerator()
    if keras.backend.backend() in WRITERS[format].backends and not needs_cpu:
        context = contextvars.copy_context()
        context.run(kernels.exports_program.set, True)
        context.run(WRITERS[format].write, model, path, verbose)
    else:
        other_backend.write(format, model, path, WRITERS[format].backends[0])


def _is_invalid(model, inputs, length, any_of):
    """Whether an id of a program's inputs lies outside its table, or there are too many tokens.

    Runtimes read what is not there, each in its own way: OpenVINO finds zeros and XLA NaN, and
    others count negative ids from the end. So each program tests its inputs, and fails.

    Args:
        model: a `BuiltModel`.
        inputs: dict of a backend's tensors.
        length: tensor, the number of tokens.
        any_of: function that returns whether an element of a tensor is true.
    """
    backbone = getattr(model, "backbone", model)
    sizes = dict.fromkeys(model.further_inputs, length)
    sizes |= {TOKEN_IDS: backbone.vocabulary_size, SEGMENT_IDS: backbone.num_segments}
    found = [
        any_of((values < 0) | (values >= sizes[name]))
        for name, values in inputs.items()
        if name in sizes
    ]
    longest = backbone.max_sequence_length
    return functools.reduce(operator.or_, found if longest is None else [*found, length > longest])


def program_of(model):
    """Returns a function from a dict of inputs to a dict of outputs.

    The keys are those of the model's own dict, or `logits` if a model returns one tensor.
    """

    def serve(inputs):
        outputs = keras.tree.flatten_with_path(model(inputs, training=False))
        return {"_".join(map(str, place)) or "logits": output for place, output in outputs}

    return serve


def signature_of(model):
    """Returns the inputs of a model's program.

    Args:
        model: a `BuiltModel`.

    Returns:
        Two dicts by the inputs' names: a `keras.layers.InputSpec` for any number of rows and
        tokens, and the names of its axes.
    """
    backbone = getattr(model, "backbone", model)
    names = (*backbone.input_names, *model.token_inputs)
    axes = dict.fromkeys(names, _AXES[model.num_input_axes])
    axes |= {name: ("batch", name) for name in model.further_inputs}
    specs = {
        name: keras.layers.InputSpec(shape=(None,) * len(names), dtype="int32", name=name)
        for name, names in axes.items()
    }
    return specs, axes


def _write_saved_model(model, path, verbose=None, save_options=None):
    """Writes a SavedModel, with TensorFlow or JAX."""
    import tensorflow as tf

    specs, axes = signature_of(model)
    archive, options = keras.export.ExportArchive(), {}
    if keras.backend.backend() == "jax":
        # TensorFlow finds the variables by itself, and would write tracked ones twice.
        archive.track(model)
        options["jax2tf_kwargs"] = {
            # Gradients would take a third of the time, and a server computes none.
            "with_gradient": False,
            "native_serialization": True,
            # Otherwise a program written on a GPU would run on GPUs only.
            "native_serialization_platforms": ("cpu", "cuda"),
            "polymorphic_shapes": [{x: f"({', '.join(names)})" for x, names in axes.items()}],
        }
    program = archive.add_endpoint("serve", program_of(model), [specs], **options)

    graph = program.get_concrete_function()  # TensorFlow traces what calls it twice.

    @tf.function(input_signature=program.input_signature, autograph=False)
    def serve(inputs):
        ids = inputs[TOKEN_IDS]
        is_invalid = _is_invalid(model, inputs, tf.shape(ids)[-1], tf.reduce_any)
        with tf.control_dependencies([tf.debugging.Assert(~is_invalid, [_RULE])]):
            # LiteRT has no assertions. There is one element, and the next one does not exist.
            none = tf.gather(tf.zeros(1, ids.dtype), tf.cast(is_invalid, "int32"))
        return graph({**inputs, TOKEN_IDS: ids + none})

    module = tf.Module()
    module.serve, module.used = serve, serve.get_concrete_function().graph.variables
    signatures = {"serve": serve, "serving_default": serve}
    tf.saved_model.save(module, path, signatures, save_options)


def _write_litert(model, path, verbose=None):
    """Writes a LiteRT file, with TensorFlow."""
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as folder:
        # LiteRT has no gradients.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        _write_saved_model(model, folder, save_options=options)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        pathlib.Path(path).write_bytes(converter.convert())


def _torch_program(model):
    """Returns a module, a dict of example inputs, and which of their sizes are free."""
    import torch
    from torch.export import Dim

    _, axes = signature_of(model)
    max_length = getattr(model, "backbone", model).max_sequence_length
    sizes = {axis: Dim(axis) for names in axes.values() for axis in names}
    sizes["length"] = Dim("length", max=max_length)
    # Equal sizes would be taken for one size.
    examples = {axis: number for number, axis in enumerate(sizes, 2)}
    inputs, free = {}, {}
    for name, names in axes.items():
        inputs[name] = torch.ones([examples[axis] for axis in names], dtype=torch.int32)
        free[name] = {place: sizes[axis] for place, axis in enumerate(names)}

    class Program(torch.nn.Module):
        # The model is not an attribute: its weights become constants, each of them once.
        def forward(self, inputs):
            return program_of(model)(_checked_in_torch(model, inputs))

    return Program().eval(), inputs, free


def _checked_in_torch(model, inputs):
    """Returns a program's inputs; the program fails if they are invalid."""
    import torch

    ids = inputs[TOKEN_IDS]
    length = torch.ones(ids.shape[-1], dtype=ids.dtype, device=ids.device).sum()
    is_invalid = _is_invalid(model, inputs, length, torch.any)
    # ONNX has no assertions. There is one element, and the next one does not exist.
    none = torch.gather(
        torch.zeros(1, dtype=ids.dtype, device=ids.device), 0, is_invalid.long()[None]
    )
    return {**inputs, TOKEN_IDS: ids + none}


def _write_onnx(model, path, verbose=None):
    import torch

    program, inputs, free = _torch_program(model)
    # Its warnings concern operators of torchvision, which no model here has.
    logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)
    with torch.no_grad(), warnings.catch_warnings():
        # They concern the exporter's own code, and names of axes.
        warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning)
        warnings.filterwarnings("ignore", "# The axis name", UserWarning)
        torch.onnx.export(
            program,
            (inputs, {}),  # The last dict is taken for named arguments.
            path,
            input_names=list(inputs),
            output_names=list(program(inputs)),
            external_data=False,  # Above 1.5 GB PyTorch writes external data nevertheless.
            dynamo=True,
            verbose=bool(verbose),
            dynamic_shapes=(free,),
        )


def _write_openvino(model, path, verbose=None):
    """Writes OpenVINO's two files, `*.xml` and `*.bin`, in the model's own precision."""
    import openvino

    with tempfile.TemporaryDirectory() as folder:
        _write_onnx(model, source := os.path.join(folder, "model.onnx"), verbose)
        program = openvino.Core().read_model(source)
        try:
            openvino.save_model(program, path, compress_to_fp16=False)
        except RuntimeError as error:  # OpenVINO does not say why writing failed.
            if "iostream" not in str(error):
                raise
            raise OSError(errno.EIO, os.strerror(errno.EIO), path) from error


# The function that writes a format, the backends and packages that it needs, and the file's suffix.
Format = namedtuple("Format", "write backends packages suffix")
FORMATS = {
    "tf_saved_model": Format(_write_saved_model, ("tensorflow", "jax"), ("tensorflow",), ""),
    "litert": Format(_write_litert, ("tensorflow",), ("tensorflow",), ".tflite"),
    "onnx": Format(_write_onnx, ("torch",), ("onnxscript",), ""),
    "openvino": Format(_write_openvino, ("torch",), ("onnxscript", "openvino"), ".xml"),
}
WRITERS = {
    **FORMATS,
    "texts": Format(text_program.write, ("tensorflow",), ("tensorflow_text",), ""),
}
