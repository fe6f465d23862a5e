"""A model keeps the weights of its last complete step, however `fit` or `evaluate` ends.

Why: on JAX a step of Keras donates the weights' buffers, and the variables get the new arrays only
when Keras syncs them. An exception or Ctrl-C before that leaves variables whose arrays are deleted.
On the other backends Ctrl-C can stop a step between two variables.

Remove when `test_an_exception_in_a_loop_of_keras_loses_weights` fails.
"""

import contextlib
import functools
import itertools
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import keras

from bert_keras import distribution
from bert_keras.engine import kernels, variable_paths
from bert_keras.engine.fast_layer_call import outer_call
from bert_keras.engine.interrupts import defer_signals, run_on_exit
from bert_keras.engine.keras_internals import (
    all_layers,
    data_adapters,
    own_metrics,
    takes_training,
    values,
)

if keras.backend.backend() == "torch":
    import torch

# The state that Keras's steps on JAX take and return, by its number of parts.
_MODEL_STATE = ("trainable_variables", "non_trainable_variables")
_STATES = {
    2: _MODEL_STATE,
    3: (*_MODEL_STATE, "metrics_variables"),
    4: (*_MODEL_STATE, "optimizer_variables", "metrics_variables"),
}


def is_distributed(model=None):
    """Whether several devices share each batch; otherwise nothing enters `distribution`.

    Args:
        model: a `keras.Model`; `None` for what is computed now.
    """
    if keras.backend.backend() == "torch":
        distributed = torch.distributed
        is_joined = distributed.is_available() and distributed.is_initialized()
        return is_joined or "TORCHELASTIC_RUN_ID" in os.environ
    if keras.backend.backend() == "jax":
        import jax

        return keras.distribution.distribution() is not None or jax.process_count() > 1
    import tensorflow as tf

    strategy = tf.distribute.get_strategy() if model is None else model.distribute_strategy
    return strategy.num_replicas_in_sync > 1


def device_scope(model: keras.Model) -> AbstractContextManager[Any]:
    """Returns the context in which TensorFlow creates variables on a model's devices."""
    is_tensorflow = keras.backend.backend() == "tensorflow"
    return model.distribute_strategy.scope() if is_tensorflow else contextlib.nullcontext()


def runs_cuda_graphs():
    """Whether this process computes on an NVIDIA GPU and trains alone."""
    return kernels.torch_device().type == "cuda" and not is_distributed()


class _TorchSteps:
    """On PyTorch a step assigns variables in place, one by one; signals wait until the last."""

    # Weights that are trainable but that this model does not train.
    excluded_weights = ()
    # Whether a step must check its inputs; a task has checked them before.
    checks_steps = True
    _compiled = _listed = None
    # Whether layers may hold losses; known when a loss was computed after the last call.
    _may_have_losses = True

    @contextlib.contextmanager
    def listed_once(self) -> Iterator[None]:
        """A context in which layers and weights are listed once, not several times a step.

        It has no effect while a layer is not built.
        """
        layers = all_layers(self)
        if self._listed is not None or not all(layer.built for layer in layers):
            yield
            return
        self.__dict__["_listed"] = variable_paths.version, layers, self.weights
        try:
            yield
        finally:
            self.__dict__["_listed"] = None

    def _flatten_layers(self, include_self=True, recursive=True):
        version, layers, _ = self._listed or (None, None, None)
        if version != variable_paths.version or not recursive:
            return super()._flatten_layers(include_self, recursive)
        return layers[not include_self :]

    @property
    def weights(self) -> list[keras.Variable]:
        """All weights, see `keras.Model.weights`."""
        version, _, weights = self._listed or (None, None, None)
        return super().weights if version != variable_paths.version else [*weights]

    @property
    def losses(self) -> list[Any]:
        """The losses that layers added, see `keras.Model.losses`."""
        losses = super().losses
        self.__dict__["_may_have_losses"] = bool(losses)
        return losses

    def _clear_losses(self):
        super()._clear_losses()
        # Keras's outermost call begins, in which layers may add losses.
        if not torch.compiler.is_compiling():
            self.__dict__["_may_have_losses"] = True

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            super().make_train_function(force)
            self.train_function = self._whole_step(self.train_step)

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            super().make_test_function(force)
            self.test_function = self._whole_step(torch.no_grad()(self.test_step))

    def _whole_step(self, step):
        """Returns a function of a list of one batch, during which signals wait.

        With `jit_compile` the model's call is compiled. A GPU runs the step as one CUDA graph,
        unless `run_eagerly` is set.

        Args:
            step: function of a batch.
        """
        # Not Keras's compiled step: with the optimizer in it, compiling takes minutes.
        if not self.jit_compile:
            self.__dict__["_compiled"] = None
        elif self._compiled is None:
            self.__dict__["_compiled"] = torch.compile(self)
        if self.run_eagerly or not runs_cuda_graphs():
            return defer_signals()(lambda data: step(data[0]))
        from bert_keras.engine import cuda_graphs

        variables_of = functools.lru_cache(1)(lambda version: self.variables)

        def state():
            trainable = [variable.trainable for variable in variables_of(variable_paths.version)]
            return variable_paths.version, *trainable

        graphed = cuda_graphs.GraphedStep(step, state, cuda_graphs.async_logs)
        return defer_signals()(lambda data: graphed(data[0]))

    def _outputs_and_loss(self, x, y, sample_weight, training):
        """Returns the outputs and the loss of a batch; `jit_compile` compiles the call."""
        options = {"training": training} if takes_training(self) else {}
        if self.checks_steps:
            self.check_inputs(x)  # While they are arrays, whose values are checked.
        tensors = kernels.input_tensors(x, self._compiled is not None)
        # Keras's call clears the losses that layers added before. The context of a call would make
        # `torch.compile` compile again.
        is_direct = self._compiled is None and not self._may_have_losses
        with outer_call(**options) if is_direct else contextlib.nullcontext():
            y_pred = (self._compiled or self)(tensors, **options)
        loss = self.compute_loss(x, y, y_pred, sample_weight, training=training)
        # Keras lists the metric of the losses first; a subclass may list others before.
        own_metrics(self)[0].update_state(loss, sample_weight=len(next(iter(x.values()))))
        return y_pred, loss

    def train_step(self, data):
        """Like Keras's step, but lists the weights once, not three times, and visits no modules."""
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        weights = self.trainable_weights
        if not weights:
            return super().train_step((x, y, sample_weight))  # Keras warns that nothing trains.
        # Keras frees the last step's gradients only after the forward pass has allocated its own.
        tensors, idle = values(weights), []
        for tensor in tensors:
            tensor.grad = None
        try:
            for tensor in values(self.excluded_weights):
                if tensor.requires_grad:  # Other models may train it.
                    idle.append(tensor.requires_grad_(False))
            y_pred, loss = self._outputs_and_loss(x, y, sample_weight, training=True)
            self.optimizer.scale_loss(loss).backward()
        finally:
            for tensor in idle:
                tensor.requires_grad_(True)
        with torch.no_grad():
            self.optimizer.apply([tensor.grad for tensor in tensors], weights)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data):
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        y_pred, _ = self._outputs_and_loss(x, y, sample_weight, training=False)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def _symbolic_build(self, iterator=None, data_batch=None):
        # The first step builds losses and metrics, and `fit` has built the optimizer. A model with
        # layers that are not built yet is built from its first batch, as on the other backends; in
        # `train_on_batch`, going through all layers would cost time for each batch.
        if not (self.built if iterator is None else is_built(self)):
            super()._symbolic_build(iterator, data_batch)

    def _get_metrics_result_or_logs(self, logs):
        if is_distributed():
            distribution.sum_states(self.metrics_variables)
        return super()._get_metrics_result_or_logs(logs)

    def settle(self) -> None:
        """Leaves PyTorch's training mode, as Keras's `fit` does at the end of an epoch."""
        if self.training:
            self.eval()


class _TensorFlowSteps:
    """On TensorFlow a step is one graph, which also reads its batch."""

    def _make_function(self, step_function):
        import tensorflow as tf

        def step(data):
            # Without this dependency, ops that do not read the batch (weight decay, the step
            # counter) would also run on the final, empty step.
            with after(tf.nest.flatten(data)):
                return step_function(data)

        # Our optimizers wait by themselves, in a graph that takes half as long to trace.
        waits = getattr(inner_optimizer(self), "waits_for_gradients", False)
        return defer_signals()(super()._make_function(step_function if waits else step))

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # For its first batch Keras lets all devices prefetch, in a short epoch everything. The
        # dataset would take that for an epoch, and skip the order of the first one.
        adapter = getattr(iterator, "data_adapter", None)
        is_shared = self.distribute_strategy.num_replicas_in_sync > 1
        if is_shared and isinstance(adapter, data_adapters.PyDatasetAdapter):
            iterator, data_batch = None, next(adapter.get_numpy_iterator())
        super()._maybe_symbolic_build(iterator, data_batch)

    def settle(self) -> None:
        """Does nothing: the variables always hold their values."""


class _JaxSteps:
    """On JAX a step donates the weights' arrays and returns new ones.

    Between a step and Keras's sync the variables hold deleted arrays. This class keeps the arrays
    that the last step returned, so that `settle` can assign them at any time.
    """

    _jax_state = None
    _state_thread = None

    def __setattr__(self, name, value):
        # Keras's `fit` sets it after each step, and Keras's method looks at each array in a value.
        if name == "_jax_state":
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)

    def _get_jax_state(self, purge_model_variables=False, **kinds):
        # Keras would purge the variables: without a value they are read, and saved, as new random
        # numbers. They keep the donated arrays instead, which cannot be read by mistake.
        state = super()._get_jax_state(**kinds)
        self._hold(state)
        return state

    def _make_function(self, step_function, **options):
        from bert_keras.engine.jax_compilation_cache import keep_compiled_programs

        def whole(step):
            def run(state, data):
                with defer_signals():
                    result, state = step(state, data)
                    self._hold(state)
                return result, state

            return run

        keep_compiled_programs()
        if "out_shardings" not in options:
            return super()._make_function(whole(step_function), **options)
        # Keras 3.16 compiles the step here. What is held must be the arrays that the compiled
        # function returns; and signals need not wait for data.
        compiled = whole(super()._make_function(step_function, **options))
        count = self.steps_per_execution
        return lambda state, data: compiled(state, iter(list(itertools.islice(data, count))))

    def _hold(self, state):
        self.__dict__.update(
            _jax_state=dict(zip(_STATES[len(state)], state, strict=True)),
            _jax_state_synced=False,
            _state_thread=threading.get_ident(),
        )

    def settle(self) -> None:
        """Assigns the variables the values that the last step of this thread returned."""
        if self._jax_state and self._state_thread == threading.get_ident():
            self.jax_state_sync()
            self._jax_state = None


AtomicTrainStep = {"jax": _JaxSteps, "tensorflow": _TensorFlowSteps, "torch": _TorchSteps}[
    keras.backend.backend()
]


@contextlib.contextmanager
def atomic_steps(model):
    """A context in which `fit` or `evaluate` of a model may end at any moment, for any reason.

    Args:
        model: a `keras.Model` with `AtomicTrainStep`.
    """
    model.settle()  # A callback of `fit` may evaluate.
    with contextlib.ExitStack() as stack:
        if keras.backend.backend() == "tensorflow":
            from bert_keras.engine.tensorflow_data import untuned

            stack.enter_context(untuned())
        if keras.backend.backend() == "torch":
            stack.enter_context(model.listed_once())
        if is_distributed(model):
            stack.enter_context(distribution.batches_are_shares())
        stack.enter_context(run_on_exit(model.settle))
        yield


def is_built(model: keras.Model) -> bool:
    """Whether all layers of a model are built, unlike the model's own `built`."""
    return all(layer.built for layer in all_layers(model))


def build_optimizer(model):
    """Creates all of the optimizer's state before the first step.

    TensorFlow traces a step that creates it twice, which takes three times as long, and cannot
    create it within a step where several devices have a copy each.
    """
    if not model.compiled or model.optimizer is None or model.optimizer.built:
        return  # Keras reports a model that is not compiled.
    if not is_built(model):
        return  # The first batch builds its layers, and then the optimizer.
    with defer_signals(), device_scope(model):
        model.optimizer.build(model.trainable_variables)


@contextlib.contextmanager
def atomic_end(model):
    """A context in which an exception in `fit` leaves the weights, not their averages, in place.

    With `use_ema`, `fit` replaces the weights by their averages when it ends. On JAX Keras does so
    even after an exception, and the weights that training would continue with are lost.
    """
    if not model.compiled or not getattr(inner_optimizer(model), "use_ema", False):
        yield
        return
    optimizer = model.optimizer
    outer_exception = sys.exception()
    finalize = defer_signals()(optimizer.finalize_variable_values)

    def finalize_unless_failed(variables):
        if sys.exception() is outer_exception:
            finalize(variables)

    optimizer.finalize_variable_values = finalize_unless_failed
    try:
        yield
    finally:
        del optimizer.finalize_variable_values


def inner_optimizer(model: keras.Model) -> keras.optimizers.Optimizer:
    """Returns the optimizer that makes the steps: the one inside a `LossScaleOptimizer`."""
    return getattr(model.optimizer, "inner_optimizer", model.optimizer)


def after(tensors: Iterable[Any] | None) -> AbstractContextManager[Any]:
    """A context in which TensorFlow's ops wait for the tensors; `None` ends such a wait.

    Args:
        tensors: iterable; what is not a tensor is left out.
    """
    if keras.backend.backend() != "tensorflow":
        return contextlib.nullcontext()
    import tensorflow as tf

    if tensors is None:
        return tf.control_dependencies(None)
    # One op that waits for all of them: if each operation waited for each tensor, a graph would
    # take three times as long to trace.
    with tf.control_dependencies([x for x in tensors if tf.is_tensor(x)]):
        return tf.control_dependencies([tf.no_op()])
