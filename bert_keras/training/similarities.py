"""How embedders compare texts: by cosine, by dot product, or token by token."""

from keras import ops

from bert_keras.training.losses import l2_normalize
from bert_keras.types import Tensor

# The similarity of a document's token that does not count.
_PADDING = -1e9


def similarity_matrix(kind: str, queries: Tensor, documents: Tensor) -> Tensor:
    """Returns the similarity of each query and each document.

    Args:
        kind: a key of `SIMILARITIES`.
        queries: float `(num_queries, dim)`, for `"maxsim"` `(num_queries, num_tokens, dim)`.
        documents: float, the same with `num_documents`, and a number of tokens of their own.

    Returns:
        float `(num_queries, num_documents)`.
    """
    if kind == "maxsim":
        # `matmul` would copy the documents for each query.
        products = ops.einsum("qid,njd->qnij", queries, documents)
        return _sum_of_best(products, queries[:, None], documents[None])
    if kind == "cosine":
        queries, documents = l2_normalize(queries), l2_normalize(documents)
    return ops.matmul(queries, ops.transpose(documents))


def cosine(first: Tensor, second: Tensor) -> Tensor:
    """Returns the cosine of the angle between vectors, row by row; 0 if one of them is zero.

    Args:
        first: float, `(..., hidden_dim)`.
        second: float, the same shape.

    Returns:
        float, `(...)`, from -1 to 1.
    """
    return ops.sum(l2_normalize(first) * l2_normalize(second), axis=-1)


def dot(first: Tensor, second: Tensor) -> Tensor:
    """Returns the dot product of vectors, row by row, see `cosine`."""
    return ops.sum(first * second, axis=-1)


def maxsim(queries: Tensor, documents: Tensor) -> Tensor:
    """Returns for each query the sum, over its tokens, of the best match in its document.

    `sum over query tokens i of max over document tokens j of q_i . d_j`. Vectors of zeros stand for
    tokens that do not count.

    Args:
        queries: float `(..., num_query_tokens, dim)`.
        documents: float `(..., num_document_tokens, dim)`; the leading axes are broadcast.

    Returns:
        float `(...)`.

    Reference:
        [Khattab and Zaharia, 2020](https://arxiv.org/abs/2004.12832), equation 3.
    """
    products = ops.matmul(queries, ops.swapaxes(documents, -1, -2))
    return _sum_of_best(products, queries, documents)


def _sum_of_best(products, queries, documents):
    is_real = ops.any(ops.not_equal(documents, 0), axis=-1)[..., None, :]
    best = ops.max(ops.where(is_real, products, ops.cast(_PADDING, products.dtype)), axis=-1)
    is_query_token = ops.any(ops.not_equal(queries, 0), axis=-1)
    return ops.sum(ops.where(is_query_token, best, 0.0), axis=-1)


def candidate_scores(y_pred: Tensor, similarity: str = "dot") -> Tensor:
    """Returns the scores of candidates.

    Args:
        y_pred: float `(batch, num_candidates)`, the scores themselves; or vectors `(batch,
            1 + num_candidates, ...)`, of the query and of the candidates.
        similarity: a key of `SIMILARITIES`.

    Returns:
        float `(batch, num_candidates)`.

    Raises:
        ValueError: there is one candidate alone.
    """
    if len(y_pred.shape) > 2:
        y_pred = SIMILARITIES[similarity](y_pred[:, :1], y_pred[:, 1:])
    if y_pred.shape[1] == 1:
        raise ValueError(
            "The loss compares the candidates of a query. Received: one candidate a row. Pass "
            "several, `fit((queries, positives, negatives))`, or a list of texts for each query."
        )
    return y_pred


SIMILARITIES = {"cosine": cosine, "dot": dot, "maxsim": maxsim}
