"""What holds for several heads: dropout, padding and config. Formulas: parity with transformers."""

import numpy as np
import pytest
from checks import assert_close, made_again, refusals, to_numpy

from bert_keras.heads.masked_tokens import MaskedLMHead
from bert_keras.heads.pretraining_heads import PretrainingHead
from bert_keras.heads.sequence import SequenceHead
from bert_keras.heads.span import SpanHead
from bert_keras.heads.token import TokenHead

pytestmark = pytest.mark.once


def build(make, *sizes, **options):
    head = make(*sizes, initializer_range=0.5, **options)
    head.build()
    return head


@pytest.fixture
def outputs():
    return {"sequence_output": np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")}


@pytest.mark.parametrize(("make", "sizes"), [(TokenHead, (3, 4)), (SpanHead, (4,))])
def test_dropout_is_active_in_training_only(make, sizes, outputs):
    head = build(make, *sizes, dropout=0.5)
    logits, dropped = (np.stack(to_numpy(head(outputs, training=x))) for x in (False, True))
    assert np.abs(dropped - logits).max() > 1e-3
    assert_close(np.stack(to_numpy(head(outputs))), logits, 0)


@pytest.mark.parametrize(("first", "values"), [(False, {0.0, 6.0}), (True, {0.0, 12.0})])
def test_dropout_comes_before_the_last_layer_and_optionally_before_the_first(first, values):
    options = {"hidden_activation": "relu", "pooling": "cls", "dropout_first": first}
    head = build(SequenceHead, 4, 4, dropout=0.5, **options)
    for dense in (head.hidden, head.dense):
        dense.kernel.assign(np.eye(4))
    vectors = {"sequence_output": np.full((50, 1, 4), 3, "float32")}
    assert set(to_numpy(head(vectors, training=True)).ravel().round(3)) == values


@pytest.mark.parametrize(
    "head",
    [
        TokenHead(3, 4, crf=True, dropout=0.2, name="head", dtype="mixed_bfloat16"),
        SequenceHead(3, 4, 0.3, "cls", 0.1, "gelu_tanh", True, name="head"),
        SpanHead(4, 0.1, 0.3, name="head"),
        MaskedLMHead(7, 4, "gelu_tanh", 1e-6, 0.1, embedding_dim=2, name="head"),
        PretrainingHead(MaskedLMHead(7, 4, name="a"), SequenceHead(2, 4, name="b"), name="head"),
    ],
    ids=lambda head: type(head).__name__,
)
def test_a_head_is_made_again_from_its_config(head):
    again = made_again(head)
    assert (getattr(again, "crf", None) is None) == (getattr(head, "crf", None) is None)


test_impossible_options_are_refused = refusals(
    (lambda: SequenceHead(3, 4, dropout_first=True), "`hidden_activation`"),
    (lambda: SequenceHead(3, 4, pooling="first"), "`pooling` must be one of"),
)
