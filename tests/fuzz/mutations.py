"""Damages valid files: bits, ends, lengths, the structure of JSON, members of an archive."""

import io
import json
import zipfile

import numpy as np

_NUMBERS = (0, -1, 1, 2, 255, 2**16, 20_000, 2**31 - 1, 2**31, 2**40, 2**63, 2**64, -(2**63), 1e308)
_VALUES = (*_NUMBERS, None, True, False, "", "\0", "\ud800", "..", "/etc/passwd", [], {}, [[]], "x")
_BYTES = (b"\0", b"\xff", b"\n", b"\t", b'"', b"{", b"[", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b")
# 100,000 levels, and a number with more digits than Python reads.
_DEEP = (b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5_000)


def mutated(files, rng):
    """Returns a dict of files of which one, rarely two, are changed.

    Args:
        files: dict of bytes by name.
        rng: `numpy.random.Generator`.
    """
    changed = dict(files)
    for _ in range(1 + (rng.random() < 0.2)):
        name = str(rng.choice(sorted(changed)))
        if len(changed) > 1 and rng.random() < 0.03:
            del changed[name]
            continue
        changed[name] = _changed(changed[name], rng, list(files.values()))
    return changed


def _changed(data, rng, others):
    if data[:2] == b"PK" and rng.random() < 0.9:
        return _archive(data, rng)
    if _is_safetensors(data) and rng.random() < 0.7:
        size = int.from_bytes(data[:8], "little")
        header = _text(data[8 : 8 + size], rng)
        length = len(header) if rng.random() < 0.9 else int(rng.integers(0, 2**63))
        return length.to_bytes(8, "little") + header + data[8 + size :]
    if data[:1] in (b"{", b"[") and rng.random() < 0.8:
        return _text(data, rng)
    return _bytes(data, rng, others)


def _is_safetensors(data):
    return data[8:9] == b"{" and int.from_bytes(data[:8], "little") < len(data)


def _text(data, rng):
    """Changes JSON, or lines of JSON, as a tree."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return _bytes(data, rng, [data])
    for _ in range(int(rng.integers(1, 3))):
        tree = _tree(tree, rng)
    return json.dumps(tree).encode()


def _tree(tree, rng):
    """Changes one place of a JSON value, more often near its root."""
    if isinstance(tree, (dict, list)) and tree and rng.random() < 0.85:
        keys = list(tree) if isinstance(tree, dict) else range(len(tree))
        key = keys[int(rng.integers(len(keys)))]
        choice = rng.random()
        tree = tree.copy()
        if choice < 0.75:
            tree[key] = _tree(tree[key], rng)
        elif choice < 0.85:
            del tree[key]
        elif isinstance(tree, list):
            tree += tree if choice < 0.95 else [tree[key]] * 50
        else:
            tree[str(key) + "x"] = tree.pop(key)
        return tree
    if isinstance(tree, str) and tree and rng.random() < 0.4:
        data = tree.encode("utf-8", "replace")
        return _bytes(data, rng, [data]).decode("utf-8", "replace")[:1000]
    if isinstance(tree, (int, float)) and rng.random() < 0.5:
        return tree * int(rng.choice([-1, 2, 1000])) + int(rng.integers(-1, 2))
    return _VALUES[int(rng.integers(len(_VALUES)))]


def _archive(data, rng):
    """Changes members of a zip file. `test_attacks.py` gives them other names and sizes."""
    packed = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(packed, "w") as new:
            members = {name: old.read(name) for name in old.namelist()}
            for name, content in mutated(members, rng).items():
                new.writestr(name, content)
    except Exception:  # It is damaged already.
        return _bytes(data, rng, [data])
    return packed.getvalue()


def _bytes(data, rng, others):
    """Changes bytes anywhere."""
    data, choice, place = bytearray(data), rng.integers(9), int(rng.integers(len(data) + 1))
    if choice == 0:
        return bytes(data[:place])
    if choice == 1:
        for place in rng.integers(0, max(len(data), 1), min(len(data), 1 + int(rng.integers(8)))):
            data[place] ^= 1 << int(rng.integers(8))
        return bytes(data)
    if choice == 2:
        width = int(rng.choice([1, 2, 4, 8]))
        number = int(_NUMBERS[int(rng.integers(13))]) % 256**width
        return bytes(data[:place] + number.to_bytes(width, "little") + data[place + width :])
    if choice == 3:
        return bytes(data[:place] + _BYTES[int(rng.integers(len(_BYTES)))] + data[place:])
    if choice == 4:
        end = place + int(rng.integers(1, 20))
        return bytes(data[:place] + data[end:])
    if choice == 5:
        other = others[int(rng.integers(len(others)))]
        return bytes(data[:place]) + other[int(rng.integers(len(other) + 1)) :]
    if choice == 6:
        return bytes(data[:place] + rng.bytes(int(rng.integers(1, 30))) + data[place:])
    if choice == 7:
        end = place + int(rng.integers(1, 200))
        return bytes(data[:end] + data[place:end] * int(rng.integers(1, 50)) + data[end:])
    if rng.random() < 0.2:
        return _DEEP[int(rng.integers(len(_DEEP)))]
    return bytes(data[:place]) + bytes(np.full(int(rng.integers(1, 3000)), data[0] if data else 0))
