"""Blocks made of the layers they are given, and layers whose outputs go to every block."""

import functools
import re

import numpy as np
import pytest
from checks import (
    TINY,
    assert_close,
    assert_same_structure_close,
    cases,
    gradients,
    made_again,
    random_inputs,
    to_numpy,
)
from tiny import tiny_backbone

import bert_keras
from bert_keras.layers.attention import SelfAttention
from bert_keras.layers.encoder import Encoder, EncoderBlock
from bert_keras.layers.feed_forward import FeedForward
from bert_keras.layers.layer_norm import LayerNorm
from bert_keras.models.mpnet import RelativeBias
from bert_keras.training.schedules import layer_wise_decay

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).standard_normal((3, 5, 16)).astype("float32")


def block(**options):
    layers = SelfAttention(2, 16), FeedForward(32, 16), LayerNorm(), LayerNorm()
    return EncoderBlock(*layers, dropout=0.1, **options)


def test_an_encoder_is_made_again_from_its_config(x):
    blocks, norm = [block(), block(norm_first=True)], LayerNorm()
    encoder = Encoder(blocks, norm=norm, shared=[RelativeBias(2, name="attention_bias")])
    again = made_again(encoder)
    for either in (encoder, again):
        either.build()
    again.set_weights(encoder.get_weights())
    assert_close(again(x)[0][-1], encoder(x)[0][-1], 0)


@pytest.mark.each_backend
def test_the_first_token_alone_has_the_same_gradients():
    """`tests.checks.check_padding` compares the outputs of each family."""
    backbone, inputs = tiny_backbone(num_layers=2, dropout=0.0), random_inputs(vocabulary_size=21)

    def first_vectors(token_vectors, first_token_only):
        options = {"token_vectors": token_vectors, "first_token_only": first_token_only}
        return backbone(inputs, training=True, **options)["sequence_output"][:, 0] ** 2

    vectors = to_numpy(backbone.token_embedding.embeddings)[inputs["token_ids"]]
    all_tokens, alone = (
        gradients(functools.partial(first_vectors, first_token_only=only), vectors)
        for only in (False, True)
    )
    # The product of one token with all has a kernel of its own, which sums in another order.
    assert_same_structure_close(alone, all_tokens, 2e-5)


class ParallelBlock(EncoderBlock):
    """A block of a user, which computes all tokens."""

    def call(self, hidden_states, attention_mask=None, return_attentions=False, training=None):
        attended, attentions = self.attention(hidden_states, attention_mask, return_attentions)
        return hidden_states + attended + self.feed_forward(hidden_states), attentions


def test_a_block_that_cannot_skip_tokens_computes_them_all(x):
    layers = SelfAttention(2, 16), FeedForward(32, 16), LayerNorm(), LayerNorm()
    encoder = Encoder([block(), ParallelBlock(*layers)])
    encoder.build()
    assert_close(encoder(x, first_token_only=True)[0][-1], encoder(x)[0][-1], 0)


@pytest.fixture(scope="module")
def backbone():
    return bert_keras.MPNetBackbone(**TINY | {"num_layers": 3})


def test_what_blocks_share_is_a_stage_of_its_own(backbone):
    names = [stage.name for stage in backbone.stages]
    assert names == ["embeddings", "attention_bias", "layer_0", "layer_1", "layer_2"]
    assert backbone.num_blocks == 3
    paths = [
        "embeddings",
        "encoder/attention_bias/table",
        *(f"encoder/layer_{i}" for i in range(3)),
    ]
    patterns = [rf"^[^/]+/{path}/" for path in paths]
    rates = [(pattern, 0.5 ** (5 - i)) for i, pattern in enumerate(patterns)]
    *found, (head, _) = layer_wise_decay(backbone, 0.5)
    assert found == rates
    # A head may have layers of the same names.
    assert re.search(head, "task/head/encoder/kernel")
    assert not any(re.search(head, weight.path) for weight in backbone.weights)


@cases(("embeddings", 1), (0, 1), (1, 3), (3, 5), ("backbone", 5))
def test_what_blocks_share_is_frozen_with_the_first_block(backbone, frozen, num_stages):
    task = bert_keras.TextClassifier(backbone, pooling="mean", frozen=frozen)
    still = {id(weight) for weight in task.non_trainable_variables}
    for i, stage in enumerate(backbone.stages):
        assert {id(weight) in still for weight in stage.weights} == {i < num_stages}
    with pytest.raises(ValueError, match="an int from 0 to 3"):
        bert_keras.TextClassifier(backbone, frozen=4)


def test_adapters_count_blocks_only(backbone):
    task = bert_keras.TextClassifier(backbone, pooling="mean", lora_rank=2, lora_layers=[0, 2])
    adapted = {weight.path.split("/")[2] for weight in backbone.adapter_weights}
    assert adapted == {"layer_0", "layer_2"}
    task.merge_lora()
    with pytest.raises(ValueError, match="from 0 to 2, such as"):
        bert_keras.TextClassifier(backbone, lora_rank=2, lora_layers=[3])
