"""The table of docs/inputs.md: which task takes which kind of data."""

import functools
import pathlib

import datasets
import keras
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from checks import cases
from tiny import (
    Batches,
    as_data_loader,
    as_tensorflow,
    batches_of,
    tiny_backbone,
    tiny_preprocessor,
    tiny_task,
)

import bert_keras

pytestmark = pytest.mark.once

# Two batches weigh alike, whatever number of words they hold. So both hold five.
TEXTS = ["a b c", "d e", "h a g", "b c"]
CLASSES = [0, 1, 1, 0]
# Task: its columns, and its labels.
TASKS = {
    "TextClassifier": ([TEXTS], CLASSES),
    "LongTextClassifier": ([TEXTS], CLASSES),
    "TokenClassifier": ([[text.split() for text in TEXTS]], [[0] * len(t.split()) for t in TEXTS]),
    "QuestionAnswering": ([["a b"] * 4, TEXTS], [("a", 0), None, ("a", 2), None]),
    "MultipleChoice": ([TEXTS, [["a", "b"]] * 4], CLASSES),
    "TextEmbedder": ([TEXTS, TEXTS[::-1]], [1.0, 0.0, 0.5, 0.2]),
    "MaskedLM": ([TEXTS], None),
    "NextSentencePrediction": ([TEXTS, TEXTS[::-1]], CLASSES),
    "Pretraining": ([TEXTS, TEXTS[::-1]], CLASSES),
    "SpanBoundary": ([TEXTS], None),
    "ReplacedTokenDetection": ([TEXTS], None),
    "Distillation": ([TEXTS], CLASSES),
}
# Of two tasks each, which are made like others.
PAIRS = {
    "ReplacedTokenDetection": ("MaskedLM", "ReplacedTokenDetector"),
    "Distillation": ("TextClassifier", "TextClassifier"),
}
NAMES = ("first", "second")
COLUMNS = {
    "list": list,
    "tuple": tuple,
    "NumPy": lambda values: np.fromiter(values, object, len(values)),
    "pandas Series": pd.Series,
    "polars Series": pl.Series,
    "pyarrow array": pa.array,
    "`datasets` column": lambda values: datasets.Dataset.from_dict({"x": values})["x"],
}
FRAMES = {
    "pandas DataFrame": pd.DataFrame,
    "polars DataFrame": pl.DataFrame,
    "pyarrow Table": pa.table,
    "`datasets.Dataset`": datasets.Dataset.from_dict,
}


def two_batches(columns, labels):
    batches = []
    for rows in (slice(0, 2), slice(2, 4)):
        x = _one_or_more([column[rows] for column in columns])
        batches.append((x,) if labels is None else (x, labels[rows]))
    return batches


def rows_of(columns, labels):
    rows = [_one_or_more(row) for row in zip(*columns, strict=True)]
    return [(row,) for row in rows] if labels is None else list(zip(rows, labels, strict=True))


def of_tensorflow(columns, labels):
    x = _one_or_more(columns)
    return as_tensorflow((x,) if labels is None else (x, labels), 2)


def of_grain(columns, labels):
    import grain

    return grain.MapDataset.source(rows_of(columns, labels)).to_iter_dataset().batch(2)


STREAMS = {
    "`PyDataset`": lambda columns, labels: Batches(two_batches(columns, labels)),
    "generator": lambda columns, labels: (batch for batch in two_batches(columns, labels)),
    "`tf.data` of str": of_tensorflow,
    "torch `DataLoader` of str": lambda *columns: as_data_loader(rows_of(*columns), 2),
    "Grain of str": of_grain,
}


def _one_or_more(columns):
    return tuple(columns) if len(columns) > 1 else columns[0]


def make_task(name, backbone=None):
    keras.utils.set_random_seed(0)
    cls = getattr(bert_keras, name)
    if name in PAIRS:
        return cls(*(make_task(part, tiny_backbone()) for part in PAIRS[name]))
    options = {"num_classes": 2} if name == "TokenClassifier" else {}
    if name == "TextEmbedder":
        options["objective"] = "similarity"
    names = NAMES[: 1 if name not in TASKS else len(TASKS[name][0])]
    return cls(
        backbone or _backbone(), preprocessor=tiny_preprocessor(text_columns=names), **options
    )


# `evaluate` changes nothing in a task.
_made, _backbone = functools.cache(make_task), functools.cache(tiny_backbone)


@functools.cache
def _answer_to_lists(task):
    columns, labels = TASKS[task]
    return _made(task).evaluate(_one_or_more(columns), labels, verbose=0)


def _batch_of(task, x, labels):
    """Returns the arrays that `evaluate` gives to the model."""
    return keras.tree.flatten(batches_of(task, x, labels, training=True)[0])


@functools.cache
def _batch_of_lists(task):
    columns, labels = TASKS[task]
    return _batch_of(_made(task), _one_or_more(columns), labels)


def _is_taken(task, kind, columns, labels):
    """Whether a task takes this kind of data; if so, the result must equal that for lists."""
    try:
        if kind in COLUMNS:
            x = _one_or_more([COLUMNS[kind](column) for column in columns])
            batch = _batch_of(_made(task), x, labels)
        elif kind in FRAMES:
            frame = FRAMES[kind](dict(zip(NAMES, columns, strict=False)))
            batch = _batch_of(_made(task), frame, labels)
        else:
            steps = {"steps": 2} if kind == "generator" else {}
            actual = _made(task).evaluate(STREAMS[kind](columns, labels), verbose=0, **steps)
    except (TypeError, ValueError, RuntimeError):
        return False
    if kind not in STREAMS:
        np.testing.assert_equal(batch, _batch_of_lists(task))
        return True
    if TASKS[task][1] is not None and task != "Pretraining":  # Which draw masks batch by batch.
        assert actual == pytest.approx(_answer_to_lists(task), abs=1e-5)
    return True


def test_the_documentation_says_which_task_takes_what():
    page = pathlib.Path(__file__).parents[2] / "docs" / "inputs.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("|")]
    table = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    actual = [
        [kind, *("yes" if _is_taken(task, kind, *TASKS[task]) else "-" for task in TASKS)]
        for kind in [*COLUMNS, *FRAMES, *STREAMS]
    ]
    expected = [["texts in a", *(f"`{task}`" for task in TASKS)], *actual]
    assert [table[0], *table[2:]] == expected, "\n".join(map(" | ".join, expected))


@cases(
    ("TextClassifier", "probabilities", ([],)),
    ("TextClassifier", "calibrate", (TEXTS, CLASSES)),
    ("TokenClassifier", "predict_tags", ([],)),
    ("QuestionAnswering", "n_best", (([], []),)),
    ("MaskedLM", "score", ([],)),
    ("SparseTextEmbedder", "embed", ([],)),
)
def test_an_unknown_option_of_an_answer_is_an_error_that_names_the_method(name, method, columns):
    task = tiny_task(name, **{"num_classes": 2} if name == "TokenClassifier" else {})
    with pytest.raises(TypeError, match=rf"`{method}` has no argument 'batch'.*'batch_size'"):
        getattr(task, method)(*columns, batch=2)
