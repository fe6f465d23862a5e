"""R-Drop and multi-sample dropout, against losses computed by hand from the same masks."""

import keras
import numpy as np
import pytest
from checks import to_numpy
from tiny import LETTERS, tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras

IDS = np.array([[2, 5, 6, 3], [2, 7, 3, 0], [2, 8, 9, 3]])
INPUTS = {"token_ids": IDS, "padding_mask": IDS > 0}
LABELS = np.array([0, 1, 1])
WEIGHTS = np.array([1.0, 3.0, 0.5], "float32")
# Where XLA compiles, TensorFlow may draw other masks than in a plain call.
SAME_MASKS = {"jit_compile": keras.backend.backend() == "jax"}


def sgd(rate=0.0, **options):
    return keras.optimizers.SGD(rate, **options)


def noisy(make, *args, **options):
    """Returns a task whose dropout makes passes differ a lot."""
    keras.utils.set_random_seed(0)
    model = make(tiny_backbone(dropout=0.3, initializer_range=0.5), *args, **options)
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


def check_step(model, inputs, labels, weights, loss, disagreement, alpha):
    """Compares a step with `loss(output, labels)` and `disagreement(first, second)` by hand."""
    model.compile(sgd(), consistency=alpha, **SAME_MASKS)
    outputs = rewound(model, lambda: to_numpy(model(twice(inputs), training=True)))
    first, second = np.split(outputs, 2)
    between = np.average(disagreement(first, second), weights=weights)
    expected = np.average((loss(first, labels) + loss(second, labels)) / 2, weights=weights)
    logs = step(model, inputs, labels, weights)
    np.testing.assert_allclose(float(logs["loss"]), expected + alpha * between, rtol=1e-5)
    assert between > 0.01
    return first, logs


def test_single_labels_and_metrics_of_one_pass():
    model = noisy(tiny_classifier, num_classes=3)
    labels = np.array([0, 1, 2])
    first, logs = check_step(model, INPUTS, labels, WEIGHTS, crossentropy, symmetric_kl, 2.0)
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
    model = noisy(tiny_classifier, problem_type="multi_label")
    check_step(model, INPUTS, labels, WEIGHTS, loss, disagreement, 0.5)


@pytest.mark.once
def test_scores():
    model = noisy(tiny_classifier, num_classes=1, problem_type="regression")
    check_step(model, INPUTS, OF_SCORES[2], WEIGHTS, squares, squares, 0.7)


def test_tags_of_tokens_count_by_their_weights():
    model = noisy(bert_keras.TokenClassifier, num_classes=3)
    labels, weights = IDS % 3, (IDS > 4).astype("float32")
    check_step(model, INPUTS, labels, weights, crossentropy, symmetric_kl, 1.0)


@pytest.mark.once
def test_choices_that_are_not_there_agree():
    model = noisy(bert_keras.MultipleChoice)
    ids = np.stack([IDS, IDS[::-1], np.zeros_like(IDS)], axis=1)
    inputs = {"token_ids": ids, "padding_mask": ids > 0}
    check_step(model, inputs, LABELS, WEIGHTS, crossentropy, symmetric_kl, 1.0)


@pytest.mark.once
def test_pairs_of_texts():
    model = noisy(bert_keras.NextSentencePrediction)
    check_step(model, INPUTS, LABELS, WEIGHTS, crossentropy, symmetric_kl, 1.0)


@pytest.mark.once
def test_alpha_0_is_training_on_every_example_twice():
    ends = []
    for alpha, times in ((0.0, 1), (None, 2)):
        model = noisy(tiny_classifier)
        model.compile(sgd(0.1), consistency=alpha)
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
        model = tiny_classifier(tiny_backbone(dropout=0.0))
        model.compile(sgd(0.5, gradient_accumulation_steps=2), **options)
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
    model = noisy(tiny_classifier, **options)
    model.compile(sgd(), consistency=alpha, dropout_samples=3, **SAME_MASKS)
    passes = 1 if alpha is None else 2

    def by_hand():
        inputs = INPUTS if passes == 1 else twice(INPUTS)
        return model.head(model.encode(inputs, training=True), num_masks=3, training=True)

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
    model = noisy(tiny_classifier)
    model.compile(consistency=1.0, dropout_samples=4)
    assert model(INPUTS, training=True).shape == (3, 2)
    logits = model.predict(INPUTS, verbose=0)
    loss = model.evaluate(INPUTS, LABELS, verbose=0, return_dict=True)["loss"]
    np.testing.assert_allclose(loss, crossentropy(logits, LABELS).mean(), rtol=1e-5)


# Elsewhere a loaded model draws other masks: its generators start anew.
@pytest.mark.once
def test_a_loaded_model_trains_on_likewise(tmp_path):
    model = noisy(tiny_classifier)
    model.compile(sgd(), consistency=2.0, dropout_samples=3, **SAME_MASKS)
    model.save(tmp_path / "model.keras")
    expected = rewound(model, lambda: step(model, INPUTS, LABELS))
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        float(step(loaded, INPUTS, LABELS)["loss"]), float(expected["loss"]), rtol=1e-5
    )


@pytest.mark.once
@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (tiny_classifier, {"consistency": -1.0}, "from 0"),
        (tiny_classifier, {"consistency": float("nan")}, "from 0"),
        (tiny_classifier, {"consistency": "yes"}, "from 0"),
        (tiny_classifier, {"dropout_samples": 0}, "from 1"),
        (tiny_classifier, {"dropout_samples": 2.0}, "from 1"),
        (bert_keras.MaskedLM, {"consistency": 1.0}, "MaskedLM"),
        (bert_keras.MultipleChoice, {"dropout_samples": 2}, "TextClassifier"),
        (bert_keras.LongTextClassifier, {"dropout_samples": 2}, "LongTextClassifier"),
    ],
)
def test_what_cannot_be_is_refused(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(tiny_backbone(), preprocessor=tiny_preprocessor()).compile(**options)


@pytest.mark.once
def test_a_chain_of_tags_is_refused():
    tagger = bert_keras.TokenClassifier(tiny_backbone(), num_classes=3, crf=True)
    with pytest.raises(ValueError, match="crf=False"):
        tagger.compile(consistency=1.0)
