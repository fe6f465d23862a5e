"""The model that comes with the package: it loads without a network and knows some English."""

import pathlib

import numpy as np
import pytest
from checks import to_numpy

import bert_keras

NAME = "bert_mini_en_gutenberg"
FOLDER = pathlib.Path(bert_keras.__file__).parent / "presets" / NAME
# Not of its training text, and what the missing word could be.
SENTENCES = {
    "She opened the [MASK] and went in.": {"door", "window", "gate", "room"},
    "He took her [MASK] and kissed it.": {"hand", "hands", "arm", "face", "head", "mother"},
    "They walked up and [MASK] the street.": {"down", "into", "in", "along", "up", "through"},
}


@pytest.fixture(scope="module")
def model():
    return bert_keras.Pretraining.from_preset(NAME)


def test_it_fills_masks_with_what_fits(model):
    for text, words in SENTENCES.items():
        guesses = {token for token, _ in model.fill_mask(text, top_k=5)[0]}
        assert guesses & words, (text, guesses)


def test_it_prefers_the_sentence_that_people_would_say(model):
    right, wrong = model.score(["He looked at her face.", "He looked at her from."])
    assert right > wrong


def test_all_its_weights_come_from_the_file(recwarn):
    bert_keras.MaskedLM.from_preset(NAME)
    bert_keras.NextSentencePrediction.from_preset(NAME)
    assert not [w for w in recwarn if "random" in str(w.message)]


def test_it_is_small_and_has_a_card():
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 16e6
    assert "Licence" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_it_equals_transformers(model):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    reference = transformers.BertForPreTraining.from_pretrained(FOLDER, dtype=torch.float32).eval()
    token_ids = np.random.default_rng(0).integers(5, 8192, (2, 9))
    positions = np.tile(np.arange(9), (2, 1))
    ours = model({"token_ids": token_ids, "mask_positions": positions})
    with torch.no_grad():
        theirs = reference(torch.tensor(token_ids))
    np.testing.assert_allclose(
        to_numpy(ours["masked_lm"]), theirs.prediction_logits.numpy(), atol=1e-5, rtol=1e-5
    )
    np.testing.assert_allclose(
        to_numpy(ours["next_sentence"]), theirs.seq_relationship_logits.numpy(), atol=1e-5
    )
