"""Prediction heads, one a file: what a task puts on a backbone."""

from bert_keras.heads.embedding import EmbeddingHead
from bert_keras.heads.masked_tokens import MaskedLMHead
from bert_keras.heads.next_sentence import NextSentenceHead
from bert_keras.heads.pretraining_heads import PretrainingHead
from bert_keras.heads.replaced_token import ReplacedTokenHead
from bert_keras.heads.sequence import SequenceHead
from bert_keras.heads.span import SpanHead
from bert_keras.heads.span_border import SpanBoundaryHead
from bert_keras.heads.token import TokenHead
from bert_keras.heads.window import WindowHead
