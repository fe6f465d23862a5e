"""Keras layers, from embeddings and attention to the encoder, and the CRF of taggers.

Layers whose arguments are plain values have the `get_config` that Keras derives.
"""

from bert_keras.layers.attention import SelfAttention as SelfAttention
from bert_keras.layers.crf import LinearChainCRF as LinearChainCRF
from bert_keras.layers.embeddings import BertEmbeddings as BertEmbeddings
from bert_keras.layers.encoder import Encoder as Encoder
from bert_keras.layers.encoder import EncoderBlock as EncoderBlock
from bert_keras.layers.feed_forward import FeedForward as FeedForward
from bert_keras.layers.pooler import Pooler as Pooler
from bert_keras.migration_hints import hints_of_module

CRF = LinearChainCRF

__getattr__ = hints_of_module(__name__)
