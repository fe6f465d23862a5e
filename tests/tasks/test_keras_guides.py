"""Keras's guides and tutorials, each with a model of this package and at a small size."""

import functools

import keras
import numpy as np
import pytest
from checks import cases
from tiny import as_tensorflow, tiny_backbone, tiny_preprocessor

import bert_keras

pytestmark = pytest.mark.once

# Of one length, since each is compiled. The last batch of two is not full.
TEXTS = ["a b c", "d e f", "h a g", "b c d", "a a b"]
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
        self.update(tape.gradient(loss, variables), variables)
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
            self.update([variable.value.grad for variable in variables], variables)
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


IS_TENSORFLOW = keras.backend.backend() == "tensorflow"
Step = {"tensorflow": TensorFlowStep, "torch": TorchStep, "jax": JaxStep}[keras.backend.backend()]


class OwnStep(Step, bert_keras.TextClassifier):
    def update(self, gradients, variables):
        self.optimizer.apply(gradients, variables)

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


class TwoOptimizers(OwnMetrics):
    """Its `compile` takes an optimizer for the head, and one for the rest."""

    def compile(self, optimizer, head_optimizer):
        super().compile(optimizer)
        self.head_optimizer = head_optimizer

    def update(self, gradients, variables):
        in_head = {id(variable) for variable in self.head.trainable_variables}
        pairs = list(zip(gradients, variables, strict=True))
        self.optimizer.apply(*zip(*[x for x in pairs if id(x[1]) not in in_head], strict=True))
        self.head_optimizer.apply(*zip(*[x for x in pairs if id(x[1]) in in_head], strict=True))


def trained(task_class, **options):
    """Returns a task after two epochs with plain SGD, and the logs."""
    keras.utils.set_random_seed(0)
    task = task_class(tiny_backbone(dropout=0.0), preprocessor=tiny_preprocessor())
    optimizers = [keras.optimizers.SGD(0.5) for _ in range(1 + (task_class is TwoOptimizers))]
    task.compile(*optimizers)
    # To trace the task's own step on TensorFlow takes longer.
    task.run_eagerly = task_class is bert_keras.TextClassifier and IS_TENSORFLOW
    history = task.fit(TEXTS, LABELS, batch_size=2, epochs=2, verbose=0, **options).history
    return task, history


@functools.cache
def trained_by_the_task_s_step(*names):
    """Returns the outputs of a `TextClassifier` after the same training, and its logs."""
    task, history = trained(bert_keras.TextClassifier, **dict.fromkeys(names, WEIGHTS))
    return task.predict(TEXTS, verbose=0), history


# Keras's guide for JAX has no second optimizer, whose state would have to pass through. On
# TensorFlow one task has both, metrics of its own and two optimizers.
ON_TENSORFLOW = [pytest.mark.also_on("tensorflow"), pytest.mark.each_backend]
ON_JAX = [pytest.mark.also_on("jax"), pytest.mark.each_backend]


@cases(
    (OwnStep, {}),
    pytest.param(OwnMetrics, {}, marks=ON_JAX),
    pytest.param(WeightedStep, {"sample_weight": WEIGHTS}, marks=pytest.mark.each_backend),
    pytest.param(TwoOptimizers, {}, marks=ON_TENSORFLOW),
)
def test_a_step_of_one_s_own_trains_as_the_task_s_step_does(task_class, options):
    task, logs = trained(task_class, **options)
    task.run_eagerly = IS_TENSORFLOW  # Only its step is traced.
    expected, expected_logs = trained_by_the_task_s_step(*options)
    np.testing.assert_allclose(task.predict(TEXTS, verbose=0), expected, atol=1e-5)
    if not options:
        accuracy = logs.get("hits", logs.get("accuracy"))
        np.testing.assert_allclose(accuracy, expected_logs["accuracy"], atol=1e-6)
    # Ready inputs go the same way.
    task.fit(task.preprocessor(TEXTS), LABELS, batch_size=2, epochs=1, verbose=0, **options)


# Tutorials


@pytest.mark.also_on("tensorflow")
@pytest.mark.eager
def test_classify_text_from_a_batch_of_strings_of_tensorflow():
    task = bert_keras.TextClassifier(
        tiny_backbone(), preprocessor=tiny_preprocessor(), label_names=["no", "yes"]
    )
    ((texts, labels), *_) = as_tensorflow((TEXTS, LABELS), 2)
    task.compile("sgd")
    task.fit(texts, labels, epochs=1, verbose=0)
    expected = task.predict(TEXTS[:2], verbose=0)
    np.testing.assert_allclose(task.predict(texts, verbose=0), expected, atol=1e-6)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(task(texts)), expected, atol=1e-5)
    assert task.classify(texts) == task.classify(TEXTS[:2])
