"""Keras's guides on custom steps and on subclassing, with a task in place of their model."""

import keras
import numpy as np
import pytest
from tiny import tiny_backbone, tiny_preprocessor

import bert_keras

pytestmark = [pytest.mark.once, pytest.mark.each_backend]

TEXTS = ["a b c", "d e", "h a g g", "b c", "a"]  # The last batch of two is not full.
LABELS = np.array([0, 1, 1, 0, 1])
WEIGHTS = np.array([1.0, 2.0, 1.0, 0.5, 1.0])


class TensorFlowStep:
    """A step with a gradient tape."""

    def train_step(self, data):
        import tensorflow as tf

        x, y, sample_weight = self.unpacked(data)
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred, sample_weight=sample_weight)
        variables = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        for metric in self.metrics:
            metric.update_state(*((loss,) if metric.name == "loss" else (y, y_pred)))
        return {metric.name: metric.result() for metric in self.metrics}


class TorchStep:
    """A step with a backward pass."""

    def train_step(self, data):
        import torch

        x, y, sample_weight = self.unpacked(data)
        self.zero_grad()
        y_pred = self(x, training=True)
        loss = self.compute_loss(y=y, y_pred=y_pred, sample_weight=sample_weight)
        loss.backward()
        variables = list(self.trainable_weights)
        with torch.no_grad():
            self.optimizer.apply([variable.value.grad for variable in variables], variables)
        for metric in self.metrics:
            metric.update_state(*((loss,) if metric.name == "loss" else (y, y_pred)))
        return {metric.name: metric.result() for metric in self.metrics}


class JaxStep:
    """A step without side effects."""

    def loss_and_updates(self, trainable, non_trainable, x, y, sample_weight, training):
        y_pred, non_trainable = self.stateless_call(trainable, non_trainable, x, training=training)
        loss = self.compute_loss(x, y, y_pred, sample_weight)
        return loss, (y_pred, non_trainable)

    def train_step(self, state, data):
        import jax

        trainable, non_trainable, of_optimizer, of_metrics = state
        x, y, sample_weight = self.unpacked(data)
        differentiate = jax.value_and_grad(self.loss_and_updates, has_aux=True)
        (loss, (y_pred, non_trainable)), gradients = differentiate(
            trainable, non_trainable, x, y, sample_weight, True
        )
        trainable, of_optimizer = self.optimizer.stateless_apply(of_optimizer, gradients, trainable)
        logs, updated, start = {}, [], 0
        for metric in self.metrics:
            end = start + len(metric.variables)
            seen = (loss,) if metric.name == "loss" else (y, y_pred)
            values = metric.stateless_update_state(of_metrics[start:end], *seen)
            logs[metric.name] = metric.stateless_result(values)
            updated, start = [*updated, *values], end
        return logs, (trainable, non_trainable, of_optimizer, updated)


Step = {"tensorflow": TensorFlowStep, "torch": TorchStep, "jax": JaxStep}[keras.backend.backend()]


class OwnStep(Step, bert_keras.TextClassifier):
    def unpacked(self, data):
        x, y = data  # What `fit` was given, and no weights.
        return x, y, None


class WeightedStep(OwnStep):
    def unpacked(self, data):
        x, y, sample_weight = data
        return x, y, sample_weight


class OwnMetrics(OwnStep):
    """Its step reports metrics of its own, made in the constructor, and no others."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.hits = keras.metrics.SparseCategoricalAccuracy(name="hits")

    @property
    def metrics(self):
        return [self.loss_tracker, self.hits]


def trained(task_class, **options):
    """Returns a task after two epochs with plain SGD, and the logs."""
    keras.utils.set_random_seed(0)
    task = task_class(tiny_backbone(dropout=0.0), preprocessor=tiny_preprocessor())
    task.compile(keras.optimizers.SGD(0.5))
    history = task.fit(TEXTS, LABELS, batch_size=2, epochs=2, verbose=0, **options).history
    return task, history


@pytest.mark.parametrize(
    ("task_class", "options"),
    [(OwnStep, {}), (OwnMetrics, {}), (WeightedStep, {"sample_weight": WEIGHTS})],
)
def test_a_step_of_one_s_own_trains_as_the_task_s_step_does(task_class, options):
    task, logs = trained(task_class, **options)
    expected, expected_logs = trained(bert_keras.TextClassifier, **options)
    np.testing.assert_allclose(
        task.predict(TEXTS, verbose=0), expected.predict(TEXTS, verbose=0), atol=1e-5
    )
    if not options:
        accuracy = logs.get("hits", logs.get("accuracy"))
        np.testing.assert_allclose(accuracy, expected_logs["accuracy"], atol=1e-6)
    # Ready inputs go the same way.
    task.fit(task.preprocessor(TEXTS), LABELS, batch_size=2, epochs=1, verbose=0, **options)
