"""R-Drop and multi-sample dropout, against losses computed by hand from the same masks."""

import keras
import numpy as np
import pytest
from checks import to_numpy
from tiny import LETTERS, tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.training import SeveralMasks

IDS = np.array([[2, 5, 6, 3], [2, 7, 3, 0], [2, 8, 9, 3]])
INPUTS = {"token_ids": IDS, "padding_mask": IDS > 0}
LABELS = np.array([0, 1, 1])
WEIGHTS = np.array([1.0, 3.0, 0.5], "float32")
# Where XLA compiles, TensorFlow may draw other masks than in a plain call.
SAME_MASKS = {"jit_compile": keras.backend.backend() == "jax"}


def with_masks(task):
    """Returns a registered class of a task that trains on several masks."""
    made = type(f"Regularized{task.__name__}", (SeveralMasks, task), {})
    return keras.saving.register_keras_serializable(package="tests")(made)


Classifier = with_masks(bert_keras.TextClassifier)
Plain = bert_keras.TextClassifier


def sgd(rate=0.0, **options):
    return keras.optimizers.SGD(rate, **options)


def noisy(make, *args, **options):
    """Returns a task whose dropout makes passes differ a lot."""
    keras.utils.set_random_seed(0)
    backbone = tiny_backbone(dropout=0.3, initializer_range=0.5)
    model = make(backbone, *args, preprocessor=tiny_preprocessor(), **options)
    head = model.head.dense.kernel
    head.assign(np.cos(3.0 * np.arange(head.shape[0] * head.shape[1])).reshape(head.shape))
    return model


def rewound(model, compute):
    """Computes, and sets all generators of masks back."""
    before = [to_numpy(v).copy() for v in model.variables]
    keras.utils.set_random_seed(5)
    result = compute()
    for variable, value in zip(model.variables, before, strict=True):
        variable.assign(value)
    keras.utils.set_random_seed(5)
    return result


def twice(inputs):
    return {name: np.concatenate([value] * 2) for name, value in inputs.items()}


def log_softmax(logits):
    logits = logits.astype("float64")
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def crossentropy(logits, labels):
    return -np.take_along_axis(log_softmax(logits), labels[..., None], -1)[..., 0]


def symmetric_kl(first, second):
    p, q = log_softmax(first), log_softmax(second)
    return ((np.exp(p) * (p - q)).sum(-1) + (np.exp(q) * (q - p)).sum(-1)) / 2


def step(model, inputs, labels, weights=None):
    return model.train_on_batch(inputs, labels, sample_weight=weights, return_dict=True)


def check_step(model, inputs, labels, weights, loss, disagreement):
    """Compares a step with `loss(output, labels)` and `disagreement(first, second)` by hand."""
    model.compile(sgd(), **SAME_MASKS)
    alpha = model.consistency
    outputs = rewound(model, lambda: to_numpy(model(twice(inputs), training=True)))
    first, second = np.split(outputs, 2)
    between = np.average(disagreement(first, second), weights=weights)
    expected = np.average((loss(first, labels) + loss(second, labels)) / 2, weights=weights)
    logs = step(model, inputs, labels, weights)
    np.testing.assert_allclose(float(logs["loss"]), expected + alpha * between, rtol=1e-5)
    assert between > 0.01
    return first, logs


@pytest.mark.once
def test_single_labels_and_metrics_of_one_pass():
    model = noisy(Classifier, num_classes=3, consistency=2.0)
    labels = np.array([0, 1, 2])
    first, logs = check_step(model, INPUTS, labels, WEIGHTS, crossentropy, symmetric_kl)
    right = first.argmax(-1) == labels
    np.testing.assert_allclose(float(logs["accuracy"]), np.average(right, weights=WEIGHTS))


def test_several_labels():
    def sigmoid(x):
        return 1 / (1 + np.exp(-x.astype("float64")))

    def loss(logits, labels):
        p = sigmoid(logits)
        return -np.mean(labels * np.log(p) + (1 - labels) * np.log(1 - p), axis=-1)

    def one_way(p, q):
        return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))

    def disagreement(first, second):
        p, q = sigmoid(first), sigmoid(second)
        return np.mean((one_way(p, q) + one_way(q, p)) / 2, axis=-1)

    labels = np.array([[1, 0], [0, 0], [1, 1]], "float32")
    model = noisy(Classifier, problem_type="multi_label", consistency=0.5)
    check_step(model, INPUTS, labels, WEIGHTS, loss, disagreement)


@pytest.mark.once
def test_scores():
    model = noisy(Classifier, num_classes=1, problem_type="regression", consistency=0.7)
    check_step(model, INPUTS, OF_SCORES[2], WEIGHTS, squares, squares)


def test_tags_of_tokens_count_by_their_weights():
    model = noisy(with_masks(bert_keras.TokenClassifier), num_classes=3, consistency=1.0)
    labels, weights = IDS % 3, (IDS > 4).astype("float32")
    check_step(model, INPUTS, labels, weights, crossentropy, symmetric_kl)


@pytest.mark.once
def test_choices_that_are_not_there_agree():
    model = noisy(with_masks(bert_keras.MultipleChoice), consistency=1.0)
    ids = np.stack([IDS, IDS[::-1], np.zeros_like(IDS)], axis=1)
    inputs = {"token_ids": ids, "padding_mask": ids > 0}
    check_step(model, inputs, LABELS, WEIGHTS, crossentropy, symmetric_kl)


@pytest.mark.once
def test_pairs_of_texts():
    model = noisy(with_masks(bert_keras.NextSentencePrediction), consistency=1.0)
    check_step(model, INPUTS, LABELS, WEIGHTS, crossentropy, symmetric_kl)


@pytest.mark.once
def test_masked_tokens_count_by_their_weights():
    model = noisy(with_masks(bert_keras.MaskedLM), consistency=1.0)
    inputs = {**INPUTS, "mask_positions": np.array([[1, 2], [1, 0], [1, 2]])}
    labels, weights = IDS[:, 1:3], np.array([[1, 1], [1, 0], [1, 2]], "float32")
    check_step(model, inputs, labels, weights, crossentropy, symmetric_kl)


@pytest.mark.once
def test_alpha_0_is_training_on_every_example_twice():
    ends = []
    for alpha, times in ((0.0, 1), (None, 2)):
        model = noisy(Classifier, consistency=alpha)
        model.compile(sgd(0.1))
        keras.utils.set_random_seed(5)
        inputs = {name: np.concatenate([value] * times) for name, value in INPUTS.items()}
        step(model, inputs, np.tile(LABELS, times), np.tile(WEIGHTS, times))
        ends.append(model.get_weights())
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)


@pytest.mark.once
def test_without_dropout_nothing_changes_with_class_weights_and_accumulation_too():
    texts = [" ".join(LETTERS[i : i + 3]) for i in range(4)]
    ends = []
    for options in ({"consistency": 3.0}, {"dropout_samples": 2}, {}):
        keras.utils.set_random_seed(0)
        make = Classifier if options else Plain
        model = make(tiny_backbone(dropout=0.0), preprocessor=tiny_preprocessor(), **options)
        model.compile(sgd(0.5, gradient_accumulation_steps=2))
        data = (texts, [0, 1, 1, 0])
        history = model.fit(
            *data, batch_size=2, epochs=2, shuffle=False, class_weight={0: 1.0, 1: 3.0},
            validation_data=data, verbose=0,
        )  # fmt: skip
        losses = [history.history[name] for name in ("loss", "val_loss", "accuracy")]
        ends.append([*model.get_weights(), np.array(losses)])
    for other in ends[:2]:
        for a, b in zip(other, ends[2], strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


def squares(first, second):
    return np.mean((first - second) ** 2, axis=-1)


OF_CLASSES = (crossentropy, symmetric_kl, LABELS, {"num_classes": 2})
OF_SCORES = (
    squares,
    squares,
    np.array([[0.5], [-1.0], [2.0]], "float32"),
    {"num_classes": 1, "problem_type": "regression"},
)


@pytest.mark.once
@pytest.mark.parametrize(
    ("alpha", "problem"),
    [
        (None, OF_CLASSES),
        pytest.param(2.0, OF_CLASSES, marks=pytest.mark.once),
        pytest.param(None, OF_SCORES, marks=pytest.mark.once),
        (0.7, OF_SCORES),
    ],
    ids=["classes", "classes twice", "scores", "scores twice"],
)
def test_samples_of_dropout_average_their_losses(alpha, problem):
    loss, disagreement, labels, options = problem
    model = noisy(Classifier, **options, consistency=alpha, dropout_samples=3)
    model.compile(sgd(), **SAME_MASKS)
    passes = 1 if alpha is None else 2

    def by_hand():
        inputs = INPUTS if passes == 1 else twice(INPUTS)
        model.head.num_masks = 3
        try:
            return model.head(model.backbone_outputs(inputs, training=True), training=True)
        finally:
            model.head.num_masks = 1

    outputs = rewound(model, lambda: to_numpy(by_hand())).reshape(3, passes, 3, -1)
    losses = loss(outputs, np.broadcast_to(labels, (3, passes, *labels.shape)))
    expected = np.average(losses.mean((0, 1)), weights=WEIGHTS)
    if alpha:
        between = disagreement(outputs[:, 0], outputs[:, 1]).mean(0)
        assert between.mean() > 0.01
        expected += alpha * np.average(between, weights=WEIGHTS)
    of_means = np.average(loss(outputs.mean((0, 1)), labels), weights=WEIGHTS)
    assert abs(expected - of_means) > 0.01
    logs = step(model, INPUTS, labels, WEIGHTS)
    np.testing.assert_allclose(float(logs["loss"]), expected, rtol=1e-5)
    if "accuracy" in logs:
        right = np.average(outputs[0, 0].argmax(-1) == labels, weights=WEIGHTS)
        np.testing.assert_allclose(float(logs["accuracy"]), right)


@pytest.mark.once
def test_outside_of_a_training_step_an_example_is_a_row():
    model = noisy(Classifier, consistency=1.0, dropout_samples=4)
    step(model, INPUTS, LABELS)
    assert model(INPUTS, training=True).shape == (3, 2)
    logits = model.predict(INPUTS, verbose=0)
    loss = model.evaluate(INPUTS, LABELS, verbose=0, return_dict=True)["loss"]
    np.testing.assert_allclose(loss, crossentropy(logits, LABELS).mean(), rtol=1e-5)


# Elsewhere a loaded model draws other masks: its generators start anew.
@pytest.mark.once
def test_a_loaded_model_trains_on_likewise(tmp_path):
    model = noisy(Classifier, consistency=2.0, dropout_samples=3)
    model.compile(sgd(), **SAME_MASKS)
    model.save(tmp_path / "model.keras")
    expected = rewound(model, lambda: step(model, INPUTS, LABELS))
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert (loaded.consistency, loaded.dropout_samples) == (2.0, 3)
    assert loaded.get_config() == model.get_config()
    np.testing.assert_allclose(
        float(step(loaded, INPUTS, LABELS)["loss"]), float(expected["loss"]), rtol=1e-5
    )


@pytest.mark.once
def test_a_preset_goes_to_it_with_arguments_of_task_backbone_and_masks(tmp_path):
    plain = tiny_classifier(num_classes=3)
    plain.backbone.save_to_preset(tmp_path)
    plain.preprocessor.tokenizer.save(tmp_path)
    options = {"num_classes": 3, "max_length": 8, "consistency": 0.5}
    backbone = {"attention_dropout": 0.3}
    task = Classifier.from_preset(
        tmp_path, **options, backbone=backbone, dropout_samples=2, lora_rank=1
    )
    assert (task.consistency, task.dropout_samples, task.num_classes) == (0.5, 2, 3)
    assert (task.backbone.attention_dropout, task.preprocessor.max_length) == (0.3, 8)
    assert np.isfinite(task.fit(["a b", "c"], [2, 0], verbose=0).history["loss"]).all()


@pytest.mark.once
def test_a_preset_s_head_is_its_own_and_is_exported_as_that(tmp_path):
    plain = tiny_classifier(label_names=["no", "yes"])
    plain.save_to_preset(tmp_path / "plain")
    task = Classifier.from_preset(tmp_path / "plain", consistency=1.0)
    assert task.label_names == ("no", "yes")
    np.testing.assert_array_equal(*(m.predict(INPUTS, verbose=0) for m in (plain, task)))
    task.save_to_preset(tmp_path / "own")
    again = Classifier.from_preset(tmp_path / "own")
    assert again.consistency == 1.0
    task.export_to_huggingface(tmp_path / "exported")
    loaded = Plain.from_preset(tmp_path / "exported")
    for other in (again, loaded):
        np.testing.assert_array_equal(*(m.predict(INPUTS, verbose=0) for m in (plain, other)))


@pytest.mark.once
def test_the_head_is_that_of_the_backbone_s_family():
    heads = [
        make(bert_keras.RobertaBackbone(10, 1, 2, 8, 16), **options).head
        for make, options in ((Plain, {}), (Classifier, {"dropout_samples": 2}))
    ]
    configs = [{**head.get_config(), "name": None, "dtype": None} for head in heads]
    assert configs[0] == configs[1] and heads[0].hidden is not None


@pytest.mark.once
@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (Plain, {"consistency": -1.0}, "from 0"),
        (Plain, {"consistency": float("nan")}, "from 0"),
        (Plain, {"consistency": "yes"}, "from 0"),
        (Plain, {"dropout_samples": 0}, "from 1"),
        (Plain, {"dropout_samples": 2.0}, "from 1"),
        (bert_keras.Pretraining, {"consistency": 1.0}, "Pretraining"),
        (bert_keras.QuestionAnswering, {"consistency": 1.0}, "QuestionAnswering"),
        (bert_keras.TextEmbedder, {"consistency": 1.0}, "TextEmbedder"),
        (
            bert_keras.TokenClassifier,
            {"consistency": 1.0, "crf": True, "num_classes": 2},
            "crf=False",
        ),
        (bert_keras.MultipleChoice, {"dropout_samples": 2}, "TextClassifier"),
        (bert_keras.LongTextClassifier, {"dropout_samples": 2}, "LongTextClassifier"),
    ],
)
def test_what_cannot_be_is_refused(task, options, message):
    with pytest.raises(ValueError, match=message):
        with_masks(task)(tiny_backbone(), preprocessor=tiny_preprocessor(), **options)
