"""Limits the size of a model by the size of the file that should fill it.

Why: a config alone can ask for any amount of memory, and Keras makes the model of a config before
it looks at the weights.

Goes when `test_keras_makes_the_model_of_a_file_before_it_looks_at_the_weights` fails.
"""

import contextlib
import contextvars
import math

# Values that new variables may still have, the file's number of values, and the file's name.
_LEFT = contextvars.ContextVar("left", default=None)


@contextlib.contextmanager
def filled_by(source, num_values):
    """A context in which new variables have at most three times as many values as a file holds.

    Blocks count twice, when they are made and when they are built, and a checkpoint may lack a part
    that is smaller than a block, such as a pooler.

    Args:
        source: str, the file or the checkpoint, for messages.
        num_values: function that returns how many values it holds. It is called when the first
            variable is made, so that errors in a config are reported first.
    """
    token = _LEFT.set([None, num_values, source])
    try:
        yield
    finally:
        _LEFT.reset(token)


def note_variable(shape):
    """Counts a variable before it is made; raises `ValueError` if the file cannot fill them all."""
    left = _LEFT.get()
    if left is None:
        return
    if left[0] is None:
        left[1] = left[1]()
        left[0] = 3 * left[1]
    left[0] -= math.prod(shape)
    if left[0] < 0:
        raise ValueError(
            f"A model must be one that its weights fill. Received: {left[2]}, which holds "
            f"{left[1]:,} values, for a config that asks for many more, most recently "
            f"{tuple(shape)}. Does the config belong to these weights?"
        )
