"""Attention with a bias, a scale and dropout: values and gradients of the formula."""

import functools

import keras
import numpy as np
import pytest
from checks import assert_close, assert_like, to_numpy
from keras import ops

from bert_keras.engine import kernels
from bert_keras.layers.attention import SelfAttention, attend
from bert_keras.layers.dropout import Dropout

SCALE, RATE = 0.3, 0.25  # A multiple of 1 / 65,536, to which PyTorch rounds.


@functools.cache
def arrays():
    """Query, key, value, and a bias per head, the same for all texts."""
    generator = np.random.default_rng(0)
    shapes = [(2, 5, 3, 4), (2, 7, 3, 4), (2, 7, 3, 4), (1, 3, 5, 7)]
    return [generator.standard_normal(shape).astype("float32") for shape in shapes]


def make_mask(lengths):
    is_token = np.arange(7) < np.array(lengths)[:, None]
    return ops.convert_to_tensor(is_token[:, None, None])


def formula(query, key, value, bias=0.0, mask=None, kept=None, scale=SCALE):
    scores = scale * ops.einsum("bqhd,bkhd->bhqk", query, key) + bias
    if mask is not None:
        scores = scores + ops.where(mask, 0.0, -1e9)
    attentions = ops.softmax(scores, axis=-1)
    if kept is not None:
        attentions = attentions * ops.cast(kept, "float32") / (1 - RATE)
    return ops.einsum("bhqk,bkhd->bqhd", attentions, value)


@pytest.mark.parametrize("is_fused", [True, False])
@pytest.mark.parametrize("options", [{}, {"training": True}, {"return_attentions": True}])
def test_bias_and_scale_have_the_values_and_gradients_of_the_formula(
    options, is_fused, monkeypatch
):
    monkeypatch.setattr(kernels, "has_fused_attention", lambda *_: is_fused)
    mask = make_mask((4, 7))

    def ours(query, key, value, bias):
        return attend(query, key, value, mask, Dropout(0), bias=bias, scale=SCALE, **options)[0]

    assert_like(ours, functools.partial(formula, mask=mask), *arrays())


def test_jax_has_a_mask_for_each_query_as_cudnn_needs(monkeypatch):
    """Without a GPU, only the form is checked."""
    monkeypatch.setattr(kernels, "has_accelerator", lambda: True)
    seen, original = [], ops.dot_product_attention
    monkeypatch.setattr(
        ops,
        "dot_product_attention",
        lambda *vectors, **options: seen.append(options) or original(*vectors, **options),
    )
    attend(*map(ops.convert_to_tensor, arrays()[:3]), make_mask((4, 7)), Dropout(0))
    shapes = [tuple(options["mask"].shape) for options in seen]
    assert shapes == ([(2, 1, 5, 7)] if keras.backend.backend() == "jax" else [])


@pytest.mark.parametrize(("lengths", "scale"), [(None, None), ((4, 7), SCALE), ((4, 0), SCALE)])
def test_dropout_has_the_values_and_gradients_of_the_formula(lengths, scale, monkeypatch):
    """With a bias and a scale, and without both."""
    inputs = arrays() if scale else arrays()[:3]
    mask = make_mask(lengths) if lengths else None
    kept = np.random.default_rng(1).random((2, 3, 5, 7), dtype="float32") >= RATE

    def fixed(inputs, *_):
        return inputs * ops.cast(kept, "float32") / (1 - RATE)

    monkeypatch.setattr(kernels, "_SMALL", 0)
    monkeypatch.setattr(kernels, "dropped", fixed)
    mask_and_scale = ops.convert_to_tensor(kept), 1 / (1 - RATE)
    monkeypatch.setattr(kernels, "dropout_mask", lambda *_: mask_and_scale)
    dropout = Dropout(RATE)
    monkeypatch.setattr(dropout.seed_generator, "next", lambda **_: ops.zeros((2,), "uint32"))

    def ours(query, key, value, bias=None):
        options = {"bias": bias, "scale": scale, "training": True}
        return attend(query, key, value, mask, dropout, **options)[0]

    plain = functools.partial(formula, mask=mask, kept=kept, scale=scale or 4**-0.5)
    assert_like(ours, plain, *inputs)


@pytest.mark.once
def test_pytorch_drops_the_probabilities_of_a_small_attention_itself():
    import torch

    query, key, value = map(torch.tensor, arrays()[:3])
    keras.utils.set_random_seed(0)
    attended, _ = attend(query, key, value, make_mask((4, 7)), Dropout(RATE), training=True)
    keras.utils.set_random_seed(0)
    heads = [tensor.transpose(1, 2) for tensor in (query, key, value)]
    attentions = kernels.probabilities(*heads[:2], make_mask((4, 7)))
    expected = torch.dropout(attentions, RATE, True) @ heads[2]
    assert_close(attended, expected.transpose(1, 2))


@pytest.mark.parametrize("options", [{}, {"return_attentions": True}])
def test_a_text_without_tokens_attends_to_all_keys_equally_despite_a_bias(options):
    query, key, value, bias = map(ops.convert_to_tensor, arrays())
    context, _ = attend(query, key, value, make_mask((0, 0)), Dropout(0), bias=bias, **options)
    assert_close(context, np.broadcast_to(arrays()[2].mean(1, keepdims=True), (2, 5, 3, 4)))


@pytest.mark.once
@pytest.mark.filterwarnings("ignore:.*trace:DeprecationWarning")
@pytest.mark.parametrize("change", ["in_place", "inference_mode", "trace"])
def test_pytorch_keeps_nothing_of_a_mask_that_changed(change):
    import torch

    query, key, value, _ = map(torch.tensor, arrays())
    mask, other = make_mask((7, 7)), make_mask((4, 2))
    with torch.inference_mode(change == "inference_mode"):
        attended = kernels.fused_attention(query, key, value, mask, scale=SCALE)
    assert_close(attended, formula(query, key, value, mask=mask), 1e-6)
    attend_to = functools.partial(kernels.fused_attention, query, key, value, scale=SCALE)
    if change == "trace":
        attend_to = torch.jit.trace(
            lambda mask: kernels.fused_attention(query, key, value, mask), mask
        )
        plain = formula(query, key, value, mask=other, scale=0.5)
        assert_close(attend_to(other), plain, 1e-6)
        return
    if change == "in_place":
        mask.copy_(other)
    query.requires_grad_()
    attend_to(mask).sum().backward()
    assert_close(attend_to(mask), formula(query, key, value, mask=mask), 1e-6)


def test_dropout_with_a_noise_shape_drops_all_or_nothing():
    query, key, value = map(ops.convert_to_tensor, arrays()[:3])
    expected = attend(query, key, value, None, Dropout(0))[0]
    context = attend(query, key, value, None, Dropout(0.5, noise_shape=(1, 1, 1, 1)), training=True)
    context = to_numpy(context[0])
    assert_close(context, 2 * to_numpy(expected) * context.any(), 1e-5)


@pytest.mark.once
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.bounded("Four deviations of the mean of 3,000 draws.")
def test_dropout_in_the_kernel_of_accelerators_keeps_the_mean(has_bias):
    """PyTorch's own function with dropout, which is not used on CPUs."""
    import torch

    *vectors, bias = map(torch.tensor, arrays())
    options = {"bias": bias if has_bias else None, "scale": SCALE}
    mask, draws = make_mask((4, 0)), 3000
    plain = kernels.fused_attention(*vectors, mask, **options)
    expected = formula(*vectors, bias if has_bias else 0.0, mask)
    torch.testing.assert_close(plain, expected, rtol=0, atol=1e-6)
    many = (x.repeat(draws, 1, 1, 1) for x in (*vectors, mask))
    drawn = kernels.fused_attention(*many, **options, dropout_rate=RATE)
    drawn = to_numpy(drawn).reshape(draws, *plain.shape)
    assert not np.array_equal(drawn[0], drawn[1])
    # Four deviations of the mean.
    assert_close(drawn.mean(0), plain, 0.05)


def test_a_projection_that_was_built_before_keeps_its_weights():
    attention = SelfAttention(2, 8)
    attention.query.build((None, 8))
    kernel = to_numpy(attention.query.kernel)
    attention.build()
    assert_close(to_numpy(attention.query.kernel), kernel, 0)
