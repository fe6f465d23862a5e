import numpy as np
import pytest
from checks import TINY, check_backbone, check_equals_transformers

import bert_keras
from bert_keras.presets.assign import relative_path


def tiny_backbone(**overrides):
    return bert_keras.ElectraBackbone(**{**TINY, "embedding_dim": 6, **overrides})


def test_it_keeps_the_contract(tmp_path):
    check_backbone(tiny_backbone(), "electra_backbone.json", tmp_path)


@pytest.mark.once
def test_embeddings_of_the_encoder_s_width_have_no_projection():
    for embedding_dim in (None, TINY["hidden_dim"]):
        backbone = tiny_backbone(embedding_dim=embedding_dim)
        assert backbone.embedding_dim == backbone.hidden_dim
        assert not any("projection" in relative_path(weight) for weight in backbone.weights)
    with pytest.raises(ValueError, match="embedding_dim"):
        tiny_backbone(embedding_dim=0)


@pytest.mark.once
@pytest.mark.parametrize("seed", range(3))
def test_outputs_equal_transformers(seed, tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    num_heads, longest = int(rng.integers(1, 5)), int(rng.integers(5, 15))
    hidden_dim = num_heads * int(rng.integers(3, 8))
    config = transformers.ElectraConfig(
        vocab_size=int(rng.integers(20, 70)),
        num_hidden_layers=int(rng.integers(1, 4)),
        num_attention_heads=num_heads,
        hidden_size=hidden_dim,
        embedding_size=hidden_dim + (0, 5, -2)[seed],
        intermediate_size=int(rng.integers(5, 40)),
        hidden_act=("gelu", "relu", "gelu_new")[seed],
        max_position_embeddings=longest,
        initializer_range=0.3,
    )
    config._attn_implementation = "eager"  # the fused one returns no attentions
    places = np.arange(longest)
    mask = np.stack([places < 3, places >= 0, rng.random(longest) < 0.6])
    inputs = {
        "token_ids": rng.integers(0, config.vocab_size, mask.shape),
        "segment_ids": rng.integers(0, config.type_vocab_size, mask.shape),
        "padding_mask": mask,
    }
    backbone = check_equals_transformers(transformers.ElectraModel(config), inputs, tmp_path)
    assert isinstance(backbone, bert_keras.ElectraBackbone)
