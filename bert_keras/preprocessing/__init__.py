"""From text to model inputs: truncation, packing, windows, batching and masking."""

import sys

# Without Keras there is only what exported folders need, imported from its modules.
if sys.modules.get("keras"):
    from bert_keras.preprocessing.batching import BucketedBatches as BucketedBatches
    from bert_keras.preprocessing.batching import length_buckets as length_buckets
    from bert_keras.preprocessing.batching import sorted_batches as sorted_batches
    from bert_keras.preprocessing.collate import Rows as Rows
    from bert_keras.preprocessing.collate import TextRows as TextRows
    from bert_keras.preprocessing.masking import Masking as Masking
    from bert_keras.preprocessing.ragged import Ragged as Ragged
    from bert_keras.preprocessing.text_preprocessor import TextPreprocessor as TextPreprocessor
