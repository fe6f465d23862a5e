from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from bert_keras._types import Choice, IsNext, JudgedToken, OneText, Path, TaggedText, Texts

FORMAT: int
ANSWERS: tuple[str, ...]

def load(folder: Path, providers: Iterable[str] = ...) -> ExportedTask: ...
def is_exported(folder: Path) -> bool: ...
def answers_of(task: Any) -> list[str]: ...
def ask(
    task: Any, name: str, rows: Sequence[Sequence[str]], **options: Any
) -> list[Any] | NDArray[np.float32]: ...

class ExportedTask:
    answers: list[str]
    config: dict[str, Any]
    def __init__(self, folder: Path, providers: Iterable[str] = ...) -> None: ...
    @property
    def mask_token(self) -> str | None: ...
    def run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]: ...
    @overload
    def classify(
        self,
        texts: OneText,
        batch_size: int = 32,
        threshold: float | Sequence[float] | Mapping[str, float] = 0.5,
    ) -> dict[str, Any]: ...
    @overload
    def classify(
        self,
        texts: Texts,
        batch_size: int = 32,
        threshold: float | Sequence[float] | Mapping[str, float] = 0.5,
    ) -> list[dict[str, Any]]: ...
    @overload
    def tag(self, sentences: str, batch_size: int = 32) -> TaggedText: ...
    @overload
    def tag(self, sentences: Texts, batch_size: int = 32) -> list[TaggedText]: ...
    # One answer, or for `top_k` above 1 a list; of a column a list of these.
    def answer(
        self, question: str | Texts, context: str | Texts, top_k: int = 1, batch_size: int = 32
    ) -> Any: ...
    @overload
    def choose(self, context: str, choices: Texts, batch_size: int = 32) -> Choice: ...
    @overload
    def choose(
        self, context: Texts, choices: Iterable[Texts], batch_size: int = 32
    ) -> list[Choice]: ...
    def embed(self, texts: str | Texts, batch_size: int = 32) -> NDArray[np.float32]: ...
    @overload
    def fill_mask(
        self, text: str, top_k: int = 5, batch_size: int = 32
    ) -> list[list[tuple[str, float]]]: ...
    @overload
    def fill_mask(
        self, text: Texts, top_k: int = 5, batch_size: int = 32
    ) -> list[list[list[tuple[str, float]]]]: ...
    @overload
    def is_next(self, first: str, second: str, batch_size: int = 32) -> IsNext: ...
    @overload
    def is_next(self, first: Texts, second: Texts, batch_size: int = 32) -> list[IsNext]: ...
    @overload
    def is_replaced(self, text: str, batch_size: int = 32) -> list[JudgedToken]: ...
    @overload
    def is_replaced(self, text: Texts, batch_size: int = 32) -> list[list[JudgedToken]]: ...
