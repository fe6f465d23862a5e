"""Counts the changes to what layers compute with, so that functions compiled before are given up.

An adapter that is added or merged, and a layer that is quantized, has other variables than a
function that was compiled before knows of. Such changes are rare, and layers may be shared by
models, so one number serves for all of them.
"""

import itertools

_numbers = itertools.count(1)
version = 0


def changed():
    """Notes that some layer of some model has other variables now."""
    global version
    version = next(_numbers)
