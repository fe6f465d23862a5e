"""Text to the arrays that models take: packing, truncation, batching, windows, masking."""

from bert_keras.preprocessing.batching import BucketedBatches, length_buckets, sorted_batches
from bert_keras.preprocessing.masking import Masking
from bert_keras.preprocessing.packing import pack
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor

__all__ = [
    "BucketedBatches",
    "Masking",
    "Ragged",
    "TextPreprocessor",
    "length_buckets",
    "pack",
    "sorted_batches",
]
