"""R-Drop and multi-sample dropout against losses computed by hand from the same masks."""

import keras
import numpy as np
import pytest
from checks import assert_same_structure_close, to_numpy
from scipy import special
from tiny import LETTERS, tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.training import RDrop

pytestmark = pytest.mark.once

IDS = np.array([[2, 5, 6, 3], [2, 7, 3, 0], [2, 8, 9, 3]])
INPUTS = {"token_ids": IDS, "padding_mask": IDS > 0}
LABELS = np.array([0, 1, 1])
WEIGHTS = np.array([1.0, 3.0, 0.5], "float32")
REGRESSION = {"num_classes": 1, "problem_type": "regression"}


def with_masks(task):
    """Returns a registered class of a task that trains on several masks."""
    made = type(f"Regularized{task.__name__}", (RDrop, task), {})
    return keras.saving.register_keras_serializable(package="tests")(made)


Classifier = with_masks(bert_keras.TextClassifier)
Plain = bert_keras.TextClassifier


def sgd(rate=0.0, **options):
    return keras.optimizers.SGD(rate, **options)


def noisy(make, *args, **options):
    """Returns a task whose passes differ a lot because of dropout."""
    keras.utils.set_random_seed(0)
    backbone = tiny_backbone(dropout=0.3, initializer_range=0.5)
    model = make(backbone, *args, preprocessor=tiny_preprocessor(), **options)
    head = model.head.dense.kernel
    head.assign(np.cos(3.0 * np.arange(head.shape[0] * head.shape[1])).reshape(head.shape))
    return model


def rewound(model, compute):
    """Computes something, then resets the weights and all generators of masks."""
    before = [to_numpy(v).copy() for v in model.variables]
    keras.utils.set_random_seed(5)
    result = compute()
    for variable, value in zip(model.variables, before, strict=True):
        variable.assign(value)
    keras.utils.set_random_seed(5)
    return result


def twice(inputs):
    return {name: np.concatenate([value] * 2) for name, value in inputs.items()}


def crossentropy(logits, labels):
    log_p = special.log_softmax(logits.astype("float64"), -1)
    return -np.take_along_axis(log_p, labels[..., None], -1)[..., 0]


def divergence(p, q):
    """Returns the mean of the divergences in both directions."""
    return (special.rel_entr(p, q) + special.rel_entr(q, p)) / 2


def symmetric_kl(first, second):
    p, q = (special.softmax(x.astype("float64"), -1) for x in (first, second))
    return divergence(p, q).sum(-1)


def step(model, inputs, labels, weights=None):
    return model.train_on_batch(inputs, labels, sample_weight=weights, return_dict=True)


def binary_crossentropy(logits, labels):
    p = special.expit(logits.astype("float64"))
    return -np.mean(special.xlogy(labels, p) + special.xlog1py(1 - labels, -p), axis=-1)


def symmetric_binary_kl(first, second):
    p, q = (special.expit(x.astype("float64")) for x in (first, second))
    return np.mean(divergence(p, q) + divergence(1 - p, 1 - q), axis=-1)


def squares(first, second):
    return np.mean((first - second) ** 2, axis=-1)


OF_CLASSES, OF_SCORES = (crossentropy, symmetric_kl), (squares, squares)
OF_LABELS = (binary_crossentropy, symmetric_binary_kl)
SCORES = np.array([[0.5], [-1.0], [2.0]], "float32")
SEVERAL = np.array([[1, 0], [0, 0], [1, 1]], "float32")
# One of the choices is missing.
CHOICES = np.stack([IDS, IDS[::-1], np.zeros_like(IDS)], axis=1)


def case(task, labels, losses=OF_CLASSES, inputs=(), weights=WEIGHTS, **options):
    return task, {**INPUTS, **dict(inputs)}, labels, weights, losses, options


CASES = {
    "classes": case(Classifier, np.arange(3), num_classes=3),
    "several labels": case(Classifier, SEVERAL, OF_LABELS, problem_type="multi_label"),
    "scores": case(Classifier, SCORES, OF_SCORES, **REGRESSION),
    "tags": case(
        with_masks(bert_keras.TokenClassifier), IDS % 3, weights=1.0 * (IDS > 4), num_classes=3
    ),
    "choices": case(
        with_masks(bert_keras.MultipleChoice),
        LABELS,
        inputs={"token_ids": CHOICES, "padding_mask": CHOICES > 0},
    ),
    "pairs": case(with_masks(bert_keras.NextSentencePrediction), LABELS),
    "masked tokens": case(
        with_masks(bert_keras.MaskedLM),
        IDS[:, 1:3],
        inputs={"mask_positions": np.array([[1, 2], [1, 0], [1, 2]])},
        weights=np.array([[1, 1], [1, 0], [1, 2]], "float32"),
    ),
}
EVERYWHERE = ("tags",)


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=pytest.mark.each_backend if x in EVERYWHERE else ()) for x in CASES],
)
def test_a_step_minimizes_the_loss_of_two_passes_and_their_disagreement(name):
    alpha = 1.7
    make, inputs, labels, weights, (loss, disagreement), options = CASES[name]
    model = noisy(make, **options, consistency=alpha)
    model.compile(sgd())
    outputs = rewound(model, lambda: to_numpy(model(twice(inputs), training=True)))
    first, second = np.split(outputs, 2)
    between = np.average(disagreement(first, second), weights=weights)
    assert between > 1e-3  # A hundred times what the comparison below allows.
    expected = np.average((loss(first, labels) + loss(second, labels)) / 2, weights=weights)
    logs = step(model, inputs, labels, weights)
    np.testing.assert_allclose(float(logs["loss"]), expected + alpha * between, rtol=1e-5)
    if name == "classes":  # Metrics are those of the first pass.
        right = first.argmax(-1) == labels
        np.testing.assert_allclose(float(logs["accuracy"]), np.average(right, weights=weights))


def test_alpha_0_trains_on_every_example_twice():
    ends = []
    for alpha, times in ((0.0, 1), (None, 2)):
        model = noisy(Classifier, consistency=alpha)
        model.compile(sgd(0.1))
        keras.utils.set_random_seed(5)
        inputs = {name: np.concatenate([value] * times) for name, value in INPUTS.items()}
        step(model, inputs, np.tile(LABELS, times), np.tile(WEIGHTS, times))
        ends.append(model.get_weights())
    assert_same_structure_close(*ends)


def test_without_dropout_neither_changes_training_with_class_weights_and_accumulation():
    texts = [" ".join(LETTERS[i : i + 3]) for i in range(4)]
    ends = []
    for options in ({"consistency": 3.0}, {"dropout_samples": 2}, {}):
        keras.utils.set_random_seed(0)
        make = Classifier if options else Plain
        model = make(tiny_backbone(dropout=0.0), preprocessor=tiny_preprocessor(), **options)
        model.compile(sgd(0.5, gradient_accumulation_steps=2))
        data = (texts, [0, 1, 1, 0])
        fitting = {"batch_size": 2, "epochs": 2, "shuffle": False, "verbose": 0}
        weights = {"class_weight": {0: 1.0, 1: 3.0}}
        history = model.fit(*data, validation_data=data, **weights, **fitting).history
        losses = [history[name] for name in ("loss", "val_loss", "accuracy")]
        ends.append([*model.get_weights(), np.array(losses)])
    assert_same_structure_close(ends[:2], ends[2:] * 2, 1e-5)


@pytest.mark.parametrize("alpha", [None, 0.7])
@pytest.mark.parametrize(
    ("losses", "labels", "options"),
    [(OF_CLASSES, LABELS, {"num_classes": 2}), (OF_SCORES, SCORES, REGRESSION)],
    ids=["classes", "scores"],
)
def test_samples_of_dropout_average_their_losses(alpha, losses, labels, options):
    loss, disagreement = losses
    model = noisy(Classifier, **options, consistency=alpha, dropout_samples=3)
    model.compile(sgd())
    passes = 1 if alpha is None else 2

    inputs = INPUTS if passes == 1 else twice(INPUTS)

    def by_hand():
        model.head.num_masks = 3
        outputs = model.backbone_outputs(inputs, training=True, first_token_only=True)
        logits = model.head(outputs, training=True)
        model.head.num_masks = 1
        return to_numpy(logits)

    outputs = rewound(model, by_hand).reshape(3, passes, 3, -1)
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
        np.testing.assert_allclose(float(logs["accuracy"]), right, rtol=1e-6)


def test_outside_a_training_step_each_example_is_one_row():
    model = noisy(Classifier, consistency=1.0, dropout_samples=4)
    step(model, INPUTS, LABELS)
    assert model(INPUTS, training=True).shape == (3, 2)
    logits = model.predict(INPUTS, verbose=0)
    loss = model.evaluate(INPUTS, LABELS, verbose=0, return_dict=True)["loss"]
    np.testing.assert_allclose(loss, crossentropy(logits, LABELS).mean(), rtol=1e-5)


# Elsewhere a loaded model draws other masks: its generators are new.
def test_a_loaded_model_continues_training_the_same(tmp_path):
    model = noisy(Classifier, consistency=2.0, dropout_samples=3)
    model.compile(sgd())
    model.save(tmp_path / "model.keras")
    expected = rewound(model, lambda: step(model, INPUTS, LABELS))
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert (loaded.consistency, loaded.dropout_samples) == (2.0, 3)
    assert loaded.get_config() == model.get_config()
    logs = step(loaded, INPUTS, LABELS)
    np.testing.assert_allclose(float(logs["loss"]), float(expected["loss"]), rtol=1e-5)


def test_from_preset_takes_arguments_for_the_task_the_backbone_and_the_masks(tmp_path):
    tiny_backbone().save_to_preset(tmp_path)
    tiny_preprocessor().tokenizer.save(tmp_path)
    options = {"num_classes": 3, "max_length": 8, "lora_rank": 1}
    options |= {"backbone": {"attention_dropout": 0.3}, "consistency": 0.5, "dropout_samples": 2}
    task = Classifier.from_preset(tmp_path, **options)
    assert (task.consistency, task.dropout_samples, task.num_classes) == (0.5, 2, 3)
    assert (task.backbone.attention_dropout, task.preprocessor.max_length) == (0.3, 8)
    assert np.isfinite(task.fit(["a b", "c"], [2, 0], epochs=1, verbose=0).history["loss"]).all()


def test_it_takes_and_exports_the_head_of_a_plain_classifier(tmp_path):
    plain = tiny_classifier(label_names=["no", "yes"])
    plain.save_to_preset(tmp_path / "plain")
    task = Classifier.from_preset(tmp_path / "plain", consistency=1.0)
    assert task.label_names == ("no", "yes")
    task.save_to_preset(tmp_path / "own")
    again = Classifier.from_preset(tmp_path / "own")
    assert again.consistency == 1.0
    task.export_to_huggingface(tmp_path / "exported")
    loaded = Plain.from_preset(tmp_path / "exported")
    for other in (task, again, loaded):
        np.testing.assert_array_equal(*(m.predict(INPUTS, verbose=0) for m in (plain, other)))


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
            {"consistency": 1.0, "crf": True} | {"num_classes": 2},
            "crf=False",
        ),
        (bert_keras.MultipleChoice, {"dropout_samples": 2}, "TextClassifier"),
        (bert_keras.LongTextClassifier, {"dropout_samples": 2}, "LongTextClassifier"),
    ],
)
def test_impossible_combinations_are_refused(task, options, message):
    with pytest.raises(ValueError, match=message):
        with_masks(task)(tiny_backbone(), preprocessor=tiny_preprocessor(), **options)
