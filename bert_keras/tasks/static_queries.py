"""Sparse vectors of queries without a model: each token of a query has a weight of its own."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from keras import ops

from bert_keras.checks import check_shape, check_type, refuse_first, require


def check_query_weights(weights, tokenizer):
    """Returns weights as a dict of floats, without zeros; `None` for `None`.

    Args:
        weights: dict, token -> weight; or `None`.
        tokenizer: a `Tokenizer`, whose vocabulary may come later; or `None`.

    Raises:
        TypeError: it is no dict.
        ValueError: there is no tokenizer, a token is not in the vocabulary, or a weight is no
            number from 0.
    """
    if weights is None:
        return None
    check_type("query_weights", weights, Mapping, "a dict from tokens to weights")
    tokens, values = list(weights), np.array(list(weights.values()))
    check_shape("`query_weights`", values, ("num_tokens",), "iuf")
    refuse_first(~(np.isfinite(values) & (values >= 0)), values, "Query weights must be from 0")
    if tokenizer is None:
        raise ValueError(
            "`query_weights` need the tokenizer whose tokens they name. Received: "
            "preprocessor=None. Pass a `TextPreprocessor`."
        )
    if tokenizer.has_vocabulary:
        vocabulary = set(tokenizer.vocabulary)
        is_unknown = [token not in vocabulary for token in tokens]
        advice = "Take the weights that came with this tokenizer."
        refuse_first(is_unknown, tokens, "Each token of `query_weights` must be a token", advice)
    return {token: float(value) for token, value in weights.items() if value}


def weight_table(weights: Mapping[str, float], tokenizer: Any, size: int) -> np.ndarray:
    """Returns the weight of each token id, float32 `(size,)`; ids without a token weigh 0."""
    table = np.zeros(size, "float32")
    for id, token in enumerate(tokenizer.vocabulary):
        table[id] = weights.get(token, 0.0)
    return table


def vectors_of_texts(texts, table, preprocessor):
    """Returns the sparse vectors of queries: the weights of the tokens that occur.

    Args:
        texts: list of str.
        table: see `weight_table`.
        preprocessor: a `TextPreprocessor`. Special tokens are not added.

    Returns:
        float32 `scipy.sparse.csr_array` `(num_texts, vocabulary_size)`.
    """
    sparse = require("scipy.sparse", "return sparse vectors")
    ids, _ = preprocessor.tokenize(texts)
    rows = [np.unique(row[: preprocessor.max_length]) for row in ids]
    indices = np.concatenate(rows)
    ends = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    vectors = sparse.csr_array((table[indices], indices, ends), shape=(len(texts), len(table)))
    vectors.eliminate_zeros()
    return vectors


def vectors_of_ids(token_ids, table, layout, pad_id):
    """Returns the vectors of rows of token ids for training, float32 `(batch, vocabulary_size)`.

    Args:
        token_ids: int `(batch, seq_len)`, with special tokens and padding, which do not count.
        table: see `weight_table`.
        layout: the tokenizer's `Layout`.
        pad_id: int.
    """
    table = table.copy()
    table[[*layout.before, *layout.between, *layout.after, pad_id]] = 0.0
    token_ids = ops.cast(token_ids, "int32")
    rows = ops.cumsum(ops.ones_like(token_ids), axis=0) - 1
    positions = ops.reshape(ops.stack([rows, token_ids], axis=-1), (-1, 2))
    occurs = ops.zeros((ops.shape(token_ids)[0], len(table)), "float32")
    occurs = ops.scatter_update(occurs, positions, ops.ones_like(positions[:, 0], dtype="float32"))
    return occurs * ops.convert_to_tensor(table)
