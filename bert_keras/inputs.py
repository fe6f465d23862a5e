"""The inputs of every model of the package: names, shapes and checks.

A model takes a dict of integer arrays:

| key | shape | meaning | when absent |
|---|---|---|---|
| `token_ids` | `(batch, seq_len)` | ids of the vocabulary | required |
| `segment_ids` | `(batch, seq_len)` | 0 for the first text, 1 for the second | zeros |
| `padding_mask` | `(batch, seq_len)` | 1 or `True` for a real token, 0 for padding | ones |

Models without segments take no `segment_ids`. Multiple choice has an axis `num_choices` after
`batch`. With `row_places` `(num_rows, seq_len)`, the encoder computes a batch without padding, see
`bert_keras.preprocessing.unpadded_batches`. Ids outside their table give an error on some backends
and NaN on others, so they are checked here, on the host, before anything is computed.
"""

import difflib

import numpy as np

from bert_keras.checks import check_shape, refuse_first

TOKEN_IDS = "token_ids"
SEGMENT_IDS = "segment_ids"
PADDING_MASK = "padding_mask"
MASK_POSITIONS = "mask_positions"
# Keras infers the batch size from the alphabetically first input, which must not be this one.
ROW_PLACES = "row_places"

# Names in other libraries.
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
        inputs: dict of arrays, as passed to a model.
        allowed: names of the inputs that this model takes.

    Raises:
        TypeError: `inputs` is not a dict.
        ValueError: `token_ids` is missing, or a key is unknown.
    """
    if not isinstance(inputs, dict):
        raise TypeError(
            f"The model takes a dict of integer arrays with the keys {list(allowed)}. "
            f"Received: {type(inputs).__name__}. Pass {{'token_ids': ids}}. Text goes to `fit`, "
            "`evaluate` or `predict` of a task, or through its `preprocessor(texts)`."
        )
    for key in inputs:
        if key in allowed:
            continue
        name = _FOREIGN_NAMES.get(key, key)
        close = difflib.get_close_matches(str(name), allowed, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        if name == SEGMENT_IDS and name not in allowed:
            hint = " This model has no segments: leave them out."
        raise ValueError(
            f"The model takes the inputs {list(allowed)}. Received an input {key!r}.{hint}"
        )
    if TOKEN_IDS not in inputs:
        raise ValueError(
            f"The model needs the input 'token_ids'. Received the keys {list(inputs)}."
        )


def check_arrays(inputs, *, vocabulary_size, max_sequence_length, num_segments, num_axes=2):
    """Raises unless all arrays have integer dtypes, equal shapes, and ids inside their tables.

    This costs one pass over the arrays. Call it on the host, before a batch goes to the device.

    Args:
        inputs: dict of NumPy arrays as described in this module.
        vocabulary_size: int, number of rows of the token table.
        max_sequence_length: int, number of positions, or `None` for no limit.
        num_segments: int, number of segments; ignored without `segment_ids`.
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
    axes = ("batch", "seq_len") if num_axes == 2 else ("batch", "num_choices", "seq_len")
    check_shape("The input 'token_ids'", token_ids, axes)
    longest = np.inf if max_sequence_length is None else max_sequence_length
    if not 1 <= token_ids.shape[-1] <= longest:
        limits = "at least 1 token" if longest == np.inf else f"between 1 and {longest} tokens"
        raise ValueError(
            f"The model takes {limits} per sequence, for which it has positions. Received: "
            f"{token_ids.shape[-1]}. Truncate texts, or cut long documents into windows."
        )
    for key in (SEGMENT_IDS, PADDING_MASK):
        if key in arrays:
            advice = "It must have the shape of 'token_ids'."
            check_shape(f"The input {key!r}", arrays[key], token_ids.shape, advice=advice)
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
    has_length = places.shape[-1] == arrays[TOKEN_IDS].shape[-1]
    if not has_length or not np.array_equal(np.sort(places[places >= 0]), tokens):
        raise ValueError(
            f"The input {ROW_PLACES!r} must hold the place of each token of the batch once, in "
            f"rows of the batch's length. Received: shape {places.shape} for token_ids of shape "
            f"{arrays[TOKEN_IDS].shape} with {len(tokens)} tokens. A task with "
            "`TextPreprocessor(unpadded=True)` makes it for a whole batch, which cannot be split."
        )


def _check_range(key, array, size, table):
    if array.size and (array.min() < 0 or array.max() >= size):
        rule = f"The input {key!r} must be from 0 to {size - 1} ({table})"
        advice = "Was the text tokenized with the vocabulary of this checkpoint?"
        refuse_first((array < 0) | (array >= size), array, rule, advice)
