"""Refuses a tokenizer.json that needs time or memory out of proportion to the text.

Patterns need no check: the `tokenizers` library gives up after a number of steps, see
`TextEncoder.encode_batch`.
"""

import functools
import math

from tokenizers import normalizers

from bert_keras.checks import check_int

# The time to split a word grows with the cube of its length: 0.05 s at this length.
LONGEST_WORD = 1000
_MOST_GROWTH = 64
_CODE_POINTS = "".join(map(chr, range(0xD800)))
_CHUNK = 256


def check_resource_limits(saved, backend):
    """Raises `ValueError` if the settings of a tokenizer would exhaust a machine.

    Args:
        saved: dict, the content of the tokenizer.json.
        backend: its `tokenizers.Tokenizer`.
    """
    if "max_input_chars_per_word" in saved["model"]:
        longest = saved["model"]["max_input_chars_per_word"]
        advice = "Common values are 100 and 200."
        check_int("max_input_chars_per_word", longest, 1, LONGEST_WORD, advice)
    parts = [saved["normalizer"], saved["pre_tokenizer"], saved["decoder"]]
    if (growth := max(map(_growth, parts))) > _MOST_GROWTH:
        raise ValueError(
            f"Text must not grow to more than {_MOST_GROWTH} times its length when it is "
            f"normalized. Received: replacements that make it {growth} times as long."
        )
    if any(_holders(saved["normalizer"], "precompiled_charsmap")):
        _check_characters(backend.normalizer.__getstate__())


@functools.lru_cache(maxsize=4)
def _check_characters(state):
    """Raises `ValueError` if the normalizer of this state, JSON, expands some characters too much.

    Most files have the same table of characters, and checking it takes longer than reading a file.
    """
    normalizer = normalizers.Sequence([])
    normalizer.__setstate__(state)
    for begin in range(0, len(_CODE_POINTS), _CHUNK):
        text = normalizer.normalize_str(_CODE_POINTS[begin : begin + _CHUNK])
        if len(text) > _MOST_GROWTH * _CHUNK:
            raise ValueError(f"{_CHUNK} characters must not become {len(text)}.")


def _holders(part, key):
    """Yields the dicts that have a key, at any depth."""
    if isinstance(part, dict) and key in part:
        yield part
    for value in part.values() if isinstance(part, dict) else part or ():
        if isinstance(value, (dict, list)):
            yield from _holders(value, key)


def _growth(part):
    """Returns by which factor replacements and prefixes may lengthen a text.

    The factors of replacements are multiplied, except where each replaces another character, which
    none of those before it inserts: there only the largest counts.
    """
    runs = [[step["prepend"]] for step in _holders(part, "prepend")] + [[]]
    for step in _holders(part, "content"):
        character = step.get("pattern", {}).get("String", "")
        if len(character) != 1 or any(character in text for text in runs[-1]):
            runs.append([])
        runs[-1].append(step["content"])
    return math.prod(max([1, *map(len, run)]) for run in runs)
