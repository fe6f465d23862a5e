from bert_keras._types import Dtype
from bert_keras.tasks.task import Task

class JointTask(Task):
    part_names: tuple[str, ...]
    reader_name: str
    made_of: str
    def __init__(
        self,
        result: Task,
        reader: Task,
        name: str | None = None,
        dtype: Dtype | None = None,
        trainable: bool = True,
    ) -> None: ...
    @property
    def reader(self) -> Task: ...
    def default_loss_weights(self) -> dict[str, float]: ...
