"""What `engine/` corrects is still wrong in Keras, its backends or Python.

Each test shows one defect without this package. When it fails, the defect is gone, and so may be
the file of `engine/` that names the test.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import keras
import numpy as np
import pytest
from checks import cases

import bert_keras.engine
from bert_keras.engine import keras_internals

pytestmark = pytest.mark.once

BACKEND = keras.backend.backend()
ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = sorted(pathlib.Path(bert_keras.engine.__file__).parent.glob("[!_]*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_names_the_tests_that_fail_when_it_can_go(path):
    docstring = path.read_text(encoding="utf-8").split('"""')[1]
    tests = re.findall(r"`(?:(tests/\S+\.py)::)?(test_\w+)`", docstring)
    assert "Why: " in docstring and tests
    for file, name in tests:
        text = (ROOT / file if file else pathlib.Path(__file__)).read_text(encoding="utf-8")
        assert f"def {name}(" in text


def small_model(*layers):
    model = keras.Sequential([keras.Input((3,)), *(layers or [keras.layers.Dense(1)])])
    model.compile("adam", "mse")
    return model


X, Y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")


@pytest.mark.each_backend
@cases(("evaluate", (X, Y)), ("predict", (X,)))
def test_an_exception_in_a_loop_of_keras_loses_weights(method, data):
    def fail(batch, logs=None):
        if batch == 2:
            raise OSError("the disk is full")

    model = small_model()
    callback = keras.callbacks.LambdaCallback()
    callback.on_test_batch_begin = callback.on_predict_batch_begin = fail
    with pytest.raises(OSError, match="disk"):
        getattr(model, method)(*data, batch_size=2, verbose=0, callbacks=[callback])
    try:
        is_lost = not np.isfinite(model.get_weights()[0]).all()
    except TypeError:
        is_lost = True
    assert is_lost == (BACKEND == "jax")


def test_keras_s_save_destroys_the_old_file_when_it_fails(tmp_path):
    class Failing(keras.layers.Dense):
        def save_own_variables(self, store):
            raise OSError("the disk is full")

    small_model().save(path := tmp_path / "model.keras")
    before = path.read_bytes()
    with pytest.raises(OSError, match="disk"):
        small_model(Failing(1)).save(path)
    assert path.read_bytes() != before


def test_python_replaces_no_folder_that_holds_files(tmp_path):
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    with pytest.raises(OSError, match="not empty"):
        os.replace(tmp_path / "new", tmp_path / "old")


def test_keras_makes_the_model_of_a_file_before_it_looks_at_the_weights(
    tmp_path, noted, changed_archive
):
    small_model().save(path := tmp_path / "small.keras")
    units, built = (b'"units": 1,', b'"units": 12345,'), noted(keras.layers.Dense, "build")
    large = changed_archive(path, lambda name, content: content.replace(*units))
    with pytest.raises(ValueError, match="12345"):
        keras.saving.load_model(large)
    assert built[0].kernel.shape == (3, 12345)


@keras.saving.register_keras_serializable("test_still_needed")
class Outer(keras.Model):
    """A model that builds its layer in the constructor."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(4)
        self.dense.build((None, 3))
        self.built = True

    def call(self, inputs):
        return self.dense(inputs)


def test_keras_loads_no_model_whose_inner_layer_is_quantized(tmp_path):
    model = Outer()
    model.quantize("int8")
    model.save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="could not be loaded"):
        keras.models.load_model(tmp_path / "model.keras")


def test_keras_has_no_public_names_for_what_we_read():
    """The names of `keras_internals`: each is private, and is there."""
    model, optimizer = small_model(keras.layers.Dense(2)), keras.optimizers.SGD()
    model.compile(optimizer, "mse")
    assert {*keras_internals.all_layers(model)} > {*model.layers}
    assert keras_internals.takes_training(model)
    assert keras_internals.tracker_of(model) and keras_internals.schedule_of(optimizer) is None
    assert {*map(id, keras_internals.own_metrics(model))} <= {*map(id, model.metrics)}
    metric = keras.metrics.MeanMetricWrapper(keras.losses.mean_squared_error)
    assert keras_internals.function_of(metric) is keras.losses.mean_squared_error
    assert keras_internals.values(model.weights)[0] is model.weights[0].value
    if keras.backend.backend() == "torch":
        assert keras_internals.is_plain(vars(model))
        model.register_forward_hook(print)
        assert not keras_internals.is_plain(vars(model))
    public = {name for x in (model, optimizer, keras.Variable(0.0)) for name in dir(x)}
    names = {"flatten_layers", "call_has_training_arg", "remat_mode", "get_own_metrics"}
    assert not public & {*names, "tracker", "track_variables"}


@pytest.mark.each_backend
def test_keras_looks_under_another_name_for_what_no_layer_saves(monkeypatch):
    from keras.src.saving.saving_lib import get_attr_skipset

    remembered = get_attr_skipset("Layer")
    assert remembered is keras_internals.scopes.saving_attr_skiplist_Layer
    monkeypatch.delattr(keras_internals.scopes, "saving_attr_skiplist_Layer")
    first, second = (get_attr_skipset("Layer") for _ in range(2))
    assert first is not second and first == second
    # Nothing more is skipped. Python makes the annotations of a class when they are asked for, and
    # a library may have given PyTorch's modules, which layers are, a method since.
    assert remembered - first <= {"__annotations__"}


@pytest.mark.each_backend
def test_keras_computes_with_variables_that_were_replaced():
    dense = keras.layers.Dense(1)
    model = small_model(dense)
    before = model.predict(X, verbose=0)
    dense.enable_lora(1)
    for weight in (dense.lora_kernel_a, dense.lora_kernel_b):
        weight.assign(np.ones(weight.shape))
    is_stale = np.array_equal(model.predict(X, verbose=0), before)
    assert is_stale == (BACKEND == "tensorflow")


def test_keras_s_adamw_is_many_passes_over_memory_on_pytorch():
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    operations = []

    class Record(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            operations.append(str(function))
            return function(*args, **(kwargs or {}))

    model = small_model()
    optimizer = keras.optimizers.AdamW()
    optimizer.build(model.trainable_variables)
    gradients = [torch.ones_like(variable.value) for variable in model.trainable_variables]
    with Record():
        optimizer.apply(gradients, model.trainable_variables)
    assert not any("fused" in name for name in operations)
    assert sum("foreach" in name for name in operations) > 5


@pytest.mark.each_backend
def test_keras_squares_the_gradient_of_a_repeated_token_before_it_adds():
    if BACKEND != "tensorflow":  # Others have no sparse gradients.
        return
    import tensorflow as tf

    table = keras.Variable(np.ones((3, 1), "float32"))
    optimizer = keras.optimizers.Adam(beta_2=0.5)
    optimizer.build([table])
    twice = tf.IndexedSlices(tf.ones((2, 1)), tf.constant([1, 1]), (3, 1))
    optimizer.apply([twice], [table])
    [velocity] = [v for v in optimizer.variables if "velocity" in v.path]
    assert velocity.numpy()[1, 0] == pytest.approx(0.5 * (1 + 1))  # Not `0.5 * (1 + 1) ** 2`.


@pytest.mark.each_backend
def test_keras_lets_tensorflow_tune_its_data():
    if BACKEND != "tensorflow":
        return
    from keras.src.trainers import data_adapters

    adapter = data_adapters.get_data_adapter(X, Y)
    assert adapter.get_tf_dataset().options().autotune.enabled is not False


def test_keras_s_dropout_reads_pytorch_s_global_generator():
    import torch

    before = torch.get_rng_state()
    keras.layers.Dropout(0.5)(X, training=True)
    assert not torch.equal(torch.get_rng_state(), before)


def test_jax_keeps_no_compiled_programs_by_itself():
    environment = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    code = "import jax; assert jax.config.jax_compilation_cache_dir is None"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_a_blocked_signal_interrupts_the_main_thread_by_way_of_another():
    is_ready, is_over = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: is_ready.set() or is_over.wait())
    thread.start()
    is_ready.wait()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, handler)
        is_over.set()
        thread.join()


@pytest.mark.each_backend
def test_keras_s_remat_around_dropout_is_wrong():
    if BACKEND == "torch":  # It restores the global generator.
        return
    x, dropout = keras.ops.ones((64, 64)), keras.layers.Dropout(0.5, seed=1)
    rematerialized = keras.remat(lambda x: dropout(x, training=True))
    if BACKEND == "jax":
        import jax

        jax.grad(lambda x: keras.ops.sum(rematerialized(x)))(x)
        with pytest.raises(jax.errors.UnexpectedTracerError):
            dropout(x, training=True)  # Its seed is a tracer of the second pass.
        return
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(x)
        output = rematerialized(x)
    assert not np.array_equal(output, tape.gradient(output, x))


def test_keras_s_attention_takes_no_bias_beside_a_mask_on_pytorch():
    x = keras.ops.ones((1, 2, 1, 4))
    bias, mask = keras.ops.zeros((1, 1, 2, 2)), keras.ops.ones((1, 1, 2, 2), "bool")
    with pytest.raises(ValueError, match="Only one of"):
        keras.ops.dot_product_attention(x, x, x, bias=bias, mask=mask)


def test_keras_s_layer_call_runs_a_hundred_functions_on_pytorch():
    layer, x, calls = keras.layers.Dropout(0.1), keras.ops.ones((2, 3)), []
    layer(x)
    sys.setprofile(lambda frame, event, argument: calls.append(event == "call"))
    try:
        layer(x)
    finally:
        sys.setprofile(None)
    assert sum(calls) > 100


def test_keras_s_steps_on_pytorch_run_their_python_code_for_each_batch():
    calls = []

    class Counted(keras.layers.Dense):
        def call(self, inputs):
            calls.append(1)
            return super().call(inputs)

    model, counts = small_model(Counted(1)), []
    for _ in range(4):
        model.train_on_batch(X, Y)
        counts.append(len(calls))
    assert counts[-1] >= counts[0] + 3


def test_keras_averages_unequal_batches_equally():
    ends = []
    for steps, size in ((None, 2), (2, 1)):
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
        loss = keras.losses.MeanSquaredError("mean_with_sample_weight")
        model.compile(keras.optimizers.SGD(0.1, gradient_accumulation_steps=steps), loss)
        model.set_weights([np.zeros((1, 1))])
        weights = np.array([1.0, 9.0])
        x, y = np.ones((2, 1)), np.array([[0.0], [1.0]])
        model.fit(x, y, size, sample_weight=weights, shuffle=False, verbose=0)
        ends.append(float(model.get_weights()[0][0, 0]))
    np.testing.assert_allclose(ends, [0.2 * 0.9, 0.2 * 0.5], atol=1e-6)


def test_keras_exports_no_lstm_of_any_length_from_pytorch():
    import torch
    from torch.export import Dim, export

    layer = keras.layers.LSTM(2, return_sequences=True)
    layer.build((None, None, 3))

    class Program(torch.nn.Module):
        def forward(self, x):
            return layer(x)

    free = ({0: Dim("batch"), 1: Dim("steps")},)
    with pytest.raises(Exception, match="steps"):
        export(Program(), (torch.ones(2, 5, 3),), dynamic_shapes=free, strict=False)
