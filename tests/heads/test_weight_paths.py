"""Renaming an attribute or a layer of a head breaks every saved file. These lists notice it."""

import h5py
import keras
import pytest
from checks import GOLDEN
from files import read_json
from tiny import tiny_backbone

import bert_keras

pytestmark = pytest.mark.once

LISTS = read_json(GOLDEN / "heads.json")
TASKS = {
    "choice": (bert_keras.MultipleChoice, {}),
    "chain": (bert_keras.TokenClassifier, {"num_classes": 3, "crf": True}),
    "embedder": (bert_keras.TextEmbedder, {}),
    "embedder_projection": (bert_keras.TextEmbedder, {"projection": {"units": 3}}),
    "masked_lm": (bert_keras.MaskedLM, {}),
    "next_sentence": (bert_keras.NextSentencePrediction, {}),
    "pretraining": (bert_keras.Pretraining, {}),
    "replaced_token": (bert_keras.ReplacedTokenDetector, {}),
    "sequence": (bert_keras.TextClassifier, {"num_classes": 3}),
    "sequence_hidden": (
        bert_keras.TextClassifier,
        {"num_classes": 3, "head_options": {"hidden_activation": "tanh"}},
    ),
    "splade": (bert_keras.SparseTextEmbedder, {}),
    "token_vectors": (
        bert_keras.MultiVectorEmbedder,
        {"dim": 3, "query_length": 8, "query_expansion": 8},
    ),
    "span": (bert_keras.QuestionAnswering, {}),
    "span_boundary": (bert_keras.SpanBoundary, {}),
    "token": (bert_keras.TokenClassifier, {"num_classes": 3}),
    "spans": (bert_keras.ZeroShotTagger, {"dim": 6, "max_width": 3}),
    "window": (bert_keras.LongTextClassifier, {}),
}


@pytest.mark.parametrize("name", {**LISTS, **TASKS})
def test_the_weight_paths_of_a_head_are_the_file_format(name, tmp_path):
    make, options = TASKS[name]
    head = make(tiny_backbone(), **options).head
    paths = [[v.path.split("/", 1)[1], list(v.shape)] for v in head.weights]
    file, names = tmp_path / "task.weights.h5", []
    keras.saving.save_weights(head, str(file))
    with h5py.File(file) as opened:
        opened.visititems(lambda n, item: names.append(n) if hasattr(item, "dtype") else None)
    assert {"paths": paths, "h5": sorted(names)} == LISTS[name]
