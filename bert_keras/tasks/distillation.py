"""Distillation: a small model learns to give the answers of a large one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Unpack

import keras
from keras import ops

from bert_keras.checks import check_int, check_number
from bert_keras.inputs import MASK_POSITIONS, PADDING_MASK, TOKEN_IDS
from bert_keras.presets.assign import by_path, head_weights
from bert_keras.presets.families.record import TASKS
from bert_keras.tasks.task import Task
from bert_keras.tasks.teacher_student import JointTask, have_one_vocabulary
from bert_keras.training.losses import CosineDistance, SoftCrossentropy, SparseCrossentropy
from bert_keras.types import Data, LayerOptions, Path

_KINDS = tuple(TASKS[head] for head in ("masked_tokens", "sequence", "token"))


def distill(teacher: Task, student: Task | Iterable[int], **options: Any) -> Distillation:
    """Returns an object that trains a student on a teacher, with `compile`, `fit` and `student`.

    The student of an embedder or a reranker needs no such object: make it with
    `objective="vectors"`, and call `fit(texts, teacher.embed(texts))`; or with
    `objective="distillation"`, for a reranker's scores.

    Args:
        teacher: a trained `MaskedLM`, `TextClassifier` or `TokenClassifier`.
        student: a task of the same class; or indices of the teacher's layers, such as
            `range(0, 12, 2)`, for a student as wide as the teacher that starts with these layers,
            the teacher's embeddings and its head. DistilBERT started with the layers 0, 2, 4, 7, 9
            and 11 of BERT-base.
        **options: arguments of `Distillation`.

    Raises:
        TypeError, ValueError: teacher and student do not fit each other.

    Example:
    ```python
    teacher = bert_keras.MaskedLM.from_preset("bert_mini_en_gutenberg")
    model = bert_keras.distill(teacher, student=(0, 2))
    model.fit(texts, epochs=3)
    model.student.save_to_preset("half_as_deep")
    ```
    """
    _check_kind(teacher)
    if not isinstance(student, keras.Model):
        student = _student_of_layers(teacher, list(student))
    return Distillation(teacher, student, **options)


@keras.saving.register_keras_serializable(package="bert_keras")
class Distillation(JointTask):
    """Trains a student on the outputs of its teacher, as DistilBERT was trained.

    With logits `t` of the teacher and `s` of the student, temperature `T`, and the last hidden
    states `h_t` and `h_s`:

    ```
    loss = soft_weight * T^2 * KL(softmax(t / T) || softmax(s / T))
         + hard_weight * the student's own loss
         + cosine_weight * (1 - cos(h_t, h_s))
    ```

    The first term is a mean over examples, or over all real tokens if there are logits for each
    token; for a `MaskedLM` these include tokens that are not masked, as in the original code. The
    last term is a mean over all real tokens. The teacher runs as in inference and does not change.
    DistilBERT's weights of the terms are 5, 2 and 1. If teacher and student differ in width,
    `cosine_weight` must be 0.

    `fit` and `evaluate` take what the student takes, texts or ready inputs, with its labels;
    `predict` returns the student's outputs. After training, use the student:
    `model.student.save_to_preset(folder)`. A `.keras` file of the `Distillation` holds both tasks,
    to continue training.

    Args:
        teacher, student: tasks of the same class and vocabulary, see `distill`.
        temperature: float above 0.
        soft_weight, hard_weight, cosine_weight: floats from 0, see the loss.
        **kwargs: `name`, `dtype`, by default the student's, and `trainable`, see `keras.Model`.

    Raises:
        TypeError, ValueError: teacher and student do not fit each other.

    Reference:
        [Sanh et al., 2019](https://arxiv.org/abs/1910.01108), section 3;
        [Hinton et al., 2015](https://arxiv.org/abs/1503.02531), section 2;
        `distiller.py` of huggingface/transformers, `research_projects/distillation`.
    """

    part_names = ("teacher", "student")
    reader_name = "student"

    def __init__(
        self,
        teacher: Task,
        student: Task,
        temperature: float = 2.0,
        soft_weight: float = 5.0,
        hard_weight: float = 2.0,
        cosine_weight: float = 1.0,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        _check_pair(teacher, student, cosine_weight)
        super().__init__(teacher, student, **kwargs)
        self.temperature = check_number("temperature", temperature, above=0)
        weights = {"soft": soft_weight, "hard": hard_weight, "cosine": cosine_weight}
        self.weights_of = {n: check_number(f"{n}_weight", w) for n, w in weights.items()}

    @property
    def tasks(self) -> tuple[Task]:
        """The task that is trained."""
        return (self.student,)

    @property
    def untrained_variables(self) -> list[keras.Variable]:
        """The weights of the teacher, which do not train."""
        return self.teacher.weights

    def call(self, inputs, training=None):
        states, logits, loss_logits = _states_and_logits(self.student, inputs, training)
        target_states, target_logits, _ = _states_and_logits(self.teacher, inputs, False)
        outputs = {"soft": logits, "hard": loss_logits}
        outputs["soft_target"] = ops.stop_gradient(target_logits)
        if self.weights_of["cosine"]:
            outputs |= {"cosine": states, "cosine_target": ops.stop_gradient(target_states)}
        return outputs

    # Loss and metrics: the teacher's outputs are labels of the student's.

    def default_loss_weights(self):
        """Returns the weights of the losses, by name."""
        return {name: self.weights_of[name] for name in self.default_loss(0.0)}

    def default_loss(self, label_smoothing):
        """Returns the losses by name; without `cosine_weight` two of them."""
        hard = self.student.default_loss(label_smoothing)
        losses = {"soft": SoftCrossentropy(self.temperature), "hard": hard}
        return losses | ({"cosine": CosineDistance()} if self.weights_of["cosine"] else {})

    def default_metrics(self):
        """Returns the student's metrics."""
        return {"hard": self.student.default_metrics()}

    @property
    def label_kind(self):
        """What the student's labels are, see `LabelKind`."""
        return {"hard": self.student.label_kind}

    def loss_arguments(self, x, y, y_pred, sample_weight):
        """Returns labels, outputs and weights, each a dict by the losses' names."""
        parts = [name for name in ("soft", "hard", "cosine") if name in y_pred]
        is_real = ops.cast(x.get(PADDING_MASK, ops.ones_like(x[TOKEN_IDS])), "float32")
        labels = {"hard": y, **{name: y_pred.get(f"{name}_target") for name in ("soft", "cosine")}}
        of_hard = self.batch_weights(x, y, sample_weight)
        if of_hard is not None:  # A row of weight 0, which may only fill up a batch, has no loss.
            of_rows = ops.reshape(of_hard, (ops.shape(of_hard)[0], -1))
            is_real = is_real * ops.cast(ops.any(of_rows > 0, axis=1, keepdims=True), "float32")
        of_soft = is_real if len(y_pred["soft"].shape) == 3 else ops.max(is_real, axis=1)
        weights = {"soft": of_soft, "hard": of_hard, "cosine": is_real}
        return tuple({name: kind[name] for name in parts} for kind in (labels, y_pred, weights))

    def predict(self, x: Data, batch_size: int | None = None, **kwargs: Any) -> Any:
        """Returns the student's outputs."""
        return self.student.predict(x, batch_size=batch_size, **kwargs)

    # Files

    def get_config(self):
        return {
            **super().get_config(),
            "temperature": self.temperature,
            **{f"{name}_weight": weight for name, weight in self.weights_of.items()},
        }

    def save_to_preset(self, folder: Path) -> None:
        """Writes the student, see `Task.save_to_preset`."""
        self.student.save_to_preset(folder)


def _states_and_logits(task, inputs, training):
    """Returns a task's last hidden states, its logits for all tokens, and those its loss takes."""
    names = task.backbone.input_names
    backbone_inputs = {name: inputs[name] for name in names if name in inputs}
    outputs = task.backbone_outputs(backbone_inputs, training=training)
    logits = loss_logits = task.head_outputs(outputs, backbone_inputs, training)
    if MASK_POSITIONS in inputs:
        loss_logits = task.head_outputs(outputs, inputs, training)
    return outputs["sequence_output"], logits, loss_logits


def _check_kind(task):
    """Raises `TypeError` unless a task can be a teacher or a student."""
    is_supported = type(task).__name__ in _KINDS and isinstance(task, Task)
    if is_supported and isinstance(task.default_loss(0.0), SparseCrossentropy):
        return
    raise TypeError(
        f"Distillation is for {', '.join(_KINDS)} that choose one class, without a CRF. Received: "
        f"{type(task).__name__}. An embedder learns from vectors or scores as labels, with "
        "objective='vectors' or 'distillation'."
    )


def _check_pair(teacher, student, cosine_weight):
    """Raises `TypeError` or `ValueError` unless the student can learn from the teacher."""
    _check_kind(teacher)
    _check_kind(student)
    sizes = [
        (type(task).__name__, task.backbone.vocabulary_size, getattr(task, "num_classes", None))
        for task in (teacher, student)
    ]
    if sizes[0] != sizes[1] or not have_one_vocabulary(teacher, student):
        raise ValueError(
            "Teacher and student must be tasks of one class with the same vocabulary and classes. "
            f"Received: {sizes[0]} and {sizes[1]} (class, token ids, classes)."
        )
    if teacher.backbone is student.backbone:
        raise ValueError("Teacher and student must have two backbones. Received: one for both.")
    widths = [task.backbone.hidden_dim for task in (teacher, student)]
    if cosine_weight and widths[0] != widths[1]:
        raise ValueError(
            "The cosine of hidden states needs teacher and student of the same width. Received: "
            f"hidden_dim={widths[0]} and {widths[1]}. Pass cosine_weight=0."
        )


def _student_of_layers(teacher, layers):
    """Returns a task like the teacher with some of its layers."""
    for layer in layers:
        check_int("student", layer, 0, teacher.backbone.num_layers - 1)
    config = keras.saving.serialize_keras_object(teacher)
    config["config"]["backbone"]["config"]["num_layers"] = len(layers)
    config.pop("compile_config", None)
    student = keras.saving.deserialize_keras_object(config)
    student.preprocessor = teacher.preprocessor
    pairs = [(by_path(teacher.backbone.weights), by_path(student.backbone.weights))]
    pairs += [(head_weights(teacher), head_weights(student))]
    for teacher_weights, student_weights in pairs:
        for path, weight in student_weights.items():
            path = re.sub(r"(?<=^encoder/layer_)\d+", lambda m: str(layers[int(m[0])]), path)
            if path in teacher_weights:
                # A copy: on JAX, two weights that share a buffer cannot both be donated.
                weight.assign(ops.copy(teacher_weights[path]))
    return student
