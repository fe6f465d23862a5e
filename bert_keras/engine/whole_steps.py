"""Whatever ends `fit` or `evaluate`, a model keeps the weights of its last whole step."""

import contextlib
import sys
import threading

import keras
from keras.src.trainers import data_adapters

from bert_keras import distribution
from bert_keras.engine.compiled_programs import keep_compiled_programs
from bert_keras.engine.forked import check_not_forked
from bert_keras.engine.interrupts import settled_by, signals_wait
from bert_keras.training.averages import inner_optimizer
from bert_keras.training.optimizer import AdamW, after

# What Keras's steps on JAX take and return, by how much of it there is.
_OF_MODEL = ("trainable_variables", "non_trainable_variables")
_STATES = {
    2: _OF_MODEL,
    3: (*_OF_MODEL, "metrics_variables"),
    4: (*_OF_MODEL, "optimizer_variables", "metrics_variables"),
}


def whole(step):
    """Returns a function like `step` during which signals wait."""

    def whole_step(*args):
        with signals_wait():
            return step(*args)

    return whole_step


class _TorchSteps:
    """On PyTorch weights change in place, one after the other: no signal comes between."""

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            super().make_train_function(force)
            self.train_function = whole(self.train_function)

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            super().make_test_function(force)
            self.test_function = whole(self.test_function)

    def _get_metrics_result_or_logs(self, logs):
        distribution.sum_states(self.metrics_variables)
        return super()._get_metrics_result_or_logs(logs)

    def settle(self) -> None:
        """Leaves PyTorch's training mode, which Keras's `fit` leaves at the end of an epoch."""
        if self.training:
            self.eval()


class _TensorFlowSteps:
    """On TensorFlow a step is one graph, which reads its batch itself."""

    def _make_function(self, step_function):
        import tensorflow as tf

        def step(data):
            # Else what does not need the batch, as weight decay and the count of steps, is done
            # also where there is none. Our optimizers see to it, in a graph made in half the time.
            with after(x for x in tf.nest.flatten(data) if tf.is_tensor(x)):
                return step_function(data)

        is_own = isinstance(inner_optimizer(self), AdamW)
        return whole(super()._make_function(step_function if is_own else step))

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # For its first batch Keras has all devices fetch theirs ahead, of a short epoch all: then
        # the batches would believe that it is over, and the first epoch's order would be skipped.
        adapter = getattr(iterator, "data_adapter", None)
        is_shared = self.distribute_strategy.num_replicas_in_sync > 1
        if is_shared and isinstance(adapter, data_adapters.PyDatasetAdapter):
            iterator, data_batch = None, next(adapter.get_numpy_iterator())
        super()._maybe_symbolic_build(iterator, data_batch)

    def settle(self) -> None:
        """Does nothing: variables hold their values all the time."""


class _JaxSteps:
    """On JAX a step gives away the arrays of the weights and returns others.

    Keras takes notice of those once the step is back, and until then nothing holds weights that
    can be read. Here they are held from the moment on that variables do not hold them.
    """

    _jax_state = None
    _state_thread = None

    def _get_jax_state(self, purge_model_variables=False, **kinds):
        # Variables keep the arrays that the step gives away. Without value, as Keras leaves them,
        # they would be read as new random numbers, and saved so.
        state = super()._get_jax_state(**kinds)
        self._hold(state)
        return state

    def _make_function(self, step_function, concatenate_outputs=False):
        def step(state, data):
            with signals_wait():
                result, state = step_function(state, data)
                self._hold(state)
            return result, state

        keep_compiled_programs()
        return super()._make_function(step, concatenate_outputs)

    def _hold(self, state):
        # Past Keras's attributes, which look at every array.
        self.__dict__.update(
            _jax_state=dict(zip(_STATES[len(state)], state, strict=True)),
            _jax_state_synced=False,
            _state_thread=threading.get_ident(),
        )

    def settle(self) -> None:
        """Gives the variables the values that the last step of this thread returned."""
        if self._jax_state and self._state_thread == threading.get_ident():
            self.jax_state_sync()
            self._jax_state = None


WholeSteps = {"jax": _JaxSteps, "tensorflow": _TensorFlowSteps, "torch": _TorchSteps}[
    keras.backend.backend()
]


@contextlib.contextmanager
def whole_steps(model):
    """Within it, `fit` or `evaluate` of a model may end at any moment and by anything.

    Args:
        model: a `keras.Model` with `WholeSteps`.
    """
    check_not_forked()
    model.settle()  # A callback of `fit` may evaluate.
    with settled_by(model.settle), distribution.batches_are_shares():
        yield


def build_optimizer(model):
    """Creates the optimizer's state before the first step, all of it.

    A step of TensorFlow that has to create it is traced twice, takes thrice as long to make, and
    cannot create it where several devices have a copy each.
    """
    if not model.compiled or model.optimizer is None or model.optimizer.built:
        return  # Of what is not compiled Keras says so.
    with signals_wait(), distribution.scope_of(model):
        model.optimizer.build(model.trainable_variables)


@contextlib.contextmanager
def whole_end(model):
    """Within it, `fit` ends with averages of all weights or, by an exception, with none of them.

    On JAX Keras puts them there also then, and the weights that training would go on with are lost.
    """
    if not model.compiled or not getattr(inner_optimizer(model), "use_ema", False):
        yield
        return
    optimizer = model.optimizer
    outside = sys.exception()
    finalize = whole(optimizer.finalize_variable_values)

    def finalize_unless_failed(variables):
        if sys.exception() is outside:
            finalize(variables)

    optimizer.finalize_variable_values = finalize_unless_failed
    try:
        yield
    finally:
        del optimizer.finalize_variable_values
