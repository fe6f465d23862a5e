from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from bert_keras._types import Path
from bert_keras.preprocessing.masking import Masking
from bert_keras.tokenizers.tokenizer import Tokenizer

FORMATS: tuple[str, ...]
SETTINGS: tuple[str, ...]
UNFINISHED_FOLDER: str
TOKENS_PER_TASK: int
EXAMPLES_PER_PART: int
BYTES_PER_PROCESS: int
MOST_UNKNOWN: float

def create_pretraining_data(
    input_files: Path | Sequence[Path],
    tokenizer: Tokenizer,
    output_dir: Path,
    *,
    sequence_length: int = 128,
    objective: Literal["next_sentence", "sentence_order", "full_sentences"] = "next_sentence",
    documents: Literal["blank_line", "file"] = "blank_line",
    sentences_per_line: bool = False,
    duplicates: int = 1,
    masking: Masking | None = None,
    short_probability: float = 0.1,
    random_probability: float = 0.5,
    short_per: Literal["example", "document"] = "example",
    word_segmenter: Callable[[str], Iterable[str]] | None = None,
    seed: int = 0,
    format: Literal["safetensors", "tfrecord"] = "safetensors",
    examples_per_shard: int = 16384,
    num_workers: int | None = None,
    errors: Literal["strict", "replace"] = "strict",
    progress: Callable[[str], object] | None = None,
    runner: Literal["local", "ray", "beam"] = "local",
    runner_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]: ...
def describe_vocabulary(tokenizer: Tokenizer) -> dict[str, Any]: ...
def describe_shard(path: Path, count: int) -> dict[str, Any]: ...
def token_statistics(sums: Mapping[str, int], num_examples: int) -> dict[str, float]: ...
