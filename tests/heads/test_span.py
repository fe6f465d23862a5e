import keras
import numpy as np
from checks import assert_close, to_numpy

from bert_keras.heads.span import MASKED_LOGIT, SpanHead


def head_and_outputs(dtype="float32"):
    head = SpanHead(4, initializer_range=0.5, dtype=dtype)
    head.build()
    outputs = {"sequence_output": np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")}
    return head, outputs


def test_the_logits_are_two_scalar_products_per_token():
    head, outputs = head_and_outputs()
    start, end = head(outputs)
    kernel, bias = map(to_numpy, (head.dense.kernel, head.dense.bias))
    expected = outputs["sequence_output"] @ kernel + bias
    assert_close(start, expected[..., 0])
    assert_close(end, expected[..., 1])


def test_padding_has_no_probability_and_tokens_keep_their_logits():
    head, outputs = head_and_outputs()
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    for masked, free in zip(head(outputs, padding_mask=mask), head(outputs), strict=True):
        masked, free = to_numpy(masked), to_numpy(free)
        np.testing.assert_array_equal(masked[mask == 1], free[mask == 1])
        assert (masked[mask == 0] == MASKED_LOGIT).all()
        assert (to_numpy(keras.ops.softmax(masked))[mask == 0] == 0).all()


def test_half_precision_gives_finite_float32_logits():
    head, outputs = head_and_outputs("mixed_bfloat16")
    start, _ = head(outputs, padding_mask=np.zeros((2, 5), bool))
    assert keras.backend.standardize_dtype(start.dtype) == "float32"
    assert np.isfinite(to_numpy(start)).all()


def test_config_survives_the_round_trip():
    head = SpanHead(4, initializer_range=0.1, name="head")
    assert SpanHead.from_config(head.get_config()).get_config() == head.get_config()
