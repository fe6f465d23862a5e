import dataclasses
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from bert_keras._types import Array, ProblemType

class Rows:
    columns: ClassVar[tuple[str, ...]]
    def __len__(self) -> int: ...
    def take(self, indices: ArrayLike | slice) -> Self: ...

@dataclasses.dataclass(frozen=True)
class Examples(Rows):
    texts: list[str] | tuple[list[str], list[str]]
    # Any, since only test files lack them.
    labels: Array | Any = None
    label_names: tuple[str, ...] = ()
    problem_type: ProblemType = "single_label"
    def __post_init__(self) -> None: ...
