from collections.abc import Callable, Sequence
from typing import Any

from bert_keras._types import Path
from bert_keras.tokenizers.tokenizer import Tokenizer

def import_records(
    paths: Sequence[Path],
    tokenizer: Tokenizer,
    output_dir: Path,
    progress: Callable[[str], object] | None = None,
) -> dict[str, Any]: ...
