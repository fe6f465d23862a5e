"""The inputs of every model of the package: names, shapes and checks.

A model takes a dict of integer arrays:

| key | shape | meaning | when absent |
|---|---|---|---|
| `token_ids` | `(batch, seq_len)` | ids of the vocabulary | required |
| `segment_ids` | `(batch, seq_len)` | 0 for the first text, 1 for the second | zeros |
| `padding_mask` | `(batch, seq_len)` | 1 or `True` for a real token, 0 for padding | ones |

A `MultiVectorEmbedder` takes `scoring_mask` too, of the same shape: 1 for the tokens that count.
Models without segments take no `segment_ids`. Multiple choice has an axis `num_choices` after
`batch`. Ids outside their table give an error on some backends and NaN on others, so they are
checked here, on the host, before anything is computed.
"""

import numpy as np

from .checks import check_shape, raise_at_first

TOKEN_IDS = "token_ids"
SEGMENT_IDS = "segment_ids"
PADDING_MASK = "padding_mask"
MASK_POSITIONS = "mask_positions"
SCORING_MASK = "scoring_mask"


def check_keys(inputs, allowed, required=()):
    """Raises unless `inputs` is a dict with `token_ids` and no key outside `allowed`.

    Args:
        inputs: dict of arrays, as passed to a model.
        allowed: names of the inputs that this model takes.
        required: names of those that it needs, besides `token_ids`.

    Raises:
        TypeError: `inputs` is not a dict.
        ValueError: a required input is missing, or a key is unknown.
    """
    if not isinstance(inputs, dict):
        raise TypeError(
            f"The model takes a dict of integer arrays with the keys {list(allowed)}. "
            f"Received: {type(inputs).__name__}. Pass {{'token_ids': ids}}. Text goes to `fit`, "
            "`evaluate` or `predict` of a task, or through its `preprocessor(texts)`."
        )
    for key in inputs:
        if key not in allowed:
            from bert_keras.migration_hints import renamed_input  # An exported folder lacks it.

            raise ValueError(
                f"The model takes the inputs {list(allowed)}. Received an input {key!r}."
                f"{renamed_input(key, allowed)}"
            )
    for key in (TOKEN_IDS, *required):
        if key not in inputs:
            raise ValueError(
                f"The model needs the input {key!r}. Received the keys {list(inputs)}. Add it, or "
                "pass texts."
            )


def check_length(length, longest=None):
    """Raises `ValueError` if a model has no positions for so many tokens, or there is none.

    Args:
        length: int, tokens of a sequence.
        longest: int, or `None` for no limit.
    """
    if length < 1 or (longest is not None and length > longest):
        limits = "at least 1 token" if longest is None else f"between 1 and {longest} tokens"
        raise ValueError(
            f"The model takes {limits} per sequence, for which it has positions. Received: "
            f"{length}. Truncate texts, or cut long documents into windows."
        )


def check_arrays(inputs, backbone, num_axes=2):
    """Raises unless all arrays have integer dtypes, equal shapes, and ids inside their tables.

    This costs one pass over the arrays. Call it on the host, before a batch goes to the device.

    Args:
        inputs: dict of NumPy arrays as described in this module.
        backbone: a `Backbone`, for its `vocabulary_size`, `max_sequence_length` and `num_segments`.
        num_axes: int, 2 for `(batch, seq_len)`, 3 for `(batch, num_choices, seq_len)`.

    Raises:
        TypeError: an array's dtype is not integer or boolean.
        ValueError: a shape does not fit, or an id lies outside its table.
    """
    arrays = {key: np.asarray(inputs[key]) for key in inputs}
    for key, array in arrays.items():
        if array.dtype.kind not in ("iub" if key in (PADDING_MASK, SCORING_MASK) else "iu"):
            raise TypeError(
                f"The input {key!r} must hold integers. Received an array of dtype {array.dtype}."
            )
    token_ids = arrays[TOKEN_IDS]
    axes = ("batch", "seq_len") if num_axes == 2 else ("batch", "num_choices", "seq_len")
    check_shape("The input 'token_ids'", token_ids, axes)
    length = token_ids.shape[-1]
    check_length(length, backbone.max_sequence_length)
    for key in (SEGMENT_IDS, PADDING_MASK, SCORING_MASK):
        if key in arrays:
            advice = "It must have the shape of 'token_ids'."
            check_shape(f"The input {key!r}", arrays[key], token_ids.shape, advice=advice)
    for key, size, table in (
        (TOKEN_IDS, backbone.vocabulary_size, "the vocabulary"),
        (SEGMENT_IDS, backbone.num_segments, "the segment table"),
        (PADDING_MASK, 2, "0 for padding and 1 for tokens"),
        (SCORING_MASK, 2, "1 for tokens that count"),
        (MASK_POSITIONS, length, "the positions of a row"),
    ):
        array = arrays.get(key)
        if array is not None and array.size and (array.min() < 0 or array.max() >= size):
            rule = f"The input {key!r} must be from 0 to {size - 1} ({table})"
            advice = "Was the text tokenized with the vocabulary of this checkpoint?"
            raise_at_first((array < 0) | (array >= size), array, rule, advice)
