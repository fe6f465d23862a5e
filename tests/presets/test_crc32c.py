import zlib

import numpy as np
import pytest

from bert_keras.presets import crc32c as module
from bert_keras.presets.crc32c import crc32c, masked_crc32c


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_the_vectors_of_rfc_3720(data, expected):
    assert crc32c(data) == expected


ROW = 4 * module._MOST_COLUMNS


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9, 1000, ROW - 1, ROW, ROW + 1, 3 * ROW + 7])
def test_with_zlib_s_polynomial_it_is_zlib_s_crc32(monkeypatch, size):
    """The same arithmetic with another constant has a known-good implementation to compare."""
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    monkeypatch.setattr(module, "_POLYNOMIAL", 0xEDB88320)
    for table in (module._byte_tables, module._half_tables):
        table.cache_clear()
    try:
        assert crc32c(data) == crc32c(data.tobytes()) == zlib.crc32(data)
    finally:
        for table in (module._byte_tables, module._half_tables):
            table.cache_clear()


def test_one_flipped_bit_anywhere_changes_it():
    data = bytearray(np.random.default_rng(0).bytes(60))
    seen = {crc32c(bytes(data))}
    for position in range(8 * len(data)):
        data[position // 8] ^= 1 << position % 8
        seen.add(crc32c(bytes(data)))
        data[position // 8] ^= 1 << position % 8
    assert len(seen) == 8 * len(data) + 1


def test_the_mask_is_tensorflow_s():
    assert masked_crc32c(b"") == 0xA282EAD8
    rotated = (0xE3069283 >> 15 | 0xE3069283 << 17) & 0xFFFFFFFF
    assert masked_crc32c(b"123456789") == (rotated + 0xA282EAD8) % 2**32
