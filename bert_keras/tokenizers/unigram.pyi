from typing import Literal, NamedTuple

from bert_keras._types import Path
from bert_keras.tokenizers.tokenizer import Tokenizer

class _Kind(NamedTuple):
    begins: tuple[str, ...] = ...
    first: tuple[str, ...] = ...
    last: tuple[str, ...] = ...
    single: str = ...
    pair: str = ...

KINDS: dict[str, _Kind]

class UnigramTokenizer(Tokenizer):
    def __init__(
        self,
        model: Path,
        ids: Literal["xlm_roberta", "camembert", "albert"] | None = None,
        model_max_length: int | None = None,
        *,
        lowercase: bool | None = None,
        strip_accents: bool | None = None,
    ) -> None: ...
