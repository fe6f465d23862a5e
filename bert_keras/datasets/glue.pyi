from collections.abc import Mapping

from bert_keras._types import Path
from bert_keras.datasets.classification import ClassificationTask
from bert_keras.datasets.examples import Examples

GLUE_TASKS: Mapping[str, ClassificationTask]

def load_glue(task: str | None, data_dir: Path, split: str) -> Examples: ...
def get_glue_task(name: str) -> ClassificationTask: ...
def detect_glue_task(data_dir: Path) -> str: ...
