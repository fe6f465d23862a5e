"""A room: search in vectors and words, fusion of rankings, retrieval data and its evaluation."""

from bert_keras.search.bm25_index import BM25Index as BM25Index
from bert_keras.search.evaluation import evaluate_retrieval as evaluate_retrieval
from bert_keras.search.fusion import reciprocal_rank_fusion as reciprocal_rank_fusion
from bert_keras.search.index import Index as Index
from bert_keras.search.mteb_models import as_mteb_model as as_mteb_model
from bert_keras.search.qdrant_index import QdrantIndex as QdrantIndex
from bert_keras.search.retrieval_data import RetrievalData as RetrievalData
from bert_keras.search.retrieval_data import read_beir as read_beir
from bert_keras.search.sparse_index import SparseIndex as SparseIndex
from bert_keras.search.vector_files import write_vectors as write_vectors
