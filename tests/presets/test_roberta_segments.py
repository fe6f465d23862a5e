"""A RoBERTa with more than one segment, as `RobertaConfig`'s own default has."""

import numpy as np
import pytest
from checks import model_of_transformers, to_numpy, transformers_outputs
from small_tokenizers import byte_pair_tokenizer

import bert_keras

transformers = pytest.importorskip("transformers")

SIZES = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 18,
    "initializer_range": 0.3,
}
IDS = np.array([[0, 7, 9, 2, 8, 2], [0, 5, 2, 1, 1, 1]], "int32")


@pytest.mark.parametrize("name", ["Roberta", "XLMRoberta", "Camembert"])
@pytest.mark.parametrize("num_segments", [2, 10])
def test_segments_are_those_of_transformers_and_0_unless_given(tmp_path, name, num_segments):
    reference = model_of_transformers(f"{name}Model", **SIZES, type_vocab_size=num_segments)
    reference.save_pretrained(tmp_path)
    backbone = bert_keras.RobertaBackbone.from_preset(tmp_path)
    mask = (IDS != 1).astype("int32")
    given = np.random.default_rng(0).integers(0, num_segments, IDS.shape).astype("int32")
    outputs = []
    for ids in (None, np.zeros_like(IDS), given):
        inputs = {"token_ids": IDS, "padding_mask": mask}
        inputs |= {} if ids is None else {"segment_ids": ids}
        expected = transformers_outputs(reference, inputs)
        found = backbone(inputs)["sequence_output"]
        outputs.append(to_numpy(found)[mask == 1])
        wanted = expected.last_hidden_state.numpy()[mask == 1]
        np.testing.assert_allclose(outputs[-1], wanted, atol=1e-5)
    assert np.abs(outputs[0] - outputs[2]).max() > 0.01
    for wrong in (num_segments, -1):
        with pytest.raises(ValueError, match="segment"):
            backbone.predict({"token_ids": IDS, "segment_ids": np.full_like(IDS, wrong)})


def test_a_pair_of_texts_is_in_segment_0(tmp_path):
    tokenizer = byte_pair_tokenizer(["a b c"])
    config = transformers.RobertaConfig(**{**SIZES, "vocab_size": tokenizer.vocabulary_size})
    transformers.RobertaModel(config).save_pretrained(tmp_path)
    tokenizer.save(tmp_path)
    task = bert_keras.TextEmbedder.from_preset(tmp_path, pooling="cls", normalize=False)
    inputs = task.preprocessor(["a b"], ["c"])
    assert "segment_ids" in inputs
    assert not np.asarray(inputs["segment_ids"]).any()
