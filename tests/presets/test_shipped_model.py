"""The models in the package load without a network and know some English or Chinese."""

import pathlib

import numpy as np
import pytest
import torch
import transformers
from checks import assert_close, call, transformers_outputs

import bert_keras

pytestmark = pytest.mark.once
EACH = pytest.mark.each_backend

BERT, MODERN_BERT = "bert_mini_en_gutenberg", "modernbert_mini_en_gutenberg"
CHINESE = "modernbert_mini_zh_classics"
FOLDERS = pathlib.Path(bert_keras.__file__).parent / "presets"
# Sentences that are not in its training text, and words that fit.
SENTENCES = {
    "She opened the [MASK] and went in.": {"door", "window", "gate", "room"},
    "He took her [MASK] and kissed it.": {"hand", "hands", "arm", "face", "head", "mother"},
    "They walked up and [MASK] the street.": {"down", "into", "in", "along", "up", "through"},
}


@pytest.fixture(scope="module", params=[BERT, MODERN_BERT])
def model(request):
    task = bert_keras.Pretraining if request.param == BERT else bert_keras.MaskedLM
    return task.from_preset(request.param)


def test_it_fills_masks_with_fitting_words(model):
    for text, words in SENTENCES.items():
        guesses = {token for token, _ in model.fill_mask(text, top_k=5)[0]}
        assert guesses & words, (text, guesses)


def test_all_weights_come_from_the_file(recwarn):
    bert_keras.MaskedLM.from_preset(BERT)
    bert_keras.NextSentencePrediction.from_preset(BERT)
    bert_keras.MaskedLM.from_preset(MODERN_BERT)
    bert_keras.MaskedLM.from_preset(CHINESE)
    assert not [w for w in recwarn if "random" in str(w.message)]


@pytest.mark.parametrize("pooling", [None, "mean"])
def test_a_new_head_has_any_pooling(pooling):
    with pytest.warns(UserWarning, match="head/dense/kernel"):
        task = bert_keras.TextClassifier.from_preset(MODERN_BERT, num_classes=2, pooling=pooling)
    has_layers_of_pretraining = any("hidden_norm" in weight.path for weight in task.head.weights)
    assert has_layers_of_pretraining == (pooling is None)


@pytest.mark.parametrize("name", [BERT, MODERN_BERT, CHINESE])
def test_it_is_small_and_has_a_card(name):
    assert sum(file.stat().st_size for file in (FOLDERS / name).iterdir()) < 12e6
    assert "Licence" in (FOLDERS / name / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", [*(pytest.param(x, marks=EACH) for x in (BERT, MODERN_BERT)), CHINESE]
)
def test_it_equals_transformers(name):
    task, cls = bert_keras.MaskedLM, transformers.ModernBertForMaskedLM
    if name == BERT:
        task, cls = bert_keras.Pretraining, transformers.BertForPreTraining
    model = task.from_preset(name)
    reference = cls.from_pretrained(FOLDERS / name, dtype=torch.float32).eval()
    token_ids = np.random.default_rng(0).integers(5, 8192, (2, 9 if name == BERT else 200))
    positions = np.tile(np.arange(9), (2, 1))
    ours = call(model, {"token_ids": token_ids, "mask_positions": positions})
    theirs = transformers_outputs(reference, {"token_ids": token_ids})
    pairs = [(ours, theirs.get("logits"))]
    if name == BERT:
        pairs = [(ours["masked_lm"], theirs.prediction_logits)]
        pairs += [(ours["next_sentence"], theirs.seq_relationship_logits)]
    for found, expected in pairs:
        expected = expected[:, :9].numpy()
        assert_close(found, expected, 1e-5)


@pytest.fixture(scope="module")
def chinese():
    return bert_keras.MaskedLM.from_preset(CHINESE)


class TestChinese:
    def test_each_character_is_a_token(self, chinese):
        pieces = chinese.tokenizer.tokenize("房間很干净，Wi-Fi 24℃。")
        assert pieces[:6] == list("房間很干净，")
        assert "[UNK]" not in pieces

    @EACH
    def test_it_fills_masks_with_fitting_characters(self, chinese):
        guesses = {token for token, _ in chinese.fill_mask("武松笑[MASK]：“好酒！”", top_k=5)[0]}
        assert guesses & {"道", "曰", "說"}, guesses
