"""The shapes that `summary` prints: Keras knows none of layers that a model's `call` calls."""

import contextlib
from types import SimpleNamespace

import keras

# Of the axes of two calls: what a checkpoint does not fix differs.
_SIZES = (2, 3, 5), (3, 4, 7)


@contextlib.contextmanager
def output_shapes(model):
    """Tells Keras what each layer that a summary lists returns, as long as the context is open.

    Two calls that only say the shapes compute nothing; an axis that differs is printed as `None`.

    Args:
        model: a `BuiltModel`.
    """
    calls = {layer: [] for layer in model._flatten_layers(include_self=False)}
    with contextlib.ExitStack() as stack:
        for layer, shapes in calls.items():
            # Past the tracker of Keras: this is no part of the layer.
            stack.callback(_restore, layer, "call" in vars(layer), layer.call)
            object.__setattr__(layer, "call", _noting(layer.call, shapes))
        # A subclass that takes other inputs has a summary too, with Keras's `?`.
        with contextlib.suppress(Exception):
            for sizes in _SIZES:
                ids = keras.KerasTensor(sizes[: model.num_input_axes], "int32")
                model.compute_output_spec(dict.fromkeys(model.input_names, ids))
        # Keras reads what it keeps of symbolic calls, of which these layers have had none.
        for layer in filter(calls.get, calls):
            layer._inbound_nodes.append(SimpleNamespace(output_tensors=_merged(calls[layer])))
            stack.callback(layer._inbound_nodes.pop)
        yield


def _restore(layer, is_its_own, call):
    """Gives a layer its `call` back, also one that somebody has set on this layer alone."""
    object.__delattr__(layer, "call")
    if is_its_own:
        object.__setattr__(layer, "call", call)


def _noting(call, shapes):
    """Returns a layer's `call` that adds the shapes of its outputs to a list, those of a call."""

    def noting(*args, **kwargs):
        outputs = call(*args, **kwargs)
        shapes.append([x.shape for x in keras.tree.flatten(outputs) if x is not None])
        return outputs

    return noting


def _merged(calls):
    """Returns the distinct shapes of calls, each with `None` for the axes that differ."""
    shapes = (
        tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*outputs, strict=False))
        for outputs in zip(*calls, strict=False)
    )
    return [SimpleNamespace(shape=shape) for shape in dict.fromkeys(shapes)]
