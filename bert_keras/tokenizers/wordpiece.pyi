from collections.abc import Sequence

from bert_keras._types import Path
from bert_keras.tokenizers.tokenizer import Tokenizer

class WordPieceTokenizer(Tokenizer):
    def __init__(
        self,
        vocabulary: Path | Sequence[str],
        lowercase: bool = True,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        unknown_token: str = "[UNK]",
        cls_token: str = "[CLS]",
        sep_token: str = "[SEP]",
        pad_token: str = "[PAD]",
        mask_token: str = "[MASK]",
        added_tokens: Sequence[str] = (),
        special_tokens_in_text: bool = True,
        max_characters_per_word: int = 100,
        model_max_length: int | None = None,
    ) -> None: ...
