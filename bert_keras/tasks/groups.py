"""Texts that belong together, on an axis after `batch`: the choices of a question, or a pair."""

import numpy as np
from keras import ops

from bert_keras.inputs import TOKEN_IDS
from bert_keras.tasks.encoded_examples import EncodedTexts


def merge_groups(inputs):
    """Returns inputs `(batch, group, seq_len)` as a backbone takes them.

    Args:
        inputs: dict of ints `(batch, group, seq_len)`, see `bert_keras.inputs`.

    Returns:
        A dict of ints `(batch * group, seq_len)`, the texts of a group one after the other.
    """
    return {key: ops.reshape(x, (-1, ops.shape(x)[-1])) for key, x in inputs.items()}


class EncodedGroups(EncodedTexts):
    """Rows of several texts or pairs. All texts of a batch are padded to one length.

    `rows` returns int32 arrays `(size, group, length)`, with the size of the largest group. A text
    that does not exist is all padding.

    Args:
        preprocessor, ids, pair_ids: see `EncodedTexts`; the texts of a group follow one another.
        counts: int `(num_groups,)`, texts in each group, at least 1.
        labels, sample_weight: see `EncodedExamples`, one for each group.
    """

    def __init__(self, preprocessor, ids, pair_ids, counts, labels=None, sample_weight=None):
        super().__init__(preprocessor, ids, pair_ids, labels, sample_weight)
        self.exists = np.arange(counts.max(initial=1)) < counts[:, None]
        # The row of each text among `ids`.
        self.places = np.cumsum(self.exists).reshape(self.exists.shape) - 1
        self.sequences_per_row = self.exists.shape[1]
        self.lengths = np.where(self.exists, self.lengths[self.places], 0).max(axis=1)

    def rows(self, indices, length):
        exists = self.exists[indices]
        inputs = self.packed(self.places[indices].reshape(-1), length)
        padding = {TOKEN_IDS: self.preprocessor.tokenizer.pad_token_id}
        for key, array in inputs.items():
            array[~exists.reshape(-1)] = padding.get(key, 0)
        return {key: array.reshape(*exists.shape, length) for key, array in inputs.items()}
