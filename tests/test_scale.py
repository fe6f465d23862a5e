"""Counted arithmetic is what PyTorch counts; the plan's page says what its script prints."""

import pathlib
import sys

import keras
import numpy as np
import pytest
from absl import flags
from tiny import tiny_backbone

import bert_keras

ROOT = pathlib.Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.once


@pytest.fixture
def benchmarks(monkeypatch):
    """Imports from the folder of benchmarks, whose flags are gone after the test."""
    before, modules = set(flags.FLAGS), set(sys.modules)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield
    for name in set(flags.FLAGS) - before:
        delattr(flags.FLAGS, name)
    for name in set(sys.modules) - modules:
        if str(ROOT / "benchmarks") in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def counted(compute):
    """Returns the arithmetic that PyTorch counts in the products of a forward and backward pass."""
    from torch.utils import flop_counter

    with flop_counter.FlopCounterMode(display=False) as counter:
        loss = compute()
        forward = counter.get_total_flops()
        loss.backward()
    return forward, counter.get_total_flops()


@pytest.mark.parametrize("kind", ["fine_tuning", "pretraining"])
def test_the_arithmetic_of_a_training_step_is_what_pytorch_counts(kind, benchmarks):
    import flops

    backbone = tiny_backbone()
    sizes = {"num_hidden_layers": backbone.num_layers, "hidden_size": backbone.hidden_dim}
    sizes["intermediate_size"] = backbone.get_config()["intermediate_dim"]
    sizes["vocab_size"] = backbone.vocabulary_size
    rng, inputs, decoded = np.random.default_rng(0), {}, 0
    model = bert_keras.TextClassifier(backbone)
    if kind == "pretraining":
        model, decoded = bert_keras.Pretraining(backbone), 3 * 2
        inputs = {"mask_positions": rng.integers(1, 8, (3, 2)).astype("int32")}
    inputs["token_ids"] = rng.integers(1, sizes["vocab_size"], (3, 8)).astype("int32")
    ready = keras.tree.map_structure(keras.ops.convert_to_tensor, inputs)

    def loss():
        return sum(map(keras.ops.sum, keras.tree.flatten(model(ready, training=True))))

    only = kind == "fine_tuning"
    forward = flops.forward(sizes, 3, 8, decoded, pooled=True, first_token_only=only)
    assert counted(loss) == (forward, 3 * forward)


def test_the_benchmark_of_a_device_counts_by_hand(benchmarks, monkeypatch):
    import gpu

    monkeypatch.setenv("KERAS_BACKEND", "jax")
    gpu.FLAGS(["gpu.py", "--layers=2", "--hidden_dim=64", "--batch=2", "--seconds=1"])
    assert gpu.sides()[-3:] == ["keras_hub-jax", "matrix_product-jax", "matrix_product-torch"]
    layer = 256 * 24 * 64**2 + 256 * 4 * 128 * 64  # of 2 x 128 tokens
    assert gpu.needed_flops(gpu.make_job("fine_tuning")) == 3 * (2 * layer + 2 * 2 * 64 * 66)
    assert gpu.needed_flops(gpu.make_job("prediction")) == 2 * layer + 2 * 2 * 64 * 66
    layer = 1024 * 24 * 64**2 + 1024 * 4 * 512 * 64
    guesses = 2 * 77 * 2 * 64 * (64 + 30522)
    work = 3 * (2 * layer + guesses + 2 * 2 * 64 * 66)
    assert gpu.needed_flops(gpu.make_job("pretraining")) == work
    result = gpu.turns.Result("bert_keras-jax", [2.0], steps=4, megabytes=5.0)
    product = gpu.turns.Result("matrix_product-jax", [1.0], steps=1)
    table = gpu.as_markdown(gpu.make_job("pretraining"), [result, product])
    share = work / 0.5 / (2 * 2048**3)
    assert f"| 500 (500 to 500) | 2048 | {share:.0%} | 1.00 (1.00 to 1.00) | 5 |" in table
    with pytest.raises(flags.IllegalFlagValueError, match="multiple of 64"):
        gpu.FLAGS(["gpu.py", "--hidden_dim=65"])


def test_the_plan_is_what_its_script_prints_and_its_formulas_are_right(benchmarks):
    import scale

    scale.FLAGS(["scale.py"])
    page = (ROOT / "docs" / "design" / "scale.md").read_text(encoding="utf-8")
    for table in scale.tables():
        assert table in page
    assert scale.wire_bytes(100, 4) == 600
    scale.FLAGS.restart = 5
    # 2 of every 20 seconds go into writing; a failure in 100 costs half of 20, and 5.
    assert scale.best_interval(2, 100) == (20, 0.1 + 0.15)
    # Sixths of the weights that are multiplied: what is left is attention and guesses.
    assert 0.9 < 6 * 85e6 / scale.BERT_128 < 1
