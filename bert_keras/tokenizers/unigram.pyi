from typing import Literal

from bert_keras._types import Path
from bert_keras.tokenizers.tokenizer import Tokenizer

IDS: dict[str, tuple[list[str], int]]

class UnigramTokenizer(Tokenizer):
    def __init__(
        self,
        model: Path,
        ids: Literal["xlm_roberta", "camembert"] = "xlm_roberta",
        model_max_length: int | None = None,
    ) -> None: ...
