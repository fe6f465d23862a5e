"""A user's subclass of a task may have its own layers, step, and way from texts to rows."""

import keras
import numpy as np
import pytest
from checks import cases
from tiny import (
    Batches,
    batches_of,
    ready_inputs,
    tiny_backbone,
    tiny_classifier,
    tiny_preprocessor,
)

import bert_keras
from bert_keras.heads.sequence import SequenceHead
from bert_keras.presets.assign import NewHead

pytestmark = pytest.mark.once
TEXTS = ["a b c", "d e", "h a g g"]
LABELS = np.array([0, 1, 1])
DATASET = Batches([(TEXTS, LABELS)])


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
def test_its_layers_are_saved_in_presets_and_copies(tmp_path, options):
    task = WithLayer(tiny_backbone(), preprocessor=tiny_preprocessor(), **options)
    expected = task.predict(TEXTS, verbose=0)
    task.save_to_preset(tmp_path)
    for cls in (WithLayer, bert_keras.TextClassifier):
        again = cls.from_preset(tmp_path)
        assert type(again) is WithLayer
        np.testing.assert_allclose(again.predict(TEXTS, verbose=0), expected, atol=1e-6)
    saved = tmp_path / "task.json"
    saved.write_text(saved.read_text().replace("tests>WithLayer", "theirs>TextClassifier"))
    with pytest.raises(ValueError, match="'theirs>TextClassifier', which is not registered"):
        bert_keras.TextClassifier.from_preset(tmp_path)
    bert_keras.TextEmbedder.from_preset(tmp_path)  # It needs only the backbone.
    with pytest.warns(NewHead):
        bert_keras.TokenClassifier.from_preset(tmp_path, num_classes=2)
    copy = task.without_adapters()
    np.testing.assert_allclose(copy.predict(TEXTS, verbose=0), expected, atol=1e-6)
    with pytest.raises(ValueError, match=r"(?s)no place for these weights.*extra"):
        task.export_to_huggingface(tmp_path / "theirs")


@keras.saving.register_keras_serializable(package="tests")
class WithPartsAfterwards(bert_keras.TextClassifier):
    """Makes a layer and a metric after `super().__init__()`, and adds an argument."""

    def __init__(self, *args, units=2, **kw):
        super().__init__(*args, **kw)
        self.units = units
        self.extra = keras.layers.Dense(units, name="extra")
        self.mean_score = keras.metrics.Mean(name="mean_score")

    def call(self, inputs, training=None):
        return self.extra(super().call(inputs, training=training))

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        self.mean_score.update_state(y_pred)
        return super().compute_metrics(x, y, y_pred, sample_weight)


@keras.saving.register_keras_serializable(package="tests")
class BackboneWithPartsAfterwards(bert_keras.BertBackbone):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.build((None, None))  # As a class between the two might.
        self.extra = keras.layers.Dense(self.hidden_dim, name="extra")

    def call(self, inputs, **options):
        outputs = super().call(inputs, **options)
        return {**outputs, "sequence_output": self.extra(outputs["sequence_output"])}


def test_it_may_make_layers_and_metrics_after_the_parent_s_constructor(tmp_path):
    backbone = BackboneWithPartsAfterwards(**tiny_backbone().get_config())
    task = WithPartsAfterwards(backbone, preprocessor=tiny_preprocessor(), pooling="mean", units=3)
    with pytest.raises(ValueError, match="already built"):
        task.further = keras.layers.Dense(2)
    before = [keras.ops.convert_to_numpy(layer.extra.kernel) for layer in (backbone, task)]
    logs = task.fit(TEXTS, LABELS, epochs=2, verbose=0).history
    assert np.isfinite(logs["mean_score"]).all()
    for layer, kernel in zip((backbone, task), before, strict=True):
        assert np.abs(keras.ops.convert_to_numpy(layer.extra.kernel) - kernel).max() > 0
    expected = task.predict(TEXTS, verbose=0)
    assert expected.shape == (3, 3)
    # Its `call` takes options that it does not name.
    outputs = backbone(task.preprocessor(TEXTS), return_hidden_states=True)
    assert len(outputs["hidden_states"]) == backbone.num_layers + 1
    task.save(tmp_path / "task.keras")
    task.save_to_preset(tmp_path / "preset")
    for again in (
        keras.models.load_model(tmp_path / "task.keras"),
        WithPartsAfterwards.from_preset(tmp_path / "preset"),
    ):
        # Also arguments that its constructor does not name.
        assert (again.pooling, again.units) == ("mean", 3)
        np.testing.assert_allclose(again.predict(TEXTS, verbose=0), expected, atol=1e-6)


class HeadAlone(bert_keras.TextClassifier):
    @property
    def trainable_variables(self):
        return self.head.trainable_variables


@pytest.mark.each_backend
def test_it_may_say_what_trains_and_the_rest_is_read_anew_by_every_call():
    task, other = (HeadAlone(tiny_backbone(), preprocessor=tiny_preprocessor()) for _ in "ab")
    for each in (task, other):
        each.compile("sgd")
    both = [*task.trainable_variables, *task.non_trainable_variables]
    assert {id(v) for v in both} == {id(v) for v in task.variables}
    assert len(both) == len(task.variables)
    expected = other.evaluate(TEXTS, LABELS, verbose=0)
    task.evaluate(TEXTS, LABELS, verbose=0)
    task.set_weights(other.get_weights())
    assert task.evaluate(TEXTS, LABELS, verbose=0) == pytest.approx(expected, abs=1e-6)


def test_its_arguments_reach_its_parents(tmp_path):
    class Tagger(bert_keras.TokenClassifier):
        def __init__(self, backbone, **kw):
            super().__init__(backbone, **kw)

    class Forgetful(bert_keras.TextClassifier):
        def __init__(self, backbone, margin=1.0, **kw):
            super().__init__(backbone, **kw)

    bert_keras.TextEmbedder(tiny_backbone(), pooling="mean").save_to_preset(tmp_path)
    options = {"preprocessor": None, "label_names": ["no", "yes"]}
    task = WithPartsAfterwards.from_preset(tmp_path, **options)
    assert (task.pooling, task.label_names) == ("mean", ("no", "yes"))
    assert Tagger.from_preset(tmp_path, preprocessor=None, num_classes=3).num_classes == 3
    with pytest.raises(TypeError, match=r"which would set \['num_classes'\]"):
        Tagger.from_preset(tmp_path, preprocessor=None)
    with pytest.raises(AttributeError, match=r"no attributes \['margin'\].*`self.margin = margin`"):
        Forgetful(tiny_backbone()).get_config()


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
        np.testing.assert_equal(again.head.get_weights(), parent.head.get_weights())


def test_its_own_predict_step_is_called():
    class Sevens(bert_keras.TextClassifier):
        def predict_step(self, *args):
            return super().predict_step(*args) * 0 + 7

    assert (tiny_classifier().predict(TEXTS, verbose=0) < 7).all()
    sevens = Sevens(tiny_backbone(), preprocessor=tiny_preprocessor())
    assert (sevens.predict(TEXTS, verbose=0) == 7).all()


@pytest.mark.each_backend
def test_outputs_of_any_structure_come_in_the_order_of_the_texts():
    class Twice(bert_keras.TextClassifier):
        def call(self, inputs, training=None):
            logits = super().call(inputs, training=training)
            return logits, {"further": [2 * logits]}

    task = Twice(tiny_backbone(), preprocessor=tiny_preprocessor())
    once, further = task.predict(TEXTS, batch_size=2, verbose=0)
    alone = [task.predict([text], verbose=0)[0] for text in TEXTS]
    np.testing.assert_allclose(once, np.concatenate(alone), atol=1e-5)
    np.testing.assert_allclose(further["further"][0], 2 * once, atol=1e-6)
    again, _ = task.predict(TEXTS, verbose=0, callbacks=[keras.callbacks.Callback()])
    np.testing.assert_allclose(again, once, atol=1e-5)


class Reversed(bert_keras.TextClassifier):
    """Reads texts from their end: the one hook for how texts become rows."""

    def encode_texts(self, x, y=None, sample_weight=None, training=False):
        texts = [" ".join(text.split()[::-1]) for text in x]
        return super().encode_texts(texts, y, sample_weight, training)


def test_its_own_way_from_texts_to_rows_is_taken_by_every_method():
    backward = [" ".join(text.split()[::-1]) for text in TEXTS]
    task = Reversed(tiny_backbone(initializer_range=0.3), preprocessor=tiny_preprocessor())
    plain = bert_keras.TextClassifier(task.backbone, preprocessor=tiny_preprocessor())
    plain.head.set_weights(task.head.get_weights())
    expected = plain.predict(backward, verbose=0)
    assert np.abs(expected - plain.predict(TEXTS, verbose=0)).max() > 1e-3
    np.testing.assert_allclose(task.predict(TEXTS, verbose=0), expected, atol=1e-6)
    assert task.classify(TEXTS) == plain.classify(backward)
    for x, y in ((TEXTS, LABELS), (DATASET, None)):
        scores = task.evaluate(x, y, verbose=0), plain.evaluate(backward, LABELS, verbose=0)
        assert scores[0] == pytest.approx(scores[1], abs=1e-5)
    batches = batches_of(task, TEXTS, LABELS, shuffle=True)
    of_plain = batches_of(plain, backward, LABELS, shuffle=True)
    np.testing.assert_array_equal(batches[0][0]["token_ids"], of_plain[0][0]["token_ids"])
    task.fit(DATASET, validation_data=(TEXTS, LABELS), epochs=1, verbose=0)


class ReadsAllTokens(bert_keras.TextClassifier):
    """Its method replaces the pooled vector."""

    def head_outputs(self, outputs, inputs, training=None):
        pooled = keras.ops.max(outputs["sequence_output"], axis=1)
        return super().head_outputs({"pooled_output": pooled}, inputs, training)


class LastToken(SequenceHead):
    """A head that reads another token."""

    def call(self, outputs, padding_mask=None, training=None):
        return self.dense(outputs["sequence_output"][:, -1])


class OfLastToken(bert_keras.TextClassifier):
    def make_head(self):
        return LastToken(self.num_classes, self.backbone.hidden_dim)


@cases(
    ("TextClassifier", {}, 1),
    ("TextClassifier", {"pooling": "cls"}, 1),
    ("TextClassifier", {"pooling": "mean"}, 7),
    ("LongTextClassifier", {"pooling": "cls"}, 1),
    ("MultipleChoice", {}, 1),
    ("NextSentencePrediction", {}, 1),
    ("TextEmbedder", {"pooling": "cls"}, 1),
    ("TextEmbedder", {}, 7),
    ("TokenClassifier", {"num_classes": 3}, 7),
    (ReadsAllTokens, {}, 7),
    (OfLastToken, {}, 7),
)
def test_the_last_layer_computes_the_tokens_that_the_task_reads(
    monkeypatch, name, options, num_tokens
):
    task_class = getattr(bert_keras, name) if isinstance(name, str) else name
    task = task_class(tiny_backbone(), **options)
    lengths, call = [], bert_keras.BertBackbone.call

    def noting_length(backbone, *args, **options):
        outputs = call(backbone, *args, **options)
        lengths.append(outputs["sequence_output"].shape[1])
        return outputs

    monkeypatch.setattr(bert_keras.BertBackbone, "call", noting_length)
    has_groups = task_class in (bert_keras.MultipleChoice, bert_keras.LongTextClassifier)
    task(ready_inputs(*((3, 2, 7) if has_groups else (3, 7))))
    assert lengths == [num_tokens]


@pytest.mark.each_backend
@pytest.mark.eager
def test_a_subclass_may_list_a_metric_before_the_loss():
    class Mine(bert_keras.TextClassifier):
        @property
        def metrics(self):
            return [*vars(self).get("own_metrics", ()), *super().metrics]

    task = Mine(tiny_backbone(), num_classes=2, preprocessor=tiny_preprocessor())
    object.__setattr__(task, "own_metrics", [keras.metrics.Mean(name="mine")])
    task.compile()
    found = task.evaluate(["a b", "c"], [0, 1], verbose=0, return_dict=True)
    plain = bert_keras.TextClassifier(task.backbone, num_classes=2, preprocessor=task.preprocessor)
    plain.set_weights(task.get_weights())
    expected = plain.evaluate(["a b", "c"], [0, 1], verbose=0, return_dict=True)["loss"]
    assert found["mine"] == 0 and found["loss"] == pytest.approx(expected, rel=1e-6)
