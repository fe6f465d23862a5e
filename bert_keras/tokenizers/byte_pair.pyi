from collections.abc import Mapping, Sequence

from bert_keras._types import Path
from bert_keras.tokenizers.tokenizer import Tokenizer

class BytePairTokenizer(Tokenizer):
    def __init__(
        self,
        vocabulary: Path | Mapping[str, int],
        merges: Path | Sequence[str] | Sequence[tuple[str, str]],
        add_prefix_space: bool = False,
        *,
        cls_token: str = "<s>",
        sep_token: str = "</s>",
        pad_token: str = "<pad>",
        mask_token: str = "<mask>",
        unknown_token: str = "<unk>",
        model_max_length: int | None = None,
    ) -> None: ...
