import keras
import numpy as np
import pytest
from checks import assert_close, to_numpy

from bert_keras.heads.masked_tokens import MaskedLMHead
from bert_keras.heads.sequence import SequenceHead
from bert_keras.heads.span import SpanHead
from bert_keras.heads.window import WindowHead


def built(head):
    head.build()
    return head


def outputs(rows=2):
    x = np.random.default_rng(0).normal(size=(rows, 5, 4)).astype("float32")
    return {"sequence_output": x, "pooled_output": x[:, 1]}


def layer(x, dense, activation=lambda x: x):
    return activation(x @ to_numpy(dense.kernel) + to_numpy(dense.bias))


def test_logits_are_a_dense_layer_on_the_pooled_vector():
    head = built(SequenceHead(3, 4, initializer_range=0.5))
    assert_close(head(outputs()), layer(outputs()["pooled_output"], head.dense))


@pytest.mark.parametrize(("name", "function"), [("tanh", np.tanh), ("relu", lambda x: x * (x > 0))])
def test_an_optional_hidden_layer_comes_before_them(name, function):
    head = built(SequenceHead(3, 4, pooling="cls", initializer_range=0.5, hidden_activation=name))
    hidden = layer(outputs()["sequence_output"][:, 0], head.hidden, function)
    assert_close(head(outputs()), layer(hidden, head.dense))


@pytest.mark.parametrize(("first", "values"), [(False, {0.0, 6.0}), (True, {0.0, 12.0})])
def test_dropout_comes_before_the_last_layer_and_optionally_before_the_first(first, values):
    options = {"hidden_activation": "relu", "pooling": "cls", "dropout_first": first}
    head = built(SequenceHead(4, 4, dropout=0.5, **options))
    for dense in (head.hidden, head.dense):
        dense.kernel.assign(np.eye(4))
    vectors = {"sequence_output": np.full((50, 1, 4), 3, "float32")}
    assert set(to_numpy(head(vectors, training=True)).ravel().round(3)) == values
    with pytest.raises(ValueError, match="hidden_activation=None"):
        SequenceHead(3, 4, dropout_first=True)


def test_several_masks_give_their_rows_one_after_another():
    head = built(SequenceHead(3, 4, dropout=0.5))
    head.num_masks = 4
    rows = to_numpy(head(outputs(), training=True)).reshape(4, 2, 3)
    assert len({rows[i].tobytes() for i in range(4)}) == 4
    expected = layer(outputs()["pooled_output"], head.dense)
    assert_close(head(outputs(), training=False), np.tile(expected, (4, 1)))


def test_an_unknown_pooling_is_an_error():
    with pytest.raises(ValueError, match="`pooling` must be one of"):
        SequenceHead(3, 4, pooling="first")
    with pytest.raises(ValueError, match="`combine` must be one of"):
        WindowHead(3, 4, combine="first")


def test_the_head_fits_a_token_table_of_another_width():
    table = keras.layers.ReversibleEmbedding(7, 2)
    table.build((None, None))
    head = built(MaskedLMHead(7, 4, activation="linear", embedding_dim=2, initializer_range=0.5))
    x = layer(outputs()["sequence_output"], head.dense)
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    expected = x @ to_numpy(table.embeddings).T
    assert_close(head(outputs(), token_embedding=table), expected, 1e-4)


def test_a_span_s_head_may_have_dropout():
    head = built(SpanHead(4, dropout=0.9))
    start, _ = head(outputs())
    dropped, _ = head(outputs(), training=True)
    assert np.abs(to_numpy(start) - to_numpy(dropped)).max() > 1e-3
    assert_close(head(outputs(), training=False)[0], start, 0)


@pytest.mark.parametrize(
    "head",
    [
        SequenceHead(3, 4, 0.3, "cls", 0.1, "gelu_tanh", True, name="head"),
        WindowHead(3, 4, "self_attention", 0.3, name="head"),
        MaskedLMHead(7, 4, "relu", 1e-3, 0.1, embedding_dim=2),
        SpanHead(4, 0.1, 0.3, name="head"),
    ],
    ids=lambda head: type(head).__name__,
)
def test_config_survives_the_round_trip(head):
    again = type(head).from_config(head.get_config())
    assert again.get_config() == head.get_config()
