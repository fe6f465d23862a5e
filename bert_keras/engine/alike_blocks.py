"""Compiles blocks that are alike once on JAX, whose compiler would compile each of them.

Why: XLA copies a function to each of its calls and compiles each copy. On a CPU, the training step
of 12 narrow layers compiles in a third of the time this way (docs/benchmarks.md).

Remove when `test_jax_compiles_a_function_as_often_as_it_is_called` fails.
"""

import contextlib
from collections.abc import Callable

import keras

from bert_keras.engine import kernels
from bert_keras.engine.keras_internals import all_layers, scopes
from bert_keras.engine.remat import seed_states

# Whether blocks are called through `caller_of_blocks`.
HAS_GRAPHS = keras.backend.backend() == "jax"
# Attributes of each layer, such as its name.
_OF_ALL_LAYERS = vars(keras.layers.Layer(name="layer"))
_PLAIN = (type(None), bool, int, float, str, tuple)


def caller_of_blocks() -> Callable:
    """Returns a function `call(block, inputs, shared, **arguments)` for the blocks of one call.

    It returns `block(inputs, **shared, **arguments)`. In a graph of JAX for CPUs, blocks that
    differ in the values of their variables only are one function of the graph, with these values as
    arguments. That function is compiled once.

    Args of the function:
        block: a built layer.
        inputs: float tensor.
        shared: dict of further call arguments that are tensors or `None`.
        **arguments: call arguments that are no tensors.
    """
    functions, in_graph = [], _is_cpu_graph()

    def call(block, inputs, shared, **arguments):
        key = in_graph and _computation(block)
        if not key:
            return block(inputs, **shared, **arguments)
        key = key, arguments
        found = [function for other, function in functions if other == key]
        if not found:
            found = [_function(block, arguments)]
            functions.append((key, *found))
        # As they are: each layer casts them to its own precision.
        autocast = getattr(scopes, "autocast_scope", None)
        with type(autocast)(None) if autocast else contextlib.nullcontext():
            values = [variable.value for variable in block.variables]
        outputs, states = found[0](values, inputs, shared)
        for state, new in zip(seed_states(block), states, strict=True):
            state.assign(new)
        return outputs

    return call


def _computation(block):
    """Returns what blocks with the same computation have in common; `None` if that is unknown."""
    layers = all_layers(block)
    if not all(type(layer).__module__.startswith("bert_keras.layers.") for layer in layers):
        return None  # A layer of the user may compute with what is no plain value.
    if any(layer.activity_regularizer is not None for layer in layers):
        return None  # Its loss must be added outside the function.
    return [(type(layer), layer.dtype_policy, _settings(layer)) for layer in layers], [
        (variable.shape, variable.dtype) for variable in block.variables
    ]


def _settings(layer):
    own = {name: x for name, x in vars(layer).items() if name not in _OF_ALL_LAYERS}
    # Initializers, which differ in their seeds, are not part of a call.
    others = keras.layers.Layer, keras.initializers.Initializer
    return {
        name: x
        for name, x in own.items()
        if isinstance(x, _PLAIN) or (callable(x) and not isinstance(x, others))
    }


def _function(block, arguments):
    """Returns a function of values of a block's variables, its inputs and the shared tensors.

    It returns the block's outputs and the next states of its seeds.
    """
    import jax
    from jax.experimental.xla_metadata import set_xla_metadata

    @jax.jit
    def function(values, inputs, shared):
        with keras.StatelessScope(zip(block.variables, values, strict=True)) as scope:
            outputs = block(inputs, **shared, **arguments)
            return outputs, [scope.get_current_value(state) for state in seed_states(block)]

    def call(*tensors):
        # Otherwise XLA copies the function to each of its calls, before it compiles them.
        with set_xla_metadata(inlineable="false"):
            return function(*tensors)

    return call


def _is_cpu_graph():
    import jax

    # Inside `jax.jit`, every new array is a tracer.
    return not kernels.has_accelerator() and isinstance(jax.numpy.zeros(()), jax.core.Tracer)
