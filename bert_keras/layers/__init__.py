"""The mathematics. Layers whose arguments are plain values leave `get_config` to Keras."""

from bert_keras.layers.attention import SelfAttention
from bert_keras.layers.attention_pooling import AttentionPooling
from bert_keras.layers.crf import LinearChainCRF
from bert_keras.layers.crf import LinearChainCRF as CRF
from bert_keras.layers.embeddings import BertEmbeddings
from bert_keras.layers.encoder import Encoder, EncoderBlock
from bert_keras.layers.feed_forward import FeedForward
from bert_keras.layers.pooler import Pooler
