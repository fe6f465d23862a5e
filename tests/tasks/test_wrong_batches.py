"""The batches of every kind of dataset are checked before a model sees them."""

import keras
import numpy as np
import pytest
from checks import cases, refused
from tiny import as_data_loader, as_tensorflow, tiny_backbone, tiny_classifier, tiny_task

pytestmark = pytest.mark.once

ROWS = 4
WRONG = {
    "no class": (lambda x, y: (x, np.where(y, 7, y)), "must be the ints 0 to 1"),
    "negative": (lambda x, y: (x, np.where(y, -1, y)), "must be the ints 0 to 1"),
    "no number": (lambda x, y: (x, np.where(y, np.nan, y)), "needs a label"),
    "no id": (lambda x, y: ({**x, "token_ids": x["token_ids"] + 500}, y), "the vocabulary"),
}


@pytest.fixture(scope="module")
def task():
    task = tiny_classifier(tiny_backbone(), label_names=["bad", "good"])
    task.compile(keras.optimizers.SGD(1e-3), run_eagerly=keras.backend.backend() != "jax")
    return task


def right_batch():
    ids = np.arange(5, 5 + 4 * ROWS, dtype="int32").reshape(ROWS, 4)
    return {"token_ids": ids, "padding_mask": np.ones_like(ids)}, np.array([0, 1, 1, 0])


class Batches(keras.utils.PyDataset):
    """`number` batches; the last one is changed by `wrong`."""

    def __init__(self, wrong, number=1, **options):
        super().__init__(**options)
        self.wrong, self.number = wrong, number

    def __len__(self):
        return self.number

    def __getitem__(self, index):
        batch = right_batch()
        return self.wrong(*batch) if index == self.number - 1 else batch


def loader_of(wrong):
    x, y = wrong(*right_batch())
    rows = [({key: array[row] for key, array in x.items()}, y[row]) for row in range(ROWS)]
    return as_data_loader(rows, ROWS)


KINDS = {
    "PyDataset": Batches,
    "generator": lambda wrong: (wrong(*right_batch()) for _ in range(1)),
    "DataLoader": loader_of,
    "tf.data": lambda wrong: as_tensorflow(wrong(*right_batch()), ROWS),
}


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        *(pytest.param(kind, "no class", marks=pytest.mark.each_backend) for kind in KINDS),
        pytest.param("PyDataset", "no id", marks=pytest.mark.each_backend),
        *(("PyDataset", what) for what in ("negative", "no number")),
    ],
)
def test_a_wrong_batch_ends_fit_before_its_step(task, kind, what):
    wrong, message = WRONG[what]
    error, message = ValueError, f"Batch 0 of the dataset: .*{message}"
    if kind == "tf.data" and keras.backend.backend() == "tensorflow":
        error, message = Exception, ""  # Its own pipelines go past Python; its step raises.
    before = task.get_weights()
    with pytest.raises(error, match=message):
        task.fit(KINDS[kind](wrong), verbose=0)
    np.testing.assert_equal(task.get_weights(), before)


def no_disk(*_):
    raise OSError("the disk is gone")


@cases(pytest.param({}, marks=pytest.mark.also_on("tensorflow")), {"workers": 2})
def test_errors_of_a_dataset_are_raised_unchanged(task, options):
    for wrong, error, message in (
        (no_disk, OSError, "^the disk is gone$"),
        (WRONG["no class"][0], ValueError, "^Batch 3 of the dataset: "),
    ):
        with pytest.raises(error, match=message):
            task.fit(Batches(wrong, 4, **options), shuffle=False, verbose=0)
        with pytest.raises(error, match=message):
            task.fit(*right_batch(), validation_data=Batches(wrong, 4, **options), verbose=0)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "generator"])
def test_each_batch_is_checked_once_in_predict(task, kind, monkeypatch):
    checked = []
    monkeypatch.setattr(task, "check_arrays", checked.append)
    task.predict(KINDS[kind](lambda *batch: batch), verbose=0)
    assert len(checked) == 1


@refused(
    ({"good": np.nan}, "finite number"),
    ({"god": 2.0}, "names of labels"),
    ({7: 2.0}, "keys from 0 to 1"),
    ("balanced", "counts the examples of each class"),
)
def test_class_weights_are_checked_for_a_dataset(task, weights):
    task.fit(Batches(lambda *batch: batch), class_weight=weights, verbose=0)


@pytest.mark.each_backend
def test_weights_of_another_shape_are_refused_before_any_step(task):
    x, y = right_batch()
    wide, texts = np.ones((ROWS, 2), "float32"), ["a", "b", "c", "d"]
    message = r"must have the shape \(4,\)\. Received: shape \(4, 2\)\. Pass one weight"
    for method in (task.fit, task.evaluate):
        for inputs in (x, texts):
            with pytest.raises(ValueError, match=message):
                method(inputs, y, sample_weight=wide, verbose=0)
    for method in (task.train_on_batch, task.test_on_batch):
        with pytest.raises(ValueError, match=message):
            method(x, y, wide)
    with pytest.raises(ValueError, match=message):
        task.fit(Batches(lambda x, y: (x, y, wide)), verbose=0)
    narrow, flat = (
        task.evaluate(x, y, sample_weight=weights, verbose=0)
        for weights in (wide[:, :1], wide[:, 0])
    )
    assert narrow == flat


def test_a_loss_of_each_label_has_a_column_of_weights():
    several = tiny_classifier(problem_type="multi_label", num_classes=3, dropout=0.0)
    several.compile("sgd", loss=lambda y_true, y_pred: (y_true - y_pred) ** 2)
    x, weights = ["a", "b", "c", "d"], np.array([1.0, 2.0, 0.5, 3.0])
    expected = np.mean(weights[:, None] * several.predict(x, verbose=0) ** 2)
    found = several.evaluate(x, np.zeros((ROWS, 3)), sample_weight=weights[:, None], verbose=0)
    assert found[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.each_backend
def test_a_batch_may_be_tensors_of_pytorch(task):
    import torch

    x, y = right_batch()
    weights = np.arange(1.0, 1.0 + ROWS, dtype="float32")
    expected = task.test_on_batch(x, y, weights)
    ours = {key: torch.tensor(value) for key, value in x.items()}
    for inputs in (x, ours, {key: keras.ops.convert_to_tensor(value) for key, value in x.items()}):
        found = task.test_on_batch(inputs, torch.tensor(y), torch.tensor(weights))
        assert found == pytest.approx(expected)
    assert np.isfinite(task.train_on_batch(ours, torch.tensor(y))).all()


@pytest.mark.each_backend
@pytest.mark.parametrize("method", ["evaluate", "test_on_batch"])
@cases(
    (2.0, r"the shape \(4,\)\. Received: shape \(\)\. Pass one weight for each"),
    ("balanced", "numbers, one for each example. Received: 'balanced'"),
    ([1.0, np.nan, 1.0, 1.0], "finite numbers. Received nan at the index 1"),
    (np.ones((ROWS, 3)), r"the shape \(4,\)\. Received: shape \(4, 3\)"),
    ({"start": np.ones(ROWS)}, r"names of outputs.*Received: \['start'\]"),
)
def test_weights_that_do_not_fit_are_refused_before_any_step(method, weights, message):
    several = tiny_classifier(problem_type="multi_label", num_classes=3)
    spans, (x, _) = tiny_task("QuestionAnswering"), right_batch()
    places = dict.fromkeys(("start_logits", "end_logits"), np.ones(ROWS, "int32"))
    for task, inputs, labels in (
        (several, x, np.ones((ROWS, 3))),
        (several, ["a", "b", "c", "d"], np.ones((ROWS, 3))),
        (spans, x, places),
    ):
        with pytest.raises(ValueError, match=message):
            getattr(task, method)(inputs, labels, sample_weight=weights)
