"""A real RoBERTa: Sapiens, trained on antibodies (the PyPI package `sapiens`, MIT licence).

Its weights are in a pickle of fairseq's, which presets refuse, so torch converts them.
"""

import argparse
import importlib.util
import pathlib

import numpy as np
import pytest
import tokenizers
from checks import to_numpy, transformers_outputs

import bert_keras

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
SPEC = importlib.util.find_spec("sapiens")
pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(SPEC is None, reason="the package sapiens is not installed"),
]
# The variable heavy chain of trastuzumab, which is not in the training data.
CHAIN = (
    "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTA"
    "VYYCSRWGGDGFYAMDYWGQGTLVTVSS"
)
# fairseq's names -> those of transformers.
NAMES = {
    "decoder.lm_head.weight": "lm_head.decoder.weight",
    "decoder.lm_head.": "lm_head.",
    "decoder.sentence_encoder.embed_tokens.": "roberta.embeddings.word_embeddings.",
    "decoder.sentence_encoder.embed_positions.": "roberta.embeddings.position_embeddings.",
    "decoder.sentence_encoder.emb_layer_norm.": "roberta.embeddings.LayerNorm.",
    "decoder.sentence_encoder.layers.": "roberta.encoder.layer.",
    "self_attn.out_proj": "attention.output.dense",
    "self_attn.q_proj": "attention.self.query",
    "self_attn.k_proj": "attention.self.key",
    "self_attn.v_proj": "attention.self.value",
    "self_attn_layer_norm": "attention.output.LayerNorm",
    "fc1": "intermediate.dense",
    "fc2": "output.dense",
    "final_layer_norm": "output.LayerNorm",
}


def tokenizer_of(tokens):
    """Each residue is a token: `<s>`, the letters, `</s>`."""
    numbers = {token: i for i, token in enumerate(tokens)}
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="<unk>"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    backend.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    backend.add_special_tokens([tokens[i] for i in (0, 1, 2, 3, 24)])
    return backend


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The model of transformers, and the folder it was saved to."""
    source = pathlib.Path(SPEC.submodule_search_locations[0]) / "models" / "v1"
    with torch.serialization.safe_globals([argparse.Namespace]):
        loaded = torch.load(source / "checkpoint_vh.pt", weights_only=True, map_location="cpu")
    state = {}
    for name, value in loaded["model"].items():
        for old, new in NAMES.items():
            name = name.replace(old, new)
        state[name] = value
    state["lm_head.decoder.bias"] = state["lm_head.bias"]
    letters = [line.split()[0] for line in (source / "dict.txt").read_text().splitlines()]
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *letters, "<mask>"]
    config = transformers.RobertaConfig(
        vocab_size=len(tokens),
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=8,
        intermediate_size=256,
        max_position_embeddings=146,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
    )
    model = transformers.RobertaForMaskedLM(config).eval()
    # fairseq has no segments.
    torch.nn.init.zeros_(model.roberta.embeddings.token_type_embeddings.weight)
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert (missing, unexpected) == (["roberta.embeddings.token_type_embeddings.weight"], [])
    folder = tmp_path_factory.mktemp("sapiens")
    model.save_pretrained(folder)
    tokenizer_of(tokens).save(str(folder / "tokenizer.json"))
    return model, folder


@pytest.mark.filterwarnings("error::UserWarning")
def test_it_predicts_the_residues_of_an_antibody_as_in_transformers(reference):
    model, folder = reference
    task = bert_keras.MaskedLM.from_preset(folder)
    assert (task.backbone.max_sequence_length, task.backbone.padding_id) == (144, 1)
    encoding = task.preprocessor.tokenizer.encode(CHAIN)
    assert encoding.pieces == ["<s>", *CHAIN, "</s>"]
    positions = np.arange(1, len(CHAIN) + 1)[:, None]
    token_ids = np.tile(np.array(encoding.ids), (len(CHAIN), 1))
    np.put_along_axis(token_ids, positions, task.preprocessor.tokenizer.mask_token_id, axis=1)
    logits = to_numpy(task({"token_ids": token_ids, "mask_positions": positions}))
    everywhere = transformers_outputs(model, {"token_ids": token_ids}).logits.numpy()
    expected = np.take_along_axis(everywhere, positions[:, :, None], axis=1)
    np.testing.assert_allclose(logits, expected, atol=2e-5)
    right = (logits[:, 0].argmax(-1) == np.array(encoding.ids)[1:-1]).mean()
    assert 0.75 < right < 0.8


def test_it_fills_masks_in_raw_text(reference):
    task = bert_keras.MaskedLM.from_preset(reference[1])
    ((token, probability), *_) = task.fill_mask(CHAIN[:21] + "<mask>" + CHAIN[22:])[0]
    assert token == "C" and probability > 0.9
