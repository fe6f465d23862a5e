"""Tasks whose encoder computes without padding give the same results as with padding."""

import functools

import keras
import numpy as np
import pytest
import test_input_kinds as input_kinds
from checks import assert_same_structure_close
from tiny import LETTERS, tiny_backbone, tiny_preprocessor

import bert_keras
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.unpadded_batches import without_padding

pytestmark = pytest.mark.once

RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice(list(LETTERS), n)) for n in RNG.integers(1, 14, 24)]
LABELS = np.arange(24) % 2


def modernbert():
    return bert_keras.ModernBertBackbone(
        21, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=24, local_attention=4,
        max_sequence_length=32,
    )  # fmt: skip


TASKS = {
    "TextClassifier": ({"num_classes": 2}, (TEXTS, LABELS)),
    "TokenClassifier": (
        {"num_classes": 2},
        ([t.split() for t in TEXTS], [[int(x in "abc") for x in t.split()] for t in TEXTS]),
    ),
    "MultipleChoice": ({}, ((TEXTS[:12], list(zip(*[iter(TEXTS)] * 2, strict=True))), LABELS[:12])),
    "MaskedLM": ({}, (TEXTS, None)),
}


def make(name, unpadded, backbone):
    keras.utils.set_random_seed(3)
    preprocessor = tiny_preprocessor(unpadded=unpadded)
    return getattr(bert_keras, name)(backbone(), preprocessor=preprocessor, **TASKS[name][0])


def bert():
    return tiny_backbone(dropout=0.0)


@pytest.mark.parametrize(
    ("backbone", "name"),
    [
        pytest.param(bert, "TextClassifier", marks=pytest.mark.each_backend),
        *((bert, name) for name in TASKS if name != "TextClassifier"),
        (modernbert, "MaskedLM"),
    ],
)
def test_fit_and_predict_give_the_same_results_as_with_padding(backbone, name):
    x, y = TASKS[name][1]
    found = []
    for unpadded in (False, True):
        task = make(name, unpadded, backbone)
        # Adam would make steps of gradients that are but rounding.
        task.compile(keras.optimizers.SGD(0.1))
        keras.utils.set_random_seed(5)
        history = task.fit(x, y, batch_size=8, epochs=2, sort_window=1, verbose=0)
        outputs = task.predict(x, batch_size=8, verbose=0) if name != "MaskedLM" else task.score(x)
        found.append({"loss": history.history["loss"], "outputs": outputs})
    assert_same_structure_close(*found, 1e-5)


@pytest.mark.parametrize("name", input_kinds.TASKS)
def test_every_task_honours_the_option(monkeypatch, name):
    seen, call = [], Backbone.call

    @functools.wraps(call)
    def noted(self, inputs, *args, **kwargs):
        seen.append("row_places" in inputs)
        return call(self, inputs, *args, **kwargs)

    monkeypatch.setattr(Backbone, "call", noted)
    columns, labels = input_kinds.TASKS[name]
    columns = tuple(columns) if len(columns) > 1 else columns[0]
    losses = []
    for choice in (False, True):
        seen.clear()
        task = input_kinds.make_task(name, unpadded=choice)
        losses.append(task.evaluate(columns, labels, verbose=0, return_dict=True)["loss"])
        assert set(seen) == {choice}
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)


def test_rows_hold_every_token_once_and_have_few_sizes():
    numbers = set()
    for seed in range(50):
        lengths = np.random.default_rng(seed).integers(0, 33, 64)
        mask = (np.arange(32) < lengths[:, None]).astype("int32")
        places = without_padding({"padding_mask": mask})["row_places"]
        assert (np.sort(places[places >= 0]) == np.flatnonzero(mask)).all()
        for row in places:
            texts = row[row >= 0] // 32
            assert (np.diff(np.flatnonzero(np.diff(texts, prepend=-1))) > 0).all()
            assert len(np.unique(texts)) == np.count_nonzero(np.diff(texts)) + bool(len(texts))
        numbers.add(len(places))
    assert numbers <= set(range(8, 65, 8))
    with pytest.raises(ValueError, match="Pad on the right"):
        without_padding({"padding_mask": np.array([[0, 1, 1]])})
    assert list(without_padding({"padding_mask": np.array([[1, 1, 0]])})) == ["padding_mask"]


def test_the_option_is_saved_and_unpadded_inputs_cannot_be_split(reloaded):
    task = make("TextClassifier", True, tiny_backbone)
    assert reloaded(task).preprocessor.unpadded
    inputs = without_padding(task.preprocessor(TEXTS))
    backbone = task.backbone
    expected = backbone.predict(task.preprocessor(TEXTS), verbose=0)["pooled_output"]
    outputs = backbone.predict(inputs, batch_size=2, verbose=0)["pooled_output"]
    np.testing.assert_allclose(outputs, expected, atol=1e-6)
    with pytest.raises(ValueError, match="row_places"):
        task.fit(inputs, LABELS)
    with pytest.raises(ValueError, match="`unpadded` must be"):
        tiny_preprocessor(unpadded="yes")
