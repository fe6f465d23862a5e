"""Data in columns with names, as other libraries hold it, in this package's form.

Tables of `datasets`, pandas, polars and pyarrow, dicts of columns, lists of dicts, and what
tokenizers of transformers return. Token ids are ready inputs under other names; texts are raw
examples. Labels are among the columns.
"""

from collections.abc import Mapping

import keras
import numpy as np

from bert_keras.inputs import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from bert_keras.other_names import our_input
from bert_keras.preprocessing.columns import as_column, is_table
from bert_keras.tasks.user_columns import is_text

# Form of a task's raw examples -> names of columns to read, and of columns of labels. The first
# match in a table is taken. Without a match, what the columns hold decides, see `columns_of_table`.
_COLUMNS = {
    "sentences": (("tokens",), ("words",)),
    "questions": (("question", "context"),),
    "choices": (("context", "choices"),),
}
_LABELS = {
    "sentences": ("ner_tags", "tags", "labels", "ner", "label", "pos_tags"),
    "questions": ("answers",),
}
_DEFAULT_LABELS = ("label", "labels")
_PAIRS = (
    *(("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2")),
    *(("question", "sentence"), ("text1", "text2"), ("text_a", "text_b")),
)
_ID_COLUMNS = ("id", "idx", "guid", "uid")
_POSITIONS = {"start_logits": "start_positions", "end_logits": "end_positions"}
# The label of tokens that have none, in transformers.
_IGNORED = -100


def in_our_form(task, x, y=None, sample_weight=None):
    """Returns `(x, y, sample_weight)` in this package's form; data already in it is unchanged.

    Args:
        task: a `Task`.
        x: anything that `fit` takes.
        y: labels, or `None` to take those among the columns of `x`.
        sample_weight: weights, or `None`.
    """
    if are_rows(x):
        x = {name: [row.get(name) for row in x] for name in x[0]}
    elif isinstance(x, Mapping):
        x = x if isinstance(x, dict) else dict(x)
    elif not is_table(x):
        return x, y, sample_weight
    names = column_names(x)
    if "input_ids" in names:
        return _as_ready_inputs(task, x, names, y, sample_weight)
    if isinstance(x, dict) and not _holds_examples(x, task.form):
        return x, y, sample_weight
    if y is None:
        y = _labels(task, x, names, _label_names(task.form))
        if task.form == "questions" and y is not None:
            y = [_answers_as_pairs(answers) for answers in as_column(y)]
    text_columns = getattr(task.preprocessor, "text_columns", None)
    return columns_of_table(x, text_columns, task.form), y, sample_weight


def are_rows(x):
    """Whether `x` is a list of dicts, an example each, rather than of dicts of batches."""
    if not (isinstance(x, list) and x and all(isinstance(row, Mapping) for row in x)):
        return False
    return TOKEN_IDS not in x[0] and np.ndim(x[0].get("input_ids", [])) == 1


def _takes_labels(task):
    return task.needs_labels or task.form in ("questions", "candidates")


def _label_names(form):
    return _LABELS.get(form, _DEFAULT_LABELS)


def _holds_examples(columns, form):
    """Whether a dict of columns holds raw examples, rather than ready inputs."""
    has_known_names = any(set(names) <= set(columns) for names in _COLUMNS.get(form, ()))
    return TOKEN_IDS not in columns and (has_known_names or any(map(is_text, columns.values())))


def column_names(table):
    """Returns the names of a table's columns, a list."""
    if isinstance(table, dict):
        return list(table)
    return list(table.column_names if hasattr(table, "column_names") else table.columns)


def columns_of_table(table, text_columns=None, form="texts"):
    """Returns a table's columns of raw examples: one column, or a tuple of several.

    Args:
        table: see `is_table`, or a dict of columns.
        text_columns: names of the columns. `None` takes those that the form names, or the only one
            that holds str, besides labels and ids, or two with the names of a pair.
        form: str, see `user_columns.FORMS`.

    Raises:
        ValueError: a column is missing, or it is ambiguous which to read.
    """
    names = column_names(table)
    chosen = text_columns or next((x for x in _COLUMNS.get(form, ()) if set(x) <= set(names)), None)
    if chosen is None:
        excluded = (*_label_names(form), *_ID_COLUMNS)
        chosen = [name for name in names if name not in excluded and is_text(table[name])]
        chosen = next((pair for pair in _PAIRS if set(pair) == set(chosen)), chosen)
        chosen = chosen if len(chosen) == 1 or chosen in _PAIRS else ()
    if not chosen or not set(chosen) <= set(names):
        raise ValueError(
            "A table must have one column of str, or the preprocessor must say which ones to read, "
            f"`text_columns=['premise', 'hypothesis']`. Received: the columns {names}, "
            f"text_columns={text_columns}."
        )
    columns = tuple(table[name] for name in chosen)
    return columns if len(columns) > 1 else columns[0]


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
    labels = [name for name in (*_label_names(task.form), *_POSITIONS.values()) if name in columns]
    if y is None and set(_POSITIONS.values()) <= set(labels):
        y = {name: _as_matrix(columns[position]) for name, position in _POSITIONS.items()}
    elif y is None and task.form != "questions":
        y = _labels(task, x, names, ("labels", *_label_names(task.form)))
        y = None if y is None else _as_matrix(y, _IGNORED)
    if _takes_labels(task):
        columns = {name: column for name, column in columns.items() if name not in labels}
    if not isinstance(x, dict):
        columns = {name: column for name, column in columns.items() if our_input(name)}
    inputs = {our_input(name) or name: _as_matrix(column) for name, column in columns.items()}
    if PADDING_MASK not in inputs:
        inputs[PADDING_MASK] = _as_matrix(columns["input_ids"], mask=True)
    if SEGMENT_IDS not in task.input_names and not np.any(inputs.get(SEGMENT_IDS, 0)):
        inputs.pop(SEGMENT_IDS, None)
    if task.label_per_token and y is not None and sample_weight is None:
        y = np.asarray(y)
        sample_weight = (y != _IGNORED) * inputs[PADDING_MASK].astype("float32")
        y = np.where(y == _IGNORED, 0, y)
    return inputs, y, sample_weight


def _as_matrix(column, fill=0, mask=False):
    """Returns a column of numbers or of rows of numbers as an array; shorter rows are filled up.

    Args:
        column: array, tensor, or column of numbers or of rows.
        fill: int, what shorter rows are filled up with.
        mask: bool, whether to return 1 for each entry, and 0 where a row is filled up.
    """
    if hasattr(column, "shape") and hasattr(column, "dtype") and getattr(column, "ndim", 0) > 0:
        array = keras.ops.convert_to_numpy(column)
        if array.dtype != object:
            return np.ones_like(array) if mask else array
        column = array
    rows = [np.asarray(row) for row in as_column(column)]
    if len({row.shape for row in rows}) > 1 and {row.ndim for row in rows} == {1}:
        longest = max(map(len, rows))
        if mask:
            rows = [np.ones_like(row) for row in rows]
        return np.stack([np.pad(r, (0, longest - len(r)), constant_values=fill) for r in rows])
    array = np.stack(rows) if rows else np.zeros((0,), "int32")
    return np.ones_like(array) if mask else array
