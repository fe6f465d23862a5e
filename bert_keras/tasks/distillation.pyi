from collections.abc import Iterable
from typing import Any

import keras

from bert_keras._types import Dtype
from bert_keras.tasks.joint_task import JointTask
from bert_keras.tasks.task import Task

def distill(
    teacher: Task,
    student: Task | Iterable[int],
    **options: Any,
) -> Distillation: ...

class Distillation(JointTask):
    teacher: Task
    student: Task
    temperature: float
    weights_of: dict[str, float]
    def __init__(
        self,
        teacher: Task,
        student: Task,
        temperature: float = 2.0,
        soft_weight: float = 5.0,
        hard_weight: float = 2.0,
        cosine_weight: float = 1.0,
        name: str | None = None,
        dtype: Dtype | None = None,
        trainable: bool = True,
    ) -> None: ...
    @property
    def tasks(self) -> tuple[Task]: ...
    @property
    def left_alone(self) -> list[keras.Variable]: ...
