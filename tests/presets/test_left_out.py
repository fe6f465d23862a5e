"""Checkpoints with more than a task needs, with a wrapper's names, or with half-named labels."""

import warnings

import keras
import numpy as np
import pytest
from checks import cases, to_numpy
from files import change_json, read_json, write_json
from foreign import (
    assert_outputs_equal,
    bert_of_transformers,
    outputs_of,
    rewrite_hugging_face,
    write_hugging_face,
)

import bert_keras

pytestmark = pytest.mark.usefixtures("shared_backbones")
ROWS = np.ones((3, 16), "float32")
BIAS = np.ones(3, "float32")
EXTRA = {
    "ColBERT": {"linear.weight": ROWS},
    "a classifier of several layers": {"classifier.0.weight": ROWS, "classifier.0.bias": BIAS,
     "classifier.3.weight": ROWS, "classifier.3.bias": BIAS},
    "a CRF": {"crf.transitions": np.ones((3, 3), "float32"), "crf.start_transitions": BIAS},
    "a projection": {"mlp.dense.weight": ROWS, "mlp.dense.bias": BIAS},
}  # fmt: skip
LOADED = {
    "backbone": lambda folder: bert_keras.BertBackbone.from_preset(folder),
    "classifier": lambda folder: bert_keras.TextClassifier.from_preset(folder, num_classes=4),
    "embedder": lambda folder: bert_keras.TextEmbedder.from_preset(
        folder, pooling="cls", normalize=False
    ),
}


@pytest.fixture(scope="module")
def encoder():
    return bert_of_transformers("SequenceClassification").bert


@pytest.fixture
def theirs(encoder, tmp_path):
    """An encoder alone, as the checkpoint of a class of somebody's own holds it."""
    write_hugging_face(tmp_path, encoder)
    change_json(tmp_path / "config.json", architectures=["BertOfMine"])
    rewrite_hugging_face(tmp_path, lambda t: {f"bert.{name}": x for name, x in t.items()})
    return tmp_path


def loaded(load, folder):
    """Returns the backbone that is loaded, and the warnings about tensors left out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = load(folder)
    messages = [str(x.message) for x in caught if "left out" in str(x.message)]
    return getattr(model, "backbone", model), messages


@pytest.mark.parametrize("load", LOADED.values(), ids=LOADED)
@pytest.mark.parametrize("extra", EXTRA.values(), ids=EXTRA)
def test_one_warning_names_the_tensors_of_an_unknown_part(theirs, encoder, load, extra):
    rewrite_hugging_face(theirs, lambda tensors: tensors | extra)
    backbone, messages = loaded(load, theirs)
    assert len(messages) == 1
    assert all(name in messages[0] for name in extra)
    assert_outputs_equal(backbone, outputs_of(encoder))


@pytest.mark.parametrize("load", LOADED.values(), ids=LOADED)
def test_the_heads_of_other_tasks_are_no_unknown_parts(tmp_path, load):
    write_hugging_face(tmp_path, bert_of_transformers("PreTraining"))
    assert loaded(load, tmp_path)[1] == []


def test_a_head_beside_an_unknown_part_is_loaded(tmp_path):
    model = bert_of_transformers("SequenceClassification", num_labels=3)
    write_hugging_face(tmp_path, model)
    rewrite_hugging_face(tmp_path, lambda tensors: tensors | EXTRA["a projection"])
    with pytest.warns(UserWarning, match=r"left out: mlp\.dense\.") as caught:
        task = bert_keras.TextClassifier.from_preset(tmp_path)
    assert len(caught) == 1
    expected = model.classifier.weight.detach().numpy()
    np.testing.assert_array_equal(to_numpy(task.head.dense.kernel), expected.T)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {k: x for k, x in t.items() if "layer.1.output.dense.bias" not in k}, "tensor"),
        (lambda t: t | {"bert.encoder.layer.2.output.dense.bias": BIAS}, r"weight \(3\)"),
        (lambda t: t | {"bert.embeddings.task_type_embeddings.weight": ROWS}, r"weight \(3\)"),
        (lambda t: t | {"bert.pooler.dense.weight": ROWS}, r"differ \(1\)"),
    ],
    ids=["a missing weight", "a further layer", "a further table", "another shape"],
)
def test_the_backbone_must_still_fit(theirs, change, message):
    rewrite_hugging_face(theirs, lambda tensors: change(tensors | EXTRA["a projection"]))
    for load in LOADED.values():
        with pytest.raises(ValueError, match=message) as raised:
            load(theirs)
        assert "mlp.dense.weight" in str(raised.value)


def test_a_head_that_is_there_in_part_is_refused(tmp_path):
    write_hugging_face(tmp_path, bert_of_transformers("SequenceClassification", num_labels=3))
    rewrite_hugging_face(tmp_path, lambda t: {k: x for k, x in t.items() if k != "classifier.bias"})
    with pytest.raises(ValueError, match="head/dense/bias"):
        bert_keras.TextClassifier.from_preset(tmp_path, num_classes=2, dropout=0.0)


@pytest.mark.parametrize("wrapper", ["module.", "model.", "_orig_mod.", "module._orig_mod."])
@cases(("SequenceClassification", "TextClassifier"), ("MaskedLM", "MaskedLM"), ("", "BertBackbone"))
@pytest.mark.filterwarnings("error::UserWarning")
def test_a_wrapper_s_prefix_before_all_names_changes_nothing(tmp_path, wrapper, architecture, task):
    model = bert_of_transformers(architecture or "PreTraining")
    write_hugging_face(tmp_path, model if architecture else model.bert)

    def weights():
        keras.utils.set_random_seed(0)  # for a pooler that is in no file
        return [to_numpy(w) for w in getattr(bert_keras, task).from_preset(tmp_path).weights]

    expected = weights()
    rewrite_hugging_face(tmp_path, lambda t: {wrapper + name: x for name, x in t.items()})
    np.testing.assert_equal(weights(), expected)


def test_the_file_of_a_whole_sentence_transformer_holds_its_encoder(tmp_path):
    write_hugging_face(tmp_path, bert_of_transformers("PreTraining").bert)
    expected = bert_keras.BertBackbone.from_preset(tmp_path).get_weights()
    rewrite_hugging_face(
        tmp_path,
        lambda t: {f"0.auto_model.{n}": x for n, x in t.items()} | {"2.linear.weight": ROWS},
    )
    found = bert_keras.BertBackbone.from_preset(tmp_path).get_weights()
    np.testing.assert_equal(found, expected)


def test_a_prefix_before_some_names_only_is_refused(theirs):
    rewrite_hugging_face(
        theirs, lambda t: {f"module.{n}": x for n, x in t.items()} | {"linear.weight": ROWS}
    )
    with pytest.raises(ValueError, match=r"module\.bert\.embeddings"):
        bert_keras.BertBackbone.from_preset(theirs)


NUMBERED = {"0": "LABEL_0", "1": "LABEL_1"}


@cases(
    ({"id2label": {"1": "good", "0": "bad"}}, ("bad", "good"), None),
    ({"id2label": NUMBERED}, None, None),
    ({"label2id": {"bad": 0, "good": 1}}, None, None),  # transformers does not read it.
    ({}, None, None),
    ({"id2label": {"0": "a", "1": "b", "2": "c"}}, None, "the 2 classes of its head"),
    ({"id2label": {"a": "A", "b": "B"}}, None, "the 2 classes of its head"),
    ({"id2label": {"0": "A", "1": "A"}}, None, "not different names"),
)
def test_names_of_labels_are_taken_or_their_loss_is_said(tmp_path, labels, names, warning):
    write_hugging_face(tmp_path, bert_of_transformers("SequenceClassification"))
    settings = read_json(tmp_path / "config.json")
    kept = {k: v for k, v in settings.items() if k not in ("id2label", "label2id", "num_labels")}
    write_json(tmp_path / "config.json", kept | labels)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert bert_keras.TextClassifier.from_preset(tmp_path).label_names == names
    assert [warning in str(x.message) for x in caught] == ([] if warning is None else [True])
    assert all(x.filename == __file__ for x in caught)
