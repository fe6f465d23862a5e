import json
import warnings

import keras
import numpy as np
import pytest
from checks import (
    check_config_round_trip,
    check_everything_is_built,
    check_saved_and_reloaded,
    perplexity,
    to_numpy,
)
from safetensors.numpy import load_file, save_file
from tiny import VOCABULARY, tiny_backbone, tiny_preprocessor

import bert_keras

FIRST, SECOND = ["a b c", "c d", "e f", "g h"] * 4, ["b a", "d c c", "f e", "h h h"] * 4
LABELS = [0, 1, 0, 1] * 4


def tiny_model(**options):
    return bert_keras.Pretraining(
        tiny_backbone(initializer_range=0.3), **{"preprocessor": tiny_preprocessor(), **options}
    )


def batch(size=6, seq_len=10, num_predictions=3, seed=0):
    """A batch as `PretrainingBatches` yields it."""
    rng = np.random.default_rng(seed)
    mask = np.arange(seq_len) < rng.integers(4, seq_len + 1, (size, 1))
    ids = (size, seq_len)
    inputs = {
        "token_ids": np.where(mask, rng.integers(5, len(VOCABULARY), ids), 0).astype("int32"),
        "segment_ids": np.where(mask, rng.integers(0, 2, ids), 0).astype("int32"),
        "padding_mask": mask.astype("int32"),
        "mask_positions": rng.integers(1, 4, (size, num_predictions)).astype("int32"),
    }
    labels = {
        "masked_lm": rng.integers(5, len(VOCABULARY), (size, num_predictions)).astype("int32"),
        "next_sentence": rng.integers(0, 2, size).astype("int32"),
    }
    weights = {
        "masked_lm": (rng.random((size, num_predictions)) < 0.6).astype("float32"),
        "next_sentence": np.ones(size, "float32"),
    }
    return inputs, labels, weights


def test_everything_is_built_and_the_config_survives():
    check_everything_is_built(tiny_model())
    check_config_round_trip(tiny_model(masking={"rate": 0.2}, frozen=1))


def test_a_keras_file_gives_the_same_numbers_and_answers(tmp_path):
    model = tiny_model()
    reloaded = check_saved_and_reloaded(model, batch()[0], tmp_path / "model.keras")
    assert reloaded.fill_mask("a [MASK]") == model.fill_mask("a [MASK]")
    assert reloaded.is_next("a", "b") == model.is_next("a", "b")


def test_the_loss_is_the_mean_mlm_plus_the_mean_nsp():
    model = tiny_model()
    inputs, labels, weights = batch()
    results = model.evaluate(
        inputs, labels, sample_weight=weights, batch_size=6, verbose=0, return_dict=True
    )
    outputs = model.predict(inputs, verbose=0)
    tokens = weights["masked_lm"]
    expected = perplexity(labels["masked_lm"], outputs["masked_lm"], tokens)
    logits = outputs["next_sentence"].astype("float64")
    right = logits[np.arange(6), labels["next_sentence"]]
    next_loss = np.mean(np.log(np.exp(logits).sum(-1)) - right)
    assert results["loss"] == pytest.approx(np.log(expected) + next_loss, rel=1e-5)
    assert results["masked_lm_perplexity"] == pytest.approx(expected, rel=1e-5)
    is_right = labels["masked_lm"] == outputs["masked_lm"].argmax(-1)
    assert results["masked_lm_accuracy"] == pytest.approx(np.average(is_right, weights=tokens))
    assert results["next_sentence_accuracy"] == pytest.approx(
        np.mean(logits.argmax(-1) == labels["next_sentence"])
    )


class Batches(keras.utils.PyDataset):
    num_batches = None

    def __getitem__(self, index):
        return batch(seed=index % 3)


def test_batches_of_prepared_data_train_all_weights():
    model = tiny_model()
    before = [to_numpy(v).copy() for v in model.trainable_variables]
    model.compile(learning_rate=1e-2, warmup=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        history = model.fit(Batches(), epochs=4, steps_per_epoch=3, shuffle=False, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]
    for variable, old in zip(model.trainable_variables, before, strict=True):
        if not variable.path.endswith("key/bias"):  # has no influence on attention
            assert np.abs(to_numpy(variable) - old).max() > 1e-5, variable.path


@pytest.mark.once
def test_pairs_of_texts_train_and_answer():
    model = tiny_model()
    model.compile(learning_rate=1e-2, run_eagerly=keras.backend.backend() == "tensorflow")
    history = model.fit((FIRST, SECOND), LABELS, batch_size=16, epochs=8, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    results = model.evaluate((FIRST, SECOND), LABELS, verbose=0, return_dict=True)
    assert {"masked_lm_accuracy", "masked_lm_perplexity", "next_sentence_accuracy"} <= set(results)
    assert len(model.is_next(FIRST[:8], SECOND[:8])) == 8
    assert len(model.fill_mask("a [MASK] [MASK]")) == 2
    assert model.score("a b") < 0


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (FIRST, LABELS, "takes pairs"),
        ((FIRST, SECOND), None, "label for each pair"),
        (batch()[0], batch()[1]["masked_lm"], "dict with the keys"),
        (batch()[0], {"masked_lm": batch()[1]["masked_lm"]}, "use MaskedLM"),
    ],
)
def test_examples_that_do_not_fit_are_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        tiny_model().fit(x, y)


# Presets


@pytest.mark.once
def test_a_preset_gives_each_task_what_it_can_use(tmp_path):
    model = tiny_model()
    for variable in model.head.weights:
        variable.assign(np.random.default_rng(0).normal(size=variable.shape))
    model.save_to_preset(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        again = bert_keras.Pretraining.from_preset(tmp_path)
        masked_lm = bert_keras.MaskedLM.from_preset(tmp_path)
        next_sentence = bert_keras.NextSentencePrediction.from_preset(tmp_path)
        backbone = bert_keras.BertBackbone.from_preset(tmp_path)
    texts = ["a [MASK] c", "[MASK] h"]
    assert again.fill_mask(texts) == model.fill_mask(texts)
    for found, wanted in zip(masked_lm.fill_mask(texts), model.fill_mask(texts), strict=True):
        assert [token for token, _ in found[0]] == [token for token, _ in wanted[0]]
        assert [p for _, p in found[0]] == pytest.approx([p for _, p in wanted[0]], abs=1e-5)
    expected = model.is_next("a", "b")
    assert again.is_next("a", "b") == expected
    found = next_sentence.is_next("a", "b")["probability"]
    assert found == pytest.approx(expected["probability"], abs=1e-5)
    inputs = {"token_ids": np.array([[2, 5, 6, 3]])}
    expected = model.backbone.predict(inputs, verbose=0)["pooled_output"]
    found = backbone.predict(inputs, verbose=0)["pooled_output"]
    np.testing.assert_array_equal(found, expected)
    with pytest.warns(UserWarning, match="head/dense/kernel, head/dense/bias"):
        classifier = bert_keras.TextClassifier.from_preset(tmp_path, num_classes=3)
    found = classifier.backbone.predict(inputs, verbose=0)["pooled_output"]
    np.testing.assert_array_equal(found, expected)
    assert classifier.backbone.pooler.trainable


def test_a_preset_of_one_objective_continues_with_both(tmp_path):
    options = {"activation": "relu", "layer_norm_epsilon": 0.1}
    masked_lm = bert_keras.MaskedLM(tiny_backbone(), tiny_preprocessor(), head_options=options)
    masked_lm.head.bias.assign(np.arange(len(VOCABULARY)) / 10)
    masked_lm.save_to_preset(tmp_path / "one")
    for cls, other in ((bert_keras.Pretraining, "next_sent"), (bert_keras.SpanBoundary, "span_")):
        with pytest.warns(UserWarning, match=other) as caught:
            model = cls.from_preset(tmp_path / "one")
        assert not any("masked_lm/" in str(warning.message) for warning in caught)
        assert model.fill_mask("a [MASK]") == masked_lm.fill_mask("a [MASK]")
        model.save_to_preset(tmp_path / "both")
        again = bert_keras.MaskedLM.from_preset(tmp_path / "both")
        assert again.fill_mask("a [MASK]") == masked_lm.fill_mask("a [MASK]")
        with pytest.raises(ValueError, match="counterpart"):
            model.export_to_huggingface(tmp_path / "theirs")


# transformers


def reference_model(architecture, folder, **overrides):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.BertConfig(
        **{
            "vocab_size": len(VOCABULARY),
            "hidden_size": 24,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 40,
            "max_position_embeddings": 16,
            "initializer_range": 0.3,
            **overrides,
        }
    )
    reference = getattr(transformers, architecture)(config).eval()
    with torch.no_grad():
        for parameter in reference.parameters():  # the initial zeros and ones hide mix-ups
            parameter.add_(0.1 * torch.randn_like(parameter))
    reference.save_pretrained(folder)
    bert_keras.WordPieceTokenizer(VOCABULARY).save(folder)
    return reference


def reference_logits(reference, inputs):
    """Returns a dict of what transformers' model says, at our masked positions."""
    import torch

    with torch.no_grad():
        outputs = reference(
            input_ids=torch.tensor(inputs["token_ids"]).long(),
            token_type_ids=torch.tensor(inputs["segment_ids"]).long(),
            attention_mask=torch.tensor(inputs["padding_mask"]).long(),
        )
    tokens = outputs.get("prediction_logits", outputs.get("logits"))
    sentences = outputs.get("seq_relationship_logits", outputs.get("logits"))
    found = {"next_sentence": sentences.numpy()}
    if tokens.ndim == 3:
        rows = np.arange(len(inputs["token_ids"]))[:, None]
        found["masked_lm"] = tokens.numpy()[rows, inputs["mask_positions"]]
    return found


PAIRS = [
    ("Pretraining", "BertForPreTraining", {}),
    ("Pretraining", "BertForPreTraining", {"hidden_act": "gelu_new", "layer_norm_eps": 1e-5}),
    ("MaskedLM", "BertForMaskedLM", {}),
    ("NextSentencePrediction", "BertForNextSentencePrediction", {}),
]


@pytest.mark.once
@pytest.mark.parametrize(("task", "architecture", "overrides"), PAIRS)
@pytest.mark.filterwarnings("ignore:.*pooler:UserWarning")  # BertForMaskedLM has none
def test_logits_equal_transformers_in_both_directions(task, architecture, overrides, tmp_path):
    reference = reference_model(architecture, tmp_path, **overrides)
    model = getattr(bert_keras, task).from_preset(tmp_path)
    inputs = batch()[0]
    expected = reference_logits(reference, inputs)

    def agrees(found):
        found = found if isinstance(found, dict) else {"next_sentence": found, "masked_lm": found}
        names = set(found) & set(expected) if task != "MaskedLM" else {"masked_lm"}
        for name in names:
            np.testing.assert_allclose(found[name], expected[name], atol=1e-5)
        return len(names)

    ours = {k: v for k, v in inputs.items() if k in model.input_names}
    assert agrees(model.predict(ours, verbose=0)) == (2 if task == "Pretraining" else 1)
    import transformers

    model.export_to_huggingface(tmp_path / "exported")
    again, info = getattr(transformers, architecture).from_pretrained(
        tmp_path / "exported", output_loading_info=True
    )
    assert not info["missing_keys"] and not info["mismatched_keys"]
    assert all(name.startswith("bert.pooler.") for name in info["unexpected_keys"])
    agrees(reference_logits(again.eval(), inputs))
    back = getattr(bert_keras, task).from_preset(tmp_path / "exported")
    agrees(back.predict(ours, verbose=0))


@pytest.mark.once
def test_a_checkpoint_of_both_objectives_gives_each_task_its_part(tmp_path):
    reference = reference_model("BertForPreTraining", tmp_path)
    inputs = batch()[0]
    expected = reference_logits(reference, inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        masked_lm = bert_keras.MaskedLM.from_preset(tmp_path)
        next_sentence = bert_keras.NextSentencePrediction.from_preset(tmp_path)
        bert_keras.BertBackbone.from_preset(tmp_path)
    np.testing.assert_allclose(
        masked_lm.predict(inputs, verbose=0), expected["masked_lm"], atol=1e-5
    )
    del inputs["mask_positions"]
    np.testing.assert_allclose(
        next_sentence.predict(inputs, verbose=0), expected["next_sentence"], atol=1e-5
    )
    with pytest.warns(UserWarning, match="head/dense/kernel"):
        bert_keras.TextClassifier.from_preset(tmp_path)


@pytest.mark.filterwarnings("ignore:.*pooler:UserWarning")
def test_a_checkpoint_of_one_objective_leaves_the_other_head_at_random_and_says_so(tmp_path):
    reference_model("BertForMaskedLM", tmp_path)
    with pytest.warns(UserWarning, match="head/next_sentence/dense/kernel") as caught:
        bert_keras.Pretraining.from_preset(tmp_path)
    assert not any("masked_lm" in str(warning.message) for warning in caught)


def rewrite(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.once
def test_tied_tensors_may_come_under_either_name_or_both(tmp_path):
    reference = reference_model("BertForPreTraining", tmp_path)
    inputs = batch()[0]
    expected = reference_logits(reference, inputs)["masked_lm"]
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
        np.testing.assert_allclose(model.predict(inputs, verbose=0), expected, atol=1e-5)

    def untied(tensors):
        tensors[table] = tensors["cls.predictions.decoder.weight"] + 1

    rewrite(tmp_path, untied)
    with pytest.raises(ValueError, match="differs from its"):
        bert_keras.MaskedLM.from_preset(tmp_path)


def test_a_head_tensor_that_is_missing_is_an_error(tmp_path):
    reference_model("BertForPreTraining", tmp_path)
    rewrite(tmp_path, lambda tensors: tensors.pop("cls.predictions.transform.LayerNorm.bias"))
    with pytest.raises(ValueError, match="head/layer_norm/beta"):
        bert_keras.MaskedLM.from_preset(tmp_path)


def test_labels_and_classes_do_not_enter_the_exported_config(tmp_path):
    pytest.importorskip("transformers")
    tiny_model().export_to_huggingface(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["BertForPreTraining"]
    assert "id2label" not in config


def test_the_registered_names_and_weight_paths_are_the_file_format():
    for name in ("MaskedLM", "NextSentencePrediction", "Pretraining"):
        registered = keras.saving.get_registered_name(getattr(bert_keras, name))
        assert registered == f"bert_keras>{name}"
    assert [v.path.split("/", 1)[1] for v in tiny_model().head.weights] == [
        "head/masked_lm/bias",
        "head/masked_lm/dense/kernel",
        "head/masked_lm/dense/bias",
        "head/masked_lm/layer_norm/gamma",
        "head/masked_lm/layer_norm/beta",
        "head/next_sentence/dense/kernel",
        "head/next_sentence/dense/bias",
    ]


def test_no_pairs_have_no_answers():
    assert tiny_model().is_next([], []) == []
