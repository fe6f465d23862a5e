"""AdaptableDense: a plain Dense, the formula, a step by hand, merging and files."""

import keras
import numpy as np
import pytest
from checks import assert_close, refusals, to_numpy

from bert_keras.layers.adaptable_dense import AdaptableDense

pytestmark = pytest.mark.once

INPUT_DIM, UNITS, RANK, ALPHA = 6, 5, 2, 3.0
x = np.random.default_rng(0).normal(size=(4, 3, INPUT_DIM)).astype("float32")


def plain_layer(make=AdaptableDense, **options):
    layer = make(UNITS, bias_initializer="ones", **options)
    layer.build((None, None, INPUT_DIM))
    return layer


def adapted_layer(b=0.1, **options):
    layer = plain_layer(**options)
    layer.add_adapter(RANK, ALPHA)
    noise = np.random.default_rng(1).normal(size=(RANK, UNITS))
    layer.lora_b.assign(b * noise)
    return layer


def test_without_an_adapter_it_is_a_dense_layer_in_numbers_config_and_variables():
    options = {"activation": "tanh", "name": "d"}
    layer, dense = plain_layer(**options), plain_layer(keras.layers.Dense, **options)
    dense.kernel.assign(layer.kernel)
    assert_close(layer(x), dense(x))  # PyTorch adds the bias within the product.
    assert layer.get_config() == dense.get_config()
    assert [v.path for v in layer.weights] == [v.path for v in dense.weights]


@pytest.mark.each_backend
@pytest.mark.parametrize("activation", [None, "gelu"])
def test_output_is_the_formula_with_the_adapter_inside_the_activation(activation):
    layer = adapted_layer(activation=activation)
    kernel, bias, a, b = map(to_numpy, layer.weights)
    expected = x @ kernel + ALPHA / RANK * (x @ a @ b) + bias
    if activation:
        expected = keras.activations.gelu(expected)
    assert_close(layer(x), expected)
    assert np.abs(x @ a @ b).max() > 1e-2


def test_a_new_adapter_changes_nothing_also_in_a_merged_layer():
    merged = adapted_layer()
    merged.merge_adapter()
    for layer in (plain_layer(activation="relu"), merged):
        before = to_numpy(layer(x))
        layer.add_adapter(RANK, ALPHA)
        assert_close(layer(x), before, 0)
        assert 0 < np.abs(to_numpy(layer.lora_a)).max() <= INPUT_DIM**-0.5
        assert_close(layer.lora_b, np.zeros((RANK, UNITS)), 0)
        assert [v.path.rpartition("/")[2] for v in layer.weights[2:]] == ["lora_a", "lora_b"]


@pytest.mark.each_backend
def test_one_step_of_gradient_descent_is_the_formula_derived_by_hand():
    layer = adapted_layer(b=0.5)
    layer.bias.trainable = layer._kernel.trainable = False
    kernel, bias, a, b = (to_numpy(v).copy() for v in layer.weights)
    model = keras.Sequential([layer])
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=False)
    model.train_on_batch(x, np.zeros((4, 3, UNITS), "float32"))

    rows, scale = x.reshape(-1, INPUT_DIM), ALPHA / RANK
    output = rows @ kernel + scale * rows @ a @ b + bias
    gradient = 2 * output / output.size
    assert_close(layer.lora_a, a - 0.1 * scale * rows.T @ gradient @ b.T)
    assert_close(layer.lora_b, b - 0.1 * scale * a.T @ rows.T @ gradient)
    assert_close(layer.kernel, kernel, 0)
    assert_close(layer.bias, bias, 0)


@pytest.mark.parametrize("makers", [(adapted_layer, plain_layer), (plain_layer, adapted_layer)])
def test_a_layer_with_an_adapter_and_one_without_do_not_share_files(makers):
    source, other = (make() for make in makers)
    store = {}
    source.save_own_variables(store)
    with pytest.raises(ValueError, match="variables"):
        other.load_own_variables(store)


test_adapters_need_a_built_and_unquantized_layer_without_one = refusals(
    (lambda: AdaptableDense(UNITS).add_adapter(RANK, ALPHA), "built=False"),
    (lambda: adapted_layer().add_adapter(RANK, ALPHA), "adapter=True"),
    (lambda: adapted_layer().quantize("int8"), "Merge"),
    (lambda: plain_layer().merge_adapter(), "has none"),
)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "bfloat16"])
def test_low_precision_computes_and_merges(policy):
    layer = adapted_layer(dtype=policy)
    assert keras.backend.standardize_dtype(layer.lora_a.dtype) == layer.variable_dtype
    output = layer(x)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    before = keras.ops.cast(output, "float32")
    layer.merge_adapter()
    assert_close(keras.ops.cast(layer(x), "float32"), before, 0.05)
