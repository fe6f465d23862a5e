"""Functions that keep little for their gradients equal the plain formulas."""

import functools

import keras
import numpy as np
import pytest
from checks import gradients, to_numpy
from keras import ops

import bert_keras
from bert_keras.engine import kernels as backends
from bert_keras.layers import attention
from bert_keras.layers.activations import gelu, gelu_tanh
from bert_keras.layers.attention import attend
from bert_keras.layers.dropout import Dropout
from bert_keras.layers.feed_forward import FeedForward
from bert_keras.layers.layer_norm import LayerNorm
from bert_keras.models.bert import bert_block

GENERATOR = np.random.default_rng(0)


def assert_like(ours, plain, *inputs, atol=2e-6):
    """Asserts equal values, and gradients equal up to `atol` times their largest element."""
    values = (to_numpy(function(*map(ops.convert_to_tensor, inputs))) for function in (ours, plain))
    np.testing.assert_allclose(*values, rtol=0, atol=1e-6)
    pairs = zip(gradients(ours, *inputs), gradients(plain, *inputs), strict=True)
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol * np.abs(expected).max())


@pytest.mark.parametrize(("function", "approximate"), [(gelu, False), (gelu_tanh, True)])
def test_gelu(function, approximate):
    x = np.concatenate([np.linspace(-15, 15, 601), [0.0, 1e-8, -1e-8]]).astype("float32")
    plain = functools.partial(ops.gelu, approximate=approximate)
    assert_like(function, lambda x: plain(x), x)
    (slope,) = gradients(lambda x: ops.sqrt(function(x) + 10.0), x)  # The sum of g(x) + 10.
    exact = np.float64(x)
    # Central differences in float64 of the formula that SciPy or NumPy gives.
    reference = _gelu_tanh if approximate else _gelu
    differences = (reference(exact + 1e-6) - reference(exact - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope, differences, rtol=0, atol=2e-5)


def _gelu(x):
    import scipy.special

    return x * scipy.special.ndtr(x)


def _gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("center", [True, False])
def test_layer_norm(center):
    x = GENERATOR.standard_normal((3, 5, 16)).astype("float32") * 3 + 1
    x[0, 0] = 2.0  # No variance.
    norm = LayerNorm(center=center, epsilon=1e-5)
    norm.build(x.shape)
    weights = [GENERATOR.standard_normal(16).astype("float32") for _ in norm.weights]

    def of(layer_class):
        def function(x, *weights):
            with keras.StatelessScope(zip(norm.weights, weights, strict=True)):
                return layer_class.call(norm, x)

        return function

    assert_like(of(LayerNorm), of(keras.layers.LayerNormalization), x, *weights, atol=1e-5)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "bfloat16"])
def test_half_precision_has_gradients_of_its_dtype(dtype):
    layer = keras.Sequential([keras.Input((8,)), LayerNorm(dtype=dtype)])
    layer.compile(keras.optimizers.SGD(1.0), loss=lambda _, y: ops.sum(ops.square(y), axis=-1))
    before = to_numpy(ops.cast(layer.layers[0].gamma, "float32"))
    layer.train_on_batch(np.arange(16.0).reshape(2, 8), np.zeros((2, 8)))
    after = to_numpy(ops.cast(layer.layers[0].gamma, "float32"))
    # Twice the squares of the normalized values, averaged over two rows.
    normal = (np.arange(8) - 3.5) / np.arange(8).std()
    np.testing.assert_allclose(before - after, 2 * normal**2, rtol=0.03, atol=0.03)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu"])
def test_feed_forward(activation):
    layer = FeedForward(12, 8, activation=activation)
    layer.build((None, None, 8))
    x = GENERATOR.standard_normal((2, 3, 8)).astype("float32")
    weights = [GENERATOR.standard_normal(w.shape).astype("float32") for w in layer.weights]

    def ours(x, *weights):
        with keras.StatelessScope(zip(layer.weights, weights, strict=True)):
            return layer(x, training=True)

    def plain(x, kernel, bias, output_kernel, output_bias):
        inner = ops.matmul(x, kernel) + bias
        gelu_of = functools.partial(ops.gelu, approximate=activation == "gelu_tanh")
        activated = ops.relu(inner) if activation == "relu" else gelu_of(inner)
        return ops.matmul(activated, output_kernel) + output_bias

    found, expected = (gradients(function, x, *weights) for function in (ours, plain))
    for ours_, plain_ in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours_, plain_, rtol=0, atol=1e-5 * np.abs(plain_).max())


@pytest.mark.parametrize("has_mask", [True, False])
def test_attention_with_dropout(has_mask):
    shape = (2, 6, 3, 4)
    inputs = [GENERATOR.standard_normal(shape).astype("float32") for _ in range(3)]
    mask = None
    if has_mask:
        mask = np.arange(6) < np.array([4, 0])[:, None]  # The second text has no tokens.
        mask = ops.convert_to_tensor(mask[:, None, None])
    dropout = Dropout(0.3)
    kept = dropout.mask(ops.convert_to_tensor(inputs[0]), (2, 3, 6, 6))
    dropout.mask = lambda *_: kept  # The same for both.

    def plain(query, key, value):
        probabilities = attention._probabilities(query, key, mask)
        return ops.einsum("bhqk,bkhd->bqhd", backends.masked(probabilities, kept, 0.3), value)

    def ours(*vectors):
        return attend(*vectors, mask, dropout, training=True)[0]

    assert_like(ours, plain, *inputs)
    query, key, value = inputs
    scores = np.einsum("bqhd,bkhd->bhqk", query, key) / 2
    scores = scores if mask is None else np.where(to_numpy(mask), scores, -1e30)
    exp = np.exp(scores - scores.max(-1, keepdims=True))
    # Dropout turns ones into 0 or the scale.
    ones = ops.ones((2, 3, 6, 6))
    dropped = exp / exp.sum(-1, keepdims=True) * to_numpy(backends.masked(ones, kept, 0.3))
    expected = np.einsum("bhqk,bkhd->bqhd", dropped, value)
    found = to_numpy(ours(*map(ops.convert_to_tensor, inputs)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_training_keeps_less():
    """Less is kept for the gradient: on JAX of norms and GELUs, on the others of attention."""
    if keras.backend.backend() == "jax":
        import jax

        x = GENERATOR.standard_normal((64, 32, 64)).astype("float32")
        layers = [(FeedForward(256, 64), LayerNorm()) for _ in range(6)]
        for layer in keras.tree.flatten(layers):
            layer.build(x.shape)
        variables = [v for layer in keras.tree.flatten(layers) for v in layer.variables]

        def loss(values, x):
            with keras.StatelessScope(zip(variables, values, strict=True)):
                for feed_forward, norm in layers:
                    x = norm(x + feed_forward(x, training=True))
            return ops.sum(x * x)

        values = [v.value for v in variables]
        memory = jax.jit(jax.grad(loss)).lower(values, x).compile().memory_analysis()
        # Each layer's input, the sum, and four times as much around the activation. Keras's layers
        # keep twice as much.
        assert memory.temp_size_in_bytes < 12 * 6 * x.nbytes
        return
    layers, shape = 6, (2, 256, 2, 2)
    inputs = [GENERATOR.standard_normal(shape).astype("float32") for _ in range(3)]
    dropouts = [Dropout(0.3) for _ in range(layers)]
    feed_forward = FeedForward(4096, 2)
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
        # Per probability a float and a byte, per inner value a float, and some small tensors.
        inner = 4 * 2 * 256 * 2 * 4096
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


@pytest.mark.once
def test_dropout_in_the_kernel_of_accelerators():
    """PyTorch's own function with dropout, which is not used on CPUs."""
    import torch

    torch.manual_seed(0)
    query, key, value = (torch.rand(2, 6, 3, 4) for _ in range(3))
    mask = (torch.arange(6) < torch.tensor([[4], [0]]))[:, None, None]
    plain = backends.fused_attention(query, key, value, mask)
    drawn = [
        backends.fused_attention(query, key, value, mask, dropout_rate=0.3) for _ in range(2000)
    ]
    assert not torch.equal(drawn[0], drawn[1])
    # Four deviations of the mean. The text without tokens attends to all keys equally.
    torch.testing.assert_close(torch.stack(drawn).mean(0), plain, rtol=0, atol=0.04)


@pytest.mark.once
def test_autocast_and_frozen_weights():
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


def test_options_of_keras_s_norm_still_work():
    x = GENERATOR.standard_normal((3, 5, 16)).astype("float32")
    # On PyTorch, Keras's layer fails with another axis.
    other = [{"axis": 1}] if keras.backend.backend() != "torch" else []
    for options in (*other, {"scale": False}, {"rms_scaling": True}, {}):
        ours, theirs = LayerNorm(**options), keras.layers.LayerNormalization(**options)
        np.testing.assert_allclose(to_numpy(ours(x)), to_numpy(theirs(x)), atol=1e-6)
        again = LayerNorm.from_config(ours.get_config())
        assert again.get_config() == ours.get_config()
