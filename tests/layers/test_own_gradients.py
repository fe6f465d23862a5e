"""Functions that keep little for their gradients equal the plain formulas."""

import functools

import keras
import numpy as np
import pytest
import scipy.special
from checks import assert_close, assert_like, cases, gradients, to_numpy
from keras import ops

import bert_keras
from bert_keras.engine import kernels
from bert_keras.layers.activations import gelu, gelu_tanh
from bert_keras.layers.attention import attend
from bert_keras.layers.dropout import Dropout
from bert_keras.layers.feed_forward import FeedForward
from bert_keras.layers.layer_norm import LayerNorm
from bert_keras.models.bert import bert_block

pytestmark = pytest.mark.once

GENERATOR = np.random.default_rng(0)


def exact_gelu(x):
    return x * scipy.special.ndtr(x)


def exact_gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@pytest.mark.each_backend
@pytest.mark.parametrize(("function", "exact"), [(gelu, exact_gelu), (gelu_tanh, exact_gelu_tanh)])
def test_gelu_has_the_values_and_slopes_of_its_formula(function, exact):
    x = np.concatenate([np.linspace(-15, 15, 601), [0.0, 1e-8, -1e-8]]).astype("float32")
    assert_like(function, lambda x: ops.gelu(x, approximate=function is gelu_tanh), x)
    (slope,) = gradients(lambda x: ops.sqrt(function(x) + 10.0), x)  # The sum of g(x) + 10.
    # Central differences in float64.
    differences = (exact(np.float64(x) + 1e-6) - exact(np.float64(x) - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope, differences, rtol=0, atol=4e-5)  # XLA's tanh.


@cases(
    pytest.param(True, False, marks=pytest.mark.each_backend),
    pytest.param(True, True, marks=pytest.mark.each_backend),
    (False, False),
)
def test_the_norm_has_the_values_and_gradients_of_keras_s(monkeypatch, center, is_on_a_gpu):
    monkeypatch.setattr(kernels, "has_accelerator", lambda: is_on_a_gpu)
    x = GENERATOR.standard_normal((3, 5, 16)).astype("float32") * 3 + 1
    x[0, 0] = 0.0  # No variance.
    norm = LayerNorm(center=center, epsilon=1e-5)
    norm.build(x.shape)
    weights = [GENERATOR.standard_normal(16).astype("float32") for _ in norm.weights]

    def of(layer_class):
        def function(x, *weights):
            with keras.StatelessScope(zip(norm.weights, weights, strict=True)):
                return layer_class.call(norm, x)

        return function

    assert_like(of(LayerNorm), of(keras.layers.LayerNormalization), x, *weights, atol=1e-5)
    # Equal values leave the bias. The formula of Keras 3.15, which JAX computes, is off by the
    # rounding of 2 / sqrt(1e-5) = 632, near which floats are 6e-5 apart.
    equal = to_numpy(of(LayerNorm)(ops.full((1, 1, 16), 2.0), *weights))[0, 0]
    np.testing.assert_allclose(equal, weights[1] if center else np.zeros(16), rtol=0, atol=3e-4)


@cases(pytest.param("mixed_bfloat16", marks=pytest.mark.each_backend), "bfloat16")
def test_half_precision_has_gradients_of_its_dtype(dtype):
    layer = keras.Sequential([keras.Input((8,)), LayerNorm(dtype=dtype)])
    layer.compile(keras.optimizers.SGD(1.0), loss=lambda _, y: ops.sum(ops.square(y), axis=-1))
    before = to_numpy(ops.cast(layer.layers[0].gamma, "float32"))
    layer.train_on_batch(np.arange(16.0).reshape(2, 8), np.zeros((2, 8)))
    after = to_numpy(ops.cast(layer.layers[0].gamma, "float32"))
    # Twice the squares of the normalized values, averaged over two rows.
    normal = (np.arange(8) - 3.5) / np.arange(8).std()
    np.testing.assert_allclose(before - after, 2 * normal**2, rtol=0.03, atol=0.03)


@cases(pytest.param("gelu", marks=pytest.mark.each_backend), "gelu_tanh", "relu")
def test_feed_forward_has_the_gradients_of_its_formula(activation):
    layer = FeedForward(12, 8, activation=activation)
    layer.build((None, None, 8))
    x = GENERATOR.standard_normal((2, 3, 8)).astype("float32")
    weights = [GENERATOR.standard_normal(w.shape).astype("float32") for w in layer.weights]
    activate = {"relu": ops.relu, "gelu": functools.partial(ops.gelu, approximate=False)}
    activate = activate.get(activation, ops.gelu)

    def ours(x, *weights):
        with keras.StatelessScope(zip(layer.weights, weights, strict=True)):
            return layer(x, training=True)

    def plain(x, kernel, bias, output_kernel, output_bias):
        return ops.matmul(activate(ops.matmul(x, kernel) + bias), output_kernel) + output_bias

    assert_like(ours, plain, x, *weights, atol=1e-5, value_atol=1e-4)


def program_of_blocks(norm, num_blocks, shape):
    """Returns the program of JAX for the gradient of feed-forward networks, each with a norm."""
    import jax

    x = GENERATOR.standard_normal(shape).astype("float32")
    layers = [(FeedForward(4 * shape[-1], shape[-1]), norm()) for _ in range(num_blocks)]
    for layer in keras.tree.flatten(layers):
        layer.build(x.shape)
    variables = [v for layer in keras.tree.flatten(layers) for v in layer.variables]

    def loss(values, x):
        with keras.StatelessScope(zip(variables, values, strict=True)):
            for feed_forward, norm in layers:
                x = norm(x + feed_forward(x, training=True))
        return ops.sum(x * x)

    return jax.jit(jax.grad(loss)).lower([v.value for v in variables], x).compile()


if keras.backend.backend() == "jax":

    @pytest.mark.each_backend
    def test_each_block_adds_as_much_to_a_program():
        """XLA computes small gradients of Keras's norms again in all blocks below."""

        def growth(norm):
            programs = [program_of_blocks(norm, number, (8, 16, 24)) for number in (2, 3, 4)]
            sizes = [program.as_text().count(" = ") for program in programs]
            return (sizes[2] - sizes[1]) / (sizes[1] - sizes[0])

        assert growth(LayerNorm) < 1.05 < growth(keras.layers.LayerNormalization)


@pytest.mark.each_backend
def test_training_keeps_less_than_keras_s_layers():
    """Less is kept for the gradient: on JAX of norms and GELUs, on the others of attention."""
    if keras.backend.backend() == "jax":
        memory = program_of_blocks(LayerNorm, 6, (64, 32, 64)).memory_analysis()
        # Each layer's input, the sum, and four times as much around the activation. Keras's layers
        # keep twice as much.
        assert memory.temp_size_in_bytes < 12 * 6 * (64 * 32 * 64 * 4)
        return
    layers, shape = 2, (2, 256, 2, 2)
    inputs = [GENERATOR.standard_normal(shape).astype("float32") for _ in range(3)]
    dropouts = [Dropout(0.3) for _ in range(layers)]
    feed_forward = FeedForward(256, 2)
    feed_forward.build((None, None, 2))

    def stack(query, key, value):
        for dropout in dropouts:
            value = attend(query, key, value, None, dropout, training=True)[0]
            value = value + feed_forward(value, training=True)
        return value

    if keras.backend.backend() == "torch":
        import torch

        sizes = {}
        with torch.autograd.graph.saved_tensors_hooks(
            lambda x: sizes.update({x.data_ptr(): x.nbytes}) or x, lambda x: x
        ):
            stack(*(torch.tensor(x, requires_grad=True) for x in inputs))
        # Per probability a float and a byte, per inner value two floats, and some small tensors.
        inner = 2 * 4 * 2 * 256 * 2 * 256
        assert sum(sizes.values()) < 1.1 * layers * (5 * 2 * 2 * 256 * 256 + inner)
        return
    import tensorflow as tf

    @tf.function
    def traced(*inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(stack(*inputs) ** 2)
        return tape.gradient(loss, inputs)

    graph = traced.get_concrete_function(*map(tf.constant, inputs)).graph
    operations = graph.get_operations()
    softmaxes = [op for op in operations if op.type == "Softmax"]
    # Half of them are computed in the backward pass and wait for it. The same holds for GELUs.
    assert [_waits(op) for op in softmaxes] == [False] * layers + [True] * layers
    gelus = [_waits(op) for op in operations if op.type in ("Erf", "Erfc")]
    assert gelus.count(False) == layers and gelus.count(True) == layers

    # A norm's gradient is computed from its input. Keras's reads what the forward pass computed.
    for norm, is_derived in ((LayerNorm(), False), (keras.layers.LayerNormalization(), True)):
        norm.build(shape)
        program = tf.function(lambda x, norm=norm: tf.gradients(norm(x), x))
        graph = program.get_concrete_function(tf.constant(inputs[0])).graph
        assert is_derived == ("RsqrtGrad" in {op.type for op in graph.get_operations()})


def _waits(operation):
    """Whether any tensor that it is computed from waits for another operation."""
    seen, left = set(), [operation]
    while left:
        operation = left.pop()
        if operation.control_inputs and operation.type == "Identity":
            return True
        for tensor in operation.inputs:
            if tensor.op not in seen and tensor.op.type != "IdentityN":
                seen.add(tensor.op)
                left.append(tensor.op)
    return False


def test_autocast_and_frozen_weights_have_the_right_gradients():
    import torch

    block = bert_block(bert_keras.BertBackbone(9, 1, 2, 16, 32), "block")
    block.build()
    x = torch.rand(4, 256, 16, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        block(x, training=True)[0].sum().backward()
    assert x.grad.abs().max() > 0
    block.feed_forward.output_dense.trainable = False
    block(x, training=True)[0].sum().backward()
    gradients = [w.value.grad for w in block.feed_forward.output_dense.weights]
    before = [g.clone() for g in gradients]
    block(x, training=True)[0].sum().backward()
    assert all(torch.equal(a, b) for a, b in zip(before, gradients, strict=True))


def test_other_activations_are_unchanged():
    slope = keras.Variable(0.5)
    layer = FeedForward(12, 8, activation=lambda x: ops.maximum(x, slope * x))
    layer.build((None, None, 8))
    model = keras.Sequential([keras.Input((None, 8)), layer])
    assert model.predict(np.ones((2, 3, 8), "float32"), verbose=0).shape == (2, 3, 8)
    assert gelu(keras.Input((3,))).shape == gelu_tanh(keras.Input((3,))).shape == (None, 3)


# On PyTorch, Keras's layer fails with another axis.
OTHER_AXIS = [{"axis": 1}] if keras.backend.backend() != "torch" else []


@pytest.mark.parametrize("options", [*OTHER_AXIS, {"scale": False}, {"rms_scaling": True}, {}])
def test_options_of_keras_s_norm_still_work(options):
    x = GENERATOR.standard_normal((3, 5, 16)).astype("float32")
    ours, theirs = LayerNorm(**options), keras.layers.LayerNormalization(**options)
    assert_close(ours(x), theirs(x))
    if "axis" not in options:  # The last axis, whatever the rank of the first inputs.
        assert_close(ours(x[0]), ours(x)[0])
    assert LayerNorm.from_config(ours.get_config()).get_config() == ours.get_config()


@pytest.mark.each_backend
def test_dropout_has_the_same_values_and_gradients_on_a_gpu_of_jax(monkeypatch):
    found = []
    for is_on_a_gpu in (False, True):
        monkeypatch.setattr(kernels, "has_accelerator", lambda answer=is_on_a_gpu: answer)
        layer = Dropout(0.3, seed=5)
        x = np.arange(1, 41, dtype="float32").reshape(2, 4, 5)
        (gradient,) = gradients(lambda x, layer=layer: layer(x, training=True), x)
        found.append(gradient)
    np.testing.assert_array_equal(*found)
    assert (found[0] == 0).any() and (found[0] != 0).any()
