"""From a padded batch to rows of several texts and back, see `preprocessing.unpadded_batches`."""

import numpy as np
from keras import ops

from bert_keras.inputs import PADDING_MASK, ROW_PLACES, TOKEN_IDS


def to_rows(hidden_states, places):
    """Returns the vectors of a padded batch in rows of several texts.

    Args:
        hidden_states: float, `(batch, seq_len, hidden_dim)`.
        places: int, `(num_rows, seq_len)`, the `row_places`.

    Returns:
        float, `(num_rows, seq_len, hidden_dim)`. Slots without a token hold any token's vector.
    """
    flat = ops.reshape(hidden_states, (-1, hidden_states.shape[-1]))
    return ops.take(flat, ops.maximum(places, 0), axis=0)


def to_batch(rows, places, like):
    """Returns the vectors of rows as a padded batch.

    Args:
        rows: float, `(num_rows, seq_len, hidden_dim)`.
        places: int, `(num_rows, seq_len)`, the `row_places`.
        like: tensor `(batch, seq_len)` with the batch's shape.

    Returns:
        float, `(batch, seq_len, hidden_dim)`. Padding holds any token's vector.
    """
    batch, length = ops.shape(like)
    # Empty slots write into one extra place.
    targets = ops.reshape(ops.where(places < 0, batch * length, places), (-1,))
    slots = ops.arange(ops.shape(targets)[0], dtype="int32")
    slots = ops.segment_sum(slots, targets, batch * length + 1)[:-1]
    # Keras tries a model on places that are all equal, whose slots are added up.
    slots = ops.minimum(slots, ops.shape(targets)[0] - 1)
    flat = ops.reshape(rows, (-1, rows.shape[-1]))
    return ops.take(flat, ops.reshape(slots, (batch, length)), axis=0)


def numbers_of_texts(places):
    """Returns a number for each slot of rows, the same for all tokens of a text.

    It is 1 more than the slot of the text's first token, so that positions follow from it too, and
    0 for slots without a token.

    Args:
        places: int, `(num_rows, seq_len)`, the `row_places`.

    Returns:
        int32, `(num_rows, seq_len)`.
    """
    length = ops.shape(places)[1]
    numbers = ops.arange(length, dtype="int32") - places % length + 1
    return ops.where(places < 0, 0, numbers)


def same_text(numbers):
    """Returns which keys each query sees: bool `(num_rows, 1, seq_len, seq_len)`."""
    return numbers[:, None, :, None] == numbers[:, None, None, :]


def check_no_attentions(return_attentions):
    """Raises `ValueError` if attentions are requested for rows of several texts."""
    if return_attentions:
        raise ValueError(
            "Attention probabilities can be returned for padded batches only. Received: "
            "return_attentions=True with 'row_places', for rows of several texts. "
            "Leave 'row_places' out, or make the preprocessor with unpadded=False."
        )


def check_places(arrays):
    """Raises `ValueError` unless every token of a batch has one place in `row_places`."""
    places, (tokens,) = arrays[ROW_PLACES], np.nonzero(arrays[PADDING_MASK].reshape(-1))
    has_length = places.shape[-1] == arrays[TOKEN_IDS].shape[-1]
    if not has_length or not np.array_equal(np.sort(places[places >= 0]), tokens):
        raise ValueError(
            f"The input {ROW_PLACES!r} must hold the place of each token of the batch once, in "
            f"rows of the batch's length. Received: shape {places.shape} for token_ids of shape "
            f"{arrays[TOKEN_IDS].shape} with {len(tokens)} tokens. A task with "
            "`TextPreprocessor(unpadded=True)` makes it for a whole batch, which cannot be split."
        )
