"""Text to token ids and back, and the training of vocabularies."""

from bert_keras.tokenizers.byte_pair import BytePairTokenizer
from bert_keras.tokenizers.layout import Layout
from bert_keras.tokenizers.tokenizer import Encoding, Tokenizer
from bert_keras.tokenizers.unigram import UnigramTokenizer
from bert_keras.tokenizers.vocabulary import read_vocabulary, write_vocabulary
from bert_keras.tokenizers.wordpiece import WordPieceTokenizer

__all__ = [
    "BytePairTokenizer",
    "Encoding",
    "Layout",
    "Tokenizer",
    "UnigramTokenizer",
    "WordPieceTokenizer",
    "read_vocabulary",
    "write_vocabulary",
]
