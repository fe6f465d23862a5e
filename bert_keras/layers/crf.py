"""A linear-chain conditional random field: tags that know their neighbours."""

from typing import Unpack

import keras
from keras import ops

from bert_keras.engine.size_limit import count_parameters
from bert_keras.types import NameOptions, Tensor


@keras.saving.register_keras_serializable(package="bert_keras")
class LinearChainCRF(keras.layers.Layer):
    """Scores whole sequences of tags, so that each tag depends on the one before.

    A sequence `y` of tags has the score

    ```
    score(y) = start[y_1] + sum_t emissions[t, y_t] + sum_t transitions[y_t, y_(t+1)] + end[y_n]
    ```

    and the probability `exp(score(y)) / Z`, where `Z` is the sum over all sequences, computed by
    the forward algorithm. All weights start at 0, which is a separate softmax for each position.
    Training then learns which tags follow each other, such as no `I-PER` after `B-LOC`.

    Positions outside `position_mask` are skipped, wherever they are: the tags before and after them
    are adjacent. With labels on the first piece of each word the chain is one of words, while other
    implementations chain the pieces.

    `log Z` has a gradient of its own: the expected count of each tag and of each pair of tags,
    which follows from the forward and the backward pass. Therefore no gradient runs through a loop,
    which TensorFlow's XLA could not compile for loops of unknown length.

    Args:
        num_tags: int.
        **kwargs: `name`, `trainable`, see `keras.layers.Layer`. Computes in float32.

    Call arguments:
        emissions: float, `(batch, seq_len, num_tags)`, scores of each tag at each position.
        position_mask: `(batch, seq_len)`, 1 or `True` where a position has a tag; `None` for all.

    Returns:
        int32, `(batch, seq_len)`, see `decode`.

    Example:

    ```python
    crf = LinearChainCRF(num_tags=5)
    loss = -crf.log_likelihood(emissions, tags, position_mask)
    tags = crf(emissions, position_mask)
    ```

    Reference:
        [Lafferty et al., 2001](https://repository.upenn.edu/handle/20.500.14332/6188);
        [Lample et al., 2016](https://arxiv.org/abs/1603.01360), section 2.2.
    """

    def __init__(self, num_tags: int, **kwargs: Unpack[NameOptions]) -> None:
        # Sums of exponentials over a whole sentence do not fit half precision.
        super().__init__(**{**kwargs, "dtype": "float32"})
        self.num_tags = num_tags

    def build(self, input_shape=None):
        n = self.num_tags
        count_parameters((n, n))
        self.transitions = self.add_weight(shape=(n, n), initializer="zeros", name="transitions")
        self.start = self.add_weight(shape=(n,), initializer="zeros", name="start")
        self.end = self.add_weight(shape=(n,), initializer="zeros", name="end")

    def call(self, emissions: Tensor, position_mask: Tensor | None = None) -> Tensor:
        return self.decode(emissions, position_mask)

    def compute_output_spec(self, emissions, position_mask=None):
        return keras.KerasTensor(emissions.shape[:-1], "int32")

    def log_likelihood(
        self, emissions: Tensor, tags: Tensor, position_mask: Tensor | None = None
    ) -> Tensor:
        """Returns the log-probability of each sequence of tags, `score(tags) - log Z`.

        Args:
            emissions: float, `(batch, seq_len, num_tags)`.
            tags: int, `(batch, seq_len)`; any valid tag outside the mask.
            position_mask: as for a call.

        Returns:
            float32, `(batch,)`; 0 for a sequence without positions.
        """
        chain = _Chain(emissions, position_mask)
        tags = ops.one_hot(chain.to_front(ops.cast(tags, "int32")), self.num_tags, dtype="float32")
        pairs = tags[:, :-1, :, None] * tags[:, 1:, None, :] * chain.counted[:, 1:, None, None]
        score = self._score(chain, tags, ops.sum(pairs, axis=1))
        likelihood = score - self._log_partition(chain)
        return ops.where(chain.is_empty, 0.0, likelihood)

    def decode(self, emissions: Tensor, position_mask: Tensor | None = None) -> Tensor:
        """Returns the most probable sequence of tags, by the Viterbi algorithm.

        Args:
            emissions: float, `(batch, seq_len, num_tags)`.
            position_mask: as for a call.

        Returns:
            int32, `(batch, seq_len)`; 0 outside the mask.
        """
        chain = _Chain(emissions, position_mask)
        xs = _time_first(chain.emissions, chain.counted, chain.begins)
        initial = ops.zeros_like(xs[0, :, :-2])
        carry = initial, ops.cast(initial, "int32"), *self._weights()
        (scores, *_), (_, best, *_) = ops.scan(_best_step, carry, xs)
        last = ops.cast(ops.argmax(scores + self.end, axis=-1), "int32")
        _, tags = ops.scan(_follow, last, ops.flip(best, axis=0))
        tags = ops.transpose(ops.flip(tags, axis=0))
        return chain.to_places(tags * ops.cast(chain.counted, "int32"))

    def _log_partition(self, chain):
        """Returns log Z, `(batch,)`, with the gradient that the docstring of the class explains."""
        start, transitions = self._weights()
        before = ops.stop_gradient(_sums(chain, chain.begins, start, transitions))
        # The forward pass from the end. The `reverse` of `ops.scan` needs a known length.
        end, backwards = ops.convert_to_tensor(self.end), ops.transpose(transitions)
        after = ops.stop_gradient(_sums(chain, chain.ends, end, backwards, flip=True))
        log_z = ops.stop_gradient(ops.logsumexp(before[:, -1] + self.end, axis=-1))
        emissions = ops.stop_gradient(chain.emissions)
        tags = ops.softmax(before + after - emissions) * chain.counted[..., None]
        pairs = ops.exp(
            before[:, :-1, :, None]
            + ops.stop_gradient(transitions)
            + after[:, 1:, None, :]
            - log_z[:, None, None, None]
        )
        pairs = ops.sum(ops.where(chain.counted[:, 1:, None, None] > 0, pairs, 0.0), axis=1)
        expected = self._score(chain, tags, pairs)
        return log_z + expected - ops.stop_gradient(expected)

    def _score(self, chain, tags, pairs):
        """Returns scores `(batch,)` that are linear in the counts of tags and of pairs of tags.

        Args:
            chain: a `_Chain`.
            tags: float, `(batch, seq_len, num_tags)`.
            pairs: float, `(batch, num_tags, num_tags)`.
        """
        tags = tags * chain.counted[..., None]
        return (
            ops.sum(tags * chain.emissions, axis=(1, 2))
            + ops.sum(pairs * self.transitions, axis=(1, 2))
            + ops.sum(tags * chain.begins[..., None] * self.start, axis=(1, 2))
            + ops.sum(tags * chain.ends[..., None] * self.end, axis=(1, 2))
        )

    def _weights(self):
        return ops.convert_to_tensor(self.start), ops.convert_to_tensor(self.transitions)


class _Chain:
    """Emissions with the counted positions moved to the front, so that neighbours are adjacent.

    Attributes:
        emissions: float32, `(batch, seq_len, num_tags)`.
        counted, begins, ends: float32, `(batch, seq_len)`, 1 for counted positions, for the first
            one, and for the last one.
        is_empty: bool, `(batch,)`.
    """

    def __init__(self, emissions, position_mask):
        emissions = ops.cast(emissions, "float32")
        if position_mask is None:
            position_mask = ops.ones_like(emissions[..., 0])
        mask = ops.cast(position_mask, "bool")
        seq_len = ops.shape(emissions)[1]
        positions = ops.arange(seq_len, dtype="int32")
        self._order = ops.argsort(ops.where(mask, positions, positions + seq_len), axis=-1)
        last = ops.sum(ops.cast(mask, "int32"), axis=-1, keepdims=True) - 1
        self.is_empty = last[:, 0] < 0
        self.emissions = self.to_front(emissions)
        self.counted = ops.cast(positions <= last, "float32")
        self.begins = ops.cast(positions == 0, "float32") * self.counted
        self.ends = ops.cast(positions == last, "float32")

    def to_front(self, values):
        """Returns `(batch, seq_len, ...)` in the order of the chain."""
        return _reorder(values, self._order)

    def to_places(self, values):
        """Undoes `to_front`."""
        return _reorder(values, ops.argsort(self._order, axis=-1))


def _reorder(values, order):
    order = ops.reshape(order, (*ops.shape(order), *[1] * (len(values.shape) - 2)))
    return ops.take_along_axis(values, order, axis=1)


def _time_first(emissions, counted, begins):
    """Returns one tensor `(seq_len, batch, num_tags + 2)` with all that a step of a scan reads.

    One tensor, since on TensorFlow `ops.scan` takes several only if their length is known.
    """
    joined = ops.concatenate([emissions, counted[..., None], begins[..., None]], axis=-1)
    return ops.transpose(joined, (1, 0, 2))


def _sums(chain, begins, start, transitions, flip=False):
    """Returns the log-sum over all paths that arrive at each position and tag, or leave it."""
    xs = _time_first(chain.emissions, chain.counted, begins)
    xs = ops.flip(xs, axis=0) if flip else xs
    sums = ops.scan(_sum_step, (ops.zeros_like(xs[0, :, :-2]), start, transitions), xs)[1][0]
    return ops.transpose(ops.flip(sums, axis=0) if flip else sums, (1, 0, 2))


def _split(x):
    return x[:, :-2], x[:, -2:-1] > 0, x[:, -1:] > 0


# The steps of the scans take all that they need as arguments: outside a compiled function, JAX
# compiles a scan again for every new function object, which takes half a second. Their outputs have
# the structure of the carry, as `ops.scan` requires on TensorFlow.


def _sum_step(carry, x):
    """A step of the forward algorithm: sums over the paths that arrive at each tag."""
    sums, start, transitions = carry
    emissions, counted, begins = _split(x)
    arrived = ops.logsumexp(sums[:, :, None] + transitions, axis=1)
    sums = ops.where(counted, ops.where(begins, start, arrived) + emissions, sums)
    return (sums, start, transitions), (sums, start, transitions)


def _best_step(carry, x):
    """A step of Viterbi: the best path that arrives at each tag, and its previous tag."""
    scores, came_from, start, transitions = carry
    emissions, counted, begins = _split(x)
    paths = scores[:, :, None] + transitions
    arrived = ops.where(begins, start, ops.max(paths, axis=1)) + emissions
    stay = ops.arange(scores.shape[-1], dtype="int32")
    came_from = ops.where(counted, ops.cast(ops.argmax(paths, axis=1), "int32"), stay)
    carry = ops.where(counted, arrived, scores), came_from, start, transitions
    return carry, carry


def _follow(tag, came_from):
    """Returns the tag before a position's tag on the best path."""
    return ops.take_along_axis(came_from, tag[:, None], axis=1)[:, 0], tag
