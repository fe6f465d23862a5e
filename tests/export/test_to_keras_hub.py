"""What goes to KerasHub computes the same there, and comes back the same."""

import tempfile
import warnings

import keras
import numpy as np
import pytest
from checks import TINY, call, cases, inputs_of, make_backbones_once, to_numpy
from files import contents
from small_tokenizers import byte_pair_tokenizer, sentence_pieces
from tiny import VOCABULARY

import bert_keras
from bert_keras.export import to_keras_hub
from bert_keras.models.backbone import Backbone
from bert_keras.presets.families import RECORDS

keras_hub = pytest.importorskip("keras_hub", reason="the extra `nlp` is not installed")
pytestmark = pytest.mark.once

# What a family has there, where it is not its constructor's default.
OPTIONS = {
    "Bert": {"activation": "gelu_tanh"},
    "Electra": {"activation": "gelu_tanh", "embedding_dim": 6},
    "Albert": {"embedding_dim": 6, "num_layers": 4},
}
CASES = {
    f"{record.backbone.split('>')[1]}-{task}": (record, task)
    for record in RECORDS["KERAS_HUB"]
    for task in ("Backbone", *record.heads)
}
# Two backends compute a backbone with a head of both; the rest is names and transposed arrays.
MARKS = {"BertBackbone-TextClassifier": pytest.mark.also_on("tensorflow")}
TEXTS = ["a b c d", "h a g g", "b" * 9, "c [MASK] A"]


def shaken(model):
    """Gives every weight another value, so that none is 0 or 1 by chance."""
    rng = np.random.default_rng(0)
    for variable in model.weights:
        value = to_numpy(variable.value)
        variable.assign(value + rng.normal(0, 0.2, value.shape))
    return model


def made(record, task):
    """Returns a tiny model as a family has it there."""
    name, family = next(iter(record.names.items()))
    backbone = getattr(bert_keras, name)(**{**TINY, **OPTIONS.get(family, {})})
    if task == "Backbone":
        return shaken(backbone)
    head, options = record.heads[task], {}
    if task == "MaskedLM":
        options = {"head_options": dict(head.options)}
    return shaken(getattr(bert_keras, task)(backbone, **options))


def in_keras_hub(model):
    """Returns KerasHub's model, read from an export."""
    name = "Backbone" if isinstance(model, Backbone) else type(model).__name__
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # KerasHub's files have the state of an optimizer; Keras warns that these have none.
        warnings.filterwarnings("ignore", "Skipping variable loading for optimizer")
        model.export_to_keras_hub(folder)
        return getattr(keras_hub.models, name).from_preset(folder)


def outputs_of(model, inputs):
    """Returns what a call gives, whose compilation `predict` would spend its time on."""
    return keras.tree.map_structure(to_numpy, call(model, inputs, training=False))


def assert_same(actual, expected, mask):
    if not isinstance(expected, dict):
        actual, expected = {"": actual}, {"": expected}
    for name, values in expected.items():
        # What stands at padding means nothing.
        where = mask if name == "sequence_output" else slice(None)
        np.testing.assert_allclose(actual[name][where], values[where], rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*pooler/dense/kernel")
@pytest.mark.parametrize("name", [pytest.param(x, marks=MARKS.get(x, ())) for x in CASES])
def test_outputs_are_equal_in_keras_hub_and_after_the_return(name, tmp_path, monkeypatch):
    make_backbones_once(monkeypatch)
    record, task = CASES[name]
    model = made(record, task)
    inputs = inputs_of(model, 3, 10, model.input_names)
    mask, expected = inputs["padding_mask"].astype(bool), outputs_of(model, inputs)
    theirs = in_keras_hub(model)
    names = record.heads[task].architecture if task != "Backbone" else ("Backbone",)
    assert type(theirs).__name__ == next(iter(record.names.values())) + names[0]
    there = outputs_of(theirs, inputs)
    if task == "Backbone":
        there = there if isinstance(there, dict) else {"sequence_output": there}
        expected = {name: x for name, x in expected.items() if name in there}
    assert_same(there, expected, mask)
    theirs.save_to_preset(tmp_path / "theirs")
    model.export_to_keras_hub(tmp_path / "ours")
    options = {} if task == "Backbone" else {"preprocessor": None}
    cls = Backbone if task == "Backbone" else type(model)
    for folder in ("theirs", "ours"):
        again = cls.from_preset(tmp_path / folder, **options)
        assert_same(outputs_of(again, inputs), expected, mask)


def classifier(encoder="BertBackbone", **options):
    tokenizer = bert_keras.WordPieceTokenizer(VOCABULARY, strip_accents=True)
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=12)
    options = {"preprocessor": preprocessor, "label_names": ("x", "y", "z"), **options}
    (record,) = (r for r in RECORDS["KERAS_HUB"] if r.backbone.endswith(f">{encoder}"))
    body = backbone(getattr(bert_keras, encoder), activation=record.fixed["activation"])
    return shaken(bert_keras.TextClassifier(body, **{"num_classes": 3, **options}))


def backbone(cls=bert_keras.BertBackbone, **options):
    sizes = {**TINY, "num_layers": 1, "vocabulary_size": len(VOCABULARY)}
    return cls(**{**sizes, "activation": "gelu_tanh", **options})


@cases(("BertBackbone", {}), ("DistilBertBackbone", {"lora_rank": 2}))
def test_keras_hub_predicts_trains_and_saves_from_raw_text(tmp_path, encoder, options):
    model = classifier(encoder, **options)
    expected = model.predict(TEXTS, verbose=0)
    theirs = in_keras_hub(model)  # Adapters are merged.
    np.testing.assert_allclose(theirs.predict(TEXTS, verbose=0), expected, rtol=0, atol=1e-5)
    pairs = (TEXTS, TEXTS[::-1])
    ids = to_numpy(theirs.preprocessor(pairs, y=None)["token_ids"])
    np.testing.assert_array_equal(model.preprocessor(pairs, length=12)["token_ids"], ids)
    theirs.fit(TEXTS, np.array([0, 1, 2, 0]), batch_size=2, verbose=0)
    trained = theirs.predict(TEXTS, verbose=0)
    assert np.abs(trained - expected).max() > 1e-4
    theirs.save_to_preset(tmp_path / "whole")
    again = bert_keras.TextClassifier.from_preset(tmp_path / "whole")
    assert (again.num_classes, again.problem_type) == (3, "single_label")
    assert again.preprocessor.max_length == 12
    np.testing.assert_allclose(again.predict(TEXTS, verbose=0), trained, rtol=0, atol=1e-5)


def test_a_model_comes_back_from_keras_hub_unchanged(tmp_path):
    model = classifier(dropout=0.3, problem_type="multi_label")
    # KerasHub gives the probabilities of several labels, not their logits.
    found, expected = in_keras_hub(model).predict(TEXTS, verbose=0), model.probabilities(TEXTS)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    model.export_to_keras_hub(tmp_path)
    again = bert_keras.TextClassifier.from_preset(tmp_path)
    assert again.classify(TEXTS) == model.classify(TEXTS)
    assert (again.dropout, again.problem_type) == (0.3, "multi_label")
    for mine, other in zip(model.weights, again.weights, strict=True):
        assert mine.path.split("/")[1:] == other.path.split("/")[1:]
        np.testing.assert_array_equal(*map(to_numpy, (mine, other)))
    ours, found = model.preprocessor, again.preprocessor
    assert (found.max_length, found.tokenizer.vocabulary) == (12, VOCABULARY)
    assert found.tokenizer.settings == ours.tokenizer.settings


def test_a_byte_pair_tokenizer_and_the_masking_are_exported_too(tmp_path):
    tokenizer = byte_pair_tokenizer(TEXTS)
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=12)
    size = {"vocabulary_size": tokenizer.vocabulary_size, "activation": "gelu"}
    model = bert_keras.MaskedLM(
        backbone(bert_keras.RobertaBackbone, **size), preprocessor, masking={"rate": 0.3}
    )
    theirs = in_keras_hub(model)
    found = theirs.preprocessor.tokenizer(TEXTS[:3])
    assert [np.asarray(row).tolist() for row in found] == tokenizer(TEXTS[:3])
    theirs.fit(TEXTS, batch_size=2, verbose=0)
    model.export_to_keras_hub(tmp_path)
    again = bert_keras.MaskedLM.from_preset(tmp_path)
    assert again.preprocessor.tokenizer.settings == tokenizer.settings
    assert again.masking.rate == 0.3 and again.masking.num_predictions(12) == 4
    np.testing.assert_allclose(again.score(TEXTS[:3]), model.score(TEXTS[:3]), rtol=0, atol=1e-4)


def test_a_sentence_piece_tokenizer_is_read_but_not_written(tmp_path):
    (tmp_path / "spm.model").write_bytes(sentence_pieces(20 * TEXTS[:3], vocab_size=16))
    tokenizer = bert_keras.UnigramTokenizer(tmp_path / "spm.model")
    theirs = keras_hub.models.XLMRobertaTokenizer(proto=str(tmp_path / "spm.model"))
    theirs.save_to_preset(tmp_path / "theirs")
    again = bert_keras.Tokenizer.load(tmp_path / "theirs")
    assert again.settings == tokenizer.settings
    assert again(TEXTS[:3]) == [list(row) for row in theirs(TEXTS[:3])]
    size = {"vocabulary_size": tokenizer.vocabulary_size, "activation": "gelu"}
    encoder, packing = backbone(bert_keras.RobertaBackbone, **size), {"max_length": 12}
    model = bert_keras.TextClassifier(encoder, 2, bert_keras.TextPreprocessor(tokenizer, **packing))
    with pytest.raises(ValueError, match=r"type Unigram.*`preprocessor` to None"):
        model.export_to_keras_hub(tmp_path / "ours")


def other_tokenizer(**options):
    return bert_keras.TextPreprocessor(bert_keras.WordPieceTokenizer(VOCABULARY), 12, **options)


@cases(
    (lambda: backbone(activation="gelu"), "activation='gelu' has no counterpart"),
    (lambda: backbone(layer_norm_epsilon=1e-6), "layer_norm_epsilon=1e-12"),
    (lambda: backbone(attention_dropout=0.3), "one rate of dropout"),
    (lambda: backbone(num_segments=1), "num_segments"),
    (lambda: bert_keras.RobertaBackbone(30, 1, 1, 4, 4, num_segments=2), "num_segments=1"),
    (lambda: backbone(causal=True), "causal"),
    (lambda: backbone(has_pooler=False), "has_pooler=True"),
    (lambda: backbone(bert_keras.AlbertBackbone, num_layers=4, num_groups=2), "num_groups=1"),
    (lambda: bert_keras.ModernBertBackbone(**TINY), "ModernBertBackbone"),
    (lambda: bert_keras.TokenClassifier(backbone(), 2), "TokenClassifier has no counterpart"),
    (lambda: bert_keras.MaskedLM(backbone()), "activation='gelu' in `head_options`"),
    (lambda: classifier(pooling="mean"), "pooling='pooler'"),
    (lambda: bert_keras.TextEmbedder(backbone(), pooling="pooler"), "pooling"),
    (lambda: classifier(problem_type="regression"), "one score"),
    (lambda: classifier(preprocessor=other_tokenizer(truncation="tail")), "truncation"),
    (
        lambda: bert_keras.TextClassifier(
            backbone(bert_keras.AlbertBackbone), preprocessor=other_tokenizer()
        ),
        "'Unigram'.*Received: 'WordPiece'",
    ),
)
def test_what_keras_hub_lacks_is_refused_with_a_remedy(tmp_path, make, message):
    (tmp_path / "config.json").write_text("older")
    with pytest.raises(ValueError, match=message):
        make().export_to_keras_hub(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_the_remedies_work(tmp_path):
    bert_keras.MaskedLM(backbone(activation="gelu")).save_to_preset(tmp_path / "ours")
    model = bert_keras.MaskedLM.from_preset(
        tmp_path / "ours",
        preprocessor=None,
        backbone={"activation": "gelu_tanh"},
        head_options={"activation": "gelu", "layer_norm_epsilon": 1e-5},
    )
    model.export_to_keras_hub(tmp_path / "theirs")
    assert (tmp_path / "theirs" / "task.weights.h5").is_file()


def test_an_export_replaces_all_files_or_on_an_error_none(tmp_path, monkeypatch):
    classifier().export_to_keras_hub(tmp_path)
    before = contents(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="full"):
        patch.setattr(to_keras_hub, "_hdf5", full_disk)
        shaken(classifier()).export_to_keras_hub(tmp_path)
    assert contents(tmp_path) == before
    backbone().export_to_keras_hub(tmp_path)
    names = {"README.md", "config.json", "metadata.json", "model.weights.h5"}
    assert contents(tmp_path).keys() == names
    # Its vocabulary would speak for a preset of ours in its place.
    classifier().export_to_keras_hub(tmp_path)
    classifier().save_to_preset(tmp_path)
    assert not (tmp_path / "assets" / "tokenizer" / "vocabulary.txt").exists()


def full_disk(tensors):
    raise OSError("The disk is full.")


def test_it_passes_the_checks_that_keras_hub_has_for_its_own():
    TestCase = pytest.importorskip("keras_hub.src.tests.test_case").TestCase
    for model in (backbone(), classifier()):
        TestCase().run_serialization_test(in_keras_hub(model))
