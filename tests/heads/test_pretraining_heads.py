import keras
import numpy as np
import pytest
from checks import assert_close, to_numpy

from bert_keras.heads.masked_tokens import MaskedLMHead, gather_positions
from bert_keras.heads.next_sentence import NextSentenceHead
from bert_keras.heads.pretraining_heads import PretrainingHead


def head_and_outputs(dtype="float32", activation="relu"):
    head = MaskedLMHead(7, 4, activation=activation, initializer_range=0.5, dtype=dtype)
    head.build()
    rng = np.random.default_rng(0)
    for variable in head.weights:
        variable.assign(rng.normal(size=variable.shape))
    table = keras.layers.ReversibleEmbedding(7, 4, dtype=dtype)
    table.build()
    return head, {"sequence_output": rng.normal(size=(2, 5, 4)).astype("float32")}, table


@pytest.mark.once
def test_the_logits_are_those_of_the_formula():
    head, outputs, table = head_and_outputs()
    positions = np.array([[3, 0], [4, 4]])
    kernel, bias, gamma, beta = (
        to_numpy(w)
        for w in (
            head.dense.kernel,
            head.dense.bias,
            head.layer_norm.gamma,
            head.layer_norm.beta,
        )
    )
    x = outputs["sequence_output"][np.arange(2)[:, None], positions]
    x = np.maximum(x @ kernel + bias, 0)
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12) * gamma + beta
    expected = x @ to_numpy(table.embeddings).T + to_numpy(head.bias)
    assert_close(head(outputs, token_embedding=table, mask_positions=positions), expected, 1e-5)


def test_without_positions_every_position_is_predicted():
    head, outputs, table = head_and_outputs()
    positions = np.array([[2], [1]])
    everywhere = to_numpy(head(outputs, token_embedding=table))
    assert everywhere.shape == (2, 5, 7)
    at_positions = to_numpy(head(outputs, token_embedding=table, mask_positions=positions))
    assert_close(everywhere[np.arange(2)[:, None], positions], at_positions, 1e-5)


def test_the_table_stays_the_backbone_s():
    head, outputs, table = head_and_outputs()
    head(outputs, token_embedding=table)
    assert [(w.path.split("/", 1)[1], tuple(w.shape)) for w in head.weights] == [
        ("bias", (7,)),
        ("dense/kernel", (4, 4)),
        ("dense/bias", (4,)),
        ("layer_norm/gamma", (4,)),
        ("layer_norm/beta", (4,)),
    ]


def test_half_precision_gives_float32_logits():
    head, outputs, table = head_and_outputs("mixed_bfloat16", "gelu")
    logits = head(outputs, token_embedding=table, mask_positions=np.zeros((2, 1), "int32"))
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"


def test_positions_are_gathered_row_by_row():
    x = np.arange(24, dtype="float32").reshape(2, 3, 4)
    assert_close(gather_positions(x, np.array([[2], [0]])), x[[0, 1], [2, 0]][:, None])


def test_next_sentence_logits_are_a_dense_layer_on_the_pooled_output():
    head = NextSentenceHead(4)
    head.build()
    pooled = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
    expected = pooled @ to_numpy(head.dense.kernel) + to_numpy(head.dense.bias)
    assert_close(head({"pooled_output": pooled}), expected, 1e-6)


@pytest.mark.parametrize(
    "head",
    [
        MaskedLMHead(7, 4, activation="gelu_tanh", layer_norm_epsilon=1e-6, name="head"),
        NextSentenceHead(4, initializer_range=0.1, name="head"),
        PretrainingHead(MaskedLMHead(7, 4, name="a"), NextSentenceHead(4, name="b"), name="head"),
    ],
    ids=lambda head: type(head).__name__,
)
def test_config_survives_the_round_trip(head):
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(head))
    assert again.get_config() == head.get_config()
