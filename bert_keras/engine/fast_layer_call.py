"""Calls a layer's `call` directly on PyTorch, where Keras's own call costs more than a small layer.

Why: `keras.layers.Layer.__call__` binds arguments, flattens structures and looks at dtypes. XLA and
TensorFlow do so once per graph, PyTorch at every step (docs/benchmarks.md has the times).

Remove when `test_keras_s_layer_call_runs_a_hundred_functions_on_pytorch` fails.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import keras

from bert_keras.engine.keras_internals import CallContext, is_plain, scopes, takes_training
from bert_keras.engine.kernels import value_of

# Types of arguments that are not tensors.
_SETTINGS = (type(None), bool, int, float, str)
_Policy = keras.dtype_policies.DTypePolicy
_IS_TORCH = keras.backend.backend() == "torch"
if _IS_TORCH:
    import torch
    from torch.nn.modules.module import _has_any_global_hook

    # Keras sets it in its first call. `torch.compile` would compile again when it appears.
    scopes.current_call_ctx = getattr(scopes, "current_call_ctx", None)


class DirectCall:
    """The first base of a layer: skips Keras's `__call__` where that would add nothing.

    It does so on PyTorch, in `predict` and inside the call of a model or another layer, if the
    layer is built and its inputs are tensors of its dtype, or dicts of them. Anything else goes
    through Keras: symbolic inputs, arrays, other dtypes, masks that Keras attached, quantized or
    regularized layers, and PyTorch's hooks.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if adds_nothing(self, args, kwargs):
            return self.call(*args, **kwargs)
        return super().__call__(*args, **kwargs)


def look_up(table: keras.layers.Embedding, ids: Any) -> Any:
    """Returns `table(ids)`; where Keras's call adds nothing, by one operation.

    Args:
        table: an `Embedding` that makes no masks.
        ids: int tensor `(...)`.

    Returns:
        float tensor `(..., output_dim)`.
    """
    if adds_nothing(table, (ids,), {}):
        return torch.nn.functional.embedding(ids.int(), value_of(table.embeddings))
    return table(ids)


@contextlib.contextmanager
def outer_call(training: bool | None = None) -> Iterator[None]:
    """Stands for the call of an outer layer, so that a model is called directly.

    Keras's outermost call clears the losses of all layers, which takes a tenth of the time of a
    small model. So this is for models whose layers have none.

    Args:
        training: bool, for layers that are called without it, or `None` as in Keras.
    """
    before = getattr(scopes, "current_call_ctx", None)
    scopes.current_call_ctx = context = CallContext(entry_layer=None)
    context.set_value("training", training)
    try:
        yield
    finally:
        scopes.current_call_ctx = before


def adds_nothing(layer: keras.layers.Layer, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether `Layer.__call__` would pass these arguments to `layer.call` and add nothing.

    It puts `training` into `kwargs`, as Keras does. Only PyTorch gains, so elsewhere it is False.
    """
    if not _IS_TORCH:
        return False
    scope_of = scopes.__dict__.get
    context = scope_of("current_call_ctx")
    if context is None:
        return False
    training = context.get_value("training")
    if kwargs.get("training") is None and takes_training(layer):
        kwargs["training"] = training
    # Every attribute of a layer takes longer to find than an item of this dict.
    attributes, policy = vars(layer), layer.dtype_policy
    if type(policy) is not _Policy:  # For example, of a quantized layer.
        return False
    name = policy.compute_dtype
    dtype = getattr(torch, name)
    for argument in (*args, *kwargs.values()):
        if isinstance(argument, _SETTINGS):
            continue
        for x in argument.values() if isinstance(argument, dict) else (argument,):
            # Keras would convert or cast it, or read its mask.
            if (
                not isinstance(x, torch.Tensor)
                or (x.dtype != dtype and x.is_floating_point())
                or getattr(x, "_keras_mask", None) is not None
            ):
                return False
    scope = scope_of("autocast_scope")
    return (
        attributes["built"]
        and kwargs.get("training", training) == training
        and (attributes["autocast"] or scope is None)
        and name == (policy.variable_dtype if scope is None else scope.dtype)
        and is_plain(attributes)
        and not _has_any_global_hook()
    )
