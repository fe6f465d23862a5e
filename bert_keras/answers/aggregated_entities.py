"""Tags of single tokens as entities, by the strategies of transformers' pipeline."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

STRATEGIES = ("none", "simple", "first", "average", "max")


class Piece(NamedTuple):
    """A token of a text, special ones left out.

    Fields:
        text: str, the token as the vocabulary has it.
        index: int, its place in the model's input.
        start: int, its first character.
        end: int, the character after its last.
        continues: bool, whether it continues the word of the token before it.
    """

    text: str
    index: int
    start: int
    end: int
    continues: bool


def aggregated_entities(
    pieces: Sequence[Piece],
    scores: NDArray[Any],
    names: Sequence[str],
    strategy: str,
    join: Callable[[Sequence[str]], str],
) -> list[dict[str, Any]]:
    """Returns what a tagger says of each token, or of each run of tokens with the same type.

    `"none"` returns tokens as they are, and `"simple"` groups them. The others group words: a word
    has the tag of its `"first"` token, of the token with the highest probability (`"max"`), or of
    the mean of its tokens' probabilities (`"average"`). A tag `B-PER` starts a group; `I-PER`, or a
    tag without a prefix, continues one of its type.

    Args:
        pieces: list of `Piece`.
        scores: float `(num_pieces, num_tags)`, probabilities.
        names: list of str, the tags' names.
        strategy: one of `STRATEGIES`.
        join: function of the texts of pieces that returns their text.

    Returns:
        For `"none"` a dict `entity`, `score`, `index`, `word`, `start`, `end` for each token, else
        a dict `entity_group`, `score`, `word`, `start`, `end` for each group, `O` included.
    """
    has_words = strategy in ("first", "average", "max")
    units = []
    for place, piece in enumerate(pieces):
        if has_words and piece.continues and units:
            units[-1].append(place)
        else:
            units.append([place])
    tagged = []
    for unit in units:
        rows = scores[unit]
        best = rows.mean(0) if strategy == "average" else rows[0]
        if strategy == "max":
            best = rows[rows.max(1).argmax()]
        tagged.append((names[best.argmax()], float(best.max()), unit[0], unit[-1]))
    if strategy == "none":
        return [
            {
                "entity": name,
                "score": score,
                "index": pieces[place].index,
                "word": pieces[place].text,
                "start": pieces[place].start,
                "end": pieces[place].end,
            }
            for name, score, place, _ in tagged
        ]
    groups = []
    for name, score, first, last in tagged:
        starts, kind = name.startswith("B-"), name.removeprefix("B-").removeprefix("I-")
        if groups and groups[-1]["kind"] == kind and not starts:
            groups[-1]["scores"].append(score)
            groups[-1]["last"] = last
        else:
            group = {"name": name, "kind": kind, "scores": [score], "first": first, "last": last}
            groups.append(group)
    return [
        {
            "entity_group": group["name"].split("-", 1)[-1],
            "score": float(np.mean(group["scores"])),
            "word": join([x.text for x in pieces[group["first"] : group["last"] + 1]]),
            "start": pieces[group["first"]].start,
            "end": pieces[group["last"]].end,
        }
        for group in groups
    ]
