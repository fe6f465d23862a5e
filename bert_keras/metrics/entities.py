"""Precision, recall and F1 of whole named entities.

An entity counts as found only if its type, first and last word are all right. The scores equal
seqeval's default mode, which is conlleval's.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bert_keras.answers.entity_tags import extract_entities
from bert_keras.checks import check_not_empty, check_same_length, raise_at_first


def _check_sentences(true, predicted):
    rule = "True and predicted tags must have the same number of sentences"
    check_same_length(rule, true=true, predicted=predicted)
    check_not_empty(true, "Entity scores need at least one sentence")
    rule = "Tags must be a list of sentences, each a list of tags"
    for rows in (true, predicted):
        are_str = [isinstance(row, str) for row in rows]
        raise_at_first(are_str, rows, rule, "For one sentence, pass `[tags]`.")
    advice = "Predict words beyond the length limit too, or leave them out of both."
    for index, (expected, found) in enumerate(zip(true, predicted, strict=True)):
        rule = f"Each word of sentence {index} needs one true and one predicted tag"
        check_same_length(rule, advice, true=expected, predicted=found)


def _scores(right, predicted, true):
    """Returns precision, recall and F1; 0 where one is 0/0."""
    precision = right / predicted if predicted else 0.0
    recall = right / true if true else 0.0
    f1 = 2 * right / (predicted + true) if right else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


def entity_scores(
    true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Returns precision, recall and F1 of whole entities, over all types and for each type.

    A predicted entity is right if a true one has the same type, start and end. With `right` the
    number of right ones, precision = right / predicted, recall = right / true, and
    F1 = 2 right / (predicted + true). A fraction 0/0 is 0. CoNLL-2003 and WNUT-17 report the first
    three numbers, which count the entities of all types together (micro average).

    Args:
        true: list of sentences, each a list of tags.
        predicted: the same with the model's tags.

    Returns:
        Dict with `precision`, `recall`, `f1` (micro), `macro_precision`, `macro_recall`,
        `macro_f1` (means over the types that occur in either), `support` (number of true
        entities), and `types`: a dict from type, sorted, to its `precision`, `recall`, `f1`,
        `support`. All are 0 if there is no entity at all.

    Raises:
        ValueError: there are no sentences, their numbers or lengths differ, or a tag is unknown.

    Example:
        >>> scores = entity_scores([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]])
        >>> scores["f1"], scores["support"]
        (0.0, 1)

    Reference:
        https://github.com/chakki-works/seqeval
    """
    _check_sentences(true, predicted)
    true_entities, predicted_entities = (
        {(row, *entity) for row, tags in enumerate(rows) for entity in extract_entities(tags)}
        for rows in (true, predicted)
    )
    found = true_entities & predicted_entities, predicted_entities, true_entities
    counts = [Counter(kind for _, kind, *_ in entities) for entities in found]
    types = {
        kind: _scores(*(count[kind] for count in counts)) | {"support": counts[2][kind]}
        for kind in sorted(counts[1] | counts[2])
    }
    result = _scores(*(count.total() for count in counts))
    for name in ("precision", "recall", "f1"):
        values = [scores[name] for scores in types.values()]
        result[f"macro_{name}"] = sum(values) / len(values) if values else 0.0
    return result | {"support": counts[2].total(), "types": types}
