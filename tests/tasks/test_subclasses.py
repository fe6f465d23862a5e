"""What a user's subclass of a task brings along: layers, a family's head, a step of its own."""

import keras
import numpy as np
import pytest
from tiny import tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras

pytestmark = pytest.mark.once
TEXTS = ["a b c", "d e", "h a g g"]


@keras.saving.register_keras_serializable(package="tests")
class WithLayer(bert_keras.TextClassifier):
    """Has a layer of its own beside the head."""

    def build(self, input_shape=None):
        self.extra = keras.layers.Dense(2, name="extra")
        self.extra.build((None, 2))
        super().build()

    def call(self, inputs, training=None):
        return self.extra(super().call(inputs, training=training))


@pytest.mark.parametrize("options", [{}, {"lora_rank": 2}], ids=["plain", "adapters"])
def test_its_layers_go_along_into_presets_and_copies(tmp_path, options):
    task = WithLayer(tiny_backbone(), preprocessor=tiny_preprocessor(), **options)
    expected = task.predict(TEXTS, verbose=0)
    task.save_to_preset(tmp_path)
    again = WithLayer.from_preset(tmp_path)
    np.testing.assert_allclose(again.predict(TEXTS, verbose=0), expected, atol=1e-6)
    copy = task.without_adapters()
    np.testing.assert_allclose(copy.predict(TEXTS, verbose=0), expected, atol=1e-6)
    with pytest.raises(ValueError, match=r"(?s)no place for these weights.*extra"):
        task.export_to_huggingface(tmp_path / "theirs")


class Renamed(bert_keras.TextClassifier):
    """The same under another name."""


def test_it_has_its_parent_s_head_on_each_family(tmp_path):
    roberta = bert_keras.RobertaBackbone(20, 1, 2, 8, 16, max_sequence_length=16)
    own, parent = Renamed(roberta), bert_keras.TextClassifier(roberta, num_classes=3)
    assert (own.pooling, own.head_options) == (parent.pooling, parent.head_options)
    assert own.head_options["hidden_activation"] == "tanh"
    parent.save_to_preset(tmp_path / "ours")
    parent.export_to_huggingface(tmp_path / "theirs")
    for folder in ("ours", "theirs"):
        again = Renamed.from_preset(tmp_path / folder, preprocessor=None)
        for ours, theirs in zip(again.head.weights, parent.head.weights, strict=True):
            np.testing.assert_array_equal(
                keras.ops.convert_to_numpy(ours), keras.ops.convert_to_numpy(theirs)
            )


def test_its_predict_step_counts():
    class Sevens(bert_keras.TextClassifier):
        def predict_step(self, *args):
            return super().predict_step(*args) * 0 + 7

    assert (tiny_classifier().predict(TEXTS, verbose=0) < 7).all()
    sevens = Sevens(tiny_backbone(), preprocessor=tiny_preprocessor())
    assert (sevens.predict(TEXTS, verbose=0) == 7).all()
