"""Reading and writing the bytes of protocol buffers; nothing is read beyond their end."""

import struct


class DamagedError(ValueError):
    """What is wrong with the bytes; the reader's caller knows which file they are of."""


def damaged_if(is_wrong, what):
    """Raises `DamagedError` with `what` is wrong with the bytes, if something is."""
    if is_wrong:
        raise DamagedError(what)


def fields(message):
    """Yields the number and the value of each field: an int, or bytes.

    Args:
        message: bytes.

    Raises:
        DamagedError: it is no message, or not whole.

    Reference: https://protobuf.dev/programming-guides/encoding.
    """
    if not isinstance(message, bytes):
        raise DamagedError("a number is where a message must be")
    reader = Reader(message)
    while reader.has_more():
        number, wire_type = divmod(reader.varint(), 8)
        if wire_type == 0:
            yield number, reader.varint()
        elif wire_type == 2:
            yield number, reader.take(reader.varint())
        elif wire_type in (1, 5):
            yield number, int.from_bytes(reader.take(8 if wire_type == 1 else 4), "little")
        else:
            raise DamagedError(f"a field has the type {wire_type}")


def field(number, value):
    """Returns the bytes of a field: an int from 0 on, a float of 32 bits, or bytes."""
    if isinstance(value, float):
        return _varint(number * 8 + 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number * 8) + _varint(value)
    return _varint(number * 8 + 2) + _varint(len(value)) + value


def _varint(value):
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


class Reader:
    """Bytes read from the front, never beyond their end."""

    def __init__(self, data):
        self._data = data
        self._position = 0

    def has_more(self):
        """Whether there is something left."""
        return self._position < len(self._data)

    def take(self, count):
        """Returns the next `count` bytes."""
        end = self._position + count
        if end > len(self._data):
            raise DamagedError("an entry goes beyond its block")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def varint(self):
        """Returns the next int, seven bits a byte, the lowest first, at most 64 bits."""
        value = 0
        for shift in range(0, 70, 7):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise DamagedError("a number is longer than 64 bits")
