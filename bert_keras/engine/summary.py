"""The output shapes that `summary` prints for layers inside a model's `call`.

Why: Keras reads a layer's shapes from its symbolic calls. A layer that a constructor builds and
`call` calls has none, and Keras prints `?`.

Remove when `test_keras_s_summary_knows_no_shapes_of_inner_layers` fails.
"""

import contextlib
from types import SimpleNamespace

import keras

# Sizes of the inputs' axes in two calls: an axis whose size differs is free.
_SIZES = (2, 3, 5), (3, 4, 7)


@contextlib.contextmanager
def output_shapes(model):
    """A context in which Keras knows the output shapes of each layer that a summary lists.

    They come from two symbolic calls; an axis that differs between them is printed as `None`.

    Args:
        model: a `BuiltModel`.
    """
    calls = {layer: [] for layer in model._flatten_layers(include_self=False)}
    with contextlib.ExitStack() as stack:
        for layer, shapes in calls.items():
            # Not by `setattr`: Keras would track it as a part of the layer.
            stack.callback(_restore, layer, "call" in vars(layer), layer.call)
            object.__setattr__(layer, "call", _noting(layer.call, shapes))
        # For a subclass with other inputs, the summary prints Keras's `?`.
        with contextlib.suppress(Exception):
            for sizes in _SIZES:
                ids = keras.KerasTensor(sizes[: model.num_input_axes], "int32")
                model.compute_output_spec(dict.fromkeys(model.input_names, ids))
        # Keras reads its records of symbolic calls, and has none of these layers.
        for layer in filter(calls.get, calls):
            layer._inbound_nodes.append(SimpleNamespace(output_tensors=_merged(calls[layer])))
            stack.callback(layer._inbound_nodes.pop)
        yield


def _restore(layer, is_instance_attribute, call):
    """Restores a layer's `call`, including one that was set on this layer alone."""
    object.__delattr__(layer, "call")
    if is_instance_attribute:
        object.__setattr__(layer, "call", call)


def _noting(call, shapes):
    """Returns a layer's `call` that also adds the shapes of its outputs to a list."""

    def noting(*args, **kwargs):
        outputs = call(*args, **kwargs)
        shapes.append([x.shape for x in keras.tree.flatten(outputs) if x is not None])
        return outputs

    return noting


def _merged(calls):
    """Returns the distinct shapes of calls, with `None` for each axis that differs."""
    shapes = (
        tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*outputs, strict=False))
        for outputs in zip(*calls, strict=False)
    )
    return [SimpleNamespace(shape=shape) for shape in dict.fromkeys(shapes)]
