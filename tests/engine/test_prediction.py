"""Prediction gives the same outputs from any source of data, in any number of threads.

`ANSWERS=200 pytest tests/engine/test_prediction.py` lets each of 8 threads answer so often.
"""

import itertools
import os
import threading
from concurrent import futures

import keras
import numpy as np
import pytest
from checks import assert_close, assert_same_structure_close, call, refused, to_numpy
from keras import ops
from tiny import Batches, as_data_loader, as_tensorflow, tiny_backbone, tiny_classifier

from bert_keras.layers import attention

pytestmark = pytest.mark.once

ANSWERS = int(os.environ.get("ANSWERS", 10))
TEXTS = ["a b", "c", "d e f g h", "a", "b c d", "h g", "a b c d e f", "e"]


def make_inputs(rows=7, length=6):
    ids = np.random.default_rng(0).integers(5, 20, (rows, length)).astype("int32")
    return {"token_ids": ids, "padding_mask": np.ones_like(ids)}


def batches(inputs):
    return [({name: x[start : start + 3] for name, x in inputs.items()},) for start in (0, 3, 6)]


def rows_of(inputs):
    return [{name: value[row] for name, value in inputs.items()} for row in range(7)]


def as_tensors(inputs):
    return keras.tree.map_structure(ops.convert_to_tensor, inputs)


SOURCES = (
    dict,
    lambda inputs: Batches(batches(inputs)),
    lambda inputs: Batches(batches(inputs), workers=2),
    lambda inputs: (batch for batch in batches(inputs)),
    lambda inputs: as_tensorflow(inputs, 3),
    lambda inputs: as_data_loader(rows_of(inputs), 3),
    as_tensors,
)


@pytest.mark.each_backend
def test_every_source_of_data_gives_the_same_outputs_in_the_model_s_structure_and_order():
    backbone, inputs = tiny_backbone(), make_inputs()
    expected = keras.tree.map_structure(to_numpy, call(backbone, inputs))
    for make in SOURCES:
        outputs = backbone.predict(make(inputs), batch_size=3, verbose=0)
        assert_same_structure_close(outputs, expected, 1e-5)
        assert all(type(x) is np.ndarray and x.flags.writeable for x in outputs.values())
    assert_same_structure_close(backbone.predict_on_batch(inputs), expected, 1e-5)
    pooled = [x["pooled_output"] for x in backbone.predict_batches(Batches(batches(inputs)))]
    assert [len(rows) for rows in pooled] == [3, 3, 1]
    assert_close(np.concatenate(pooled), expected["pooled_output"], 1e-5)
    assert list(backbone.predict_batches([])) == []


def test_callbacks_steps_and_progress_work_as_in_keras(capsys):
    backbone, inputs = tiny_backbone(), make_inputs()
    expected = backbone.predict(inputs, batch_size=3)["pooled_output"]
    assert "3/3" in capsys.readouterr().out
    assert keras.backend.backend() != "torch" or not backbone.training
    backbone.predict(inputs, batch_size=3, verbose=0)
    assert capsys.readouterr().out == ""
    ends, callback = [], keras.callbacks.Callback()
    callback.on_predict_batch_end = lambda batch, logs: ends.append(batch)
    outputs = backbone.predict(inputs, batch_size=3, verbose=0, callbacks=[callback])
    assert_close(outputs["pooled_output"], expected, 1e-5)
    assert ends == [0, 1, 2]
    outputs = backbone.predict((batch for batch in batches(inputs)), steps=2, verbose=0)
    assert_close(outputs["pooled_output"], expected[:6], 1e-5)


@refused(
    ([({"token_ids": np.full((2, 3), 99)},)], "vocabulary"),
    ([({"ids": np.ones((2, 3), int)},)], "ids"),
    ({"token_ids": np.ones((0, 3), int)}, "at least one row"),
    ([], "at least one batch"),
)
def test_inputs_that_do_not_fit_are_refused(x):
    tiny_backbone().predict((b for b in x) if isinstance(x, list) else x, verbose=0)


@pytest.mark.each_backend
def test_outputs_follow_the_weights():
    task, inputs = tiny_classifier(), make_inputs()
    first = task.predict(inputs, verbose=0)
    task.head.weights[-1].assign([1.0, 2.0])  # It was 0.
    second = task.predict(inputs, verbose=0)
    assert_close(second, np.add(first, [1.0, 2.0]), 1e-5)
    task.compile(run_eagerly=keras.backend.backend() != "jax")  # It compiles each operation.
    assert_close(task.predict(inputs, verbose=0), second, 1e-5)


@pytest.mark.each_backend
def test_each_shape_is_compiled_once(noted):
    task = tiny_classifier()
    calls = noted(task.head, "call")
    for _ in range(3):
        task.predict(make_inputs(), verbose=0)
    assert len(calls) == (3 if keras.backend.backend() == "torch" else 1)


@pytest.mark.each_backend
def test_eight_threads_answer_as_one_does():
    task, other = tiny_classifier(), tiny_classifier()
    texts = [TEXTS[number:] + TEXTS[:number] for number in range(8)]
    # Another task answers first, so that the threads meet a function that is not compiled yet.
    other.set_weights(task.get_weights())
    expected = [[other.predict(texts[n][:k], verbose=0) for k in (1, 3, 8)] for n in range(8)]
    start = threading.Barrier(8)

    def answer(number):
        start.wait()
        for turn in range(ANSWERS):
            found = task.predict(texts[number][: (1, 3, 8)[turn % 3]], verbose=0)
            np.testing.assert_array_equal(found, expected[number][turn % 3])

    with futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(answer, range(8)))
    assert np.isfinite(task.get_weights()[0]).all()


@pytest.mark.each_backend
def test_outputs_and_losses_follow_what_compile_and_other_tasks_change():
    backbone = tiny_backbone()
    task, other = tiny_classifier(backbone), tiny_classifier(backbone)
    inputs = task.preprocessor(["a b c", "d"])

    def check():
        logits = task.predict(inputs, verbose=0)
        loss = task.evaluate(inputs, np.array([0, 1]), verbose=0)[0]
        rows = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        assert loss == pytest.approx(-(rows[0, 0] + rows[1, 1]) / 2, abs=1e-6)
        return logits

    outputs = [check()]
    task.head.pooling = "mean"
    task.compile()
    outputs.append(check())
    other.quantize("int8")
    outputs.append(check())
    assert all((one != next).any() for one, next in itertools.pairwise(outputs))


@pytest.mark.parametrize("is_padded", [False, True])
def test_attention_on_pytorch_has_a_mask_only_where_something_is_padded(is_padded, monkeypatch):
    backbone, masks, attend = tiny_backbone(), [], attention.attend
    inputs = {"token_ids": np.full((2, 6), 7), "padding_mask": np.ones((2, 6), "int32")}
    inputs["padding_mask"][1, 3:] = not is_padded

    def noted(query, key, value, mask, *args, **kwargs):
        masks.append(mask is not None)
        return attend(query, key, value, mask, *args, **kwargs)

    expected = backbone(as_tensors(inputs))
    monkeypatch.setattr(attention, "attend", noted)
    outputs = backbone.predict(inputs, verbose=0)
    assert masks == [is_padded or keras.backend.backend() != "torch"]
    assert_same_structure_close(outputs, expected)
