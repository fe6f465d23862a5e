import keras
import numpy as np
import pytest
from checks import TINY, check_backbone, check_equals_transformers, to_numpy

import bert_keras


def tiny_backbone(**overrides):
    return bert_keras.RobertaBackbone(**{**TINY, **overrides})


def test_it_keeps_the_contract(tmp_path):
    check_backbone(tiny_backbone(), "roberta_backbone.json", tmp_path)


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


@pytest.mark.once
@pytest.mark.parametrize("seed", range(4))
def test_outputs_equal_transformers(seed, tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    num_heads, padding_id, longest = (int(rng.integers(*r)) for r in ((1, 5), (0, 4), (5, 15)))
    config = transformers.RobertaConfig(
        vocab_size=int(rng.integers(20, 70)),
        num_hidden_layers=int(rng.integers(1, 4)),
        num_attention_heads=num_heads,
        hidden_size=num_heads * int(rng.integers(3, 8)),
        intermediate_size=int(rng.integers(5, 40)),
        hidden_act=("gelu", "gelu_new", "relu", "silu")[seed],
        max_position_embeddings=longest + padding_id + 1,
        type_vocab_size=1,
        initializer_range=0.3,
        pad_token_id=padding_id,
    )
    config._attn_implementation = "eager"  # the fused one returns no attentions
    ids = rng.integers(padding_id + 1, config.vocab_size, (4, longest))
    places = np.arange(longest)  # padding on the right, none, on the left, and anywhere
    mask = np.stack([places < 3, places >= 0, places > 2, rng.random(longest) < 0.6])
    inputs = {"token_ids": np.where(mask, ids, padding_id), "padding_mask": mask}
    backbone = check_equals_transformers(transformers.RobertaModel(config), inputs, tmp_path)
    assert isinstance(backbone, bert_keras.RobertaBackbone)
    assert backbone.max_sequence_length == longest
