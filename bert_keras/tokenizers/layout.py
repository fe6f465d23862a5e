"""The special tokens around texts, as ids, read off a post-processor."""

from __future__ import annotations

from typing import NamedTuple

import tokenizers
from tokenizers import models, processors

# Makes a text of one token, whose id no special token has.
_ONE_TOKEN = tokenizers.Tokenizer(models.WordLevel({"a": 2**31}))


class Layout(NamedTuple):
    """The special tokens around a text, `before A after`, or a pair, `before A between B after`.

    BERT's is `[CLS] A [SEP] B [SEP]`, RoBERTa's `<s> A </s></s> B </s>`.

    Attributes:
        before: tuple of int, ids before the first text.
        between: tuple of int, ids between the two texts of a pair.
        after: tuple of int, ids after the last text.
        second_segment: int, 0 or 1, the segment id of the second text and of what follows it.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    second_segment: int

    def num_special(self, is_pair: bool = False) -> int:
        """Returns the number of special tokens around a text, or around a pair."""
        return len(self.before) + len(self.after) + (len(self.between) if is_pair else 0)

    def of(self, value: int) -> Layout:
        """Returns the layout with a value for every id, for values that are packed like tokens."""
        return Layout(*((value,) * len(part) for part in self[:3]), self.second_segment)


def read_layout(processor: processors.PostProcessor | None) -> Layout | None:
    """Returns the `Layout` of a post-processor, or None without a template of special tokens.

    Raises:
        ValueError: single texts and pairs do not have the form that `Layout` describes.
    """
    steps = processor if isinstance(processor, processors.Sequence) else [processor]
    if all(step is None or isinstance(step, processors.ByteLevel) for step in steps):
        return None
    token = _ONE_TOKEN.encode("a")
    single, pair = processor.process(token), processor.process(token, token)
    ids, texts, segments = pair.ids, pair.sequence_ids, pair.type_ids
    if ids.count(token.ids[0]) == 2 and [x for x in texts if x is not None] == [0, 1]:
        a, b = texts.index(0), texts.index(1)
        layout = Layout(tuple(ids[:a]), tuple(ids[a + 1 : b]), tuple(ids[b + 1 :]), segments[b])
        if (
            single.ids == [*layout.before, *token.ids, *layout.after]
            and not any(single.type_ids)
            and segments == [0] * b + [segments[b]] * (len(ids) - b)
            and segments[b] in (0, 1)
        ):
            return layout
    raise ValueError(
        "The special tokens of a tokenizer.json must be before and after a text and between two "
        "texts, the same for single texts and pairs, with segment 0 or, from the second text on, "
        f"1. Received: {single.ids} and {ids}, with segments {single.type_ids} and {segments}, "
        f"where texts are {token.ids}."
    )
