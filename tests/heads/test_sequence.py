"""The head for whole texts, with a hidden layer."""

import numpy as np
import pytest
from checks import assert_close, to_numpy

from bert_keras.heads.sequence import SequenceHead

pytestmark = pytest.mark.once


def build(*arguments, **options):
    head = SequenceHead(*arguments, **options)
    head.build()
    return head


def apply(dense, x):
    return x @ to_numpy(dense.kernel) + to_numpy(dense.bias)


@pytest.mark.parametrize(("name", "function"), [("tanh", np.tanh), ("relu", lambda x: x * (x > 0))])
def test_an_optional_hidden_layer_comes_before_the_logits(name, function, outputs):
    head = build(3, 4, pooling="cls", initializer_range=0.5, hidden_activation=name)
    hidden = function(apply(head.hidden, outputs["sequence_output"][:, 0]))
    assert_close(head(outputs), apply(head.dense, hidden))


@pytest.mark.parametrize(("first", "values"), [(False, {0.0, 6.0}), (True, {0.0, 12.0})])
def test_dropout_comes_before_the_last_layer_and_optionally_before_the_first(first, values):
    options = {"hidden_activation": "relu", "pooling": "cls", "dropout_first": first}
    head = build(4, 4, dropout=0.5, **options)
    for dense in (head.hidden, head.dense):
        dense.kernel.assign(np.eye(4))
    vectors = {"sequence_output": np.full((50, 1, 4), 3, "float32")}
    assert set(to_numpy(head(vectors, training=True)).ravel().round(3)) == values
