"""A padded batch to rows without padding and back, see `preprocessing.unpadded_batches`."""

import numpy as np
from keras import ops

from bert_keras.inputs import PADDING_MASK, ROW_PLACES, TOKEN_IDS


def to_rows(hidden_states, places):
    """Returns the vectors of a padded batch in rows of several texts.

    Args:
        hidden_states: float, `(batch, seq_len, hidden_dim)`.
        places: int, `(num_rows, seq_len)`, the `row_places`.

    Returns:
        float, `(num_rows, seq_len, hidden_dim)`. Where no token is, some token's vector.
    """
    flat = ops.reshape(hidden_states, (-1, hidden_states.shape[-1]))
    return ops.take(flat, ops.maximum(places, 0), axis=0)


def to_batch(rows, places, like):
    """Returns the vectors of rows as a padded batch.

    Args:
        rows: float, `(num_rows, seq_len, hidden_dim)`.
        places: int, `(num_rows, seq_len)`, the `row_places`.
        like: tensor `(batch, seq_len)`, whose shape the batch has.

    Returns:
        float, `(batch, seq_len, hidden_dim)`. Where no token is, some token's vector.
    """
    batch, length = ops.shape(like)
    # Empty slots write into one place more than there are.
    targets = ops.reshape(ops.where(places < 0, batch * length, places), (-1,))
    slots = ops.arange(ops.shape(targets)[0], dtype="int32")
    slots = ops.segment_sum(slots, targets, batch * length + 1)[:-1]
    # Keras tries a model out on places that are all alike, whose slots are added up.
    slots = ops.minimum(slots, ops.shape(targets)[0] - 1)
    flat = ops.reshape(rows, (-1, rows.shape[-1]))
    return ops.take(flat, ops.reshape(slots, (batch, length)), axis=0)


def numbers_of_texts(places):
    """Returns a number for each slot of rows, which is the same for the tokens of one text.

    It is 1 more than the slot of the text's first token, so that it also tells positions; 0 where
    no token is.

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
    """Raises `ValueError` where the probabilities of rows of several texts are asked for."""
    if return_attentions:
        raise ValueError(
            "Attention probabilities are of padded batches: those of rows of several texts have no "
            "order that a reader knows. Received: return_attentions=True with 'row_places'. "
            "Leave 'row_places' out, or make the preprocessor with unpadded=False."
        )


def check_places(arrays):
    """Raises `ValueError` unless each token of a batch has one place in its `row_places`."""
    places, (tokens,) = arrays[ROW_PLACES], np.nonzero(arrays[PADDING_MASK].reshape(-1))
    has_length = places.shape[-1] == arrays[TOKEN_IDS].shape[-1]
    if not has_length or not np.array_equal(np.sort(places[places >= 0]), tokens):
        raise ValueError(
            f"The input {ROW_PLACES!r} must hold the place of each token of the batch once, in "
            f"rows of the batch's length. Received: shape {places.shape} for token_ids of shape "
            f"{arrays[TOKEN_IDS].shape} with {len(tokens)} tokens. A task with "
            "`TextPreprocessor(unpadded=True)` makes it for a whole batch, which cannot be split."
        )
