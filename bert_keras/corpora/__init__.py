"""A room: raw text to pre-training data and vocabularies, by any number of processes."""

from bert_keras.corpora.pretraining_batches import PretrainingBatches as PretrainingBatches
from bert_keras.corpora.pretraining_data import create_pretraining_data as create_pretraining_data
from bert_keras.corpora.sentences import split_sentences as split_sentences
from bert_keras.corpora.shards import read_manifest as read_manifest
from bert_keras.corpora.shards import read_shard as read_shard
from bert_keras.corpora.text_files import find_text_files as find_text_files
from bert_keras.corpora.text_files import read_documents as read_documents
from bert_keras.corpora.vocabulary_training import train_wordpiece as train_wordpiece
