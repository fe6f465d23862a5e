"""Text to the arrays that models take: packing, truncation, batching, windows."""

from bert_keras.preprocessing.batching import (
    BucketedBatches,
    bucket_lengths,
    length_buckets,
    pad_labels,
    restore_order,
    sorted_batches,
)
from bert_keras.preprocessing.imported_records import import_records
from bert_keras.preprocessing.masking import Masking, TokenKinds, mask_tokens
from bert_keras.preprocessing.packing import pack, packed_lengths, truncate, truncated_lengths
from bert_keras.preprocessing.pretraining_batches import PretrainingBatches
from bert_keras.preprocessing.pretraining_data import create_pretraining_data
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor, split_pairs
from bert_keras.preprocessing.windows import (
    Windows,
    cut_windows,
    document_positions,
    max_context,
    take_windows,
)

__all__ = [
    "BucketedBatches",
    "Masking",
    "PretrainingBatches",
    "Ragged",
    "TextPreprocessor",
    "TokenKinds",
    "Windows",
    "bucket_lengths",
    "create_pretraining_data",
    "cut_windows",
    "document_positions",
    "import_records",
    "length_buckets",
    "mask_tokens",
    "max_context",
    "pack",
    "packed_lengths",
    "pad_labels",
    "restore_order",
    "sorted_batches",
    "split_pairs",
    "take_windows",
    "truncate",
    "truncated_lengths",
]
