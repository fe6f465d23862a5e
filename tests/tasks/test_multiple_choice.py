import json

import keras
import numpy as np
import pytest
from checks import (
    assert_close,
    check_config_round_trip,
    check_everything_is_built,
    check_saved_and_reloaded,
    to_numpy,
)
from tiny import batches_of

import bert_keras

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "cat", "barks", "meows"]
CONTEXTS = ["the dog", "the cat", "the dog the dog"]
CHOICES = [["barks", "meows", "the"], ["the cat barks", "meows"], ["meows", "barks"]]


def tiny_model(with_preprocessor=True, **overrides):
    backbone = bert_keras.BertBackbone(
        vocabulary_size=len(VOCABULARY),
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=16,
        max_sequence_length=16,
        initializer_range=0.3,
    )
    preprocessor = bert_keras.TextPreprocessor(
        bert_keras.WordPieceTokenizer(VOCABULARY), max_length=16
    )
    return bert_keras.MultipleChoice(
        backbone, preprocessor if with_preprocessor else None, **overrides
    )


def random_inputs(batch=3, num_choices=4, seq_len=7, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, seq_len + 1, (batch, num_choices))
    mask = np.arange(seq_len) < lengths[..., None]
    shape = (batch, num_choices, seq_len)
    return {
        "token_ids": np.where(mask, rng.integers(5, len(VOCABULARY), shape), 0),
        "segment_ids": np.where(mask, rng.integers(0, 2, shape), 0),
        "padding_mask": mask.astype(int),
    }


def test_everything_is_built_by_construction():
    check_everything_is_built(tiny_model())


def test_config_survives_the_round_trip():
    check_config_round_trip(tiny_model(dropout=0.3, pooling="mean", frozen=1))


@pytest.mark.once
def test_a_keras_file_gives_the_same_numbers_and_answers(tmp_path):
    model = tiny_model()
    reloaded = check_saved_and_reloaded(model, random_inputs(), tmp_path / "model.keras")
    assert reloaded.choose(CONTEXTS, CHOICES) == model.choose(CONTEXTS, CHOICES)


def test_a_preset_folder_gives_the_same_answers(tmp_path):
    model = tiny_model()
    model.save_to_preset(tmp_path)
    again = bert_keras.MultipleChoice.from_preset(tmp_path)
    assert again.choose(CONTEXTS, CHOICES) == model.choose(CONTEXTS, CHOICES)


@pytest.mark.once
def test_a_choice_s_logit_is_that_of_its_pair_alone():
    model = tiny_model()
    logits = model.predict((CONTEXTS[:1], CHOICES[:1]), verbose=0)
    inputs = model.preprocessor((CONTEXTS[:1] * 3, CHOICES[0]))
    pooled = model.backbone(inputs)["pooled_output"]
    assert_close(logits[0], to_numpy(model.head.dense(pooled))[:, 0])


@pytest.mark.once
def test_absent_choices_have_no_probability_and_change_no_other():
    model = tiny_model()
    logits = model.predict((CONTEXTS, CHOICES), verbose=0)
    assert logits.shape == (3, 3)
    np.testing.assert_array_equal(logits[1:, 2], -1e9)
    alone = model.predict((CONTEXTS[1:2], CHOICES[1:2]), verbose=0)
    assert_close(logits[1, :2], alone[0], 1e-5)
    inputs = random_inputs()
    fewer = {key: array[:, :3] for key, array in inputs.items()}
    inputs["padding_mask"][:, 3] = 0
    assert_close(model(inputs)[:, :3], model(fewer), 1e-5)


@pytest.mark.once
def test_padding_changes_nothing():
    model = tiny_model()
    inputs = random_inputs()
    padded = {key: np.pad(array, ((0, 0), (0, 0), (0, 3))) for key, array in inputs.items()}
    assert_close(model(padded), model(inputs), 1e-5)


def test_choose_answers_one_context_and_a_column_alike():
    model = tiny_model()
    answers = model.choose(CONTEXTS, CHOICES)
    assert [len(answer["probabilities"]) for answer in answers] == [3, 2, 2]
    for answer, choices in zip(answers, CHOICES, strict=True):
        assert sum(answer["probabilities"]) == pytest.approx(1)
        assert answer["choice"] == choices[answer["index"]]
        assert answer["index"] == int(np.argmax(answer["probabilities"]))
    one = model.choose(CONTEXTS[1], CHOICES[1])
    assert one["choice"] == answers[1]["choice"]
    assert one["probabilities"] == pytest.approx(answers[1]["probabilities"], abs=1e-5)


def test_it_learns_that_somebody_barks_from_lists_of_unequal_length():
    x = (["the dog", "the cat"] * 8, [["barks", "meows", "the"], ["meows", "barks"]] * 8)
    y = [0, 1] * 8
    model = tiny_model()
    # There, compiling would take longer than the few steps.
    model.compile(learning_rate=1e-2, run_eagerly=keras.backend.backend() == "tensorflow")
    history = model.fit(x, y, batch_size=8, epochs=8, validation_data=(x, y), verbose=0)
    assert history.history["val_accuracy"][-1] == 1
    assert history.history["val_loss"][-1] < history.history["val_loss"][0]
    assert model.choose("the cat", ("the", "barks", "meows"))["choice"] == "barks"


@pytest.mark.once
def test_ready_inputs_train_and_split():
    inputs = random_inputs(batch=8)
    history = tiny_model(with_preprocessor=False).fit(
        inputs, np.zeros(8, int), validation_split=0.25, verbose=0
    )
    assert "val_accuracy" in history.history


def test_arrays_of_choices_are_taken_like_lists():
    model = tiny_model()
    choices = [row[:2] for row in CHOICES]
    np.testing.assert_array_equal(
        model.predict((np.array(CONTEXTS), np.array(choices)), verbose=0),
        model.predict((CONTEXTS, choices), verbose=0),
    )


def reference_model(folder, **overrides):
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
    reference = transformers.BertForMultipleChoice(config).eval()
    with torch.no_grad():
        for parameter in reference.parameters():  # the initial zeros and ones hide mix-ups
            parameter.add_(0.1 * torch.randn_like(parameter))
    reference.save_pretrained(folder)
    folder.joinpath("vocab.txt").write_text("\n".join(VOCABULARY))
    return reference


def reference_logits(reference, inputs):
    import torch

    with torch.no_grad():
        return reference(
            input_ids=torch.tensor(inputs["token_ids"]),
            token_type_ids=torch.tensor(inputs["segment_ids"]),
            attention_mask=torch.tensor(inputs["padding_mask"]),
        ).logits.numpy()


def test_logits_equal_transformers_in_both_directions(tmp_path):
    reference = reference_model(tmp_path)
    model = bert_keras.MultipleChoice.from_preset(tmp_path)
    inputs = random_inputs()
    expected = reference_logits(reference, inputs)
    np.testing.assert_allclose(model.predict(inputs, verbose=0), expected, atol=1e-5)
    import transformers

    model.export_to_huggingface(tmp_path / "exported")
    again = transformers.BertForMultipleChoice.from_pretrained(tmp_path / "exported").eval()
    np.testing.assert_allclose(reference_logits(again, inputs), expected, atol=1e-5)


def test_the_head_of_another_task_is_not_taken_for_its_own(tmp_path):
    reference_model(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["architectures"] = ["BertForSequenceClassification"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.warns(UserWarning, match="head/dense/kernel"):
        bert_keras.MultipleChoice.from_preset(tmp_path)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((CONTEXTS, CHOICES), [0, 2, 0], "from 0 to 1.*index 1"),
        ((CONTEXTS, CHOICES), [0, 0, -1], "Received -1 at the index 2"),
        (
            (CONTEXTS, CHOICES),
            [0.5, 0, 0],
            r"ints of the shape \(num_examples,\).*position of the right choice",
        ),
        ((CONTEXTS, CHOICES), None, "needs labels"),
        ((CONTEXTS, CHOICES), [0, 1], "as many labels"),
        ((CONTEXTS, CHOICES[:2]), [0, 1, 0], "one list of choices for each context"),
        ((CONTEXTS, [["a"], [], ["b"]]), [0, 0, 0], r"at least one choice.*\[\] at the index 1"),
        (CONTEXTS, [0, 0, 0], "tuple of contexts"),
        (random_inputs(), [0, 4, 0], "from 0 to 3.*Received 4 at the index 1"),
        ({"token_ids": np.ones((3, 4), int)}, [0, 0, 0], r"\(batch, num_choices, seq_len\)"),
    ],
)
def test_examples_that_do_not_fit_are_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        tiny_model().fit(x, None if y is None else np.array(y), verbose=0)


@pytest.mark.parametrize(
    "choices", [["barks", "meows", "the"], [["barks", None]] * 3, [["barks"], "meows", ["the"]]]
)
def test_choices_must_be_lists_of_texts(choices):
    with pytest.raises(TypeError, match=r"choices\["):
        tiny_model().predict((CONTEXTS, choices), verbose=0)


def test_label_smoothing_needs_equally_many_choices():
    model = tiny_model()
    model.compile(label_smoothing=0.1)
    with pytest.raises(ValueError, match="as many choices"):
        model.fit((CONTEXTS, CHOICES), [0, 0, 0], verbose=0)
    with pytest.raises(ValueError, match="as many choices"):
        model.fit(batches_of(model, (CONTEXTS, CHOICES), batch_size=3)[0][0], [0] * 3, verbose=0)


def test_the_registered_name_is_the_file_format():
    assert keras.saving.get_registered_name(bert_keras.MultipleChoice) == (
        "bert_keras>MultipleChoice"
    )


def test_no_contexts_have_no_choices():
    model = tiny_model()
    assert model.choose([], []) == []
    with pytest.raises(ValueError, match="one list of choices for each context"):
        model.choose([], [["a"]])
