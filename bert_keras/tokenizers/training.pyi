from collections.abc import Iterable

from bert_keras._types import Path

SPECIAL_TOKENS: tuple[str, ...]
LONGEST_WORD: int

def train_wordpiece(
    files: Path | Iterable[Path] | None = None,
    texts: Iterable[str] | None = None,
    *,
    vocabulary_size: int = 30522,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
    min_frequency: int = 2,
    limit_alphabet: int = 1000,
    special_tokens: Iterable[str] = ...,
) -> list[str]: ...
