import pytest
from checks import TINY, check_backbone, check_parity

import bert_keras
from bert_keras.presets.assign import relative_path

pytestmark = pytest.mark.once


def tiny_backbone(**overrides):
    return bert_keras.ElectraBackbone(**{**TINY, "embedding_dim": 6, **overrides})


@pytest.mark.each_backend
def test_it_keeps_the_contract(tmp_path):
    check_backbone(tiny_backbone(), "electra_backbone.json", tmp_path)


def test_embeddings_of_the_encoder_s_width_have_no_projection():
    for embedding_dim in (None, TINY["hidden_dim"]):
        backbone = tiny_backbone(embedding_dim=embedding_dim)
        assert backbone.embedding_dim == backbone.hidden_dim
        assert not any("projection" in relative_path(weight) for weight in backbone.weights)
    with pytest.raises(ValueError, match="embedding_dim"):
        tiny_backbone(embedding_dim=0)


def test_outputs_without_a_projection_equal_transformers(tmp_path):
    widths = {"hidden_size": 12, "num_attention_heads": 3, "embedding_size": 12}
    check_parity("Electra", 0, tmp_path, **widths)
