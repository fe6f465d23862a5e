"""Attention with a bias and a scale: values and gradients of the formula."""

import functools

import keras
import numpy as np
import pytest
from checks import gradients, to_numpy
from keras import ops

from bert_keras.engine import kernels
from bert_keras.layers.attention import attend
from bert_keras.layers.dropout import Dropout

SCALE = 0.3


@functools.cache
def arrays():
    """Query, key, value, and a bias per head, the same for all texts."""
    generator = np.random.default_rng(0)
    shapes = [(2, 5, 3, 4), (2, 7, 3, 4), (2, 7, 3, 4), (1, 3, 5, 7)]
    return [generator.standard_normal(shape).astype("float32") for shape in shapes]


def mask():
    is_token = np.arange(7) < np.array([4, 7])[:, None]
    return ops.convert_to_tensor(is_token[:, None, None])


def formula(query, key, value, bias):
    scores = SCALE * ops.einsum("bqhd,bkhd->bhqk", query, key) + bias
    scores = ops.where(mask(), scores, -1e9)
    return ops.einsum("bhqk,bkhd->bqhd", ops.softmax(scores, axis=-1), value)


@pytest.mark.parametrize("is_fused", [True, False])
@pytest.mark.parametrize("options", [{}, {"training": True}, {"return_attentions": True}])
def test_bias_and_scale_have_the_values_and_gradients_of_the_formula(
    options, is_fused, monkeypatch
):
    monkeypatch.setitem(kernels.FUSED, keras.backend.backend(), is_fused)

    def ours(query, key, value, bias):
        return attend(query, key, value, mask(), Dropout(0), bias=bias, scale=SCALE, **options)[0]

    tensors = [ops.convert_to_tensor(array) for array in arrays()]
    np.testing.assert_allclose(
        to_numpy(ours(*tensors)), to_numpy(formula(*tensors)), rtol=0, atol=1e-6
    )
    pairs = zip(gradients(ours, *arrays()), gradients(formula, *arrays()), strict=True)
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_a_bias_is_dropped_out_with_the_probabilities():
    dropout = Dropout(0.3)
    kept = dropout.mask(ops.convert_to_tensor(arrays()[0]), (2, 3, 5, 7))
    dropout.mask = lambda *_: kept  # The same for both.

    def ours(query, key, value, bias):
        options = {"bias": bias, "scale": SCALE, "training": True}
        return attend(query, key, value, mask(), dropout, **options)[0]

    def plain(query, key, value, bias):
        scores = SCALE * ops.einsum("bqhd,bkhd->bhqk", query, key) + bias
        attentions = ops.softmax(ops.where(mask(), scores, -1e9), axis=-1)
        return ops.einsum("bhqk,bkhd->bqhd", kernels.masked(attentions, kept, 0.3), value)

    for found, expected in zip(
        gradients(ours, *arrays()), gradients(plain, *arrays()), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_a_text_without_tokens_attends_to_all_keys_equally_despite_a_bias():
    query, key, value, bias = (ops.convert_to_tensor(array) for array in arrays())
    nothing = ops.zeros((2, 1, 1, 7), dtype="bool")
    for options in ({}, {"return_attentions": True}):
        context, _ = attend(query, key, value, nothing, Dropout(0), bias=bias, **options)
        expected = np.broadcast_to(arrays()[2].mean(1, keepdims=True), (2, 5, 3, 4))
        np.testing.assert_allclose(to_numpy(context), expected, rtol=0, atol=1e-6)


@pytest.mark.once
def test_the_kernel_of_accelerators_takes_a_bias_too():
    import torch

    query, key, value, bias = map(torch.tensor, arrays())
    torch.manual_seed(0)
    plain = kernels.fused_attention(query, key, value, mask(), bias, SCALE)
    drawn = [
        kernels.fused_attention(query, key, value, mask(), bias, SCALE, 0.3) for _ in range(3000)
    ]
    torch.testing.assert_close(plain, formula(query, key, value, bias), rtol=0, atol=1e-6)
    # Four deviations of the mean.
    torch.testing.assert_close(torch.stack(drawn).mean(0), plain, rtol=0, atol=0.05)
