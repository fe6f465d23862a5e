"""Text to token ids and back, and the training of vocabularies."""

import sys

from bert_keras.migration_hints import hints_of_module

# Without Keras there is only what exported folders need, imported from its modules.
if sys.modules.get("keras"):
    from bert_keras.tokenizers.byte_pair import BytePairTokenizer as BytePairTokenizer
    from bert_keras.tokenizers.text_encoder import Encoding as Encoding
    from bert_keras.tokenizers.text_encoder import Layout as Layout
    from bert_keras.tokenizers.tokenizer import Tokenizer as Tokenizer
    from bert_keras.tokenizers.unigram import UnigramTokenizer as UnigramTokenizer
    from bert_keras.tokenizers.vocabulary import read_vocabulary as read_vocabulary
    from bert_keras.tokenizers.vocabulary import write_vocabulary as write_vocabulary
    from bert_keras.tokenizers.wordpiece import WordPieceTokenizer as WordPieceTokenizer

__getattr__ = hints_of_module(__name__)
