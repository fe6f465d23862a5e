"""Turns columns of texts and labels of any library, such as NumPy or pandas, into lists."""

import numpy as np

from bert_keras.checks import as_str, is_int
from bert_keras.preprocessing.columns import as_column, is_column
from bert_keras.tasks import question_examples

# How ready inputs look, in messages.
_IDS = "{'token_ids': ids, 'padding_mask': mask}, with 1 in the mask for each real token"


def is_text(x):
    """Whether `x` is a str, or a column in which some entry is a str; see `as_str` for others.

    A column of str may have missing texts (None, NaN); the tokenizer's error names them.
    """
    x = as_str(x)
    if isinstance(x, str) or not is_column(x):
        return isinstance(x, str)
    kind = getattr(getattr(x, "dtype", None), "kind", "O")
    if len(x) == 0 or kind in "UST":
        return True
    if kind != "O":
        return False
    head = as_column(x[:1000] if not hasattr(x, "iloc") else x.iloc[:1000])
    return isinstance(head[0], str) or any(isinstance(value, str) for value in head)


def is_columns(x):
    """Whether `x` is a tuple of columns, such as the first and the second texts of pairs.

    A tuple of str, as `zip(*rows)` gives, is one column.
    """
    return isinstance(x, tuple) and len(x) > 1 and all(map(is_column, x))


def is_one_pair(x):
    """Whether `x` is a tuple of two str."""
    return isinstance(x, tuple) and len(x) == 2 and all(isinstance(text, str) for text in x)


def as_batch(x):
    """Returns `x` as columns of texts, and whether it is one example: a str, or a pair of str."""
    x = as_str(x)
    if isinstance(x, str):
        return [x], True
    return (tuple([text] for text in x), True) if is_one_pair(x) else (x, False)


# The forms of a task's raw examples: `Task.form` names one.


def is_texts(x):
    """Whether `x` is texts: a str, a column of str, or a tuple of such columns."""
    return all(map(is_text, x)) if isinstance(x, tuple) and is_columns(x) else is_text(x)


def is_sentences(x):
    """Whether `x` is sentences: a str, or a column of str or of lists of words."""
    has_numbers = getattr(getattr(x, "dtype", None), "kind", "O") in "iufb"
    return isinstance(x, str) or (is_column(x) and not has_numbers)


def is_choices(x):
    """Whether `x` is a tuple of contexts and choices, or texts alone, which the task refuses."""
    return isinstance(x, tuple) or is_text(x)


def is_questions(x):
    """Whether `x` is questions with contexts: two columns, or a list of `QuestionExample`."""
    return question_examples.are_examples(x) or is_texts(x)


def is_candidates(x):
    """Whether `x` is texts, or queries with a list of texts each: a tuple of two columns."""
    if is_texts(x) or not (is_columns(x) and len(x) == 2 and is_text(x[0])):
        return is_texts(x)
    return all(isinstance(texts, (list, tuple)) for texts in x[1])


FORMS = {
    "texts": is_texts,
    "candidates": is_candidates,
    "sentences": is_sentences,
    "choices": is_choices,
    "questions": is_questions,
}


def as_columns(x, form="texts"):
    """Returns raw examples with a list in place of each other kind of column.

    Args:
        x: raw examples.
        form: one of `FORMS`. Sentences are one column, also in a tuple.
    """
    if isinstance(x, str):
        return [x]
    if isinstance(x, tuple) and form != "sentences":
        if is_one_pair(x):  # It could mean two texts: the preprocessor refuses it.
            return x
        # Choices may be the rows of a matrix.
        x = tuple(list(column) if getattr(column, "ndim", 1) == 2 else column for column in x)
        if is_columns(x):
            return tuple(map(as_column, x))
    return as_column(x)


def class_weight_by_index(class_weight, names):
    """Returns class weights with class indices as keys in place of label names."""
    if not isinstance(class_weight, dict) or not names:
        return class_weight
    numbers = {name: number for number, name in enumerate(names)}
    return {numbers.get(key, key): weight for key, weight in class_weight.items()}


def is_empty(x):
    """Whether `x` is a column without entries, or a tuple of such columns."""
    return all(map(is_empty, x)) if is_columns(x) else is_column(x) and len(x) == 0


def num_examples(x):
    """Returns the number of examples in texts, columns of texts, or a dict of arrays."""
    if isinstance(x, str):
        return 1
    if isinstance(x, dict):
        return len(next(iter(x.values())))
    if isinstance(x, tuple) and is_one_pair(x):
        return 1
    return len(x[0]) if isinstance(x, tuple) and is_columns(x) else len(x)


def check_is_dataset(x):
    """Raises `TypeError` unless `x` may be a data set that yields batches."""
    is_array = hasattr(x, "shape") and hasattr(x, "dtype")
    if x is not None and not (is_array or isinstance(x, (list, tuple, str, int, float))):
        return
    rule = (
        "`x` must be a column of str, a tuple of two such columns for pairs, a dict of arrays as "
        "in bert_keras.inputs, or a dataset."
    )
    if isinstance(x, list) and x and all(isinstance(row, (list, tuple)) for row in x):
        advice = "Turn rows of pairs into two columns: tuple(map(list, zip(*rows)))."
        if len(x[0]) == 1:
            advice = "Make one column: [text for (text,) in rows]."
        elif all(is_int(entry) for entry in x[0]):
            advice = f"Pad token ids to one length, as the preprocessor does: {_IDS}."
        elif len(x[0]) == 2 and not is_text(x[0][1]):
            advice = (
                "Turn rows of a text and its label into columns: "
                "texts, labels = map(list, zip(*rows))."
            )
        raise TypeError(f"{rule} Received: a list of {len(x)} rows of {len(x[0])}. {advice}")
    if is_array and x.ndim > 1:
        columns = "x[:, 0]" if x.shape[-1] == 1 else "tuple(x.T)"
        is_ids = "int" in str(x.dtype)
        advice = f"Token ids go into a dict: {_IDS}." if is_ids else f"Make columns: {columns}."
        raise TypeError(f"{rule} Received: an array of the shape {tuple(x.shape)}. {advice}")
    first = x[0] if isinstance(x, (list, tuple)) and x else x
    raise TypeError(f"{rule} Received: {type(x).__name__}, beginning with {first!r:.80}.")


def check_labels_and_weights(x, y, sample_weight=None):
    """Raises `ValueError` unless inputs, labels and finite weights have the same length."""
    examples = num_examples(x)
    for name, values in (("labels", y), ("sample weights", sample_weight)):
        if values is not None and num_examples(values) != examples:
            raise ValueError(
                f"There must be as many {name} as examples. Received: {examples} examples and "
                f"{num_examples(values)} {name}."
            )
    weights = 0.0 if sample_weight is None or isinstance(sample_weight, dict) else sample_weight
    if not np.isfinite(np.asarray(weights, "float64")).all():
        raise ValueError("Sample weights must be finite numbers. Received NaN or infinity.")


def split_off_end(x, y, sample_weight, share):
    """Splits examples into a first and a last part, for `validation_split`.

    Args:
        x: texts, columns of texts, a dict of arrays, or anything else that can be sliced.
        y: labels.
        sample_weight: weights, or `None`.
        share: float, above 0 and below 1, the share of the last part.

    Returns:
        Two tuples `(x, y, sample_weight)`.

    Raises:
        ValueError: `share` is out of range, or leaves one part empty.
    """
    count = num_examples(x)
    num_first = count - int(np.ceil(count * share)) if 0 < share < 1 else 0
    if not 0 < num_first < count:
        raise ValueError(
            "`validation_split` must be above 0 and below 1 and leave examples in both parts. "
            f"Received: validation_split={share} of {count} examples."
        )
    parts = (slice(None, num_first), slice(num_first, None))
    return tuple(tuple(_cut(column, part) for column in (x, y, sample_weight)) for part in parts)


def _cut(x, part):
    """Returns a slice of examples; `None` stays `None`."""
    if x is None:
        return None
    if isinstance(x, dict):
        return {key: _cut(value, part) for key, value in x.items()}
    if is_columns(x):
        return tuple(_cut(column, part) for column in x)
    return x.iloc[part] if hasattr(x, "iloc") else x[part]
