"""Losses for sentence embeddings, from pairs, scored pairs and triplets.

All take the vectors of several texts per row, `(batch, num_texts, hidden_dim)`, as `TextEmbedder`
returns them for columns of texts, and divide by the sum of the weights.
"""

from typing import Any, Literal

import keras
from keras import ops

from bert_keras.checks import check_choice, check_number
from bert_keras.engine import kernels
from bert_keras.training.losses import WeightedLoss
from bert_keras.training.similarities import SIMILARITIES, cosine, similarity_matrix
from bert_keras.types import Similarity, Tensor

DISTANCES = ("cosine", "euclidean")


@keras.saving.register_keras_serializable(package="bert_keras")
class MultipleNegativesRanking(WeightedLoss):
    """Each anchor must find its own positive among the texts of the whole batch.

    With anchors `a`, positives `p` and, if there are more columns, hard negatives `n`:

    ```
    loss_i = -log(exp(s cos(a_i, p_i)) / sum_j (exp(s cos(a_i, p_j)) + exp(s cos(a_i, n_j))))
    ```

    or with another `similarity` in place of the cosine.

    Larger batches have more negatives and teach more. `symmetric` adds the reverse direction, in
    which each positive must find its anchor, and averages the two. The paper's score is the dot
    product without a scale; Sentence-BERT's authors use the cosine times 20.

    Rows with the same label are not negatives of each other: give texts with the same meaning the
    same label, and every other row a label of its own, such as its index.

    Args:
        scale: float, above 0: the inverse of the softmax's temperature.
        symmetric: bool, whether positives must find their anchors too.
        similarity: `"cosine"`, `"dot"`, or `"maxsim"` of a `MultiVectorEmbedder`.
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`. A row of weight 0
            is still a negative of the others.

    Call arguments:
        y_true: int, `(batch,)`, the group of each row. Exact up to 2^24.
        y_pred: float, `(batch, num_texts, hidden_dim)`: anchor, positive, hard negatives; for
            `"maxsim"` `(batch, num_texts, num_tokens, hidden_dim)`.
        sample_weight: float, `(batch,)`, or `None` for 1 everywhere.

    Raises:
        ValueError: `scale` is not above 0, `similarity` is unknown, or there are fewer than two
            columns of texts.

    Reference:
        [Henderson et al., 2017](https://arxiv.org/abs/1705.00652), section 4.4;
        `MultipleNegativesRankingLoss` of sentence-transformers.
    """

    settings = ("scale", "symmetric", "similarity")
    # A device that computes only some of the batch's rows would miss the positives of the others.
    compares_rows = True

    def __init__(
        self,
        scale: float = 20.0,
        symmetric: bool = False,
        similarity: Similarity = "cosine",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.scale = check_number("scale", scale, above=0.0)
        self.symmetric = symmetric
        self.similarity = check_choice("similarity", similarity, tuple(SIMILARITIES))

    def call(self, y_true, y_pred):
        check_num_texts(y_pred, 2)
        batch, _, *shape = ops.shape(y_pred)
        # The positives of the batch, then its first hard negatives, and so on.
        candidates = ops.reshape(ops.swapaxes(y_pred[:, 1:], 0, 1), (-1, *shape))
        scores = self.scale * similarity_matrix(self.similarity, y_pred[:, 0], candidates)
        row = ops.arange(batch)
        group = ops.reshape(y_true, (-1,))
        is_same = ops.logical_and(group[:, None] == group, row[:, None] != row)
        to_positives = ops.where(is_same, ops.cast(-1e9, scores.dtype), scores[:, :batch])
        forward = kernels.crossentropy(
            row, ops.concatenate([to_positives, scores[:, batch:]], axis=1)
        )
        if not self.symmetric:
            return forward
        return 0.5 * (forward + kernels.crossentropy(row, ops.transpose(to_positives)))


@keras.saving.register_keras_serializable(package="bert_keras")
class CosineRegression(WeightedLoss):
    """The cosine of two texts' vectors must equal their score: `(cos(u, v) - score)^2`.

    Args:
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`.

    Call arguments:
        y_true: float, `(batch,)`, scores from -1 to 1.
        y_pred: float, `(batch, 2, hidden_dim)`: first and second text.
        sample_weight: float, `(batch,)`, or `None` for 1 everywhere.

    Reference:
        [Reimers and Gurevych, 2019](https://arxiv.org/abs/1908.10084), section 3, "Regression
        Objective Function".
    """

    def call(self, y_true, y_pred):
        check_num_texts(y_pred, 2, 2)
        score = ops.reshape(y_true, (-1,))
        return ops.square(cosine(y_pred[:, 0], y_pred[:, 1]) - score)


@keras.saving.register_keras_serializable(package="bert_keras")
class TripletLoss(WeightedLoss):
    """An anchor must be nearer to its positive than to its negative, by a margin.

    `loss = max(0, d(anchor, positive) - d(anchor, negative) + margin)`, where the distance `d` is
    `1 - cos`, or Euclidean. The paper uses the Euclidean distance with a margin of 1; normalised
    vectors are at most 2 apart.

    Args:
        margin: float, above 0.
        distance: `"cosine"` or `"euclidean"`.
        **kwargs: `reduction`, `name`, `dtype`, see `keras.losses.Loss`.

    Call arguments:
        y_true: ignored, `(batch,)`.
        y_pred: float, `(batch, 3, hidden_dim)`: anchor, positive, negative.
        sample_weight: float, `(batch,)`, or `None` for 1 everywhere.

    Raises:
        ValueError: `margin` or `distance` is not allowed.

    Reference:
        [Reimers and Gurevych, 2019](https://arxiv.org/abs/1908.10084), section 3, "Triplet
        Objective Function".
    """

    settings = ("margin", "distance")

    def __init__(
        self,
        margin: float = 0.5,
        distance: Literal["cosine", "euclidean"] = "cosine",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.margin = check_number("margin", margin, above=0.0)
        self.distance = check_choice("distance", distance, DISTANCES)

    def call(self, y_true, y_pred):
        check_num_texts(y_pred, 3, 3)
        anchor, others = y_pred[:, :1], y_pred[:, 1:]
        if self.distance == "cosine":
            distances = 1 - cosine(anchor, others)
        else:
            squares = ops.sum(ops.square(anchor - others), axis=-1)
            # The square root has no gradient at 0, where two vectors are equal.
            distances = ops.sqrt(ops.maximum(squares, 1e-12))
        return ops.relu(distances[:, 0] - distances[:, 1] + self.margin)


def check_num_texts(vectors: Tensor, least: int, most: int | None = None) -> None:
    """Raises `ValueError` unless vectors are `(batch, num_texts, ...)` of enough texts."""
    shape = tuple(vectors.shape)
    num_texts = shape[1] if len(shape) > 2 else 0
    if num_texts is not None and not least <= num_texts <= (most or num_texts):
        required = f"{least}" if most == least else f"at least {least}"
        raise ValueError(
            f"The loss needs the vectors of {required} texts for each row, (batch, num_texts, "
            f"hidden_dim). Received: shape {shape}. Pass {required} columns of texts to `fit`."
        )
