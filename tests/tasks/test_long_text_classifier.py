import numpy as np
import pytest
from checks import assert_close, cases, check_task, refusals, to_numpy
from tiny import batches_of, ready_inputs, tiny_backbone, tiny_preprocessor, tiny_task

import bert_keras
from bert_keras.preprocessing.batching import buckets_of

pytestmark = pytest.mark.once

# Windows of 6 tokens: one, one, two, three, and six, of which four are read.
TEXTS = ["a b", "c d e f g h", "a b c d e f g h", "h " * 15, "a b c d e f g h " * 4 + "a b"]
LABELS = [0, 1, 0, 1, 1]


def tiny_model(backbone=None, **options):
    options = {"preprocessor": tiny_preprocessor(max_length=8), **options}
    return tiny_task("LongTextClassifier", backbone, **options)


# A task that no test changes: it is compiled once for all.
shared = pytest.fixture(tiny_model, scope="module")


def random_inputs(batch=3):
    """Returns documents of three windows, some of which are all padding."""
    inputs = ready_inputs(batch, 3, 7)
    exists = np.random.default_rng(0).integers(0, 2, (batch, 3, 1))
    exists[:, 0] = 1
    return {name: inputs[name] * exists for name in ("token_ids", "padding_mask")}


def test_it_keeps_the_contract_of_tasks(tmp_path):
    options = {"num_windows": 7, "stride": 3, "dropout": 0.3, "pooling": "max", "frozen": 1}
    model = tiny_model(combine="max", label_names=["bad", "good"], **options)
    check_task(model, random_inputs(), tmp_path, {"classify": (TEXTS,)})
    assert model.probabilities([]).shape == (0, 2)


def test_another_combination_than_the_preset_s_starts_a_new_head(tmp_path):
    tiny_model(combine="mean", num_windows=3).save_to_preset(tmp_path)
    with pytest.warns(UserWarning, match="head starts at random"):
        other = bert_keras.LongTextClassifier.from_preset(tmp_path, combine="max")
    assert other.combine == "max" and other.num_windows == 3


@pytest.mark.parametrize(("combine", "pooling"), [("mean", "pooler"), ("max", "mean")])
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
    document = getattr(vectors, combine)(axis=0)
    kernel, bias = model.head.dense.get_weights()
    expected = document @ kernel + bias
    assert_close(model.predict(TEXTS[4:], verbose=0)[0], expected, 1e-5)
    assert_close(model.predict(TEXTS, verbose=0)[4], expected, 1e-5)


@cases(
    (TEXTS[4], {"num_windows": 2}, "longest_first", [0, 6]),
    (TEXTS[4], {"num_windows": 2}, "tail", [24, 28]),
    (TEXTS[4], {"num_windows": 2}, "head_tail", [0, 28]),
    (TEXTS[2], {"stride": 2}, "longest_first", [0, 2]),
)
def test_stride_and_truncation_choose_the_windows(text, options, truncation, starts):
    preprocessor, letters = tiny_preprocessor(8, truncation=truncation), text.split()
    model = tiny_model(preprocessor=preprocessor, **options)
    windows = preprocessor([" ".join(letters[start : start + 6]) for start in starts])
    ready = {key: array[None] for key, array in windows.items()}
    assert_close(model.predict([text], verbose=0), model(ready), 1e-5)


@pytest.mark.parametrize("combine", ["mean", "max"])
def test_absent_windows_and_padding_change_nothing(combine):
    model = tiny_model(combine=combine, preprocessor=None)
    inputs = random_inputs()
    inputs["padding_mask"][:, 2] = 0
    fewer = {key: array[:, :2] for key, array in inputs.items()}
    assert_close(model(inputs), model(fewer), 1e-5)
    padded = {key: np.pad(array, ((0, 0), (0, 1), (0, 3))) for key, array in inputs.items()}
    assert_close(model(padded), model(inputs), 1e-5)


def test_without_a_padding_mask_every_window_counts(shared):
    token_ids = random_inputs()["token_ids"]
    ones = {"token_ids": token_ids, "padding_mask": np.ones_like(token_ids)}
    assert_close(shared({"token_ids": token_ids}), shared(ones))


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


@pytest.mark.each_backend
@pytest.mark.eager
def test_ready_inputs_train():
    model = tiny_model(preprocessor=None)
    model.compile("sgd")
    history = model.fit(
        random_inputs(8), np.zeros(8, int), validation_split=0.25, epochs=1, verbose=0
    )
    assert "val_accuracy" in history.history


def test_mixed_precision_gives_float32_logits():
    half = tiny_backbone(dtype="mixed_bfloat16", initializer_range=0.3)
    model = tiny_model(half, combine="max")
    outputs = to_numpy(model(random_inputs()))
    assert outputs.dtype == "float32" and np.isfinite(outputs).all()


def without_tokens():
    inputs = random_inputs()
    inputs["padding_mask"][1] = 0
    return inputs


test_what_does_not_fit_is_refused = refusals(
    (lambda m: tiny_model(m.backbone, num_windows=0), "num_windows"),
    (lambda m: tiny_model(m.backbone, num_windows=2**20), "num_windows"),
    (lambda m: tiny_model(m.backbone, stride=0), "stride"),
    (lambda m: tiny_model(m.backbone, combine="median"), "combine"),
    (lambda m: m.fit((TEXTS, TEXTS), LABELS, verbose=0), "single text"),
    (lambda m: m.predict(ready_inputs(2, 7)), r"\(batch, num_choices, seq_len\)"),
    (lambda m: m.predict(without_tokens()), "index 1"),
    (
        lambda m: tiny_model(
            m.backbone, preprocessor=tiny_preprocessor(8, truncation="only_second")
        ).predict(TEXTS),
        "truncation",
    ),
    (lambda m: m.export_to_huggingface("never_written"), "no counterpart"),
    of="shared",
)
