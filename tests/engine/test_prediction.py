"""Prediction gives the same outputs from any source of data, in any number of threads.

`ANSWERS=200 pytest tests/engine/test_prediction.py` lets each of 8 threads answer so often.
"""

import os
import threading

import keras
import numpy as np
import pytest
from tiny import tiny_backbone, tiny_classifier

from bert_keras.engine import structure
from bert_keras.preprocessing.batching import BucketedBatches

ANSWERS = int(os.environ.get("ANSWERS", 10))
TEXTS = ["a b", "c", "d e f g h", "a", "b c d", "h g", "a b c d e f", "e"]


def make_inputs(rows=7, length=6):
    ids = np.random.default_rng(0).integers(5, 20, (rows, length)).astype("int32")
    return {"token_ids": ids, "padding_mask": np.ones_like(ids)}


class Batches(keras.utils.PyDataset):
    def __init__(self, inputs, **options):
        super().__init__(**options)
        self.inputs = inputs

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return ({name: value[3 * index :][:3] for name, value in self.inputs.items()},)


def as_generator(inputs):
    batches = Batches(inputs)
    return (batches[index] for index in range(3))


def as_tensorflow(inputs):
    tensorflow = pytest.importorskip("tensorflow")
    return tensorflow.data.Dataset.from_tensor_slices(inputs).batch(3)


def as_data_loader(inputs):
    torch = pytest.importorskip("torch")
    rows = [{name: value[row] for name, value in inputs.items()} for row in range(7)]
    return torch.utils.data.DataLoader(rows, batch_size=3)


def as_tensors(inputs):
    return {name: keras.ops.convert_to_tensor(value) for name, value in inputs.items()}


SOURCES = (
    Batches,
    lambda inputs: Batches(inputs, workers=2),
    as_generator,
    as_tensorflow,
    as_data_loader,
    as_tensors,
)


def test_every_source_of_data_gives_the_same_outputs_in_the_model_s_structure():
    backbone, inputs = tiny_backbone(), make_inputs()
    expected = {name: keras.ops.convert_to_numpy(value) for name, value in backbone(inputs).items()}
    for make in (lambda inputs: inputs, *SOURCES):
        outputs = backbone.predict(make(inputs), batch_size=3, verbose=0)
        assert outputs.keys() == expected.keys()
        for name, value in outputs.items():
            assert type(value) is np.ndarray and value.flags.writeable
            np.testing.assert_allclose(value, expected[name], atol=1e-5)
    for name, value in backbone.predict_on_batch(inputs).items():
        np.testing.assert_allclose(value, expected[name], atol=1e-5)


def test_batches_come_one_by_one_in_their_order():
    backbone, inputs = tiny_backbone(), make_inputs()
    expected = backbone.predict(inputs, verbose=0)["pooled_output"]
    parts = backbone.predict_batches(Batches(inputs))
    parts = [part["pooled_output"] for part in parts]
    assert [len(part) for part in parts] == [3, 3, 1]
    np.testing.assert_allclose(np.concatenate(parts), expected, atol=1e-5)
    assert list(backbone.predict_batches([])) == []


def test_callbacks_steps_and_progress_are_as_keras_has_them(capsys):
    backbone, inputs = tiny_backbone(), make_inputs()
    expected = backbone.predict(inputs, batch_size=3)["pooled_output"]
    assert "3/3" in capsys.readouterr().out
    backbone.predict(inputs, batch_size=3, verbose=0)
    assert capsys.readouterr().out == ""
    ends = []
    callback = keras.callbacks.LambdaCallback(
        on_predict_batch_end=lambda batch, logs: ends.append(batch)
    )
    outputs = backbone.predict(inputs, batch_size=3, verbose=0, callbacks=[callback])
    np.testing.assert_allclose(outputs["pooled_output"], expected, atol=1e-5)
    assert ends == [0, 1, 2]
    outputs = backbone.predict(as_generator(inputs), steps=2, verbose=0)
    np.testing.assert_allclose(outputs["pooled_output"], expected[:6], atol=1e-5)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        ({"token_ids": np.full((2, 3), 99)}, ValueError, "vocabulary"),
        ([({"token_ids": np.full((2, 3), 99)},)], ValueError, "vocabulary"),
        ([({"ids": np.ones((2, 3), int)},)], ValueError, "ids"),
        (np.ones((2, 3), int), TypeError, "dict"),
        ({"token_ids": np.ones((0, 3), int)}, ValueError, "at least one row"),
        ([], ValueError, "at least one batch"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(x, error, message):
    with pytest.raises(error, match=message):
        tiny_backbone().predict((b for b in x) if isinstance(x, list) else x, verbose=0)


def test_outputs_follow_the_weights_and_what_replaces_them():
    task, inputs = tiny_classifier(), make_inputs()

    def check():
        expected = keras.ops.convert_to_numpy(task(inputs))
        np.testing.assert_allclose(task.predict(inputs, verbose=0), expected, atol=1e-5)
        return expected

    first = check()
    task.head.weights[-1].assign([1.0, 2.0])
    second = check()
    assert not np.allclose(first, second)
    version = structure.version
    task.quantize("int8")
    assert structure.version > version
    third = check()
    assert not np.array_equal(second, third)
    task.compile(run_eagerly=True)
    np.testing.assert_allclose(check(), third, atol=1e-5)


def test_a_function_is_compiled_once_a_shape(monkeypatch):
    task, calls = tiny_classifier(), []
    call = task.head.call
    monkeypatch.setattr(task.head, "call", lambda *args, **kw: calls.append(1) or call(*args, **kw))
    for _ in range(3):
        task.predict(make_inputs(), verbose=0)
    assert len(calls) == (3 if keras.backend.backend() == "torch" else 1)


def test_eight_threads_answer_as_one_does():
    task = tiny_classifier()
    texts = [TEXTS[number:] + TEXTS[:number] for number in range(8)]
    # In a task of its own, so that the threads meet a function that is not compiled yet.
    other = tiny_classifier()
    other.set_weights(task.get_weights())
    expected = [[other.predict(texts[n][:k], verbose=0) for k in (1, 3, 8)] for n in range(8)]
    wrong, start = [], threading.Barrier(8)

    def answer(number):
        start.wait()
        for turn in range(ANSWERS):
            count = (1, 3, 8)[turn % 3]
            try:
                found = task.predict(texts[number][:count], verbose=0)
                np.testing.assert_array_equal(found, expected[number][turn % 3])
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=answer, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]
    assert np.isfinite(task.get_weights()[0]).all()


def test_batches_of_this_package_are_put_back_in_order():
    task = tiny_classifier()
    ids, _ = task.preprocessor.tokenize(TEXTS)
    batches = BucketedBatches(
        task.preprocessor.packed_lengths(ids),
        lambda rows, length: task.preprocessor.pack(ids.take(rows), length=length),
        batch_size=3,
        shuffle=False,
        pad_last_batch=True,
    )
    outputs = batches.restore_order(task.predict(batches, verbose=0))
    np.testing.assert_allclose(outputs, task.predict(TEXTS, verbose=0), atol=1e-5)


def test_outputs_and_losses_follow_what_compile_and_other_tasks_change():
    backbone = tiny_backbone()
    task, other = tiny_classifier(backbone), tiny_classifier(backbone)
    inputs = task.preprocessor(["a b c", "d"])
    loss = task.evaluate(inputs, np.array([0, 1]), verbose=0)[0]
    task.predict(inputs, verbose=0)
    task.head.pooling = "mean"
    task.compile()
    expected = keras.ops.convert_to_numpy(task(inputs))
    np.testing.assert_allclose(task.predict(inputs, verbose=0), expected, atol=1e-6)
    task.evaluate(inputs, np.array([0, 1]), verbose=0)
    other.quantize("int8")
    logits = task.predict(inputs, verbose=0)
    after = task.evaluate(inputs, np.array([0, 1]), verbose=0)[0]
    rows = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    assert after == pytest.approx(-(rows[0, 0] + rows[1, 1]) / 2, abs=1e-6) and after != loss
