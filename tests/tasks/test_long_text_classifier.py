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
from tiny import VOCABULARY, batches_of, tiny_backbone, tiny_preprocessor

import bert_keras
from bert_keras.tasks.encoded_examples import buckets_of

COMBINATIONS = ("mean", "max", "self_attention")
# Windows of 6 tokens: one, one, two, three, and six, of which four are read.
TEXTS = ["a b", "c d e f g h", "a b c d e f g h", "h " * 15, "a b c d e f g h " * 4 + "a b"]
LABELS = [0, 1, 0, 1, 1]


def tiny_model(backbone=None, **options):
    preprocessor = tiny_preprocessor(max_length=8)
    return bert_keras.LongTextClassifier(
        backbone or tiny_backbone(num_layers=1, initializer_range=0.3),
        **{"preprocessor": preprocessor, **options},
    )


def random_inputs(batch=3, num_windows=3, seq_len=7, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, seq_len + 1, (batch, num_windows))
    lengths[:, 1:] *= rng.integers(0, 2, (batch, num_windows - 1))
    mask = np.arange(seq_len) < lengths[..., None]
    return {
        "token_ids": np.where(mask, rng.integers(5, len(VOCABULARY), mask.shape), 0),
        "padding_mask": mask.astype(int),
    }


def test_everything_is_built_by_construction():
    check_everything_is_built(tiny_model(combine="self_attention"))


def test_config_survives_the_round_trip():
    check_config_round_trip(
        tiny_model(
            num_windows=7, stride=3, combine="self_attention", dropout=0.3, pooling="max", frozen=1
        )
    )


@pytest.mark.once
@pytest.mark.parametrize("combine", COMBINATIONS)
def test_a_keras_file_gives_the_same_numbers_and_answers(tmp_path, combine):
    model = tiny_model(combine=combine, stride=4, label_names=["bad", "good"])
    reloaded = check_saved_and_reloaded(model, random_inputs(), tmp_path / "model.keras")
    assert reloaded.classify(TEXTS) == model.classify(TEXTS)
    assert reloaded.num_windows == 4 and reloaded.stride == 4


def test_a_preset_folder_gives_the_same_answers(tmp_path):
    model = tiny_model(combine="self_attention", num_windows=3)
    model.save_to_preset(tmp_path)
    again = bert_keras.LongTextClassifier.from_preset(tmp_path)
    assert again.classify(TEXTS) == model.classify(TEXTS)
    with pytest.warns(UserWarning, match="head starts at random"):
        other = bert_keras.LongTextClassifier.from_preset(tmp_path, combine="max")
    assert other.combine == "max" and other.num_windows == 3


@pytest.mark.once
@pytest.mark.parametrize(
    ("combine", "pooling"),
    [("mean", "pooler"), ("max", "mean"), ("self_attention", "pooler")],
)
def test_windows_are_encoded_one_by_one_and_combined(combine, pooling):
    """The same by hand: each window as a text of its own through backbone, NumPy and the head."""
    model = tiny_model(combine=combine, pooling=pooling, num_windows=4)
    model.head.dense.bias.assign([0.5, -0.5])
    letters = TEXTS[4].split()
    parts = [letters[start : start + 6] for start in range(0, 24, 6)]
    inputs = model.preprocessor([" ".join(part) for part in parts])
    outputs = model.backbone.predict(inputs, verbose=0)
    vectors = outputs["pooled_output"]
    if pooling == "mean":
        weights = inputs["padding_mask"][..., None]
        vectors = (outputs["sequence_output"] * weights).sum(1) / weights.sum(1)
    if combine == "self_attention":
        kernel, bias, query = model.head.attention.get_weights()
        scores = np.tanh(vectors @ kernel + bias) @ query
        shares = np.exp(scores) / np.exp(scores).sum()
        document = (shares * vectors).sum(0)
    else:
        document = getattr(vectors, combine)(axis=0)
    kernel, bias = model.head.dense.get_weights()
    expected = document @ kernel + bias
    assert_close(model.predict(TEXTS[4:], verbose=0)[0], expected, 1e-5)
    assert_close(model.predict(TEXTS, verbose=0)[4], expected, 1e-5)


@pytest.mark.parametrize(
    ("truncation", "kept"),
    [("longest_first", [0, 6]), ("tail", [24, 28]), ("head_tail", [0, 28])],
)
@pytest.mark.once
def test_truncation_says_which_windows_of_a_too_long_document_are_read(truncation, kept):
    letters = TEXTS[4].split()
    model = tiny_model(
        num_windows=2, preprocessor=tiny_preprocessor(max_length=8, truncation=truncation)
    )
    parts = model.preprocessor([" ".join(letters[start : start + 6]) for start in kept])
    ready = {key: array[None] for key, array in parts.items()}
    assert_close(model.predict(TEXTS[4:], verbose=0), model(ready), 1e-5)


@pytest.mark.once
def test_overlapping_windows_begin_every_stride():
    model = tiny_model(stride=2)
    letters = TEXTS[2].split()
    parts = model.preprocessor([" ".join(letters[start : start + 6]) for start in (0, 2)])
    ready = {key: array[None] for key, array in parts.items()}
    assert_close(model.predict(TEXTS[2:3], verbose=0), model(ready), 1e-5)


@pytest.mark.once
@pytest.mark.parametrize("combine", COMBINATIONS)
def test_absent_windows_and_padding_change_nothing(combine):
    model = tiny_model(combine=combine, preprocessor=None)
    inputs = random_inputs()
    inputs["padding_mask"][:, 2] = 0
    fewer = {key: array[:, :2] for key, array in inputs.items()}
    assert_close(model(inputs), model(fewer), 1e-5)
    padded = {key: np.pad(array, ((0, 0), (0, 1), (0, 3))) for key, array in inputs.items()}
    assert_close(model(padded), model(inputs), 1e-5)


def test_without_a_padding_mask_every_window_counts():
    model = tiny_model(preprocessor=None)
    token_ids = random_inputs()["token_ids"]
    ones = {"token_ids": token_ids, "padding_mask": np.ones_like(token_ids)}
    assert_close(model({"token_ids": token_ids}), model(ones))


def test_a_single_window_is_a_text_classifier_s_text():
    backbone = tiny_backbone()
    long = tiny_model(backbone)
    short = bert_keras.TextClassifier(backbone, preprocessor=long.preprocessor)
    short.head.dense.set_weights(long.head.dense.get_weights())
    assert_close(long.predict(TEXTS[:2], verbose=0), short.predict(TEXTS[:2], verbose=0), 1e-6)


def test_logits_equal_transformers_windows_combined_in_torch(tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    reference = transformers.BertModel(
        transformers.BertConfig(
            vocab_size=len(VOCABULARY),
            hidden_size=24,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=40,
            max_position_embeddings=16,
            initializer_range=0.3,
        )
    ).eval()
    reference.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY))
    with pytest.warns(UserWarning, match="head/dense"):
        model = bert_keras.LongTextClassifier.from_preset(tmp_path, combine="max")
    inputs = random_inputs()
    kernel, bias = (torch.tensor(w) for w in model.head.dense.get_weights())
    rows = []
    with torch.no_grad():
        for ids, mask in zip(inputs["token_ids"], inputs["padding_mask"], strict=True):
            there = mask.any(-1)
            pooled = reference(
                input_ids=torch.tensor(ids[there]), attention_mask=torch.tensor(mask[there])
            ).pooler_output
            rows.append((pooled.max(0).values @ kernel + bias).numpy())
    assert_close(model.predict(inputs, verbose=0), np.stack(rows), 1e-5)


@pytest.mark.once
def test_batches_of_every_shape_are_predicted_and_measured_in_order():
    """One short window, one long window, two windows: two axes vary, not always together."""
    backbone = tiny_backbone(num_layers=1, max_sequence_length=20, initializer_range=0.3)
    model = tiny_model(backbone, preprocessor=tiny_preprocessor(max_length=17))
    texts, labels = ["a b", "c " * 15, "d " * 20] * 2, [0, 1, 0] * 2
    together = model.predict(texts, batch_size=2, verbose=0)
    ready = [batches_of(model, [text], batch_size=1)[0][0] for text in texts[:3]]
    shortest = buckets_of(model.preprocessor.max_length)[0]
    assert {x["token_ids"].shape for x in ready} == {(1, 1, shortest), (1, 1, 17), (1, 2, 17)}
    alone = np.concatenate([to_numpy(model(inputs)) for inputs in ready] * 2)
    assert_close(together, alone, 1e-5)
    found = model.evaluate(texts, labels, batch_size=2, verbose=0, return_dict=True)
    assert found["accuracy"] == pytest.approx((together.argmax(-1) == labels).mean())


@pytest.mark.once
def test_it_learns_what_stands_in_a_later_window():
    backbone = tiny_backbone(num_layers=1, dropout=0.0, initializer_range=0.3)
    model = tiny_model(backbone, combine="self_attention", num_windows=2)
    # There, compiling would take longer than the few steps.
    model.compile(learning_rate=1e-2, run_eagerly=keras.backend.backend() == "tensorflow")
    texts, labels = ["a b c d e f g g g", "a b c d e f h h h"] * 4, [0, 1] * 4
    model.fit(texts, labels, batch_size=8, epochs=30, verbose=0)
    assert [model.classify(text)["label"] for text in texts[:2]] == [0, 1]


def test_short_documents_cost_one_short_window():
    model = tiny_model(num_windows=50, preprocessor=tiny_preprocessor(max_length=16))
    batches = batches_of(model, TEXTS, batch_size=1)
    shapes = {batches[index][0]["token_ids"].shape for index in range(len(batches))}
    # One window is padded to one of few lengths; where there are more, to the longest.
    assert {shape[:2] for shape in shapes} == {(1, 1), (1, 2), (1, 3)}
    assert {length for _, windows, length in shapes if windows == 1} <= {
        *buckets_of(model.preprocessor.max_length)
    }
    assert {length for _, windows, length in shapes if windows > 1} == {16}


@pytest.mark.parametrize(
    ("problem_type", "labels", "answer"),
    [
        ("multi_label", np.eye(5, 3, dtype=int), {"labels", "probabilities"}),
        ("regression", np.linspace(0, 1, 15).reshape(5, 3), {"scores"}),
    ],
)
@pytest.mark.once
def test_other_problem_types_train_and_answer(problem_type, labels, answer):
    model = tiny_model(problem_type=problem_type, num_classes=3)
    model.compile(run_eagerly=keras.backend.backend() == "tensorflow")
    model.fit(TEXTS, labels, verbose=0)
    assert set(model.classify(TEXTS[3])) == answer


def test_ready_inputs_train():
    model = tiny_model(preprocessor=None)
    model.compile(run_eagerly=keras.backend.backend() == "tensorflow")
    history = model.fit(random_inputs(batch=8), np.zeros(8, int), validation_split=0.25, verbose=0)
    assert "val_accuracy" in history.history


@pytest.mark.once
def test_mixed_precision_gives_float32_logits():
    half = tiny_backbone(dtype="mixed_bfloat16", initializer_range=0.3)
    model = tiny_model(half, combine="self_attention")
    outputs = to_numpy(model(random_inputs()))
    assert outputs.dtype == "float32" and np.isfinite(outputs).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_windows": 0}, "num_windows"),
        ({"num_windows": 2**20}, "num_windows"),
        ({"stride": 0}, "stride"),
        ({"stride": 1.5}, "stride"),
        ({"combine": "median"}, "combine"),
        ({"pooling": "median"}, "pooling"),
        ({"num_classes": 1}, "num_classes"),
    ],
)
def test_impossible_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tiny_model(**options)


def test_inputs_that_do_not_fit_are_refused():
    model = tiny_model()
    with pytest.raises(ValueError, match="single text"):
        model.fit((TEXTS, TEXTS), LABELS, verbose=0)
    with pytest.raises(ValueError, match=r"\(batch, num_choices, seq_len\)"):
        model.predict({"token_ids": np.ones((2, 7), int)}, verbose=0)
    inputs = random_inputs()
    inputs["padding_mask"][1] = 0
    with pytest.raises(ValueError, match="index 1"):
        model.predict(inputs, verbose=0)
    with pytest.raises(ValueError, match="truncation"):
        strange = tiny_preprocessor(max_length=8, truncation="only_second")
        tiny_model(preprocessor=strange).predict(TEXTS, verbose=0)
    with pytest.raises(ValueError, match="no counterpart"):
        model.export_to_huggingface("never_written")


def test_the_registered_name_and_weight_paths_are_the_file_format(tmp_path):
    assert keras.saving.get_registered_name(bert_keras.LongTextClassifier) == (
        "bert_keras>LongTextClassifier"
    )
    import h5py

    tiny_model(combine="self_attention").save_weights(str(tmp_path / "m.weights.h5"))
    names = []
    with h5py.File(tmp_path / "m.weights.h5") as file:
        file.visititems(lambda name, item: names.append(name) if hasattr(item, "dtype") else None)
    assert sorted(name for name in names if name.startswith("head/")) == [
        "head/attention/dense/vars/0",
        "head/attention/dense/vars/1",
        "head/attention/query/vars/0",
        "head/dense/vars/0",
        "head/dense/vars/1",
    ]


def test_no_documents_have_no_classes():
    model = tiny_model()
    assert model.classify([]) == []
    assert model.probabilities([]).shape == (0, model.num_classes)
