"""Checks of arguments, each kind once: the rule, what came, and what to do."""

import math

import numpy as np


def is_int(value):
    """Whether a value is an int, Python's or NumPy's; a bool is none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value):
    """Whether a value is a finite number, Python's or NumPy's; a bool is none."""
    kinds = (int, float, np.integer, np.floating)
    return isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(value)


def check_int(name, value, least=1, most=None, advice=""):
    """Returns `value` as an int; raises `ValueError` unless it is one from `least` to `most`.

    Args:
        name: str, what the argument is called.
        value: anything.
        least: int.
        most: int, or `None` for no limit.
        advice: str, what to do, for the end of the message.
    """
    if is_int(value) and least <= value and (most is None or value <= most):
        return int(value)
    limits = f"from {least}" if most is None else f"from {least} to {most}"
    raise ValueError(_message(name, f"an int {limits}", value, advice))


def check_number(name, value, least=0.0, below=math.inf, above=-math.inf, advice=""):
    """Returns `value`; raises `ValueError` unless it is a finite number within its limits.

    Args:
        name: str, what the argument is called.
        value: anything.
        least: float, the smallest number that is allowed.
        below: float, which the number must not reach.
        above: float, which the number must be more than.
        advice: str, what to do, for the end of the message.
    """
    if is_number(value) and least <= value < below and value > above:
        return value
    limits = f"above {above:g}" if above >= least else f"from {least:g}"
    limits += "" if below == math.inf else f" and below {below:g}"
    raise ValueError(_message(name, f"a finite number {limits}", value, advice))


def check_rates(**rates):
    """Raises `ValueError` unless every rate is a number from 0 up to, but not including, 1."""
    for name, rate in rates.items():
        check_number(name, rate, below=1.0)


def check_choice(name, value, choices, advice=""):
    """Returns `value`; raises `ValueError` unless it is one of `choices`."""
    if any(
        value is choice or (type(value) is type(choice) and value == choice) for choice in choices
    ):
        return value
    raise ValueError(_message(name, f"one of {tuple(choices)}", value, advice))


def check_bool(name, value, advice=""):
    """Returns `value`; raises `ValueError` unless it is `True` or `False`."""
    return check_choice(name, value, (True, False), advice)


def _message(name, rule, value, advice):
    return f"`{name}` must be {rule}. Received: {value!r}.{' ' + advice if advice else ''}"
