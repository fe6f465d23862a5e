"""How large a model may be that a file is to fill: a config alone can ask for any memory."""

import contextlib
import contextvars
import math

_LEFT = contextvars.ContextVar("values that new variables may still have", default=None)


@contextlib.contextmanager
def filled_by(source, num_values):
    """A context in which new variables have at most three times the values that a file holds.

    Blocks count twice, when they are begun and when they are built, and a checkpoint may lack a
    part that is smaller than a block, such as a pooler.

    Args:
        source: str, the file or the checkpoint, for messages.
        num_values: function that says how many values it holds, when the first variable is made:
            what is wrong with a config is told before.
    """
    token = _LEFT.set([None, num_values, source])
    try:
        yield
    finally:
        _LEFT.reset(token)


def note_variable(shape):
    """Notes a variable before it is made; raises `ValueError` where no file could fill them all."""
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
            f"{left[1]:,} values, for a config that asks for many more, the last "
            f"{tuple(shape)}. Does the config belong to these weights?"
        )
