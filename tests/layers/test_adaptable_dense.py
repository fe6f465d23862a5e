"""AdaptableDense: a plain Dense, the formula, a step by hand, merging and files."""

import keras
import numpy as np
import pytest

from bert_keras.layers.adaptable_dense import AdaptableDense

INPUT_DIM, UNITS, RANK, ALPHA = 6, 5, 2, 3.0
x = np.random.default_rng(0).normal(size=(4, 3, INPUT_DIM)).astype("float32")


def array(value):
    return keras.ops.convert_to_numpy(value)


def adapted_layer(b=0.1, **options):
    layer = AdaptableDense(UNITS, bias_initializer="ones", **options)
    layer.build((None, None, INPUT_DIM))
    layer.add_adapter(RANK, ALPHA)
    noise = np.random.default_rng(1).normal(size=(RANK, UNITS))
    layer.lora_b.assign(b * noise)
    return layer


def test_without_an_adapter_it_is_a_dense_layer_in_numbers_config_and_variables():
    layer, dense = (
        AdaptableDense(UNITS, "tanh", name="d"),
        keras.layers.Dense(UNITS, "tanh", name="d"),
    )
    for either in (layer, dense):
        either.build((None, None, INPUT_DIM))
    dense.kernel.assign(layer.kernel)
    np.testing.assert_array_equal(array(layer(x)), array(dense(x)))
    assert layer.get_config() == dense.get_config()
    assert [v.path for v in layer.weights] == [v.path for v in dense.weights]


@pytest.mark.parametrize("activation", [None, "gelu"])
def test_output_is_the_formula_with_the_adapter_inside_the_activation(activation):
    layer = adapted_layer(activation=activation)
    kernel, a, b = array(layer.kernel), array(layer.lora_a), array(layer.lora_b)
    expected = x @ kernel + ALPHA / RANK * (x @ a @ b) + 1
    if activation:
        expected = array(keras.activations.gelu(expected))
    np.testing.assert_allclose(array(layer(x)), expected, atol=1e-6)
    assert np.abs(x @ a @ b).max() > 1e-2


def test_a_new_adapter_changes_nothing():
    layer = AdaptableDense(UNITS, "relu")
    layer.build((None, None, INPUT_DIM))
    before = array(layer(x))
    layer.add_adapter(RANK, ALPHA)
    np.testing.assert_array_equal(array(layer(x)), before)
    a = array(layer.lora_a)
    assert 0 < np.abs(a).max() <= INPUT_DIM**-0.5
    np.testing.assert_array_equal(array(layer.lora_b), np.zeros((RANK, UNITS)))


def test_one_step_of_gradient_descent_is_the_formula_derived_by_hand():
    layer = adapted_layer(b=0.5)
    layer.bias.trainable = layer._kernel.trainable = False
    kernel, bias, a, b = (array(v).copy() for v in layer.weights)
    model = keras.Sequential([layer])
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=False)
    target = np.zeros((4, 3, UNITS), "float32")
    model.train_on_batch(x, target)

    rows, scale = x.reshape(-1, INPUT_DIM), ALPHA / RANK
    output = rows @ kernel + scale * rows @ a @ b + bias
    gradient = 2 * output / output.size
    step_a = 0.1 * scale * rows.T @ gradient @ b.T
    step_b = 0.1 * scale * a.T @ rows.T @ gradient
    np.testing.assert_allclose(array(layer.lora_a), a - step_a, atol=1e-6)
    np.testing.assert_allclose(array(layer.lora_b), b - step_b, atol=1e-6)
    np.testing.assert_array_equal(array(layer.kernel), kernel)
    np.testing.assert_array_equal(array(layer.bias), bias)


def test_merging_keeps_the_output_and_leaves_a_plain_layer():
    layer = adapted_layer(activation="tanh")
    before = array(layer(x))
    layer.merge_adapter()
    np.testing.assert_allclose(array(layer(x)), before, atol=1e-6)
    assert not layer.has_adapter
    assert [v.name for v in layer.weights] == ["kernel", "bias"]
    with pytest.raises(ValueError, match="has none"):
        layer.merge_adapter()


def test_a_merged_layer_takes_a_new_adapter():
    layer = adapted_layer()
    layer.merge_adapter()
    before = array(layer(x))
    layer.add_adapter(1, 1.0)
    np.testing.assert_array_equal(array(layer(x)), before)
    assert [v.path.rpartition("/")[2] for v in layer.weights[2:]] == ["lora_a", "lora_b"]


def test_a_file_holds_the_matrices_and_not_their_product():
    layer, store = adapted_layer(), {}
    layer.save_own_variables(store)
    assert sorted(store) == ["0", "1", "lora_a", "lora_b"]
    again = adapted_layer(b=0.7)
    again.load_own_variables(store)
    for old, new in zip(layer.weights, again.weights, strict=True):
        np.testing.assert_array_equal(array(new), array(old))


def test_a_layer_with_an_adapter_and_one_without_do_not_share_files():
    adapted, plain = adapted_layer(), AdaptableDense(UNITS)
    plain.build((None, None, INPUT_DIM))
    for source, other in ((adapted, plain), (plain, adapted)):
        store = {}
        source.save_own_variables(store)
        with pytest.raises(ValueError, match="variables"):
            other.load_own_variables(store)


def test_without_an_adapter_it_can_be_quantized():
    layer = AdaptableDense(6)
    x = np.random.default_rng(0).standard_normal((5, 8)).astype("float32")
    before = keras.ops.convert_to_numpy(layer(x))
    layer.quantize("int8")
    assert layer.quantization_mode == "int8"
    after = keras.ops.convert_to_numpy(layer(x))
    assert 0 < np.abs(after - before).max() < 0.05 * np.abs(before).max()


def test_adapters_need_a_built_and_unquantized_layer_without_one():
    with pytest.raises(ValueError, match="built=False"):
        AdaptableDense(UNITS).add_adapter(RANK, ALPHA)
    layer = adapted_layer()
    with pytest.raises(ValueError, match="adapter=True"):
        layer.add_adapter(RANK, ALPHA)
    with pytest.raises(ValueError, match="Merge"):
        layer.quantize("int8")


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "bfloat16"])
def test_low_precision_computes_and_merges(policy):
    layer = adapted_layer(dtype=policy)
    assert keras.backend.standardize_dtype(layer.lora_a.dtype) == layer.variable_dtype
    output = layer(x)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    before = array(keras.ops.cast(output, "float32"))
    layer.merge_adapter()
    after = array(keras.ops.cast(layer(x), "float32"))
    np.testing.assert_allclose(after, before, atol=0.05)
