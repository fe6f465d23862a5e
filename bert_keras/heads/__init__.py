"""Prediction heads, which tasks put on a backbone, one per file."""

from bert_keras.heads.colbert import TokenVectorsHead as TokenVectorsHead
from bert_keras.heads.embedding import EmbeddingHead as EmbeddingHead
from bert_keras.heads.masked_tokens import MaskedLMHead as MaskedLMHead
from bert_keras.heads.pretraining_heads import PretrainingHead as PretrainingHead
from bert_keras.heads.replaced_token import ReplacedTokenHead as ReplacedTokenHead
from bert_keras.heads.sequence import SequenceHead as SequenceHead
from bert_keras.heads.span import SpanHead as SpanHead
from bert_keras.heads.span_border import SpanBoundaryHead as SpanBoundaryHead
from bert_keras.heads.splade import SpladeHead as SpladeHead
from bert_keras.heads.token import TokenHead as TokenHead
