import keras
import numpy as np
import pytest
from checks import TINY, check_backbone, to_numpy

import bert_keras
from bert_keras.presets.assign import relative_path

# Our part of a path -> theirs, in the order in which they are replaced.
NAMES = [
    ("token_embedding/embeddings", "word_embeddings/weight"),
    ("position_embedding/embeddings", "position_embeddings/weight"),
    ("segment_embedding/embeddings", "token_type_embeddings/weight"),
    ("layer_norm", "LayerNorm"),
    ("layer_", "layer/"),
    ("attention_norm", "attention/output/LayerNorm"),
    ("feed_forward_norm", "output/LayerNorm"),
    ("attention/output/bias", "attention/output/dense/bias"),
    ("attention/output/kernel", "attention/output/dense/kernel"),
    *[(f"attention/{name}", f"attention/self/{name}") for name in ("query", "key", "value")],
    ("feed_forward/intermediate", "intermediate/dense"),
    ("feed_forward/output", "output/dense"),
    ("gamma", "weight"),
    ("beta", "bias"),
    ("kernel", "weight"),
    ("/", "."),
]


def tiny_backbone(**overrides):
    return bert_keras.RobertaBackbone(**{**TINY, **overrides})


def test_it_keeps_the_contract(tmp_path):
    check_backbone(tiny_backbone(), "roberta_backbone.json", tmp_path)


def test_positions_count_the_real_tokens():
    positions = tiny_backbone().embeddings._positions(
        keras.ops.convert_to_tensor([[0, 5, 6, 2, 1, 1], [1, 1, 0, 5, 1, 2]])
    )
    np.testing.assert_array_equal(positions, [[2, 3, 4, 5, 1, 1], [1, 1, 2, 3, 1, 4]])


def test_all_positions_are_usable_and_no_more():
    backbone = tiny_backbone(padding_id=3)
    assert backbone.embeddings.position_embedding.input_dim == 12 + 4
    assert np.isfinite(
        to_numpy(backbone({"token_ids": np.full((1, 12), 7)})["pooled_output"])
    ).all()
    with pytest.raises(ValueError, match="between 1 and 12 tokens a sequence"):
        backbone({"token_ids": np.full((1, 13), 7)})
    with pytest.raises(ValueError, match="leave them out"):
        backbone({"token_ids": np.ones((1, 2), int), "segment_ids": np.zeros((1, 2), int)})


@pytest.mark.parametrize("padding_id", [None, -1, 50, 1.0])
def test_a_padding_id_outside_the_vocabulary_is_refused(padding_id):
    with pytest.raises(ValueError, match="`padding_id` must be an int from 0 to 49"):
        tiny_backbone(padding_id=padding_id)


@pytest.mark.parametrize("seed", range(4))
def test_outputs_equal_transformers(seed):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    num_heads, padding_id, longest = (int(rng.integers(*r)) for r in ((1, 5), (0, 4), (5, 15)))
    sizes = {
        "vocabulary_size": int(rng.integers(20, 70)),
        "num_layers": int(rng.integers(1, 4)),
        "num_heads": num_heads,
        "hidden_dim": num_heads * int(rng.integers(3, 8)),
        "intermediate_dim": int(rng.integers(5, 40)),
    }
    activation = ("gelu", "gelu_tanh", "relu", "silu")[seed]
    config = transformers.RobertaConfig(
        vocab_size=sizes["vocabulary_size"],
        num_hidden_layers=sizes["num_layers"],
        num_attention_heads=num_heads,
        hidden_size=sizes["hidden_dim"],
        intermediate_size=sizes["intermediate_dim"],
        hidden_act={"gelu_tanh": "gelu_new"}.get(activation, activation),
        max_position_embeddings=longest + padding_id + 1,
        type_vocab_size=1,
        initializer_range=0.3,
        pad_token_id=padding_id,
    )
    config._attn_implementation = "eager"  # the fused one returns no attentions
    reference = transformers.RobertaModel(config).eval()
    with torch.no_grad():
        for parameter in reference.parameters():  # the initial zeros and ones hide mix-ups
            parameter.add_(0.1 * torch.randn_like(parameter))
    backbone = bert_keras.RobertaBackbone(
        **sizes,
        activation=activation,
        layer_norm_epsilon=config.layer_norm_eps,
        max_sequence_length=longest,
        padding_id=padding_id,
    )
    tensors = reference.state_dict()
    for variable in backbone.weights:
        name = path = relative_path(variable)
        for ours, theirs in NAMES:
            name = name.replace(ours, theirs)
        array = tensors.pop(name).numpy()
        variable.assign(array.T if path.endswith("kernel") else array)
    assert not tensors
    ids = rng.integers(padding_id + 1, sizes["vocabulary_size"], (4, longest))
    places = np.arange(longest)  # padding on the right, none, on the left, and anywhere
    mask = np.stack([places < 3, places >= 0, places > 2, rng.random(longest) < 0.6])
    ids = np.where(mask, ids, padding_id)
    with torch.no_grad():
        expected = reference(
            input_ids=torch.tensor(ids),
            attention_mask=torch.tensor(mask).long(),
            output_hidden_states=True,
            output_attentions=True,
        )
    inputs = {"token_ids": ids, "padding_mask": mask}
    actual = backbone(inputs, return_hidden_states=True, return_attentions=True)
    for a, b in zip(actual["hidden_states"], expected.hidden_states, strict=True):
        np.testing.assert_allclose(to_numpy(a)[mask], b.numpy()[mask], atol=1e-5)
    for a, b in zip(actual["attentions"], expected.attentions, strict=True):
        np.testing.assert_allclose(to_numpy(a), b.numpy(), atol=1e-5)
    fused = backbone(inputs)["pooled_output"]
    for pooled in (actual["pooled_output"], fused):
        some = mask[:, 0]  # the first token of the others is padding
        np.testing.assert_allclose(
            to_numpy(pooled)[some], expected.pooler_output.numpy()[some], atol=1e-5
        )
