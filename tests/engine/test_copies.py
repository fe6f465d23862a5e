"""Copies of models work, or the error says how to copy."""

import copy
import pickle

import keras
import numpy as np
import pytest
from checks import cases
from tiny import tiny_classifier

pytestmark = pytest.mark.once

TEXTS = ["a b c", "d e", "f"]
# TensorFlow takes longer for a graph; JAX compiles each operation of a step that is not compiled.
EAGERLY = keras.backend.backend() != "jax"


def pickled(value):
    return pickle.loads(pickle.dumps(value))


@cases(copy.deepcopy, pytest.param(pickled, marks=pytest.mark.also_on("tensorflow")))
def test_a_copy_gives_the_same_answers_and_trains_independently(how):
    task = tiny_classifier()
    task.compile(run_eagerly=EAGERLY)
    task.fit(TEXTS, [0, 1, 0], epochs=1, verbose=0)
    answers = task.predict(TEXTS, verbose=0)
    again = how(task)
    np.testing.assert_array_equal(again.predict(TEXTS, verbose=0), answers)
    assert int(again.optimizer.iterations) == 1
    again.fit(TEXTS, [0, 1, 0], epochs=1, verbose=0)
    assert not np.array_equal(again.predict(TEXTS, verbose=0), answers)
    np.testing.assert_array_equal(task.predict(TEXTS, verbose=0), answers)
    for part in (task.backbone, task.preprocessor, task.tokenizer):
        assert how(part).get_config() == part.get_config()
    assert how(task.tokenizer)(TEXTS) == task.tokenizer(TEXTS)
