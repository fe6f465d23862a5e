from typing import Literal, NamedTuple

from bert_keras._types import Array
from bert_keras.preprocessing.question_windows import QuestionWindows

NORMALIZATIONS: tuple[str, ...]

class Span(NamedTuple):
    text: str
    start: int | None
    end: int | None
    probability: float
    start_logit: float
    end_logit: float

class NBest(NamedTuple):
    spans: list[Span]
    no_answer: Span
    no_answer_score: float

def find_spans(
    questions: QuestionWindows,
    start_logits: Array,
    end_logits: Array,
    *,
    size: int,
    max_answer_length: int,
    normalization: Literal["document", "per_window"],
) -> list[NBest]: ...
