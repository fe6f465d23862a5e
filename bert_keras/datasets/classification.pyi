import dataclasses
from collections.abc import Mapping, Sequence

from bert_keras._types import Array, Path, ProblemType
from bert_keras.datasets.examples import Examples

TSV_FILES: dict[str, tuple[str, ...]]

@dataclasses.dataclass(frozen=True)
class Layout:
    texts: tuple[str | int, ...]
    label: str | int | None = None
    num_fields: tuple[int, ...] = ()

@dataclasses.dataclass(frozen=True)
class ClassificationTask:
    layouts: tuple[Layout, ...]
    labels: tuple[tuple[str, str], ...]
    files: Mapping[str, tuple[str, ...]] = ...
    problem_type: ProblemType = "single_label"
    score_range: tuple[float, float] | None = None
    skips_broken_rows: bool = False
    folders: tuple[str, ...] = ()
    undecided: str | None = None
    @property
    def label_names(self) -> tuple[str, ...]: ...

def read_examples(path: Path, task: ClassificationTask) -> Examples: ...
def find_layout(
    path: Path, first_row: Sequence[str], task: ClassificationTask
) -> tuple[Layout, tuple[str | int, ...], bool]: ...
def encode_labels(
    values: Sequence[str], task: ClassificationTask, path: Path, places: Sequence[str]
) -> Array: ...
