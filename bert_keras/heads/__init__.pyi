from bert_keras.heads.embedding import EmbeddingHead as EmbeddingHead
from bert_keras.heads.masked_lm import MaskedLMHead as MaskedLMHead
from bert_keras.heads.next_sentence import NextSentenceHead as NextSentenceHead
from bert_keras.heads.pretraining import PretrainingHead as PretrainingHead
from bert_keras.heads.sequence import SequenceHead as SequenceHead
from bert_keras.heads.span import SpanHead as SpanHead
from bert_keras.heads.token import TokenHead as TokenHead
from bert_keras.heads.window import WindowHead as WindowHead
