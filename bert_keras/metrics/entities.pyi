from collections.abc import Sequence
from typing import Any

from bert_keras._types import Scheme

SCHEMES: tuple[Scheme, ...]

def find_odd_tags(tags: Sequence[str], scheme: Scheme | None = None) -> list[str]: ...
def is_entity_tag(tag: str, scheme: Scheme | None = None) -> bool: ...
def extract_entities(
    tags: Sequence[str], scheme: Scheme | None = None
) -> list[tuple[str, int, int]]: ...
def entity_scores(
    true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], scheme: Scheme | None = None
) -> dict[str, Any]: ...
