"""Data in columns with names gives what the same data in lists gives."""

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pytest
import transformers
from checks import THEIR_NAMES, refused
from tiny import as_data_loader, tiny_task

from bert_keras.tasks.user_columns import as_validation_columns, normalize_columns

pytestmark = pytest.mark.once

TEXTS = ["a b c", "d e", "h a g g", "b c"]
PAIRS = TEXTS[::-1]
CLASSES = [0, 1, 1, 0]
WORDS, TAGS = [["a", "b"], ["c"]], [["O", "B-X"], ["O"]]
ANSWERS = [{"text": ["b"], "answer_start": [2]}, {"text": [], "answer_start": []}]
QUESTIONS = {"id": ["1", "2"], "question": ["a b", "c"], "context": ["a b c", "d e f"]}


@pytest.fixture(scope="module")
def tagger():
    options = {"num_classes": 2, "label_names": ["O", "B-X"]}
    return tiny_task("TokenClassifier", **options)


def rows(**columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def theirs(task, with_labels=True, padded=True):
    """Returns token ids as transformers' tokenizers give them, and labels among them."""
    inputs = task.preprocessor(TEXTS)
    inputs = {THEIR_NAMES[name]: np.asarray(array) for name, array in inputs.items()}
    if not padded:
        lengths = inputs["attention_mask"].sum(axis=1)
        inputs = {
            name: [row[:length].tolist() for row, length in zip(array, lengths, strict=True)]
            for name, array in inputs.items()
        }
    return inputs | ({"labels": CLASSES} if with_labels else {})


def loader_of(columns):
    return as_data_loader(datasets.Dataset.from_dict(columns).with_format("torch"), 4)


KINDS = {
    "list of dicts": lambda task: rows(text=TEXTS, label=CLASSES),
    "pandas": lambda task: pd.DataFrame({"text": TEXTS, "label": CLASSES, "id": list("abcd")}),
    "polars": lambda task: pl.DataFrame({"text": TEXTS, "label": CLASSES}),
    "Dataset": lambda task: datasets.Dataset.from_dict({"text": TEXTS, "label": CLASSES}),
    "slice of a Dataset": lambda task: datasets.Dataset.from_dict({"t": TEXTS, "label": CLASSES})[
        :
    ],
    "stream": lambda task: (
        datasets.Dataset.from_dict({"text": TEXTS, "label": CLASSES}).to_iterable_dataset().batch(4)
    ),
    "loader of texts": lambda task: loader_of({"text": TEXTS, "label": CLASSES}),
    "dict": theirs,
    "BatchEncoding": lambda task: transformers.BatchEncoding(theirs(task)),
    "rows of token ids": lambda task: rows(**theirs(task, padded=False)),
    "tokenized Dataset": lambda task: datasets.Dataset.from_dict(
        {"text": TEXTS, **theirs(task, padded=False)}
    ),
    "loader of token ids": lambda task: loader_of(theirs(task)),
    "iterator of batches": lambda task: iter([theirs(task)]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_labels_among_the_columns_are_taken(shared_classifier, kind):
    expected = shared_classifier.evaluate(TEXTS, CLASSES, verbose=0)
    steps = {"steps": 1} if kind.startswith("iterator") else {}
    found = shared_classifier.evaluate(KINDS[kind](shared_classifier), verbose=0, **steps)
    assert found == pytest.approx(expected, abs=1e-5)


def test_their_inputs_are_predicted_and_validated(shared_classifier):
    inputs = theirs(shared_classifier, with_labels=False)
    expected = shared_classifier.predict(TEXTS, verbose=0)
    for x in (inputs, transformers.BatchEncoding(inputs), theirs(shared_classifier)):
        np.testing.assert_allclose(shared_classifier.predict(x, verbose=0), expected, atol=1e-5)
    labelled = rows(text=TEXTS, label=CLASSES)
    ready = [shared_classifier.preprocessor(TEXTS), CLASSES]
    for data, kind in ((labelled, "texts"), ((inputs, CLASSES), "arrays"), (ready, "arrays")):
        assert as_validation_columns(shared_classifier, data)[1:] == (CLASSES, None, kind)


def test_pairs_have_known_names(shared_classifier):
    expected = shared_classifier.evaluate((TEXTS, PAIRS), CLASSES, verbose=0)
    table = pd.DataFrame({"hypothesis": PAIRS, "premise": TEXTS, "label": CLASSES})
    assert shared_classifier.evaluate(table, verbose=0) == pytest.approx(expected, abs=1e-5)
    with pytest.raises(ValueError, match=r"text_columns=.*the columns \['a', 'b', 'label'\]"):
        shared_classifier.evaluate(pd.DataFrame({"a": TEXTS, "b": PAIRS, "label": CLASSES}))


def test_numbers_of_classes_follow_their_names_in_any_case(tagger):
    feature = datasets.List(datasets.ClassLabel(names=["b-x", "O"]))
    features = datasets.Features({"tokens": datasets.List(datasets.Value("string"))})
    features["ner_tags"] = feature
    columns = {"tokens": WORDS, "ner_tags": [[1, 0], [1]]}
    data = datasets.Dataset.from_dict(columns, features=features)
    expected = tagger.evaluate(WORDS, TAGS, verbose=0)
    assert tagger.evaluate(data, verbose=0) == pytest.approx(expected, abs=1e-5)
    assert tagger.evaluate(rows(tokens=WORDS, tags=TAGS), verbose=0) == pytest.approx(expected)


def test_tokens_of_label_minus_100_have_no_label(tagger):
    inputs = {
        "input_ids": [[2, 5, 6, 3], [2, 7, 3]],
        "labels": [[-100, 0, 1, -100], [-100, 0, -100]],
    }
    x, y, weights, _ = normalize_columns(tagger, datasets.Dataset.from_dict(inputs))
    assert x["padding_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert y.tolist() == [[0, 0, 1, 0], [0, 0, 0, 0]]
    assert weights.tolist() == [[0, 1, 1, 0], [0, 1, 0, 0]]
    expected = tagger.evaluate(WORDS, TAGS, verbose=0)
    assert tagger.evaluate(rows(**inputs), verbose=0) == pytest.approx(expected, abs=1e-5)


def test_answers_of_datasets_are_taken():
    task = tiny_task("QuestionAnswering")
    data = datasets.Dataset.from_dict({**QUESTIONS, "answers": ANSWERS})
    x, y, *_ = normalize_columns(task, data)
    assert [list(column) for column in x] == [QUESTIONS["question"], QUESTIONS["context"]]
    assert y == [[("b", 2)], None]
    assert task.n_best(data) == task.n_best((QUESTIONS["question"], QUESTIONS["context"]))
    inputs = {"input_ids": [[2, 5, 3, 6, 3]], "start_positions": [3], "end_positions": [3]}
    _, y, *_ = normalize_columns(task, datasets.Dataset.from_dict(inputs))
    assert {name: labels.tolist() for name, labels in y.items()} == {
        "start_logits": [3],
        "end_logits": [3],
    }


@refused(
    (list(zip(TEXTS, CLASSES, strict=True)), r"texts, labels = map\(list, zip\(\*rows\)\)"),
    ([("a", ["b", "c"])], r"tuple\(map\(list, zip\(\*rows\)\)\)"),
    ([["a", "b"]], r"tuple\(map\(list, zip\(\*rows\)\)\)"),
    (np.array([["a", "b"]]), r"shape \(1, 2\).*tuple\(x.T\)"),
    error=TypeError,
)
def test_rows_without_names_are_refused_with_the_call_that_helps(shared_classifier, x):
    shared_classifier.fit(x, CLASSES, verbose=0)
