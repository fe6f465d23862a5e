import json
import warnings

import numpy as np
import pytest
import scipy.special
from checks import assert_close, check_task, check_token_metrics, to_numpy
from safetensors.numpy import load_file, save_file
from theirs import outputs_of, reference_model
from tiny import VOCABULARY, Batches, ready_inputs, tiny_task

import bert_keras

pytestmark = pytest.mark.once

FIRST, SECOND = ["a b c", "c d", "e f", "g h"] * 4, ["b a", "d c c", "f e", "h h h"] * 4
LABELS = [0, 1, 0, 1] * 4
TEXTS = ["a [MASK] c", "[MASK] h"]


def tiny_model(**options):
    return tiny_task("Pretraining", **options)


def batch(seed=0):
    """A batch as `PretrainingBatches` yields it."""
    inputs = ready_inputs(6, 10, least=4, num_predictions=3, seed=seed)
    rng = np.random.default_rng(seed)
    labels = {
        "masked_lm": rng.integers(5, len(VOCABULARY), (6, 3)).astype("int32"),
        "next_sentence": rng.integers(0, 2, 6).astype("int32"),
    }
    weights = {
        "masked_lm": (rng.random((6, 3)) < 0.6).astype("float32"),
        "next_sentence": np.ones(6, "float32"),
    }
    return inputs, labels, weights


def test_it_keeps_the_contract_of_tasks(tmp_path):
    model = tiny_model(masking={"rate": 0.2}, frozen=1)
    answers = {"fill_mask": (TEXTS,), "score": (FIRST[:2],), "is_next": (FIRST[:2], SECOND[:2])}
    check_task(model, batch()[0], tmp_path, answers)


def test_the_loss_is_the_mean_mlm_plus_the_mean_nsp():
    model, (inputs, labels, weights) = tiny_model(), batch()
    results = model.evaluate(inputs, labels, 6, 0, weights, return_dict=True)
    outputs = model.predict(inputs, verbose=0)
    of_tokens = (x["masked_lm"] for x in (labels, outputs, weights))
    masked_lm = check_token_metrics(results, *of_tokens, prefix="masked_lm_")
    logits = outputs["next_sentence"].astype("float64")
    log_p = scipy.special.log_softmax(logits, -1)[np.arange(6), labels["next_sentence"]]
    assert results["loss"] == pytest.approx(masked_lm - log_p.mean(), rel=1e-5)
    is_right = logits.argmax(-1) == labels["next_sentence"]
    assert results["next_sentence_accuracy"] == pytest.approx(is_right.mean())


@pytest.mark.each_backend
@pytest.mark.eager
def test_batches_of_prepared_data_train_all_weights():
    model = tiny_model()
    before = [to_numpy(v).copy() for v in model.trainable_variables]
    model.compile(learning_rate=1e-2, warmup=0.0)
    batches = Batches([batch(seed) for seed in range(3)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        loss = model.fit(batches, epochs=2, shuffle=False, verbose=0).history["loss"]
    assert loss[-1] < loss[0]
    for variable, old in zip(model.trainable_variables, before, strict=True):
        if not variable.path.endswith("key/bias"):  # has no influence on attention
            assert np.abs(to_numpy(variable) - old).max() > 1e-5, variable.path


def test_examples_that_do_not_fit_are_refused():
    model, (inputs, labels, _) = tiny_model(), batch()
    tokens = labels["masked_lm"]
    for x, y, message in (
        (FIRST, LABELS, "takes pairs"),
        ((FIRST, SECOND), None, "label for each pair"),
        (inputs, tokens, "dict with the keys"),
        (inputs, {"masked_lm": tokens}, "use MaskedLM"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(x, y)


# Presets


def load_quietly(folder, *names):
    """Returns what each class loads from a folder, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return [getattr(bert_keras, name).from_preset(folder) for name in names]


def test_a_preset_gives_each_task_what_it_can_use(tmp_path):
    model = tiny_model()
    for variable in model.head.weights:
        variable.assign(np.random.default_rng(0).normal(size=variable.shape))
    model.save_to_preset(tmp_path)
    names = ("MaskedLM", "NextSentencePrediction", "BertBackbone")
    masked_lm, next_sentence, backbone = load_quietly(tmp_path, *names)
    for found, wanted in zip(masked_lm.fill_mask(TEXTS), model.fill_mask(TEXTS), strict=True):
        assert [token for token, _ in found[0]] == [token for token, _ in wanted[0]]
        assert [p for _, p in found[0]] == pytest.approx([p for _, p in wanted[0]], abs=1e-5)
    probabilities = [task.is_next("a", "b")["probability"] for task in (next_sentence, model)]
    assert probabilities[0] == pytest.approx(probabilities[1], abs=1e-5)
    with pytest.warns(UserWarning, match="head/dense/kernel, head/dense/bias"):
        classifier = bert_keras.TextClassifier.from_preset(tmp_path, num_classes=3)
    inputs = {"token_ids": np.array([[2, 5, 6, 3]])}
    expected = to_numpy(model.backbone(inputs)["pooled_output"])
    for loaded in (backbone, classifier.backbone):
        np.testing.assert_array_equal(to_numpy(loaded(inputs)["pooled_output"]), expected)
    assert classifier.backbone.pooler.trainable


def test_a_preset_of_one_objective_continues_with_both(tmp_path):
    options = {"activation": "relu", "layer_norm_epsilon": 0.1}
    masked_lm = tiny_task("MaskedLM", head_options=options)
    masked_lm.head.bias.assign(np.arange(len(VOCABULARY)) / 10)
    masked_lm.save_to_preset(tmp_path / "one")
    expected = masked_lm.fill_mask("a [MASK]")
    for name, other in (("Pretraining", "next_sent"), ("SpanBoundary", "span_")):
        with pytest.warns(UserWarning, match=other) as caught:
            model = getattr(bert_keras, name).from_preset(tmp_path / "one")
        assert not any("masked_lm/" in str(warning.message) for warning in caught)
        model.save_to_preset(tmp_path / "both")
        again = bert_keras.MaskedLM.from_preset(tmp_path / "both")
        assert again.fill_mask("a [MASK]") == model.fill_mask("a [MASK]") == expected
        with pytest.raises(ValueError, match="counterpart"):
            model.export_to_huggingface(tmp_path / "theirs")


# transformers


def logits_of(reference, inputs):
    """Returns a dict of what transformers' model says, at our masked positions."""
    outputs = outputs_of(reference, inputs)
    tokens = outputs.get("prediction_logits", outputs.get("logits"))
    found = {"next_sentence": outputs.get("seq_relationship_logits", outputs.get("logits"))}
    if tokens.ndim == 3:
        rows = np.arange(len(inputs["token_ids"]))[:, None]
        found["masked_lm"] = tokens[rows, inputs["mask_positions"]]
    return found


def test_a_checkpoint_of_both_objectives_gives_each_task_its_part(tmp_path):
    inputs = batch()[0]
    expected = logits_of(reference_model("BertForPreTraining", tmp_path), inputs)
    tasks = load_quietly(tmp_path, "MaskedLM", "NextSentencePrediction", "BertBackbone")
    for task, name in zip(tasks, ("masked_lm", "next_sentence"), strict=False):
        ours = {key: array for key, array in inputs.items() if key in task.input_names}
        found = task.predict(ours, verbose=0)
        assert_close(found, expected[name], 2e-5)  # Sums in another order.
    with pytest.warns(UserWarning, match="head/dense/kernel"):
        bert_keras.TextClassifier.from_preset(tmp_path)


@pytest.mark.filterwarnings("ignore:.*pooler:UserWarning")
def test_a_checkpoint_without_one_of_the_heads_loads_with_a_warning(tmp_path):
    reference_model("BertForMaskedLM", tmp_path)
    with pytest.warns(UserWarning, match="head/next_sentence/dense/kernel") as caught:
        bert_keras.Pretraining.from_preset(tmp_path)
    assert not any("masked_lm" in str(warning.message) for warning in caught)


def rewrite(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def test_tied_tensors_may_come_under_either_name_or_both(tmp_path):
    reference = reference_model("BertForPreTraining", tmp_path)
    inputs = batch()[0]
    expected = logits_of(reference, inputs)["masked_lm"]
    table, bias = "bert.embeddings.word_embeddings.weight", "cls.predictions.bias"
    copies = {
        "cls.predictions.decoder.weight": reference.state_dict()[table].numpy(),
        "cls.predictions.decoder.bias": reference.state_dict()[bias].numpy(),
    }

    def both(tensors):
        tensors |= {table: copies["cls.predictions.decoder.weight"]} | copies
        tensors[bias] = copies["cls.predictions.decoder.bias"]

    def decoder_only(tensors):
        del tensors[bias], tensors[table]

    for change in (both, decoder_only):
        rewrite(tmp_path, change)
        model = bert_keras.MaskedLM.from_preset(tmp_path)
        assert_close(model.predict(inputs, verbose=0), expected, 2e-5)  # Sums in another order.

    def untied(tensors):
        tensors[table] = tensors["cls.predictions.decoder.weight"] + 1

    rewrite(tmp_path, untied)
    with pytest.raises(ValueError, match="differs from its"):
        bert_keras.MaskedLM.from_preset(tmp_path)


def test_labels_and_classes_do_not_enter_the_exported_config(tmp_path):
    pytest.importorskip("transformers")
    tiny_model().export_to_huggingface(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["BertForPreTraining"]
    assert "id2label" not in config
