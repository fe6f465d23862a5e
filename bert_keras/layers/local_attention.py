"""Local attention: each token attends to its neighbours only, which saves time on long texts."""

from keras import ops

from bert_keras.engine import kernels as backends
from bert_keras.layers.attention import attend


def attend_locally(
    query, key, value, is_token, window_radius, dropout, return_attentions=False, training=None
):
    """Returns the attention of each query to the keys at most `window_radius` positions away.

    It is computed with a mask over all pairs of positions or, if that is slower, in blocks of
    `window_radius` queries that see the keys of their own block and of the two adjacent ones:
    `3 n window_radius` pairs of `n` positions instead of `n ** 2`. Both give the same numbers up to
    rounding for every query that has a real token within the window, as all real tokens have.

    Args:
        query, key, value: float, `(batch, seq_len, num_heads, head_dim)`.
        is_token: bool, `(batch, 1, 1, seq_len)`, which keys are real, or `None` for all.
        window_radius: int, from 0, the largest distance of a key.
        dropout, return_attentions, training: see `attend`. Probabilities are for all pairs.

    Returns:
        `(context, attentions)`, see `attend`.
    """
    options = {"dropout": dropout, "return_attentions": return_attentions, "training": training}
    size = max(window_radius, 1)
    if not return_attentions and backends.uses_block_sparse(ops.shape(query)[1], size):
        return _attend_in_blocks(query, key, value, is_token, size, window_radius, options)
    positions = ops.arange(ops.shape(query)[1], dtype="int32")
    distances = ops.expand_dims(positions, 1) - ops.expand_dims(positions, (0, 1, 2))
    mask = ops.abs(distances) <= window_radius
    if is_token is not None:
        mask = ops.logical_and(mask, is_token)
    return attend(query, key, value, mask, **options)


def _attend_in_blocks(query, key, value, is_token, size, window_radius, options):
    """Computes `attend_locally` in blocks of `size` positions, at least `window_radius`."""
    batch, length, *heads = ops.shape(query)
    if is_token is None:
        is_token = ops.ones((batch, 1, 1, length), dtype="bool")
    # (batch, seq_len, ...) to (batch * num_blocks, size, ...); the last block is padded.
    num_missing = -length % size
    is_token = ops.transpose(is_token, (0, 3, 1, 2))
    blocks = ops.reshape(_padded(query, 0, num_missing), (-1, size, *heads))
    keys, values, key_tokens = (
        _with_neighbours(_padded(x, size, num_missing + size), size) for x in (key, value, is_token)
    )
    places = ops.arange(3 * size)
    near = ops.abs(places[size : 2 * size, None] - places) <= window_radius
    mask = ops.logical_and(near, ops.transpose(key_tokens, (0, 2, 3, 1)))
    context, _ = attend(blocks, keys, values, mask, **options)
    return ops.reshape(context, (batch, -1, *heads))[:, :length], None


def _padded(x, before, after):
    """Returns `x` with that many positions of zeros, or `False`, before and after it."""
    return ops.pad(x, [[0, 0], [before, after], [0, 0], [0, 0]])


def _with_neighbours(x, size):
    """Returns each block with its two neighbours: `(batch * num_blocks, 3 * size, ...)`.

    `x` has one more block at each end: `(batch, (num_blocks + 2) * size, ...)`.
    """
    last = tuple(x.shape[2:])
    blocks = ops.reshape(x, (ops.shape(x)[0], -1, size, *last))
    beside = [blocks[:, :-2], blocks[:, 1:-1], blocks[:, 2:]]
    return ops.reshape(ops.concatenate(beside, axis=2), (-1, 3 * size, *last))
