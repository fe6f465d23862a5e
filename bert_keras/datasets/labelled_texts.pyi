from collections.abc import Sequence

from bert_keras._types import Path, ProblemType
from bert_keras.datasets.examples import Examples

def read_texts(
    path: Path,
    text_columns: Sequence[str | None],
    label_column: str,
    label_names: Sequence[str] | None = None,
    problem_type: ProblemType = "single_label",
    score_range: tuple[float, float] = ...,
    may_lack_labels: bool = False,
    label_separator: str = ",",
    separator: str | None = None,
) -> Examples: ...
