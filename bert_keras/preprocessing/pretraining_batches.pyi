from collections.abc import Iterable
from typing import Any

import keras

from bert_keras._types import Path
from bert_keras.preprocessing.masking import Masking
from bert_keras.tokenizers.tokenizer import Tokenizer

SHARDS_OPEN: int

class PretrainingBatches(keras.utils.PyDataset):
    folder: str
    batch_size: int
    masking: Masking | None
    seed: int
    sequence_length: int
    shuffle: bool
    process_index: int
    process_count: int
    start_step: int
    num_predictions: int
    verify: bool
    has_next_sentence: bool
    input_names: tuple[str, ...]
    unpadded: bool
    manifest: dict[str, Any]
    tokenizer: Tokenizer
    batches_per_epoch: int
    def __init__(
        self,
        folder: Path,
        batch_size: int,
        masking: Masking | None = None,
        seed: int = 0,
        sequence_length: int | None = None,
        shuffle: bool = True,
        process_index: int = 0,
        process_count: int = 1,
        start_step: int = 0,
        num_predictions: int | None = None,
        verify: bool = True,
        has_next_sentence: bool | None = None,
        input_names: Iterable[str] | None = None,
        unpadded: bool = False,
    ) -> None: ...
    @property
    def num_batches(self) -> int | None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> tuple[Any, Any, Any]: ...
