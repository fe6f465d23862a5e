"""Texts that belong together, on an axis after `batch`: the choices of a question, or a pair."""

import numpy as np
from keras import ops

from bert_keras.inputs import TOKEN_IDS


def merge_groups(inputs):
    """Returns inputs `(batch, group, seq_len)` as a backbone takes them.

    Args:
        inputs: dict of ints `(batch, group, seq_len)`, see `bert_keras.inputs`.

    Returns:
        A dict of ints `(batch * group, seq_len)`, the texts of a group one after the other.
    """
    return {key: ops.reshape(x, (-1, ops.shape(x)[-1])) for key, x in inputs.items()}


def group_texts(preprocessor, ids, pair_ids, places):
    """Returns how long each group is, and the function that packs some of them.

    The texts of a group are padded to one length, that of its longest.

    Args:
        preprocessor: a `TextPreprocessor`.
        ids: `Ragged` of token ids, one row a text.
        pair_ids: `Ragged` with as many rows, the second text of each, or `None`.
        places: int `(num_groups, group)`, the row of each text, -1 where a group has fewer.

    Returns:
        `(lengths, make_inputs)` as `BucketedBatches` takes them: int64 `(num_groups,)`, and a
        function of groups and padded length that returns a dict of int32 arrays
        `(num_groups, group, length)`. A text that is not there is all padding.
    """
    lengths = np.where(places < 0, 0, preprocessor.packed_lengths(ids, pair_ids)[places])
    padding = {TOKEN_IDS: preprocessor.tokenizer.pad_token_id}

    def make_inputs(groups, length):
        rows = places[groups].reshape(-1)
        pairs = None if pair_ids is None else pair_ids.take(rows)
        inputs = preprocessor.pack(ids.take(rows), pairs, length=length)
        for key, array in inputs.items():
            array[rows < 0] = padding.get(key, 0)
        shape = (len(groups), places.shape[1], length)
        return {key: array.reshape(shape) for key, array in inputs.items()}

    return lengths.max(axis=1), make_inputs
