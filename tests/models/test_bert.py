import numpy as np
import pytest
from checks import (
    TINY,
    cases,
    check_backbone,
    check_parity,
    check_saved_and_reloaded,
    random_inputs,
    to_numpy,
)

import bert_keras

pytestmark = pytest.mark.once


def tiny_backbone(**overrides):
    return bert_keras.BertBackbone(**{**TINY, **overrides})


@pytest.mark.each_backend
def test_it_keeps_the_contract(tmp_path):
    options = {"activation": "gelu_tanh", "attention_dropout": 0.3}
    check_backbone(tiny_backbone(**options), "bert_backbone.json", tmp_path)


@pytest.mark.parametrize(
    ("rates", "is_random"),
    [
        ({"dropout": 0.5}, True),
        ({"dropout": 0.0, "attention_dropout": 0.5}, True),
        ({"dropout": 0.0}, False),
    ],
    ids=str,
)
def test_dropout_is_active_in_training_only(rates, is_random):
    backbone, inputs = tiny_backbone(**rates), random_inputs()
    first, second, plain, again = (
        to_numpy(backbone(inputs, training=training)["sequence_output"])
        for training in (True, True, False, False)
    )
    np.testing.assert_array_equal(plain, again)
    for one, other in ((first, second), (first, plain)):
        difference = np.abs(one - other).max()
        assert difference > 1e-4 if is_random else difference < 1e-6


def test_a_causal_model_stays_one_in_files(tmp_path):
    backbone = tiny_backbone(causal=True)
    check_saved_and_reloaded(backbone, random_inputs(), tmp_path / "causal.keras")
    backbone.export_to_huggingface(tmp_path / "exported")
    assert bert_keras.BertBackbone.from_preset(tmp_path / "exported").causal
    with pytest.raises(ValueError, match="`causal` must be"):
        tiny_backbone(causal="yes")


@cases(
    ("gelu", 1e-12, 2, False),
    ("gelu_new", 1e-6, 2, False),
    ("relu", 1e-5, 3, False),
    ("silu", 1e-12, 1, False),
    ("gelu", 1e-12, 2, True),
)
def test_outputs_equal_transformers(tmp_path, activation, layer_norm_eps, num_segments, causal):
    options = {"hidden_act": activation, "layer_norm_eps": layer_norm_eps}
    options |= {"type_vocab_size": num_segments, "is_decoder": causal, "use_cache": False}
    check_parity("Bert", 1, tmp_path, **options)


@cases(
    # Too much memory for any machine, and just above the limit of 2**33 parameters.
    ("parameters", {"vocabulary_size": 2**24, "hidden_dim": 2**16}),
    ("parameters", {"vocabulary_size": 2**20, "hidden_dim": 2**13}),
    ("vocabulary_size", 0),
    ("num_layers", 10**6),
    ("num_layers", 2.0),
    ("hidden_dim", 2**40),
    ("num_heads", 3),
    ("num_segments", -1),
    ("dropout", 1.0),
    ("attention_dropout", -0.1),
    ("activation", None),
    ("activation", ["gelu"]),
    ("layer_norm_epsilon", -1e-12),
    ("layer_norm_epsilon", "1e-12"),
    ("layer_norm_epsilon", float("nan")),
    ("initializer_range", float("inf")),
    ("initializer_range", True),
)
def test_impossible_arguments_are_refused(argument, value):
    with pytest.raises(ValueError, match=argument):
        tiny_backbone(**(value if isinstance(value, dict) else {argument: value}))


ONES = np.ones((1, 3), int)


@pytest.fixture(scope="module")
def backbone():
    return tiny_backbone()


@cases(
    ({"token_ids": 50 * ONES}, "vocabulary"),
    ({"token_ids": -ONES}, "vocabulary"),
    ({"token_ids": np.ones((1, 13), int)}, "between 1 and 12"),
    ({"token_ids": np.ones((1, 0), int)}, "between 1 and 12"),
    ({"token_ids": ONES[0]}, r"\(batch, seq_len\)"),
    ({"token_ids": ONES, "segment_ids": 2 * ONES}, "segment"),
    ({"token_ids": ONES, "padding_mask": np.ones((1, 4), int)}, "shape"),
    ({"token_ids": ONES, "input_mask": ONES}, "padding_mask"),
    ({"segment_ids": ONES}, "token_ids"),
    ({"token_ids": ONES, "token_type_ids": ONES}, "Did you mean 'segment_ids'"),
    ({"token_ids": 1.0 * ONES}, "integers"),
    (ONES, "dict"),
)
def test_inputs_that_do_not_fit_are_refused_and_the_weights_survive(backbone, inputs, message):
    good = random_inputs()
    before = backbone.predict(good, verbose=0)["pooled_output"]
    for compute in (backbone, lambda x: backbone.predict(x, verbose=0)):
        error = TypeError if message in ("integers", "dict") else ValueError
        with pytest.raises(error, match=message):
            compute(inputs)
    np.testing.assert_array_equal(backbone.predict(good, verbose=0)["pooled_output"], before)
