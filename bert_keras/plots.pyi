from collections.abc import Mapping, Sequence
from typing import Any

import keras
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from bert_keras._types import Array, Path, Texts
from bert_keras.tasks.saliency import Saliency
from bert_keras.tasks.task import Task

MOST_TOKENS: int
MOST_COLOURS: int

def learning_curves(
    history: keras.callbacks.History | Mapping[str, Sequence[float]], path: Path | None = None
) -> Figure: ...
def training_log(lines: Sequence[Mapping[str, float]], path: Path | None = None) -> Figure: ...
def seeds(
    rows: Sequence[Mapping[str, float]], first_seed: int = 0, path: Path | None = None
) -> Figure: ...
def settings(
    rows: Mapping[str, Mapping[str, float | None]], path: Path | None = None
) -> Figure: ...
def confusion_matrix(
    true: Sequence[str | int] | Array,
    predicted: Sequence[str | int] | Array,
    label_names: Sequence[str],
    path: Path | None = None,
) -> Figure: ...
def similarities(cosines: ArrayLike, alike: ArrayLike, path: Path | None = None) -> Figure: ...
def attention(
    task: Task,
    text: str,
    pair: str | None = None,
    layer: int | None = None,
    path: Path | None = None,
) -> Figure: ...
def attention_of(task: Task, text: str, pair: str | None = None) -> tuple[list[str], Array]: ...
def saliency(
    found: Sequence[Saliency], labels: Sequence[str] | None = None, path: Path | None = None
) -> Figure: ...
def as_written(tokens: Sequence[str]) -> list[tuple[str, bool]]: ...
def layer_vectors(task: Task, texts: Texts) -> Array: ...
def projection(
    vectors: ArrayLike,
    labels: Sequence[str],
    scores: ArrayLike | None = None,
    path: Path | None = None,
) -> Figure: ...

class Html(str): ...

def tags(answers: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Html: ...
def answer(context: str, found: Mapping[str, Any]) -> Html: ...
