import dataclasses
from collections.abc import Sequence

from bert_keras._types import Path
from bert_keras.datasets.examples import Rows

@dataclasses.dataclass(frozen=True)
class TaggedSentences(Rows):
    words: list[list[str]]
    tags: list[list[str]] | None = None

def read_conll(
    path: Path,
    word_column: int | None = None,
    tag_column: int | None = None,
    segment_index: bool | None = None,
    may_lack_tags: bool = False,
) -> TaggedSentences: ...
def find_tag(
    path: Path, tag: str, word_column: int | None = None, tag_column: int | None = None
) -> int | None: ...
def tag_names(*parts: TaggedSentences | Sequence[Sequence[str]]) -> tuple[str, ...]: ...
