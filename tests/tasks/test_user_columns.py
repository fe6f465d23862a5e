"""Texts and labels are read alike from every kind of column, table and tuple."""

import datasets
import keras
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.special
from checks import assert_close, cases
from tiny import (
    Batches,
    as_tensorflow,
    batches_of,
    tiny_backbone,
    tiny_classifier,
    tiny_preprocessor,
    tiny_task,
)

import bert_keras
from bert_keras.tasks.user_columns import as_columns, is_texts

pytestmark = pytest.mark.once

TEXTS = ["a b c", "d e", "h a g g", "b c", "a", "c d e"]
LABELS = [0, 1, 1, 0, 1, 0]
NAMES = ["no", "yes"]


def tensor(values):
    import tensorflow as tf

    return tf.constant(values)


def in_bytes(values):
    return [value.encode() for value in values]


COLUMNS = {
    "list": list,
    "tuple": tuple,
    "of zip": lambda values: next(zip(*[(value, 0) for value in values], strict=True)),
    "numpy str": np.array,
    "numpy object": lambda values: np.array(values, dtype=object),
    "numpy StringDType": lambda values: np.array(values, dtype=np.dtypes.StringDType()),
    "pandas": pd.Series,
    "polars": pl.Series,
    "pyarrow": pa.array,
    "pyarrow chunked": lambda values: pa.chunked_array([values[:2], values[2:]]),
    "bytes": in_bytes,
    "numpy bytes": lambda values: np.array(in_bytes(values)),
    "numpy object bytes": lambda values: np.array(in_bytes(values), dtype=object),
    "pandas bytes": lambda values: pd.Series(in_bytes(values)),
    "tensor": tensor,
    "batch of tf.data": lambda values: next(iter(as_tensorflow(values, len(values)))),
    "datasets": lambda values: datasets.Dataset.from_dict({"column": values})["column"],
}


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_texts_in_every_kind_of_column_are_read_alike(shared_classifier, make):
    assert is_texts(make(TEXTS)) and is_texts((make(TEXTS), make(TEXTS)))
    assert as_columns(make(TEXTS)) == TEXTS
    for column, expected in ((make(TEXTS), TEXTS), ((make(TEXTS), make(TEXTS)), (TEXTS, TEXTS))):
        outputs = [shared_classifier.predict(x, verbose=0) for x in (column, expected)]
        np.testing.assert_array_equal(*outputs)


@pytest.fixture(scope="module")
def classifier():
    return tiny_classifier(label_names=NAMES)


@pytest.mark.parametrize("make", [COLUMNS[name] for name in COLUMNS if "Dtype" not in name])
def test_labels_may_be_in_every_kind_of_column(classifier, make):
    named = [NAMES[label] for label in LABELS]
    for labels in (make(named), np.array(LABELS)[:, None], tuple(LABELS), pl.Series(LABELS)):
        batches = batches_of(classifier, TEXTS, labels)
        assert sorted(batches[0][1].tolist()) == sorted(LABELS)
    classifier.fit(make(TEXTS), make(named), validation_split=0.5, epochs=1, verbose=0)


@pytest.mark.parametrize("make", [tensor, in_bytes])
def test_every_method_reads_strings_of_tensorflow(make):
    texts, pair = make(TEXTS), (make(TEXTS), make(TEXTS))
    classifier = tiny_classifier(tiny_backbone(initializer_range=0.3))
    assert classifier.classify(texts) == classifier.classify(TEXTS)
    assert classifier.classify(texts[0]) == classifier.classify(TEXTS[0])
    assert classifier.classify((texts[0], texts[0])) == classifier.classify((TEXTS[0], TEXTS[0]))
    np.testing.assert_array_equal(
        classifier.preprocessor(pair)["token_ids"],
        classifier.preprocessor((TEXTS, TEXTS))["token_ids"],
    )
    for name, method, options in [
        ("TextEmbedder", "embed", {}),
        ("MaskedLM", "score", {}),
        ("TokenClassifier", "tag", {"num_classes": 2}),
        ("ReplacedTokenDetector", "is_replaced", {}),
        ("QuestionAnswering", "answer", {}),
        ("NextSentencePrediction", "is_next", {}),
    ]:
        method = getattr(tiny_task(name, classifier.backbone, **options), method)
        is_pair = name in ("QuestionAnswering", "NextSentencePrediction")
        columns, expected = (pair, (TEXTS, TEXTS)) if is_pair else ((texts,), (TEXTS,))
        assert str(method(*columns)) == str(method(*expected))


def test_fit_continues_after_train_on_batch():
    classifier = tiny_classifier()
    inputs = tiny_preprocessor()(TEXTS)
    classifier.train_on_batch(inputs, np.array(LABELS))
    classifier.fit(TEXTS, LABELS, initial_epoch=1, epochs=3, verbose=0)
    assert int(classifier.optimizer.iterations) == 3
    rate = keras.ops.convert_to_numpy(classifier.optimizer.learning_rate)
    np.testing.assert_allclose(rate, 0, atol=1e-9)


def test_both_texts_of_a_pair_are_scored():
    model, pairs = tiny_task("MaskedLM"), (["a b", "c"], ["d e", "f g h"])
    scores = model.score(pairs)
    assert len(scores) == 2 and not np.allclose(scores, model.score(pairs[0]))
    packed, total = model.preprocessor(pairs), 0.0
    ids, segments = packed["token_ids"][:1], packed["segment_ids"][:1]
    for place in (1, 2, 4, 5):
        hidden = ids.copy()
        hidden[0, place] = model.preprocessor.tokenizer.mask_token_id
        inputs = {"token_ids": hidden, "segment_ids": segments, "padding_mask": ids > 0}
        logits = model.predict(inputs, verbose=0)[0, place].astype("float64")
        total += scipy.special.log_softmax(logits)[ids[0, place]]
    assert scores[0] == pytest.approx(total, abs=1e-4)
    with pytest.raises(ValueError, match="must fit whole: at most 13"):
        model.score((["a b c d e f g h"], ["a b c d e f"]))


@cases(
    ("num_classes", 3, ("mean", None)),
    ("label_names", ("spam", "ham"), ("mean", ("spam", "ham"))),
    ("pooling", "cls", ("cls", ("negative", "positive"))),
)
def test_an_argument_of_the_head_begins_a_new_one_and_keeps_the_others(tmp_path, name, value, kept):
    source = tiny_classifier(pooling="mean", label_names=["negative", "positive"])
    source.save_to_preset(tmp_path)
    with pytest.warns(UserWarning, match=name):
        task = bert_keras.TextClassifier.from_preset(tmp_path, **{name: value})
    assert getattr(task, name) == value and (task.pooling, task.label_names) == kept
    saved, new = (keras.ops.convert_to_numpy(t.head.dense.kernel) for t in (source, task))
    assert saved.shape != new.shape or np.abs(saved - new).max() > 1e-3


def test_validation_split_cuts_every_form_of_examples():
    words = (["a", "b", "c", "d"], ["e"], ["a"], ["b", "c"])
    tags = (["O", "O", "O", "X"], ["O"], ["X"], ["O", "O"])
    tagger = tiny_task("TokenClassifier", label_names=["O", "X"], num_classes=2)
    seen = []
    encode_texts = tagger.encode_texts

    def noted(x, *args, **kwargs):
        seen.append(x)
        return encode_texts(x, *args, **kwargs)

    tagger.encode_texts = noted
    tagger.fit(words, tags, validation_split=0.5, epochs=1, verbose=0)
    assert seen == [list(words[:2]), list(words[2:])]
    sets = ([0, 1], [1, 0], [1, 1], [0, 0], [0, 1], [1, 0])
    tiny_classifier(problem_type="multi_label").fit(
        TEXTS, sets, validation_split=0.5, epochs=1, verbose=0
    )
    choices = np.array([[text, "b"] for text in TEXTS])
    chooser = tiny_task("MultipleChoice")
    labels = np.zeros((len(TEXTS), 1), int)
    chooser.fit((TEXTS, choices), labels, validation_split=0.5, epochs=1, verbose=0)


def test_options_that_need_other_inputs_are_refused_with_the_remedy():
    batches = [(TEXTS[:2], LABELS[:2])]
    with pytest.raises(TypeError, match=r"Received: list_iterator. .* pass `validation_data`"):
        tiny_classifier().fit(iter(batches), validation_split=0.5, steps_per_epoch=1, epochs=1)
    callbacks = [keras.callbacks.Callback()]
    for texts, task in (
        ([["a", "b"]], tiny_task("TokenClassifier", num_classes=2)),
        ((["a"], ["b c"]), tiny_task("QuestionAnswering")),
        (["a b"], tiny_task("ReplacedTokenDetector")),
    ):
        task.predict(texts, steps=None, callbacks=[], verbose=0)
        with pytest.raises(ValueError, match=r"callbacks=\[.*\]\. Leave"):
            task.predict(texts, callbacks=callbacks)


def test_steps_count_batches_of_the_first_examples_not_of_the_longest():
    texts, labels = ["a", "b c", "a b c d", "b", "c d e f g"], [0, 1, 0, 1, 1]
    task = tiny_classifier()
    first, of_first = (texts[:4], labels[:4]), {"batch_size": 2, "verbose": 0}
    expected = task.evaluate(*first, **of_first)
    assert task.evaluate(texts, labels, steps=2, **of_first) == pytest.approx(expected)
    found = task.predict(texts, steps=2, **of_first)
    assert_close(found, task.predict(texts[:4], verbose=0))
    inputs = task.preprocessor(texts)
    assert_close(task.predict(inputs, steps=2, **of_first), found)
    task.compile(keras.optimizers.SGD(0.0))
    options = {"validation_data": (texts, labels), "validation_steps": 2, "epochs": 1}
    history = task.fit(texts, labels, **options, **of_first).history
    assert history["val_loss"] == pytest.approx(expected[:1])
    with pytest.raises(ValueError, match="`steps` must be an int from 1"):
        task.predict(texts, steps=0)
    one = {"steps": 1, **of_first}
    short = {"token_ids": inputs["token_ids"], "segment_ids": inputs["segment_ids"][:3]}
    for refused, message in [
        (lambda: task.evaluate(texts, labels[:3], **one), "as many labels as examples.* 3 labels"),
        (lambda: task.evaluate(texts, labels, sample_weight=np.ones(4), **one), "4 sample weights"),
        (lambda: task.predict((texts, texts[:3]), **one), "equally many.*5 first, 3 second"),
        (lambda: task.predict(short, **one), "segment_ids"),
    ]:
        with pytest.raises(ValueError, match=message):
            refused()


def test_a_tuple_of_texts_validates_a_task_without_labels():
    history = tiny_task("MaskedLM").fit(TEXTS, validation_data=tuple(TEXTS), verbose=0).history
    assert "val_loss" in history


def test_a_batch_may_be_a_list_of_dicts_an_example_each():
    task = tiny_classifier(label_names=NAMES)
    rows = [{"text": text, "label": label} for text, label in zip(TEXTS, LABELS, strict=True)]
    outputs, scores = task.predict(TEXTS, verbose=0), task.evaluate(TEXTS, LABELS, verbose=0)
    for size in (1, 2, 3, 6):
        batches = Batches([rows[start : start + size] for start in range(0, 6, size)])
        np.testing.assert_allclose(task.predict(batches, verbose=0), outputs, atol=1e-6)
        assert task.evaluate(batches, verbose=0) == pytest.approx(scores, abs=1e-6)
    assert np.isfinite(task.fit(batches, epochs=1, verbose=0).history["loss"]).all()


def test_ragged_ids_may_be_unsigned():
    task = tiny_classifier()
    ids = [[2, 5, 3], [2, 5, 6, 3]]
    expected = task.predict({"input_ids": ids}, verbose=0)
    unsigned = {"input_ids": [np.array(row, "uint16") for row in ids]}
    np.testing.assert_array_equal(task.predict(unsigned, verbose=0), expected)
