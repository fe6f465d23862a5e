"""What a backend computes in its own way has the same values and gradients."""

import itertools

import keras
import numpy as np
import pytest
from checks import assert_close, cases, gradients
from keras import ops

from bert_keras.engine import kernels as backends
from bert_keras.engine.fast_layer_call import outer_call
from bert_keras.engine.kernels import dense, heads_first, probabilities, product

GENERATOR = np.random.default_rng(0)


def arrays(*shapes):
    return [GENERATOR.standard_normal(shape).astype("float32") for shape in shapes]


def assert_same_gradients(ours, theirs, inputs, rtol=1e-4, atol=1e-4):
    pairs = zip(gradients(ours, *inputs), gradients(theirs, *inputs), strict=True)
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol, atol)


@pytest.mark.parametrize("shape", [(5, 8), (2, 3, 8), (4, 128, 8), (0, 8)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_values_and_gradients_are_those_of_the_product_and_the_bias(shape, has_bias):
    inputs = arrays(shape, (8, 6), (6,))[: 2 + has_bias]

    def plain(x, kernel, bias=0.0):
        return ops.matmul(x, kernel) + bias

    assert_close(dense(*inputs), plain(*inputs), 1e-5)
    assert_same_gradients(dense, plain, inputs)


if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

    @cases(((2, None, 8), 0), ((None, None, 8), 3), ((None, 8), 0))
    def test_a_graph_for_any_length_computes_few_shapes(shape, num_operations):
        x, kernel, bias = arrays((2, 3, 8)[-len(shape) :], (8, 6), (6,))
        function = tf.function(lambda x: dense(x, kernel, bias), [tf.TensorSpec(shape)])
        assert_close(function(x), x @ kernel + bias, 1e-5)
        operations = [o.type for o in function.get_concrete_function().graph.get_operations()]
        shapes = ("Shape", "StridedSlice", "ConcatV2", "Pack", "Prod", "GatherV2")
        assert sum(map(operations.count, shapes)) == num_operations

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
    def test_heads_are_swapped_as_integers(dtype):
        x = tf.cast(arrays((2, 3, 4, 5))[0], dtype)
        with tf.GradientTape() as tape:
            tape.watch(x)
            swapped = heads_first(x)
            loss = tf.reduce_sum(swapped**3)
        assert tf.reduce_all(swapped == tf.transpose(x, [0, 2, 1, 3]))
        assert tf.reduce_all(tape.gradient(loss, x) == 3 * x**2)
        graph = tf.function(heads_first).get_concrete_function(x).graph
        types = [o.inputs[0].dtype for o in graph.get_operations() if o.type == "Transpose"]
        assert len(types) == 1 and types[0].is_integer

    @pytest.mark.parametrize(("length", "own"), [(16, "BatchMatMulV3"), (256, "BatchMatMulV2")])
    def test_small_attentions_leave_onednn(length, own):
        """TensorFlow has no kernel of oneDNN for the third version of the product."""

        def attention(query, key, value):
            return product(probabilities(query, key), value)

        def formula(query, key, value):
            return tf.nn.softmax(query @ tf.transpose(key, [0, 1, 3, 2]) / 4) @ value

        inputs = [tf.constant(x) for x in arrays(*[(2, 1, length, 16)] * 3)]
        expected = formula(*inputs)
        np.testing.assert_allclose(attention(*inputs), expected, rtol=1e-4, atol=1e-5)
        assert_same_gradients(attention, formula, inputs, atol=1e-5)
        # A graph for any length chooses when it runs, if it does not train.
        any_length = [tf.TensorSpec((2, 1, None, 16))] * 3
        with outer_call(training=False):
            predicting = tf.function(attention, any_length).get_concrete_function()
        training = tf.function(attention, any_length).get_concrete_function()
        assert_close(predicting(*inputs), expected, 1e-5)
        static = tf.function(attention).get_concrete_function(*inputs)
        assert products_of(static) == {own}
        assert products_of(training) == {"BatchMatMulV2"}
        assert products_of(predicting) == {"BatchMatMulV2", "BatchMatMulV3"}

    def products_of(function):
        """Returns the names of the operations of a graph that multiply matrices."""
        graph = function.graph.as_graph_def()
        nodes = itertools.chain(graph.node, *(f.node_def for f in graph.library.function))
        return {node.op for node in nodes if node.op.startswith("BatchMatMul")}


@pytest.mark.bounded("Half a unit in the last of 8 bits is what rounding once can change.")
def test_bfloat16_is_rounded_once():
    x, kernel = (ops.cast(array, "bfloat16") for array in arrays((3, 40, 64), (64, 48)))
    found = dense(x, kernel)
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    exact = ops.convert_to_numpy(ops.matmul(ops.cast(x, "float32"), ops.cast(kernel, "float32")))
    found = ops.convert_to_numpy(ops.cast(found, "float32"))
    # Half a unit in the last of 8 bits, plus the rounding of the sums.
    np.testing.assert_allclose(found, exact, rtol=2**-8 + 1e-4, atol=1e-4)


@pytest.mark.bounded("Inputs, product and gradients are each rounded to 8 bits.")
def test_bfloat16_has_gradients():
    inputs = arrays((2, 16, 8), (8, 6))

    def low(*inputs):
        return ops.cast(dense(*(ops.cast(x, "bfloat16") for x in inputs)), "float32")

    pairs = zip(gradients(low, *inputs), gradients(ops.matmul, *inputs), strict=True)
    for ours, theirs in pairs:
        # Five roundings, by 2**-9 of a number each, and sums of terms with both signs.
        np.testing.assert_allclose(ours, theirs, atol=0.02 * np.abs(theirs).max())


@pytest.mark.parametrize("truncates", [True, False])
def test_only_bfloat16_products_are_rounded_afterwards(truncates, monkeypatch):
    taken = []
    monkeypatch.setattr(backends, "_tensorflow_truncates", lambda: truncates)
    monkeypatch.setattr(backends, "_rounded_product", lambda *x: taken.append(x) or x[0])
    for dtype in ("float32", "bfloat16", "float16"):
        dense(ops.ones((2, 3, 4), dtype), ops.ones((4, 4), dtype))
    assert len(taken) == {"jax": 1, "tensorflow": truncates}.get(keras.backend.backend(), 0)
