"""CRC-32C, the checksum of TensorFlow's checkpoints, in NumPy and fast enough to always check.

A CRC is the remainder of a polynomial over the integers modulo 2, so it is linear: the data can be
laid out as rows of many 32-bit words, one register a column, and a step advances all registers past
one row, which is a table lookup. At the end the registers are folded into one. This reads
more than 600 MB a second on one core: the weights of BERT-base in 0.7 s or less.

Reference: https://datatracker.ietf.org/doc/html/rfc3720#appendix-B.4 (the polynomial and vectors).
"""

import functools

import numpy as np

_POLYNOMIAL = 0x82F63B78  # bit-reversed
_MOST_COLUMNS = 2**14
_MASK_DELTA = 0xA282EAD8


def crc32c(data):
    """Returns the CRC-32C of bytes.

    Args:
        data: bytes, or an array of uint8 `(size,)`.

    Returns:
        An int below 2**32.
    """
    data = np.frombuffer(data, np.uint8)
    columns = 1
    while columns < _MOST_COLUMNS and 4 * columns < data.size:
        columns *= 2
    row_size = 4 * columns
    # Zeros in front leave a register of 0 as it is; the true initial register is added below.
    start = (data.size - 1) % row_size + 1 if data.size else 0
    first_row = np.zeros(row_size, np.uint8)
    first_row[row_size - start :] = data[:start]
    registers = first_row.view("<u4").astype(np.uint32)
    _advance(registers, data[start:].view("<u4").reshape(-1, columns))
    while columns > 1:
        columns //= 2
        registers = _append_zeros(registers[:columns], 4 * columns) ^ registers[columns:]
    remainder = _append_zeros(registers, 4)
    initial = _append_zeros(np.full(1, 0xFFFFFFFF, np.uint32), data.size)
    return int((remainder ^ initial)[0]) ^ 0xFFFFFFFF


def masked_crc32c(data):
    """Returns the checksum as TensorFlow stores it: rotated by 15 bits, plus a constant."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def _advance(registers, rows):
    """Moves the register of each column past all rows, in place."""
    if not len(rows):
        return
    low_table, high_table = _half_tables(registers.size * 4)
    index = np.empty(registers.size, np.intp)
    low, high = np.empty_like(registers), np.empty_like(registers)
    for row in rows:
        # `mode="clip"` lets NumPy write into `out` at once; no index is out of range.
        np.bitwise_and(registers, 0xFFFF, out=index)
        np.take(low_table, index, out=low, mode="clip")
        np.right_shift(registers, 16, out=index)
        np.take(high_table, index, out=high, mode="clip")
        np.bitwise_xor(low, high, out=registers)
        np.bitwise_xor(registers, row, out=registers)


def _append_zeros(registers, num_bytes):
    """Returns the registers after `num_bytes` more bytes of zeros."""
    power = 1
    while power <= num_bytes:
        if num_bytes & power:
            tables = _byte_tables(power)
            registers = functools.reduce(
                np.bitwise_xor, (tables[i][registers >> (8 * i) & 0xFF] for i in range(4))
            )
        power *= 2
    return registers


@functools.cache
def _byte_tables(num_bytes):
    """Returns uint32 `(4, 256)`: what `num_bytes` zeros make of each byte of a register.

    `num_bytes` is a power of two; each table comes from the one for half as many bytes.
    """
    bytes_in_place = (
        np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]
    )
    if num_bytes > 1:
        half = num_bytes // 2
        return _append_zeros(_append_zeros(bytes_in_place, half), half)
    registers = bytes_in_place
    for _ in range(8):
        registers = np.where(registers & 1, registers >> 1 ^ np.uint32(_POLYNOMIAL), registers >> 1)
    return registers


@functools.cache
def _half_tables(num_bytes):
    """Returns uint32 `(2, 65536)`: what zeros make of the lower and upper half of a register."""
    halves = np.arange(2**16, dtype=np.uint32)
    return np.stack([_append_zeros(halves << shift, num_bytes) for shift in (0, 16)])
