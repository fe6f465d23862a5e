from typing import Any

from bert_keras._types import Data, Inputs, Labels, Tensor, Verbose, Weights
from bert_keras.tasks.examples import Examples
from bert_keras.tasks.task import Task

FEATURES: str

def has_features(inputs: Any) -> bool: ...
def outputs_of(inputs: Inputs) -> dict[str, Tensor]: ...
def encode_features(
    task: Task,
    x: Data,
    y: Labels | None = None,
    sample_weight: Weights | None = None,
    batch_size: int = 32,
    verbose: Verbose = "auto",
) -> Examples: ...
def check_reader(task: Task, examples: Examples) -> None: ...
