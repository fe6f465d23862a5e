"""The special tokens around texts, as ids, read from a tokenizer.json."""

from __future__ import annotations

from typing import Any, NamedTuple


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


def read_layout(saved: dict[str, Any] | None) -> Layout | None:
    """Returns the `Layout` of a post-processor, or None if it adds no special tokens.

    Args:
        saved: dict, the `post_processor` of a tokenizer.json, or None.

    Raises:
        ValueError: single texts and pairs do not have the form that `Layout` describes.
    """
    kind = None if saved is None else saved["type"]
    if kind in ("BertProcessing", "RobertaProcessing"):
        cls, sep = (saved["cls"][1],), (saved["sep"][1],)
        is_bert = kind == "BertProcessing"
        return Layout(cls, sep if is_bert else 2 * sep, sep, int(is_bert))
    if kind == "Sequence":
        return next(filter(None, map(read_layout, saved["processors"])), None)
    if kind != "TemplateProcessing":
        return None
    ids = {name: token["ids"] for name, token in saved["special_tokens"].items()}
    single, pair = (_flat(saved[name], ids) for name in ("single", "pair"))
    names = [name for name, _ in pair]
    if names.count("A") == names.count("B") == 1 and names.index("A") < names.index("B"):
        a, b = names.index("A"), names.index("B")
        second = pair[b][1]
        layout = Layout(tuple(names[:a]), tuple(names[a + 1 : b]), tuple(names[b + 1 :]), second)
        segments = [0] * b + [second] * (len(names) - b)
        if (
            single == [(name, 0) for name in (*layout.before, "A", *layout.after)]
            and pair == list(zip(names, segments, strict=True))
            and second in (0, 1)
        ):
            return layout
    raise ValueError(
        "The special tokens of a tokenizer.json must be before and after a text and between two "
        "texts, the same for single texts and pairs, with segment 0 or, from the second text on, "
        f"1. Received: {single} and {pair}, pairs of id and segment."
    )


def _flat(template, ids):
    """Returns pairs of an id or a text's name, and a segment."""
    flat = []
    for item in template:
        ((kind, part),) = item.items()
        names = ids[part["id"]] if kind == "SpecialToken" else [part["id"]]
        flat += [(name, part["type_id"]) for name in names]
    return flat
