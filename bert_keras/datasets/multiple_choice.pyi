import dataclasses
from typing import Any

from bert_keras._types import Array, Path
from bert_keras.datasets.examples import Rows

@dataclasses.dataclass(frozen=True)
class MultipleChoiceExamples(Rows):
    contexts: list[str]
    choices: list[list[str]]
    labels: Array | Any = None
    @property
    def num_choices(self) -> int: ...

def read_multiple_choice(path: Path) -> MultipleChoiceExamples: ...
