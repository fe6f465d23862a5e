"""Texts that belong together, on an axis after `batch`: the choices of a question, or a pair."""

from keras import ops


def merge_groups(inputs):
    """Returns inputs `(batch, group, seq_len)` as a backbone takes them.

    Args:
        inputs: dict of ints `(batch, group, seq_len)`, see `bert_keras.inputs`.

    Returns:
        A dict of ints `(batch * group, seq_len)`, the texts of a group one after the other.
    """
    return {key: ops.reshape(x, (-1, ops.shape(x)[-1])) for key, x in inputs.items()}
