"""The initial values of BERT's weights."""

import keras


def bert_initializer(stddev=0.02):
    """Returns a new truncated normal initializer, cut at two standard deviations.

    Each variable needs one of its own: an initializer without a seed gives every variable of one
    shape the same values when it is shared.

    Args:
        stddev: float, standard deviation before the cut.

    Returns:
        A `keras.initializers.TruncatedNormal`.

    Reference:
        `create_initializer` in google-research/bert, `modeling.py`.
    """
    return keras.initializers.TruncatedNormal(stddev=stddev)
