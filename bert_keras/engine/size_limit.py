"""Limits the size of a model by the size of the file that should fill it.

Why: the model of a config may need any amount of memory, and Keras makes it before it looks at the
weights.

Remove when `test_keras_makes_the_model_of_a_file_before_it_looks_at_the_weights` fails.
"""

import contextlib
import contextvars
import math

# Values that new variables may still have, the file's number of values, and the file's name.
_LEFT = contextvars.ContextVar("left", default=None)


@contextlib.contextmanager
def parameter_budget(source, num_values):
    """A context in which new variables have at most three times as many values as a file holds.

    Blocks count twice, when they are made and when they are built, and a checkpoint may lack a part
    that is smaller than a block, such as a pooler.

    Args:
        source: str, the file or the checkpoint, for messages.
        num_values: function that returns how many values it holds. It is called when the first
            variable is made, so that errors in a config are reported first. `None` for no limit.
    """
    token = _LEFT.set([None, num_values, source] if num_values else _LEFT.get())
    try:
        yield
    finally:
        _LEFT.reset(token)


def count_parameters(shape):
    """Counts a variable before it is made; raises `ValueError` if the file cannot fill them all."""
    budget = _LEFT.get()
    if budget is None:
        return
    if budget[0] is None:
        budget[1] = budget[1]()
        budget[0] = 3 * budget[1]
    budget[0] -= math.prod(shape)
    if budget[0] < 0:
        raise ValueError(
            f"A model must be one that its weights fill. Received: {budget[2]}, which holds "
            f"{budget[1]:,} values, for a config that asks for many more, most recently "
            f"{tuple(shape)}. Does the config belong to these weights?"
        )
