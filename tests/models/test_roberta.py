import keras
import numpy as np
import pytest
from checks import TINY, check_backbone, check_parity, to_numpy

import bert_keras

pytestmark = pytest.mark.once


def tiny_backbone(**overrides):
    return bert_keras.RobertaBackbone(**{**TINY, **overrides})


@pytest.mark.each_backend
def test_it_keeps_the_contract(tmp_path):
    check_backbone(tiny_backbone(), "roberta_backbone.json", tmp_path)


@pytest.mark.each_backend
def test_positions_count_the_real_tokens():
    positions = tiny_backbone().embeddings._positions(
        keras.ops.convert_to_tensor([[0, 5, 6, 2, 1, 1], [1, 1, 0, 5, 1, 2]])
    )
    np.testing.assert_array_equal(positions, [[2, 3, 4, 5, 1, 1], [1, 1, 2, 3, 1, 4]])


def test_all_positions_are_usable():
    backbone = tiny_backbone(padding_id=3)
    assert backbone.embeddings.position_embedding.input_dim == 12 + 4
    assert np.isfinite(
        to_numpy(backbone({"token_ids": np.full((1, 12), 7)})["pooled_output"])
    ).all()


@pytest.mark.parametrize("padding_id", [None, -1, 50, 1.0])
def test_a_padding_id_outside_the_vocabulary_is_refused(padding_id):
    with pytest.raises(ValueError, match="`padding_id` must be an int from 0 to 49"):
        tiny_backbone(padding_id=padding_id)


@pytest.mark.parametrize(
    ("padding_id", "activation"), enumerate(("gelu", "gelu_new", "relu", "silu"))
)
def test_outputs_equal_transformers(padding_id, activation, tmp_path):
    options = {"pad_token_id": padding_id, "hidden_act": activation, "type_vocab_size": 1}
    check_parity("Roberta", padding_id, tmp_path, **options)
