import numpy as np
import pytest
from checks import TINY, check_backbone, check_equals_transformers

import bert_keras


def tiny_backbone(**overrides):
    return bert_keras.DistilBertBackbone(**{**TINY, **overrides})


def test_it_keeps_the_contract(tmp_path):
    check_backbone(tiny_backbone(), "distilbert_backbone.json", tmp_path)


def test_it_has_no_pooler():
    backbone = tiny_backbone()
    assert set(backbone({"token_ids": np.ones((1, 2), int)})) == {"sequence_output"}
    with pytest.raises(ValueError, match="needs a backbone with a pooler"):
        bert_keras.NextSentencePrediction(backbone)
    with pytest.raises(ValueError, match="pooler"):
        bert_keras.TextClassifier(backbone, pooling="pooler")


@pytest.mark.once
@pytest.mark.parametrize("seed", range(3))
def test_outputs_equal_transformers(seed, tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    num_heads, longest = int(rng.integers(1, 5)), int(rng.integers(5, 15))
    config = transformers.DistilBertConfig(
        vocab_size=int(rng.integers(20, 70)),
        n_layers=int(rng.integers(1, 4)),
        n_heads=num_heads,
        dim=num_heads * int(rng.integers(3, 8)),
        hidden_dim=int(rng.integers(5, 40)),
        activation=("gelu", "relu", "silu")[seed],
        max_position_embeddings=longest,
        sinusoidal_pos_embds=bool(seed % 2),
        initializer_range=0.3,
    )
    config._attn_implementation = "eager"  # the fused one returns no attentions
    places = np.arange(longest)
    mask = np.stack([places < 3, places >= 0, rng.random(longest) < 0.6])
    inputs = {"token_ids": rng.integers(0, config.vocab_size, mask.shape), "padding_mask": mask}
    backbone = check_equals_transformers(transformers.DistilBertModel(config), inputs, tmp_path)
    assert isinstance(backbone, bert_keras.DistilBertBackbone)
