"""Accumulated batches make the update of one large batch, whatever each of them weighs."""

import functools

import keras
import numpy as np
import pytest
from checks import assert_same_structure_close, cases
from tiny import tiny_backbone, tiny_classifier, tiny_task

import bert_keras

pytestmark = pytest.mark.once

TEXTS = ["a b c", "d e f g h a b", "c", "a d", "e f g", "h"]
LABELS = [0, 1, 1, 0, 1, 0]
WORDS = [text.split() for text in TEXTS]
TAGS = [["B-X"] + ["O"] * (len(words) - 1) for words in WORDS]
CONTEXTS = [f"{text} a b" for text in TEXTS]
SPANS = [(text[0], 0) for text in TEXTS]
WEIGHTS = np.array([1.0, 4.0, 0.0, 0.5, 2.0, 1.0])
NUMBERS = np.array([0.1, 1.0, -1.0, 2.0, 0.5, 0.0])
TAGGER = {"num_classes": 2, "label_names": ["O", "B-X"]}
REGRESSION = {"num_classes": 1, "problem_type": "regression"}
WEIGHTED = {"sample_weight": WEIGHTS}
CASES = {
    "class weights": ("TextClassifier", {}, TEXTS, LABELS, {"class_weight": {0: 5.0, 1: 1.0}}),
    "examples": ("TextClassifier", REGRESSION, TEXTS, NUMBERS, WEIGHTED),
    "words": ("TokenClassifier", TAGGER, WORDS, TAGS, {}),
    "chains": ("TokenClassifier", {**TAGGER, "crf": True}, WORDS, TAGS, {}),
    "spans": ("QuestionAnswering", {}, (["a"] * 6, CONTEXTS), SPANS, WEIGHTED),
}


def update(case, optimizer, batch_size, loss="auto"):
    name, options, x, y, fitting = CASES[case]
    keras.utils.set_random_seed(0)
    task = tiny_task(name, tiny_backbone(dropout=0.0, initializer_range=0.3), **options)
    task.compile(optimizer, loss)
    task.fit(x, y, batch_size=batch_size, epochs=1, shuffle=False, verbose=0, **fitting)
    return task.get_weights()


OPTIMIZERS = {
    "SGD": functools.partial(keras.optimizers.SGD, 0.1),
    # Gradients of the keys' biases are 0, but for roundings, which the usual epsilon magnifies.
    "AdamW": functools.partial(bert_keras.AdamW, 1e-3, epsilon=1e-3),
}


@cases(
    *((case, "AdamW") for case in CASES),
    ("class weights", "SGD"),
    pytest.param("words", "SGD", marks=pytest.mark.each_backend),
)
def test_unequal_batches_make_the_update_of_the_whole(case, optimizer):
    make = OPTIMIZERS[optimizer]
    parts = update(case, make(gradient_accumulation_steps=3), 2)
    assert_same_structure_close(parts, update(case, make(), 6), 2e-6)


def test_a_short_last_batch_and_a_summed_loss_make_the_update_of_the_whole():
    for reduction in ("sum_over_batch_size", "sum"):
        loss = keras.losses.MeanSquaredError(reduction=reduction)
        optimizer = keras.optimizers.SGD(0.01, gradient_accumulation_steps=2)
        parts = update("examples", optimizer, 4, loss)
        whole = update("examples", keras.optimizers.SGD(0.01), 6, loss)
        assert_same_structure_close(parts, whole, 1e-5)


def test_an_unfinished_update_continues_after_loading(reloaded):
    straight, halves = (tiny_classifier(tiny_backbone(dropout=0.0)) for _ in range(2))
    halves.set_weights(straight.get_weights())
    inputs, weights = straight.preprocessor(TEXTS), WEIGHTS[[0, 1, 3, 4, 5]]
    for task in (straight, halves):
        optimizer = keras.optimizers.SGD(0.1, gradient_accumulation_steps=3)
        optimizer.build(task.trainable_variables)
        task.compile(optimizer)
    for i in range(3):
        if i == 2:
            halves = reloaded(halves)
        for task in (straight, halves):
            rows = {name: values[i : i + 1] for name, values in inputs.items()}
            task.train_on_batch(rows, np.array(LABELS[i : i + 1]), weights[i : i + 1])
    assert_same_structure_close(halves.get_weights(), straight.get_weights(), 0)


@cases(
    ("Pretraining", "several losses, which weigh a batch differently"),
    ("TextEmbedder", "compares the rows of a batch"),
    ("SparseTextEmbedder", "compares the rows of a batch"),
)
def test_batches_that_cannot_make_the_update_of_the_whole_are_refused(name, reason):
    task = tiny_task(name)
    with pytest.raises(ValueError, match=f"one large batch.*{reason}.*an optimizer with its own"):
        task.compile(gradient_accumulation_steps=2)
    with pytest.warns(UserWarning, match=f"{reason}.* differs from that of one large batch"):
        task.compile(OPTIMIZERS["AdamW"](gradient_accumulation_steps=2))
