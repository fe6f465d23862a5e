"""Renaming an attribute or a layer of a head breaks every saved file. These lists notice it."""

import json
import pathlib

import h5py
import keras
import pytest
from tiny import tiny_backbone

import bert_keras

GOLDEN = json.loads(
    (pathlib.Path(__file__).resolve().parent.parent / "golden" / "heads.json").read_text()
)
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
    "span": (bert_keras.QuestionAnswering, {}),
    "span_boundary": (bert_keras.SpanBoundary, {}),
    "token": (bert_keras.TokenClassifier, {"num_classes": 3}),
    "window": (bert_keras.LongTextClassifier, {"combine": "self_attention"}),
}


def paths_of(name, folder):
    """Returns the variables' paths with shapes, and the arrays' names in the weights file."""
    make, options = TASKS[name]
    head = make(tiny_backbone(), **options).head
    file = folder / "task.weights.h5"
    keras.saving.save_weights(head, str(file))
    names = []
    with h5py.File(file) as opened:
        opened.visititems(lambda n, item: names.append(n) if hasattr(item, "dtype") else None)
    paths = [[v.path.split("/", 1)[1], list(v.shape)] for v in head.weights]
    return {"paths": paths, "h5": sorted(names)}


@pytest.mark.parametrize("name", TASKS)
def test_a_head_s_weight_paths_are_the_file_format(name, tmp_path):
    assert paths_of(name, tmp_path) == GOLDEN[name]


def test_every_task_has_a_list():
    assert set(GOLDEN) == set(TASKS)
