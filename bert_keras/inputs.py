"""The inputs that every model of the package takes: names, shapes, and the checks on them.

A model takes a dict of integer arrays:

| key | shape | meaning | when absent |
|---|---|---|---|
| `token_ids` | `(batch, seq_len)` | ids of the vocabulary | required |
| `segment_ids` | `(batch, seq_len)` | 0 for the first text, 1 for the second | zeros |
| `padding_mask` | `(batch, seq_len)` | 1 or `True` for a real token, 0 for padding | ones |

Models without segments take no `segment_ids`. Multiple choice puts an axis `num_choices` after
`batch`. `row_places` `(num_rows, seq_len)` makes the encoder compute a batch without padding, see
`bert_keras.preprocessing.unpadded_batches`. Ids outside their table give an error on one
backend and NaN on another, so they are checked here, on the host, before any compute.
"""

import difflib

import numpy as np

TOKEN_IDS = "token_ids"
SEGMENT_IDS = "segment_ids"
PADDING_MASK = "padding_mask"
MASK_POSITIONS = "mask_positions"
# Keras counts the rows of the input whose name comes first: these are not the batch's.
ROW_PLACES = "row_places"

# The names that users of other libraries reach for first.
_FOREIGN_NAMES = {
    "input_ids": TOKEN_IDS,
    "token_type_ids": SEGMENT_IDS,
    "attention_mask": PADDING_MASK,
    "input_mask": PADDING_MASK,
    "masked_lm_positions": MASK_POSITIONS,
}


def check_keys(inputs, allowed):
    """Raises unless `inputs` is a dict with `token_ids` and no key outside `allowed`.

    Args:
        inputs: what a user passed to a model.
        allowed: names of the inputs that this model knows.

    Raises:
        TypeError: `inputs` is not a dict.
        ValueError: `token_ids` is missing, or a key is unknown.
    """
    if not isinstance(inputs, dict):
        raise TypeError(
            f"The model takes a dict of integer arrays with the keys {list(allowed)}. "
            f"Received: {type(inputs).__name__}. Pass {{'token_ids': ids}}; text to `fit`, "
            "`evaluate` or `predict` of a task, or through its `preprocessor(texts)`."
        )
    for key in inputs:
        if key in allowed:
            continue
        meant = _FOREIGN_NAMES.get(key, key)
        close = difflib.get_close_matches(str(meant), allowed, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        if meant == SEGMENT_IDS and meant not in allowed:
            hint = " It tells no segments apart: leave them out."
        raise ValueError(
            f"The model takes the inputs {list(allowed)}. Received an input {key!r}.{hint}"
        )
    if TOKEN_IDS not in inputs:
        raise ValueError(
            f"The model needs the input 'token_ids'. Received the keys {list(inputs)}."
        )


def check_arrays(inputs, *, vocabulary_size, max_sequence_length, num_segments, num_axes=2):
    """Raises unless every array has an integer dtype, the same shape, and ids inside its table.

    Costs one pass over the arrays; call it on the host, before a batch goes to the device.

    Args:
        inputs: dict of NumPy arrays as described in this module.
        vocabulary_size: int, number of rows of the token table.
        max_sequence_length: int, number of positions that a token can have, or `None` for no limit.
        num_segments: int, number of segments; without `segment_ids` it is not read.
        num_axes: int, 2 for `(batch, seq_len)`, 3 for `(batch, num_choices, seq_len)`.

    Raises:
        TypeError: an array's dtype is not integer or boolean.
        ValueError: a shape does not fit, or an id lies outside its table.
    """
    arrays = {key: np.asarray(inputs[key]) for key in inputs}
    for key, array in arrays.items():
        if array.dtype.kind not in ("iu" if key != PADDING_MASK else "iub"):
            raise TypeError(
                f"The input {key!r} must hold integers. Received an array of dtype {array.dtype}."
            )
    token_ids = arrays[TOKEN_IDS]
    if token_ids.ndim != num_axes:
        raise ValueError(
            f"The input 'token_ids' must have {num_axes} axes, the last one seq_len. Received the "
            f"shape {token_ids.shape}."
        )
    longest = np.inf if max_sequence_length is None else max_sequence_length
    if not 1 <= token_ids.shape[-1] <= longest:
        limits = "at least 1 token" if longest == np.inf else f"between 1 and {longest} tokens"
        raise ValueError(
            f"The model takes {limits} a sequence, as many as it has positions for. Received "
            f"{token_ids.shape[-1]}. Truncate, or cut long documents into windows."
        )
    for key in (SEGMENT_IDS, PADDING_MASK):
        if key in arrays and arrays[key].shape != token_ids.shape:
            raise ValueError(
                f"The input {key!r} must have the shape of 'token_ids', {token_ids.shape}. "
                f"Received {arrays[key].shape}."
            )
    _check_range(TOKEN_IDS, token_ids, vocabulary_size, "the vocabulary")
    if SEGMENT_IDS in arrays:
        _check_range(SEGMENT_IDS, arrays[SEGMENT_IDS], num_segments, "the segment table")
    if PADDING_MASK in arrays and arrays[PADDING_MASK].dtype.kind != "b":
        _check_range(PADDING_MASK, arrays[PADDING_MASK], 2, "0 for padding and 1 for tokens")
    if ROW_PLACES in arrays:
        _check_places(arrays)
    if MASK_POSITIONS in arrays:
        _check_range(
            MASK_POSITIONS, arrays[MASK_POSITIONS], token_ids.shape[-1], "the positions of a row"
        )


def _check_places(arrays):
    places, (tokens,) = arrays[ROW_PLACES], np.nonzero(arrays[PADDING_MASK].reshape(-1))
    is_whole = places.shape[-1] == arrays[TOKEN_IDS].shape[-1]
    if not is_whole or not np.array_equal(np.sort(places[places >= 0]), tokens):
        raise ValueError(
            f"The input {ROW_PLACES!r} must hold the place of each token of the batch once, in "
            f"rows of the batch's length. Received the shape {places.shape} for token_ids of the "
            f"shape {arrays[TOKEN_IDS].shape} with {len(tokens)} tokens. It is made for a whole "
            "batch, by `TextPreprocessor(unpadded=True)` in a task, and cannot be cut."
        )


def _check_range(key, array, size, table):
    if array.size and (array.min() < 0 or array.max() >= size):
        wrong = np.argwhere((array < 0) | (array >= size))[0]
        raise ValueError(
            f"The input {key!r} must lie in 0 to {size - 1} ({table}). Received "
            f"{int(array[tuple(wrong)])} at the index {tuple(int(i) for i in wrong)}. Was the text "
            "tokenized with the vocabulary of this checkpoint?"
        )
