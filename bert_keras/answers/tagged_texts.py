"""Logits of words as answers: tags, and the entities that they mark."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .entity_tags import entity_readings, extract_entities
from .viterbi import Chain, best_tags, tag_probabilities


def tagged_texts(
    placed: Iterable[tuple[str, Sequence[tuple[int, int]]]],
    logits: Sequence[NDArray[Any]],
    label_names: Sequence[str] | None,
    chain: Chain | None = None,
) -> list[dict[str, Any]]:
    """Returns a tagger's answers.

    Args:
        placed: for each sentence its text, and a list of `(start, end)`, the characters of each
            word.
        logits: for each sentence float `(num_words, num_tags)`.
        label_names: list of `num_tags` str, or `None` to use numbers.
        chain: see `bert_keras.answers.viterbi`.

    Returns:
        For each sentence a dict: `text`; `words`, a list of `(word, tag)`; and `entities`, a list
        of dicts with `type`, `text`, `start`, `end` and `score`, the mean probability of the words'
        tags.
    """
    answers, readings = [], entity_readings(label_names)
    columns = placed, best_tags(logits, chain), tag_probabilities(logits, chain)
    for (text, spans), numbers, probabilities in zip(*columns, strict=True):
        tags, entities = named_tags(numbers, label_names), []
        scores = probabilities[np.arange(len(numbers)), numbers]
        found = extract_entities([readings[tag] for tag in tags]) if readings else ()
        for kind, first, end_word in found:
            start, end = spans[first][0], spans[end_word - 1][1]
            entity = {"type": kind, "text": text[start:end], "start": start, "end": end}
            entities.append({**entity, "score": float(np.mean(scores[first:end_word]))})
        words = [text[start:end] for start, end in spans]
        words = list(zip(words, tags, strict=True))
        answers.append({"text": text, "words": words, "entities": entities})
    return answers


def named_tags(numbers: NDArray[np.integer], label_names: Sequence[str] | None) -> list[Any]:
    """Returns tags by their names, or without `label_names` as ints."""
    return [label_names[number] for number in numbers] if label_names else numbers.tolist()
