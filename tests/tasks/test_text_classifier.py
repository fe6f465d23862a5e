import json
import zipfile

import keras
import numpy as np
import pytest
import scipy.special
from checks import cases, check_saved_and_reloaded, check_task, made_again, refused
from tiny import VOCABULARY, batches_of, tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.engine import kernels
from bert_keras.preprocessing import batching
from bert_keras.preprocessing.batching import BucketedBatches, choose_bucket_lengths
from bert_keras.tasks import task as task_module
from bert_keras.tasks.encoded_labels import class_weighted

pytestmark = pytest.mark.once

TEXTS = ["a b c", "d e", "h a", "g g g g g g g g", "b", "a a"] * 4
LABELS = [int("a" in text) for text in TEXTS]
SHORT = [text[:5] for text in TEXTS]  # Of one length, since JAX compiles each.
NAMES = ["without", "with a"]


@pytest.mark.each_backend
def test_fit_learns_from_raw_text_and_a_step_is_traced_once(monkeypatch):
    classifier = tiny_classifier(tiny_backbone(dropout=0.0), label_names=NAMES)
    classifier.compile(learning_rate=5e-3)
    calls, call = [], classifier.call
    monkeypatch.setattr(classifier, "call", lambda *a, **k: calls.append(a) or call(*a, **k))
    classifier.fit(SHORT, LABELS, epochs=15, batch_size=8, verbose=0)
    # JAX looks at the shapes of the outputs first; PyTorch traces nothing.
    assert len(calls) == {"tensorflow": 1, "jax": 2, "torch": 45}[keras.backend.backend()]
    answers = classifier.classify(SHORT)
    assert [answer["label"] for answer in answers] == [NAMES[label] for label in LABELS]


@pytest.mark.each_backend
def test_an_accelerator_gets_lengths_of_eight_and_large_batches(shared_classifier, monkeypatch):
    monkeypatch.setattr(kernels, "has_accelerator", lambda: True)
    batches, size = batching.prediction_batches(shared_classifier.encode_texts(TEXTS * 50))
    assert size == 0
    shapes = [(len(rows), length) for rows, length in batches]
    assert all(length % 8 == 0 for _, length in shapes)
    assert sum(rows for rows, _ in shapes) == 1200 and max(map(np.prod, shapes)) == 16384


def test_few_rows_are_filled_up_to_few_sizes(shared_classifier, monkeypatch):
    monkeypatch.setattr(batching, "COMPILES_SHAPES", True)
    rows = [shared_classifier.encode_texts((TEXTS * 8)[:n]) for n in (1, 3, 5, 9, 20, 25, 33)]
    sizes = [batching.prediction_batches(x)[1] for x in rows]
    assert sizes == [1, 4, 8, 12, 24, 32, 32]


def test_text_and_ready_inputs_give_the_same_in_batches_of_any_size(shared_classifier):
    ready, labels = shared_classifier.preprocessor(TEXTS[:7]), np.array(LABELS[:7])
    outputs = [shared_classifier.predict(x, verbose=0) for x in (ready, TEXTS[:7])]
    np.testing.assert_allclose(*outputs, atol=1e-6)
    expected = pytest.approx(shared_classifier.evaluate(ready, labels, verbose=0), abs=1e-5)
    for size in (1, 4, 7, 32):
        assert shared_classifier.evaluate(TEXTS[:7], LABELS[:7], size, verbose=0) == expected


def test_backends_pad_to_different_lengths_and_have_the_same_rows(monkeypatch):
    preprocessor = tiny_preprocessor(max_length=48)
    classifier = tiny_classifier(tiny_backbone(max_sequence_length=48), preprocessor=preprocessor)
    texts, rows = ["a " * size for size in range(1, 47)], []
    for compiles in (True, False):
        for module in (batching, task_module):
            monkeypatch.setattr(module, "COMPILES_SHAPES", compiles)
        data = batches_of(classifier, texts, [0, 1] * 23, shuffle=True, batch_size=4)
        fine, coarse = tuple(range(4, 49, 4)), (8, 16, 24, 32, 40, 48)
        assert data.buckets == (coarse if compiles else fine)
        rows.append([places.tolist() for places, _ in data.batches])
    assert rows[0] == rows[1]


def test_fit_compiles_the_lengths_that_pay(monkeypatch, reloaded):
    def noted(batches, buckets, num_epochs, price):
        chosen = choose_bucket_lengths(batches, buckets, num_epochs, price)
        calls.append((num_epochs, price, chosen))
        return chosen

    calls = []
    monkeypatch.setattr(task_module, "choose_bucket_lengths", noted)
    backbone = tiny_backbone(max_sequence_length=48)
    cost = 100 * backbone.hidden_dim**2
    monkeypatch.setitem(batching.COMPILE_COST, keras.backend.backend(), cost)
    preprocessor = tiny_preprocessor(max_length=48)
    classifier = tiny_classifier(backbone, preprocessor=preprocessor)
    texts, labels = ["a " * size for size in range(1, 47, 2)], [0, 1] * 11 + [0]
    options = {"batch_size": 4, "verbose": 0}
    classifier.fit(texts, labels, epochs=1, validation_data=(texts, labels), **options)
    classifier = reloaded(classifier)
    classifier.fit(texts, labels, epochs=3, initial_epoch=1, **options)
    # A run that goes on has the lengths with which it began.
    assert calls == [(1, 100, calls[0][2])] * 2
    classifier.fit(texts, labels, epochs=3, **options)
    assert calls[2][0] == 3 and len(calls[2][2]) > len(calls[0][2])
    # The lengths stay as they are if epochs are not whole, or if results depend on them.
    classifier.fit(texts, labels, epochs=1, steps_per_epoch=2, **options)
    bert_keras.MaskedLM(backbone, preprocessor).fit(texts, epochs=1, **options)
    bert_keras.QuestionAnswering(backbone, preprocessor, mask_padding=False).fit(
        (["a b"], ["c d"]), [("c", 0)], epochs=1, **options
    )
    assert len(calls) == 3


@pytest.mark.each_backend
def test_pytorch_predicts_more_rows_at_once_by_default_and_pads_to_the_longest(
    shared_classifier, monkeypatch
):
    shapes, pack = set(), shared_classifier.preprocessor.pack

    def noted(*args, **kwargs):
        inputs = pack(*args, **kwargs)
        shapes.add(inputs["token_ids"].shape)
        return inputs

    monkeypatch.setattr(shared_classifier.preprocessor, "pack", noted)
    texts, outputs = ["a b c"] * 200, []
    is_torch = keras.backend.backend() == "torch"
    for batch_size, rows in ((8, 8), (None, 200 if is_torch else 32)):
        shapes.clear()
        outputs.append(shared_classifier.predict(texts, batch_size, verbose=0))
        assert max(shapes) == (rows, 5 if is_torch else 8)
    np.testing.assert_allclose(*outputs, atol=1e-6)


def test_as_many_batches_are_sorted_together_as_asked_for(monkeypatch):
    windows = []

    class Recorded(BucketedBatches):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            windows.append(self.window)

    monkeypatch.setattr("bert_keras.tasks.task.BucketedBatches", Recorded)
    classifier = tiny_classifier()
    # The last run continues the one before it, and keeps its window.
    for options in (
        {"bucket_window": 7},
        {},
        {"bucket_window": 3},
        {"initial_epoch": 1, "epochs": 2},
    ):
        classifier.fit(TEXTS, LABELS, **{"epochs": 1, **options}, verbose=0)
    assert windows == [7, BucketedBatches(classifier.encode_texts(TEXTS)).window, 3, 3]


@pytest.mark.also_on("jax")
def test_each_run_keeps_the_metrics_of_compile_and_trains_as_the_first():
    classifier = tiny_classifier(tiny_backbone(dropout=0.0))
    weights, compiled, histories = classifier.get_weights(), classifier.metrics[1], []
    for _ in range(2):
        classifier.set_weights(weights)
        keras.utils.set_random_seed(0)
        histories.append(classifier.fit(SHORT, LABELS, epochs=2, verbose=0).history)
        assert classifier.metrics[1] is compiled
    for name, values in histories[0].items():
        np.testing.assert_allclose(histories[1][name], values, rtol=1e-5)
    classifier.compile()
    assert classifier.metrics[1] is not compiled


def test_gradients_are_freed_before_the_next_forward_pass(monkeypatch):
    classifier, found = tiny_classifier(), []
    call = classifier.head.call

    def watched(*args, **kwargs):
        found.append(sum(variable.value.grad is not None for variable in classifier.variables))
        return call(*args, **kwargs)

    monkeypatch.setattr(classifier.head, "call", watched)
    classifier.fit(TEXTS, LABELS, batch_size=8, epochs=1, verbose=0)
    # The first call builds the metrics, without a step.
    assert len(found) >= 3 and not any(found)
    # They are there after the last step.
    assert classifier.trainable_variables[0].value.grad is not None


def test_the_default_recipe_warms_up_and_decays_to_zero_as_compile_says():
    rates = []

    class Rates(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            rates.append(float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate)))

    classifier, each = tiny_classifier(), {"batch_size": 8, "callbacks": [Rates()], "verbose": 0}
    classifier.compile(learning_rate=1e-3, warmup=2)
    classifier.fit(TEXTS, LABELS, epochs=4, **each)
    assert len(rates) == 12
    np.testing.assert_allclose(rates[:3], [0, 5e-4, 1e-3], rtol=1e-5)
    np.testing.assert_allclose(np.diff(rates[2:]), -1e-4, rtol=1e-3)
    classifier.compile(learning_rate=1e-3, warmup=0, lr_schedule="cosine")
    classifier.fit(TEXTS, LABELS, epochs=2, **each)
    expected = [1e-3 * (1 + np.cos(np.pi * step / 6)) / 2 for step in range(6)]
    np.testing.assert_allclose(rates[12:], expected, rtol=1e-5)


def test_every_fit_is_a_run_of_its_own_and_initial_epoch_continues_one():
    classifier = tiny_classifier()
    for options, steps in (({}, 3), ({"epochs": 2, "initial_epoch": 1}, 6), ({}, 3)):
        classifier.fit(TEXTS, LABELS, batch_size=8, **{"epochs": 1, **options}, verbose=0)
        assert int(classifier.optimizer.iterations) == steps


def test_label_smoothing_reaches_the_loss():
    # Weights so large that smoothing moves the loss by far more than the tolerance.
    classifier, losses = tiny_classifier(tiny_backbone(initializer_range=0.5)), []
    for label_smoothing in (0.0, 0.2):
        classifier.compile(label_smoothing=label_smoothing)
        losses.append(classifier.evaluate(TEXTS, LABELS, verbose=0)[0])
    log_p = scipy.special.log_softmax(classifier.predict(TEXTS, verbose=0).astype("float64"), -1)
    hit = log_p[np.arange(len(LABELS)), LABELS]
    expected = [-hit.mean(), (-0.8 * hit - 0.2 * log_p.mean(-1)).mean()]
    assert losses == pytest.approx(expected, abs=1e-5)
    assert abs(losses[0] - losses[1]) > 1e-3


def test_class_weights_by_number_or_name_and_sample_weights_agree():
    trained, weights = [], np.array([1.0, 3.0], "float32")
    for options in (
        {"class_weight": {1: 3.0}},
        {"class_weight": {NAMES[1]: 3.0}},
        {"sample_weight": weights[LABELS]},
    ):
        keras.utils.set_random_seed(3)
        classifier = tiny_classifier(tiny_backbone(dropout=0.0), label_names=NAMES)
        classifier.fit(TEXTS, LABELS, shuffle=False, epochs=1, verbose=0, **options)
        trained.append(classifier.predict(TEXTS, verbose=0))
    np.testing.assert_allclose(trained[:2], trained[2:] * 2, atol=1e-5)


def test_multi_label_answers_with_every_label_above_the_threshold():
    labels = np.array([[int(letter in text) for letter in "agb"] for text in TEXTS])
    options = {"num_classes": 3, "problem_type": "multi_label", "label_names": [*"agb"]}
    classifier = tiny_classifier(tiny_backbone(dropout=0.0), **options)
    classifier.compile(learning_rate=5e-3)
    classifier.fit(TEXTS, labels, epochs=10, batch_size=8, verbose=0)
    answer = classifier.classify("a b c")
    above = [name for name, p in answer["probabilities"].items() if p >= 0.5]
    one_each = [0.0, 1.0, 1.0]
    by_name = dict(zip("gab", (1.0, 0.0, 1.0), strict=True))
    expected = [(0.5, above), (0.0, [*"agb"]), (1.0, []), (one_each, ["a"]), (by_name, ["a"])]
    for threshold, names in expected:
        assert classifier.classify("a b c", threshold=threshold)["labels"] == names
    with pytest.raises(ValueError, match=r"for models with several labels.*'single_label'"):
        tiny_classifier().classify("a b c", threshold=0.4)
    with pytest.raises(ValueError, match=r"takes threshold, batch_size.*batch=3"):
        classifier.classify("a b c", batch=3)
    results = classifier.evaluate(TEXTS, labels, verbose=0, return_dict=True)
    p = classifier.probabilities(TEXTS).astype("float64")
    expected = -(labels * np.log(p) + (1 - labels) * np.log(1 - p)).mean()
    assert results["loss"] == pytest.approx(expected, abs=1e-4)
    assert results["accuracy"] == pytest.approx(((p > 0.5) == labels).mean())


@pytest.mark.also_on("tensorflow")
@pytest.mark.eager
def test_a_new_head_for_several_labels_starts_at_their_shares():
    classifier = tiny_classifier(num_classes=3, problem_type="multi_label")
    classifier.compile(learning_rate=1e-9)
    for labels in ([[1, 0, 0]] * 6 + [[1, 1, 0]] * 2, [[0, 0, 1]] * 8):
        classifier.fit(TEXTS[:8], labels, epochs=1, verbose=0)
        # (count + 1) / (texts + 2). A head that has learned stays as it is.
        share = 1 / (1 + np.exp(-keras.ops.convert_to_numpy(classifier.head.dense.bias)))
        np.testing.assert_allclose(share, [0.9, 0.3, 0.1], atol=1e-4)


def test_a_regression_gives_one_score_by_default():
    scores = [float(len(text)) / 10 for text in TEXTS]
    classifier = tiny_classifier(problem_type="regression")
    classifier.fit(TEXTS, scores, batch_size=8, epochs=1, verbose=0)
    outputs = classifier.predict(TEXTS, verbose=0)
    assert outputs.shape == (24, 1)
    loss = classifier.evaluate(TEXTS, scores, verbose=0)[0]
    assert loss == pytest.approx(np.mean((outputs[:, 0] - scores) ** 2), abs=1e-5)
    assert set(classifier.classify("a b")) == {"score"}
    with pytest.raises(ValueError, match=r"num_classes=2.*'multi_label'.*'regression'"):
        tiny_classifier(num_classes=1)


@cases(
    ("backbone", ["embeddings/", "encoder/", "pooler/"]),
    ("embeddings", ["embeddings/"]),
    pytest.param(1, ["embeddings/", "encoder/layer_0/"], marks=pytest.mark.each_backend),
)
@pytest.mark.eager
def test_frozen_parts_stay_bit_for_bit_and_others_move(frozen, still):
    classifier = tiny_classifier(tiny_backbone(num_layers=2), frozen=frozen)
    before = {v.path: np.array(v) for v in classifier.weights}
    classifier.compile(learning_rate=1e-2)
    classifier.fit(SHORT, LABELS, epochs=1, batch_size=8, verbose=0)
    for variable in classifier.weights:
        moved = not np.array_equal(before[variable.path], np.array(variable))
        is_frozen = any(f"/{part}" in variable.path for part in still)
        # Key biases cancel in the softmax: their gradient is zero up to rounding.
        if not variable.path.endswith("key/bias"):
            assert moved != is_frozen, variable.path
    slots = [v.shape for v in classifier.optimizer.variables if v.path.endswith("_velocity")]
    assert slots == [v.shape for v in classifier.trainable_variables]
    assert len(made_again(classifier).trainable_weights) == len(classifier.trainable_weights)


def test_it_keeps_the_contract_of_tasks_and_its_optimizer(tmp_path):
    options = {"label_names": NAMES, "pooling": "mean", "dropout": 0.3, "frozen": 1}
    classifier = tiny_classifier(**options)
    classifier.fit(TEXTS, LABELS, batch_size=8, epochs=1, verbose=0)
    inputs = classifier.preprocessor(TEXTS)
    loaded, _ = check_task(classifier, inputs, tmp_path, {"classify": (TEXTS,)})
    assert loaded.label_names == tuple(NAMES)
    assert int(loaded.optimizer.iterations) == int(classifier.optimizer.iterations) == 3
    assert loaded.optimizer.get_config() == classifier.optimizer.get_config()


def test_a_file_of_a_task_without_preprocessor_loads_too(tmp_path):
    ready = tiny_preprocessor()(TEXTS)
    check_saved_and_reloaded(tiny_classifier(preprocessor=None), ready, tmp_path / "bare.keras")


@pytest.mark.each_backend
def test_jit_compile_is_chosen_anew_where_the_file_is_loaded(tmp_path):
    classifier = tiny_classifier()
    classifier.compile(jit_compile=keras.backend.backend() != "torch")
    classifier.save(tmp_path / "c.keras")
    with zipfile.ZipFile(tmp_path / "c.keras") as file:
        config = json.loads(file.read("config.json"))
    assert "jit_compile" not in json.dumps(config["compile_config"])


def test_a_file_from_a_newer_version_says_so(tmp_path, changed_archive):
    def add_an_argument(name, content):
        return content.replace(b'"num_classes": 2,', b'"num_classes": 2, "mixture_of_experts": 8,')

    tiny_classifier().save(tmp_path / "now.keras")
    newer = changed_archive(tmp_path / "now.keras", add_an_argument)
    with pytest.raises((ValueError, TypeError), match=r"newer version of bert_keras"):
        keras.models.load_model(newer)


BAD_LABELS = [
    ({}, [2] * 24, "0 to 1"),
    ({}, [-1] * 24, "0 to 1"),
    ({}, [0.5] * 24, "0 to 1"),
    ({}, [float("nan")] * 24, "index 0"),
    ({}, [0] * 23, "as many labels"),
    ({}, [[0, 1, 0]] * 24, r"one class.*\(24, 3\)"),
    ({}, [[0, 1]] * 23 + [[0.5, 0.6]], "probabilities whose sum is 1.*at the index 23"),
    ({}, ["with a"] * 24, "label_names"),
    ({"label_names": NAMES}, ["with b"] * 24, "'with b' at the index 0"),
    ({"label_names": NAMES}, [0] * 23 + [None], "None at the index 23"),
    ({"label_names": NAMES}, [NAMES[0], np.nan] * 12, "needs a label.*nan at the index 1"),
    ({"label_names": NAMES}, np.array([NAMES[0], None] * 12, dtype=object), "None at the index 1"),
    ({"label_names": NAMES}, [NAMES[0], 3] * 12, "all strings or all numbers.*3 at the index 1"),
    ({"label_names": NAMES}, [NAMES] * 24, r"one name per example.*\(24, 2\)"),
    ({}, [[0], [0, 1]] * 12, "rows of different lengths"),
    ({}, np.eye(2, dtype="complex64")[[0, 1] * 12], "must be numbers.*complex"),
    ({}, None, "needs labels"),
    ({"problem_type": "multi_label", "label_names": NAMES}, [["with a", "b"]] * 24, "'b' at the"),
    ({"problem_type": "multi_label"}, [[0, 1]] * 23 + [None], "None at the index 23"),
    ({"problem_type": "multi_label"}, [[0, 1]] * 23 + [[0, None]], "None at the index 23"),
    ({"problem_type": "regression", "num_classes": 1}, [1.0, None] * 12, "None at the index 1"),
    ({"problem_type": "multi_label"}, [0] * 24, r"\(num_examples, 2\)"),
    ({"problem_type": "multi_label"}, [[0, 2]] * 24, "0 or 1"),
    ({"problem_type": "regression", "num_classes": 1}, [float("inf")] * 24, "index 0"),
    ({"problem_type": "regression", "num_classes": 2}, [0.1] * 24, "num_classes=1"),
]


SHARES = np.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5], [0.0, 1.0], [1.0, 0.0], [0.25, 0.75]] * 4)


@pytest.mark.each_backend
@pytest.mark.eager
def test_labels_may_be_shares_of_classes():
    classifier = tiny_classifier(tiny_backbone(initializer_range=0.3))
    logits = classifier.predict(SHORT, verbose=0)
    log_p = scipy.special.log_softmax(logits, axis=-1)
    classifier.compile("sgd", metrics=["categorical_crossentropy"])
    found = classifier.evaluate(SHORT, SHARES, verbose=0, return_dict=True)
    expected = -np.sum(SHARES * log_p, axis=-1).mean()
    assert found["loss"] == pytest.approx(expected, rel=1e-5)
    assert found["categorical_crossentropy"] == pytest.approx(expected, rel=1e-5)
    likeliest = SHARES.argmax(-1) == logits.argmax(-1)
    assert found["accuracy"] == pytest.approx(likeliest.mean(), rel=1e-6)
    history = classifier.fit(SHORT, SHARES, epochs=1, class_weight={0: 2.0}, verbose=0).history
    assert np.isfinite(history["loss"]).all()


def test_labels_of_classes_are_numbers_or_one_hot_for_either_loss():
    classifier = tiny_classifier(tiny_backbone(initializer_range=0.3))
    log_p = scipy.special.log_softmax(classifier.predict(TEXTS, verbose=0), axis=-1)
    expected = -log_p[np.arange(len(LABELS)), LABELS].mean()
    of_shares = keras.losses.CategoricalCrossentropy(from_logits=True)
    focal = keras.losses.CategoricalFocalCrossentropy(alpha=1.0, gamma=0.0, from_logits=True)
    for loss in ("auto", "categorical_crossentropy", of_shares, focal):
        classifier.compile(loss=loss)
        losses = [classifier.evaluate(TEXTS, y, verbose=0)[0] for y in (LABELS, np.eye(2)[LABELS])]
        assert losses == pytest.approx([expected] * 2, rel=1e-5)
    classifier.compile(loss="sparse_categorical_crossentropy")
    assert classifier.evaluate(TEXTS, LABELS, verbose=0)[0] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="'categorical_crossentropy'"):
        classifier.fit(TEXTS, SHARES)


def test_class_weights_of_one_hot_labels_are_those_of_their_classes():
    classifier = tiny_classifier()
    weights = [
        class_weighted(classifier.encode_labels(labels), None, "balanced", 2)
        for labels in (LABELS, np.eye(2)[LABELS])
    ]
    column = np.ones((len(LABELS), 1))  # As a column of a matrix, which Keras takes too.
    weights.append(class_weighted(classifier.encode_labels(LABELS), column, "balanced", 2))
    np.testing.assert_array_equal(weights, weights[:1] * 3)
    found = [
        classifier.calibrate(TEXTS, labels) for labels in (LABELS, np.eye(2, dtype=int)[LABELS])
    ]
    assert found[0]["after"] == pytest.approx(found[1]["after"])
    with pytest.raises(ValueError, match=r"one class here.*at the index 0"):
        classifier.calibrate(TEXTS, SHARES)


@pytest.mark.also_on("tensorflow")
@pytest.mark.eager
def test_several_labels_may_be_shares():
    classifier = tiny_classifier(problem_type="multi_label")
    p = scipy.special.expit(classifier.predict(TEXTS, verbose=0))
    expected = -np.mean(SHARES * np.log(p) + (1 - SHARES) * np.log(1 - p))
    classifier.compile("sgd", metrics=["precision"])
    found = classifier.evaluate(TEXTS, SHARES, verbose=0, return_dict=True)
    assert found["loss"] == pytest.approx(expected, rel=1e-5)
    assert found["accuracy"] == pytest.approx(np.mean((p > 0.5) == (SHARES > 0.5)), rel=1e-6)
    classifier.fit(TEXTS, SHARES, epochs=1, verbose=0)


def test_one_of_several_labels_may_be_a_number_per_text():
    one = tiny_classifier(problem_type="multi_label", num_classes=1)
    one.compile(loss="binary_crossentropy")
    one.fit(TEXTS, LABELS, epochs=1, verbose=0)


OF_NAMES = [
    ({}, ["b", "a"] * 12, ["a", "b"]),
    ({}, np.array(["c", " a", "b"] * 8), ["a", "b", "c"]),
    (
        {"problem_type": "multi_label"},
        [["x", "b"], [], ["a"], ["c, d"]] * 6,
        ["a", "b", "c, d", "x"],
    ),
]


@cases(pytest.param(*OF_NAMES[0], marks=pytest.mark.also_on("jax")), *OF_NAMES[1:])
def test_a_new_head_and_its_file_learn_the_names_of_labels(
    capsys, tmp_path, shared_classifier, options, labels, names
):
    classifier = tiny_classifier(shared_classifier.backbone, frozen="backbone", **options)
    classifier.fit(SHORT, labels, epochs=1, verbose=2)
    assert ", ".join(f"{i} {name!r}" for i, name in enumerate(names)) in capsys.readouterr().out
    assert list(classifier.label_names) == names and classifier.num_classes == len(names)
    again = check_saved_and_reloaded(classifier, SHORT, tmp_path / "a.keras")
    assert set(again.classify("a b")["probabilities"]) == set(names)
    for each in (classifier, again):
        with pytest.raises(ValueError, match="must be one of"):
            each.fit(SHORT, ["other"] * 24, epochs=1, verbose=0)
    again.fit(SHORT, labels, epochs=1, verbose=0)


def test_a_head_that_exists_learns_no_names():
    classifier = tiny_classifier()
    classifier.fit(TEXTS, LABELS, epochs=1, verbose=0)
    with pytest.raises(ValueError, match="only for a new head"):
        classifier.fit(TEXTS, ["b", "a"] * 12)
    assert classifier.label_names is None
    for options, labels in (
        ({"num_classes": 3}, ["b", "a"] * 12),
        ({"num_classes": 3, "problem_type": "multi_label"}, [["a"], ["b"]] * 12),
        ({}, ["a"] * 24),
    ):
        with pytest.raises(ValueError, match=r"different names\. Received .*'a'.*label_names"):
            tiny_classifier(**options).fit(TEXTS, labels)
    classifier = tiny_classifier()
    classifier.compile(metrics=["binary_accuracy"])
    with pytest.raises(ValueError, match="one of 3 classes"):
        classifier.fit(TEXTS, [*"abc"] * 8)
    assert classifier.predict(TEXTS[:1], verbose=0).shape == (1, 2)
    tagger = bert_keras.TokenClassifier(tiny_backbone(), 2, preprocessor=tiny_preprocessor())
    tagger.fit([["a", "b"], ["c"]], [["O", "X"], ["O"]], epochs=1, verbose=0)
    assert tagger.label_names == ("O", "X")


@pytest.mark.parametrize(("options", "labels", "message"), BAD_LABELS)
def test_bad_labels_are_refused_and_the_weights_survive(
    shared_classifier, options, labels, message
):
    classifier = tiny_classifier(shared_classifier.backbone, **options)
    before = classifier.get_weights()
    for method in (classifier.fit, classifier.evaluate):
        with pytest.raises(ValueError, match=message):
            method(TEXTS, labels, verbose=0)
    np.testing.assert_equal(classifier.get_weights(), before)


@cases(
    (["a", None], TypeError, r"\[1\]"),
    (["a", float("nan")], TypeError, r"\[1\]"),
    (["a", b"b"], TypeError, "Decode"),
    ([b"\xe9"], ValueError, "must be UTF-8"),
    ([None, None], TypeError, "str only|column of str"),
    (5, TypeError, "Received: (5|int)"),
    ([("a", "b"), ("c", "d")], TypeError, r"zip\(\*rows\)"),
    ((["a", "b"], ["a"]), ValueError, "equally many"),
)
def test_anything_but_text_is_refused_and_the_weights_survive(
    shared_classifier, texts, error, message
):
    before = shared_classifier.get_weights()
    labels = [0] * len(texts) if isinstance(texts, list) else [0, 1]
    for call in (shared_classifier.predict, shared_classifier.classify):
        with pytest.raises(error, match=message):
            call(texts, verbose=0)
    with pytest.raises(error, match=message):
        shared_classifier.fit(texts, labels, verbose=0)
    np.testing.assert_equal(shared_classifier.get_weights(), before)


READY = tiny_preprocessor()(TEXTS)
OF_FIT = [
    ((TEXTS, LABELS), {"bucket_window": 0}, "`bucket_window` must be an int from 1"),
    ((TEXTS, LABELS), {"bucket_window": 2.5}, "`bucket_window` must be an int from 1"),
    ((TEXTS, LABELS), {"bucket_window": 2, "shuffle": False}, "is for texts that are shuffled"),
    ((READY, LABELS), {"bucket_window": 1}, "`bucket_window` is for texts that are shuffled"),
    ((TEXTS, LABELS), {"sample_weight": np.array([np.nan] * 24)}, "weights"),
    ((TEXTS, LABELS), {"sample_weight": np.ones(23)}, "weights"),
    (([], []), {}, "least"),
    (((batch for batch in [(READY, LABELS)]),), {}, "steps_per_epoch"),
]


@pytest.mark.parametrize(("data", "options", "message"), OF_FIT)
def test_arguments_of_fit_that_do_not_fit_are_refused(shared_classifier, data, options, message):
    with pytest.raises(ValueError, match=message):
        shared_classifier.fit(*data, **options, verbose=0)


def test_texts_are_cut_to_the_limit_and_ready_inputs_are_not(shared_classifier):
    import torch

    assert shared_classifier.predict(["a " * 500, "a", ""], verbose=0).shape == (3, 2)
    before = shared_classifier.get_weights()
    too_long = {"token_ids": np.ones((1, 17), "int32")}
    dataset = torch.utils.data.DataLoader([({"token_ids": np.ones(17, "int32")}, 0)])
    for call in (
        lambda: shared_classifier(too_long),
        lambda: shared_classifier.predict(too_long, verbose=0),
        lambda: shared_classifier.fit(too_long, [0], verbose=0),
        lambda: shared_classifier.fit(dataset, verbose=0),
    ):
        with pytest.raises(ValueError, match="between 1 and 16"):
            call()
    np.testing.assert_equal(shared_classifier.get_weights(), before)


@refused(
    ({"num_classes": 2.0}, "num_classes"),
    ({"problem_type": "ranking"}, "problem_type"),
    ({"label_names": ["one"]}, "label_names"),
    ({"label_names": ["one", "one"]}, "label_names"),
    ({"label_names": [0, 1]}, "list of str"),
    ({"label_names": np.array([0, 1])}, "list of str"),
    ({"label_names": "ab"}, "list of str"),
    ({"label_names": ["a", None]}, "list of str"),
    ({"pooling": "last"}, "pooling"),
    ({"frozen": 3}, "frozen"),
    ({"frozen": "head"}, "frozen"),
    ({"preprocessor": tiny_preprocessor(max_length=17)}, "max_length"),
    ({"preprocessor": tiny_preprocessor(vocabulary=[*VOCABULARY, "x"])}, "same checkpoint"),
)
def test_impossible_arguments_are_refused(shared_classifier, options):
    tiny_classifier(shared_classifier.backbone, **options)


def test_a_model_is_no_backbone_and_smoothing_is_for_the_task_s_own_loss():
    with pytest.raises(TypeError, match="backbone"):
        bert_keras.TextClassifier(keras.Sequential())
    with pytest.raises(ValueError, match="label_smoothing"):
        tiny_classifier().compile(loss=lambda y, logits: logits, label_smoothing=0.1)


@pytest.mark.each_backend
def test_ids_outside_the_vocabulary_are_refused_in_tensors_too(shared_classifier):
    inputs = {"token_ids": keras.ops.convert_to_tensor([[2, 9999, 3]])}
    for method, labels in ((shared_classifier.predict, ()), (shared_classifier.fit, ([0],))):
        with pytest.raises(ValueError, match="vocabulary"):
            method(inputs, *labels, verbose=0)


def test_a_pair_that_the_truncation_cannot_fit_fails_before_the_first_step():
    classifier = tiny_classifier(preprocessor=tiny_preprocessor(truncation="only_first"))
    pairs = (["a"] * 24, ["b"] * 23 + ["b " * 40])
    with pytest.raises(ValueError, match="index 23"):
        classifier.fit(pairs, LABELS, batch_size=4, verbose=0)
    assert not classifier.optimizer.built


def test_a_loss_by_name_is_not_taken_for_the_task_s_own():
    classifier = tiny_classifier(num_classes=1, problem_type="regression")
    classifier.compile(optimizer=keras.optimizers.SGD(), loss="mse")
    batches = batches_of(classifier, TEXTS[:5], [0.5] * 5, batch_size=4, shuffle=True)
    assert not batches.pad_last_batch


@pytest.mark.parametrize("problem_type", ["single_label", "multi_label", "regression"])
def test_no_texts_have_no_classes(problem_type):
    classifier = tiny_classifier(problem_type=problem_type, num_classes=3)
    for nothing in ([], ([], []), np.array([])):
        assert classifier.classify(nothing) == []
        assert classifier.predict(nothing).shape == (0, 3)
    if problem_type != "regression":
        probabilities = classifier.probabilities([])
        assert probabilities.shape == (0, 3) and probabilities.dtype == np.float32
    with pytest.raises(ValueError, match="equally many"):
        classifier.classify(([], ["a"]))
