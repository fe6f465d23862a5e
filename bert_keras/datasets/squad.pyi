import dataclasses
from typing import NamedTuple

from bert_keras._types import Path

class Answer(NamedTuple):
    text: str
    start: int

@dataclasses.dataclass(frozen=True)
class QuestionExample:
    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    is_impossible: bool = False
    @property
    def spans(self) -> tuple[Answer, ...]: ...

class AnswerMismatch(NamedTuple):
    question_id: str
    text: str
    start: int
    found: str

class QuestionSet(NamedTuple):
    examples: list[QuestionExample]
    mismatches: list[AnswerMismatch]

def read_squad(path: Path) -> QuestionSet: ...
