"""Reads the bytes of protocol buffers, never beyond their end."""

import io
import sys


class DamagedError(ValueError):
    """The bytes are damaged. The caller adds the name of the file."""


def check_whole(holds, problem):
    """Raises `DamagedError` with the problem unless a condition holds."""
    if not holds:
        raise DamagedError(problem)


def fields(message):
    """Yields the number and the value of each field: an int, or bytes.

    Args:
        message: bytes.

    Raises:
        DamagedError: it is not a message, or not whole.

    Reference: https://protobuf.dev/programming-guides/encoding.
    """
    check_whole(isinstance(message, bytes), "a number is where a message must be")
    stream = io.BytesIO(message)
    while stream.tell() < len(message):
        number, wire_type = divmod(_read_varint(stream), 8)
        if wire_type == 0:
            yield number, _read_varint(stream)
        elif wire_type == 2:
            yield number, _take(stream, _read_varint(stream))
        elif wire_type in (1, 5):
            yield number, int.from_bytes(_take(stream, 8 if wire_type == 1 else 4), "little")
        else:
            check_whole(False, f"a field has the type {wire_type}")


def _take(stream, count):
    taken = stream.read(min(count, sys.maxsize))
    check_whole(len(taken) == count, "a field goes beyond its end")
    return taken


def _read_varint(stream):
    """Returns the next int of at most 64 bits: seven bits per byte, the lowest first."""
    value = 0
    for shift in range(0, 70, 7):
        (byte,) = _take(stream, 1)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise DamagedError("a number is longer than 64 bits")
