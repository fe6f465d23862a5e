"""Raw text to pre-training data and vocabularies, by any number of processes."""

from bert_keras.corpora.imported_records import import_records
from bert_keras.corpora.pretraining_batches import PretrainingBatches
from bert_keras.corpora.pretraining_data import create_pretraining_data
from bert_keras.corpora.sentences import split_sentences
from bert_keras.corpora.shards import open_shard, read_manifest
from bert_keras.corpora.text_files import find_text_files, read_documents
from bert_keras.corpora.tfrecord import read_records, write_records
from bert_keras.corpora.vocabulary_training import train_wordpiece
