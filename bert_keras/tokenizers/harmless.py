"""Refuses tokenizer.json files that would need time or memory out of proportion to the text."""

import math
import re

from bert_keras.checks import check_int

# Looking for the pieces of a word takes time with the cube of its length: 0.05 s at this one.
LONGEST_WORD = 1000
_MOST_GROWTH = 64
_CODE_POINTS = "".join(map(chr, range(0xD800)))
_CHUNK = 256


def check_harmless(saved, backend):
    """Raises `ValueError` if the settings of a tokenizer could exhaust a machine.

    Args:
        saved: dict, what the tokenizer.json says.
        backend: the `tokenizers.Tokenizer` of it.
    """
    if "max_input_chars_per_word" in saved["model"]:
        longest = saved["model"]["max_input_chars_per_word"]
        check_int("max_input_chars_per_word", longest, 1, LONGEST_WORD, "Usual are 100 and 200.")
    parts = [saved[name] for name in ("normalizer", "pre_tokenizer", "decoder")]
    for pattern in (p for part in parts for p in _values(part, "Regex")):
        if _repeats_a_repeat(pattern):
            raise ValueError(
                "A pattern must not repeat what is a repeat itself: it takes time that doubles "
                f"with each character. Received: {pattern!r:.200}."
            )
    if (growth := max(map(_growth, parts))) > _MOST_GROWTH:
        raise ValueError(
            f"Text must not grow to more than {_MOST_GROWTH} times its length when it is "
            f"normalized. Received: replacements that make it {growth} times as long."
        )
    if any(_values(saved["normalizer"], "precompiled_charsmap")):
        for begin in range(0, len(_CODE_POINTS), _CHUNK):
            text = backend.normalizer.normalize_str(_CODE_POINTS[begin : begin + _CHUNK])
            if len(text) > _MOST_GROWTH * _CHUNK:
                raise ValueError(f"{_CHUNK} characters must not become {len(text)}.")


def _values(part, key):
    """Yields all values of a key, at any depth."""
    for name, value in part.items() if isinstance(part, dict) else enumerate(part or ()):
        if name == key:
            yield value
        elif isinstance(value, (dict, list)):
            yield from _values(value, key)


def _growth(part):
    """Returns how many times as long a text may become, by replacements and prefixes alone."""
    inserted = [*_values(part, "content"), *_values(part, "prepend")]
    return math.prod(max(1, len(text)) for text in inserted)


def _repeats_a_repeat(pattern):
    """Whether a group that is repeated without limit contains another unlimited repeat."""
    pattern = re.sub(r"\\.|\[(?:\\.|[^\]\\])+\]", "x", pattern, flags=re.DOTALL)
    pattern = re.sub(r"[*+]|\{\d*,\}", "\0", pattern)
    found = []

    def closed(group):
        holds, is_repeated = bool(re.search("[\0\1]", group[1])), bool(group[2])
        found.append(holds and is_repeated)
        return "\1" if holds or is_repeated else "x"

    shorter = None
    while shorter != pattern:
        shorter, pattern = pattern, re.sub("\\(([^()]*)\\)(\0?)", closed, pattern)
    return any(found)
