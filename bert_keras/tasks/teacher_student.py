"""A task made of other tasks: two that train together, or a student and its teacher."""

from typing import Any

import keras

from bert_keras.models.model import BuiltModel
from bert_keras.tasks.task import Task
from bert_keras.types import Dtype


def of_reader(name: str) -> property:
    """Returns a property or a method of a `JointTask`: that of the task that reads the examples."""
    return property(lambda task: getattr(task.reader, name), doc=f"`{name}` of the reading task.")


def have_one_vocabulary(*tasks: Task) -> bool:
    """Whether all tasks with a vocabulary have the same."""
    known = [task.tokenizer for task in tasks if task.tokenizer]
    known = [tokenizer.vocabulary for tokenizer in known if tokenizer.has_vocabulary]
    return known[1:] == known[:-1]


class JointTask(Task):
    """Tasks in one model: one of them reads the examples, and the last is used after training.

    Attributes:
        part_names: names of the tasks, which are arguments and attributes of this one.
        reader_name: name of the task that reads the examples and labels.

    Args:
        *parts: the tasks, in the order of `part_names`; the last one's backbone is this task's.
        name: str, or `None`.
        dtype: a dtype policy or its name; `None` for that of the last part.
        trainable: bool.
    """

    part_names = ()
    reader_name = ""
    is_fine_tuned = losses_share_weights = False

    def __init__(
        self,
        *parts: Task,
        name: str | None = None,
        dtype: Dtype | None = None,
        trainable: bool = True,
    ) -> None:
        dtype = parts[-1].dtype_policy if dtype is None else dtype
        super().__init__(parts[-1].backbone, name=name, dtype=dtype, trainable=trainable)
        for part_name, part in zip(self.part_names, parts, strict=True):
            setattr(self, part_name, part)
        self.preprocessor = self.reader.preprocessor

    def build(self, input_shape=None):
        """Does nothing: the parts are built."""

    @property
    def reader(self) -> Task:
        """The task that reads examples and labels."""
        return getattr(self, self.reader_name)

    form, needs_labels = of_reader("form"), of_reader("needs_labels")
    has_classes, label_per_token = of_reader("has_classes"), of_reader("label_per_token")
    has_imbalanced_targets = of_reader("has_imbalanced_targets")
    prepare_head = of_reader("prepare_head")
    input_names, check_arrays = of_reader("input_names"), of_reader("check_arrays")
    encode_labels = of_reader("encode_labels")
    encode_ready_labels = of_reader("encode_ready_labels")
    encode_texts = of_reader("encode_texts")

    def export(self, *args: Any, **kwargs: Any) -> None:
        """Raises `ValueError`: export the task that is used after training instead."""
        raise ValueError(
            f"A {type(self).__name__} is for training. Export the task that is used after "
            f"training: `model.{self.part_names[-1]}.export(...)`."
        )

    # Files

    def get_config(self):
        parts = {name: getattr(self, name) for name in self.part_names}
        return {**BuiltModel.get_config(self), **keras.saving.serialize_keras_object(parts)}

    @classmethod
    def from_config(cls, config):
        tasks = {n: keras.saving.deserialize_keras_object(config[n]) for n in cls.part_names}
        return super().from_config({**config, **tasks})
