"""What users pass to `fit`, `evaluate` and `predict`, of any library, as columns of one form.

Columns of texts and labels of NumPy, pandas and others become lists. Tables of `datasets`, pandas,
polars and pyarrow, dicts of columns, lists of dicts, and what tokenizers of transformers return
hold columns with names: token ids are ready inputs under other names, texts are raw examples, and
labels are among the columns.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras
import numpy as np

from bert_keras.checks import (
    as_column,
    as_str,
    check_int,
    check_same_length,
    check_shape,
    is_column,
    is_table,
    raise_at_first,
    refuse_options,
)
from bert_keras.inputs import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from bert_keras.metrics.label_kinds import LabelKind
from bert_keras.migration_hints import INPUTS
from bert_keras.preprocessing.batching import DEFAULT_BATCH_SIZE, check_weights_by_output
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.tasks import question_examples
from bert_keras.tasks.validation import overrides

_PAIRS = (
    *(("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2")),
    *(("question", "sentence"), ("text1", "text2"), ("text_a", "text_b")),
)
_ID_COLUMNS = ("id", "idx", "guid", "uid")
_POSITIONS = {"start_logits": "start_positions", "end_logits": "end_positions"}
# The label of tokens that have none, in transformers.
_IGNORED = -100


class Columns(NamedTuple):
    """Examples in this package's form.

    Attributes:
        x: raw examples, a list or a tuple of lists; ready inputs, a dict of arrays; or a data set
            that yields batches.
        y: labels, or `None`. A list for raw examples, unless they are an array of numbers.
        sample_weight: weights, or `None`.
        kind: str, what `x` is: `"texts"`, `"arrays"` or `"batches"`.
    """

    x: Any
    y: Any = None
    sample_weight: Any = None
    kind: str = "texts"


def normalize_columns(task, x, y=None, sample_weight=None):
    """Returns what a user passes as `Columns`.

    Args:
        task: a `Task`.
        x: anything that `fit` takes.
        y: labels, or `None` to take those among the columns of `x`.
        sample_weight: weights, or `None`.
    """
    x = as_str(x)
    if has_names(x):
        x, y, sample_weight = _without_names(task, x, y, sample_weight)
    if isinstance(x, dict):
        return Columns(x, y, sample_weight, "arrays")
    if task.form == "questions":
        x, y = question_examples.as_columns(x, y)
    if not FORMS[task.form].fits(x):
        return Columns(x, y, sample_weight, "batches")
    y = as_str(y)
    if isinstance(y, (str, int, float)):  # The label of one text.
        y = [y]
    elif is_column(y) and (is_text(y) or not hasattr(y, "__array__")):
        y = as_column(y, "y")
    return Columns(as_columns(x, task.form), y, sample_weight)


def _without_names(task, x, y, sample_weight):
    """Returns the columns of a table, of a dict of columns or of a list of dicts, and labels.

    Raises:
        ValueError: a column is missing, or it is ambiguous which to read.
    """
    if isinstance(x, list):
        x = {name: [row.get(name) for row in x] for name in x[0]}
    elif isinstance(x, Mapping):
        x = dict(x)
        if splits := [name for name, value in x.items() if is_table(value)]:
            raise TypeError(
                f"`x` must be one table of examples. Received: the tables {splits} in a dict. Pass "
                f"one of them, such as data[{splits[0]!r}]."
            )
    form, is_dict = FORMS[task.form], isinstance(x, dict)
    names = list(x if is_dict else x.column_names if hasattr(x, "column_names") else x.columns)
    if "input_ids" in names:
        return _as_ready_inputs(task, x, names, y, sample_weight)
    known = next((columns for columns in form.names if set(columns) <= set(names)), None)
    if is_dict and (TOKEN_IDS in names or not (known or any(map(is_text, x.values())))):
        return x, y, sample_weight  # Ready inputs.
    if y is None:
        y = _labels(task, x, names, form.labels)
        if task.form == "questions" and y is not None:
            y = [_answers_as_pairs(answers) for answers in as_column(y)]
    text_columns = getattr(task.preprocessor, "text_columns", None)
    chosen = text_columns or known
    if chosen is None:
        excluded = (*form.labels, *_ID_COLUMNS)
        chosen = [name for name in names if name not in excluded and is_text(x[name])]
        chosen = next((pair for pair in _PAIRS if set(pair) == set(chosen)), chosen)
        chosen = chosen if len(chosen) == 1 or chosen in _PAIRS else ()
    if not chosen or not set(chosen) <= set(names):
        raise ValueError(
            "A table must have one column of str, or the preprocessor must say which ones to read, "
            f"`text_columns=['premise', 'hypothesis']`. Received: the columns {names}, "
            f"text_columns={text_columns}."
        )
    columns = tuple(x[name] for name in chosen)
    return columns if len(columns) > 1 else columns[0], y, sample_weight


def as_validation_columns(task, data):
    """Returns what a user passes as `validation_data` as `Columns`."""
    if isinstance(data, Columns):
        return data
    if isinstance(data, list) and normalize_columns(task, data).kind == "batches":
        data = tuple(data)
    if not isinstance(data, tuple) or len(data) not in (2, 3) or is_text(data):
        data = (data,)
    return normalize_columns(task, *data)


def has_names(x):
    """Whether `x` is a table, a dict, or a list of dicts, an example each, rather than a batch."""
    if not (isinstance(x, list) and x and all(isinstance(row, Mapping) for row in x)):
        return isinstance(x, Mapping) or is_table(x)
    return TOKEN_IDS not in x[0] and np.ndim(x[0].get("input_ids", [])) == 1


def _takes_labels(task):
    return task.needs_labels or task.form == "candidates"


def _labels(task, table, names, candidates):
    """Returns the column of labels, or `None`.

    If the table names its label numbers and the task numbers these names differently, the labels
    are translated to the task's numbers.
    """
    if not _takes_labels(task):
        return None
    name = next((name for name in candidates if name in names), None)
    if name is None:
        return None
    feature = (getattr(table, "features", None) or {}).get(name)
    table_names = getattr(getattr(feature, "feature", feature), "names", None)
    table_names = [str(name).casefold() for name in table_names or ()]
    task_names = [str(name).casefold() for name in getattr(task, "label_names", None) or ()]
    labels, are_distinct = table[name], len(set(task_names)) == len(task_names)
    can_translate = are_distinct and set(table_names) <= set(task_names)
    if table_names and table_names != task_names and can_translate:
        numbers = {number: task_names.index(name) for number, name in enumerate(table_names)}
        return _renumbered(as_column(labels), numbers)
    return labels


def _renumbered(labels, numbers):
    labels = labels.tolist() if hasattr(labels, "tolist") else labels
    if isinstance(labels, (list, tuple)):
        return [_renumbered(label, numbers) for label in labels]
    return numbers.get(labels, labels)


def _answers_as_pairs(answers):
    """Returns the answers to a question as `datasets` has them in the form of `read_answers`."""
    if isinstance(answers, Mapping):
        texts, starts = (list(answers[name]) for name in ("text", "answer_start"))
        return [(str(text), int(start)) for text, start in zip(texts, starts, strict=True)] or None
    if isinstance(answers, (list, tuple)) and answers and isinstance(answers[0], Mapping):
        return [(answer["text"], answer["answer_start"]) for answer in answers]
    return answers


def _as_ready_inputs(task, x, names, y, sample_weight):
    """Returns inputs under this package's names, and their labels.

    Columns of a table that the model does not take are left out, as transformers' `Trainer` does;
    in a dict they stay, so that the model's error names them.
    """
    columns = {name: x[name] for name in names}
    labels = [name for name in (*FORMS[task.form].labels, *_POSITIONS.values()) if name in columns]
    if y is None and set(_POSITIONS.values()) <= set(labels):
        y = {name: _as_matrix(columns[position]) for name, position in _POSITIONS.items()}
    elif y is None and task.form != "questions":
        y = _labels(task, x, names, ("labels", *FORMS[task.form].labels))
        y = None if y is None else _as_matrix(y, _IGNORED)
    if _takes_labels(task):
        columns = {name: column for name, column in columns.items() if name not in labels}
    if not isinstance(x, dict):
        columns = {name: column for name, column in columns.items() if name in INPUTS}
    inputs = {INPUTS.get(name, name): _as_matrix(column) for name, column in columns.items()}
    if PADDING_MASK not in inputs:
        inputs[PADDING_MASK] = (_as_matrix(columns["input_ids"], fill=-1) != -1).astype("int32")
    if SEGMENT_IDS not in task.input_names and not np.any(inputs.get(SEGMENT_IDS, 0)):
        inputs.pop(SEGMENT_IDS, None)
    if task.label_per_token and y is not None and sample_weight is None:
        y = np.asarray(y)
        sample_weight = (y != _IGNORED) * inputs[PADDING_MASK].astype("float32")
        y = np.where(y == _IGNORED, 0, y)
    return inputs, y, sample_weight


def _as_matrix(column, fill=0):
    """Returns a column of numbers or of rows of numbers as an array; shorter rows are filled up.

    Args:
        column: array, tensor, or column of numbers or of rows.
        fill: int, what shorter rows are filled up with.
    """
    if hasattr(column, "shape") and hasattr(column, "dtype") and getattr(column, "ndim", 0) > 0:
        column = keras.ops.convert_to_numpy(column)
        if column.dtype != object:
            return column
    rows = [np.asarray(row) for row in as_column(column)]
    if len({row.shape for row in rows}) > 1 and {row.ndim for row in rows} == {1}:
        # Signed, so that -1 can fill it.
        dtype = np.result_type(*{row.dtype for row in rows}, np.int8)
        return Ragged.from_rows(rows, dtype).to_dense(padding=fill)
    return np.stack(rows) if rows else np.zeros((0,), "int32")


def is_text(x):
    """Whether `x` is a str, or a column in which some entry is a str; see `as_str` for others.

    A column of str may have missing texts (None, NaN); the tokenizer's error names them.
    """
    x = as_str(x)
    if isinstance(x, str) or not is_column(x):
        return isinstance(x, str)
    head = x.iloc[:1000] if hasattr(x, "iloc") else x[:1000]
    return len(x) == 0 or any(isinstance(value, str) for value in as_column(head))


def is_columns(x):
    """Whether `x` is a tuple of columns, such as the first and the second texts of pairs.

    A tuple of str, as `zip(*rows)` gives, is one column.
    """
    return isinstance(x, tuple) and len(x) > 1 and all(map(is_column, x))


def is_one_pair(x):
    """Whether `x` is a tuple of two str."""
    return isinstance(x, tuple) and len(x) == 2 and all(isinstance(text, str) for text in x)


def is_texts(x):
    """Whether `x` is texts: a str, a column of str, or a tuple of such columns."""
    return all(map(is_text, x)) if isinstance(x, tuple) and is_columns(x) else is_text(x)


def is_sentences(x):
    """Whether `x` is sentences: a str, or a column of str or of lists of words."""
    has_numbers = getattr(getattr(x, "dtype", None), "kind", "O") in "iufb"
    return isinstance(x, str) or (is_column(x) and not has_numbers)


def is_candidates(x):
    """Whether `x` is texts, or queries with a list of texts each: a tuple of two columns."""
    if is_texts(x) or not (is_columns(x) and len(x) == 2 and is_text(x[0])):
        return is_texts(x)
    return all(isinstance(texts, (list, tuple)) for texts in x[1])


class Form(NamedTuple):
    """What the raw examples of a task look like.

    Attributes:
        fits: function of `x` that says whether it may be such examples.
        names: tuples of names of columns to read; the first that a table has is taken. Without a
            match it is the only column that holds str, besides labels and ids, or two columns with
            the names of a pair.
        labels: names of columns of labels, the first match is taken.
    """

    fits: Callable[[Any], bool]
    names: tuple[tuple[str, ...], ...] = ()
    labels: tuple[str, ...] = ("label", "labels")


_TAGS = ("ner_tags", "tags", "labels", "ner", "label", "pos_tags")
# The forms of raw examples; `Task.form` names one.
FORMS = {
    "texts": Form(is_texts),
    "candidates": Form(is_candidates),
    "sentences": Form(is_sentences, (("tokens",), ("words",)), _TAGS),
    # Texts alone are no choices, which the task says.
    "choices": Form(lambda x: isinstance(x, tuple) or is_text(x), (("context", "choices"),)),
    "questions": Form(is_texts, (("question", "context"),), ("answers",)),
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


def is_empty(x):
    """Whether `x` is a column without entries, or a tuple of such columns."""
    return all(map(is_empty, x)) if is_columns(x) else is_column(x) and len(x) == 0


def columns_of(x):
    """Returns the columns in `x`: the values of a dict, the entries of a tuple, or `x` itself."""
    if isinstance(x, dict):
        return tuple(x.values())
    return x if isinstance(x, tuple) and is_columns(x) else (x,)


def num_examples(x):
    """Returns the number of examples in texts, columns of texts, or a dict of arrays."""
    is_one = isinstance(x, str) or (isinstance(x, tuple) and is_one_pair(x))
    return 1 if is_one else len(columns_of(x)[0])


def check_is_dataset(x):
    """Raises `TypeError` unless `x` may be a data set that yields batches."""
    is_array = hasattr(x, "shape") and hasattr(x, "dtype")
    if x is not None and not (is_array or isinstance(x, (list, tuple, str, int, float))):
        return
    first = x[0] if isinstance(x, (list, tuple)) and x else x
    shape = f" of the shape {tuple(x.shape)}" if is_array else ""
    raise TypeError(
        "`x` must be a column of str, a tuple of two such columns for pairs, a dict of arrays as "
        f"in bert_keras.inputs, or a dataset. Received: {type(x).__name__}{shape}, beginning with "
        f"{first!r:.80}. Turn rows into columns: `texts, labels = map(list, zip(*rows))`, for "
        "pairs `tuple(map(list, zip(*rows)))`; those of an array are x[:, 0], or tuple(x.T). "
        "Token ids go into a dict: {'token_ids': ids, 'padding_mask': mask}, padded to one length, "
        "with 1 in the mask for each real token."
    )


def check_labels_and_weights(task, x, y, sample_weight=None):
    """Checks labels and weights against the inputs, and returns the weights as float32 arrays.

    Texts have one weight each, as have ready inputs, unless each of their labels may have one.

    Raises:
        ValueError: they do not have the same length, or weights are not finite numbers of that
            shape.
    """
    count, is_ready = num_examples(x), isinstance(x, dict)
    labels = None if y is None else range(num_examples(y))
    rule = "There must be as many labels as examples"
    check_same_length(rule, examples=range(count), labels=labels)
    if sample_weight is None:
        return None
    kinds = task.label_kind
    if isinstance(sample_weight, dict) and (is_ready or isinstance(kinds, LabelKind)):
        check_weights_by_output(y, sample_weight)
    kinds = list(kinds.values() if isinstance(kinds, Mapping) else [kinds])
    per_label = any(kind is None or kind.per_token for kind in kinds)
    # A loss of one's own may return one value for each label.
    per_label |= not task.recipe.uses_task_loss or overrides(task, "compute_loss", "train_step")
    # Each masked token has the weight of its row.
    of_rows = any(kind and kind.per_token and kind.name == "places" for kind in kinds)
    of_rows |= not per_label
    labels = y if is_ready and per_label else None
    if is_ready and isinstance(y, dict):
        is_by_output = isinstance(sample_weight, dict)
        sample_weight = {n: sample_weight.get(n) if is_by_output else sample_weight for n in y}
    if not isinstance(sample_weight, dict):
        return _checked_weights(sample_weight, count, labels, of_rows)
    labels = labels if isinstance(labels, dict) else {}
    return {n: _checked_weights(w, count, labels.get(n), of_rows) for n, w in sample_weight.items()}


def _checked_weights(weights, count, labels, of_rows):
    """Returns the weights of `count` examples, `None` for 1, or of their `labels`, if any."""
    rule = "Sample weights must be finite numbers"
    try:
        array = np.ones(count) if weights is None else keras.ops.convert_to_numpy(weights)
        array = array.astype("float32")
    except (TypeError, ValueError):
        raise ValueError(f"{rule}, one for each example. Received: {weights!r:.80}.") from None
    raise_at_first(~np.isfinite(array), array, rule)
    if array.ndim:
        rule = "There must be as many sample weights as examples"
        check_same_length(rule, examples=range(count), **{"sample weights": array})
    if array.shape == (count, 1) and of_rows:
        array = array[:, 0]
    sizes = (count,) if labels is None else tuple(np.shape(labels))
    if array.shape != (count, 1):
        shape, advice = sizes[: max(array.ndim, 1)], "Pass one weight for each example."
        check_shape("Sample weights", array, shape, advice=advice)
    return np.broadcast_to(array[:, None], sizes) if of_rows and array.ndim < len(sizes) else array


def check_bucket_window(bucket_window, columns, shuffle):
    """Raises `ValueError` if `fit(bucket_window=...)` would have no effect."""
    check_int("bucket_window", bucket_window)
    if not shuffle or columns.kind != "texts":
        rule = "`bucket_window` is for texts that are shuffled; ready inputs are not sorted"
        refuse_options(rule, {"bucket_window": bucket_window})


def split_off_end(columns, share):
    """Splits examples into a first and a last part, for `validation_split`.

    Args:
        columns: `Columns`.
        share: float, above 0 and below 1, the share of the last part.

    Returns:
        Two `Columns`.

    Raises:
        TypeError: they are a data set of batches, so its end is unknown.
        ValueError: `share` is out of range, or leaves one part empty.
    """
    if columns.kind == "batches":
        raise TypeError(
            "`validation_split` needs all examples at once: texts, or a dict of arrays. "
            f"Received: {type(columns.x).__name__}. Split the data set, and pass "
            "`validation_data`."
        )
    count = num_examples(columns.x)
    num_first = count - int(np.ceil(count * share)) if 0 < share < 1 else 0
    if not 0 < num_first < count:
        raise ValueError(
            "`validation_split` must be above 0 and below 1 and leave examples in both parts. "
            f"Received: validation_split={share} of {count} examples."
        )
    parts = (slice(None, num_first), slice(num_first, None))
    return [Columns(*(_cut(x, part) for x in columns[:3]), columns.kind) for part in parts]


def first_examples(columns, steps, batch_size):
    """Returns the examples of the first `steps` batches, or all if `steps` is `None`.

    Columns of unequal lengths stay as they are: they are refused when they are encoded.
    """
    if steps is None:
        return columns
    size = DEFAULT_BATCH_SIZE if batch_size is None else check_int("batch_size", batch_size)
    part = slice(check_int("steps", steps) * size)
    found = [column for x in columns[:3] if x is not None for column in columns_of(x)]
    if len(set(map(len, found))) > 1:
        return columns
    return Columns(*(_cut(x, part) for x in columns[:3]), columns.kind)


def _cut(x, part):
    """Returns a slice of examples; `None` stays `None`."""
    if x is None:
        return None
    if isinstance(x, dict):
        return {key: _cut(value, part) for key, value in x.items()}
    if is_columns(x):
        return tuple(_cut(column, part) for column in x)
    return x.iloc[part] if hasattr(x, "iloc") else x[part]
