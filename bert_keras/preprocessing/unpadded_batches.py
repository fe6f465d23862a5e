"""Batches without padding for the encoder: several texts in a row, one after the other."""

import numpy as np

from bert_keras.inputs import PADDING_MASK, ROW_PLACES


def without_padding(inputs):
    """Returns the inputs of a batch with the place of each token in rows without padding.

    Texts are placed into rows of the batch's length, the longest first, each into the first row
    with enough room. The number of rows is rounded up to an eighth of the batch size, so that XLA
    compiles few shapes. Embeddings and heads see the padded batch, the encoder sees the rows.

    Args:
        inputs: dict of arrays, see `bert_keras.inputs`. A batch without a `padding_mask`, or with a
            single text, is returned unchanged.

    Returns:
        The inputs with `row_places`, int32 `(num_rows, seq_len)`: the index of each token among
        `(batch * seq_len)`, in the order of the text, and -1 where there is no token.

    Raises:
        ValueError: there is padding before or inside a text.

    Example:

    >>> mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]])
    >>> without_padding({"padding_mask": mask})["row_places"]
    array([[ 0,  1,  2,  3],
           [ 4,  5,  8, -1]], dtype=int32)

    Reference:
        [Warner et al., 2024](https://arxiv.org/abs/2412.13663), section 2.1.2.
    """
    if PADDING_MASK not in inputs:
        return inputs
    mask = np.asarray(inputs[PADDING_MASK]) != 0
    mask = mask.reshape(-1, mask.shape[-1])
    size, length = mask.shape
    lengths = mask.sum(axis=1)
    if (mask[:, 1:] > mask[:, :-1]).any():
        raise ValueError(
            "Texts can be placed into rows without padding if padding follows them. Received: "
            "padding before a token. Pad on the right, or leave unpadded=False."
        )
    if size == 1:
        return inputs
    assigned, room = [], np.full(size, length)
    for text in np.argsort(-lengths, kind="stable"):
        row = int(np.argmax(room >= lengths[text]))
        assigned.append((row, length - room[row], text))
        room[row] -= lengths[text]
    step = -(-size // 8)
    num_used_rows = max(1, np.count_nonzero(room < length))
    places = np.full((-(-num_used_rows // step) * step, length), -1, np.int32)
    for row, start, text in assigned:
        count = lengths[text]
        places[row, start : start + count] = text * length + np.arange(count)
    return {**inputs, ROW_PLACES: places}
