"""Text to token ids and back, and the training of vocabularies."""

from bert_keras.tokenizers.training import train_wordpiece
from bert_keras.tokenizers.vocabulary import read_vocabulary, write_vocabulary
from bert_keras.tokenizers.wordpiece import Encoding, WordPieceTokenizer

__all__ = [
    "Encoding",
    "WordPieceTokenizer",
    "read_vocabulary",
    "train_wordpiece",
    "write_vocabulary",
]
