import numpy as np
import pytest
from checks import (
    TINY,
    check_backbone,
    check_gradients,
    check_parity,
    random_reference,
    to_numpy,
)
from keras import ops

import bert_keras
from bert_keras.models.mpnet import bucket

pytestmark = pytest.mark.once


def tiny_backbone(**overrides):
    return bert_keras.MPNetBackbone(**{**TINY, **overrides})


@pytest.mark.each_backend
def test_it_keeps_the_contract(tmp_path):
    check_backbone(tiny_backbone(), "mpnet_backbone.json", tmp_path)


@pytest.mark.each_backend
def test_buckets_are_those_of_the_paper_s_code():
    before = {0: 0, 1: 1, 7: 7, 8: 8, 11: 8, 12: 9, 15: 9, 16: 10, 22: 10, 23: 11, 31: 11, 32: 12}
    before |= {45: 12, 46: 13, 63: 13, 64: 14, 90: 14, 91: 15, 127: 15, 128: 15, 10_000: 15}
    expected = before | {-distance: 16 + number for distance, number in before.items() if distance}
    distances = ops.convert_to_tensor(np.array(list(expected), "int32"))
    np.testing.assert_array_equal(to_numpy(bucket(distances)), list(expected.values()))


@pytest.mark.parametrize(("activation", "longest"), [("gelu", 9), ("relu", 150)])
def test_outputs_equal_transformers(activation, longest, tmp_path):
    options = {"max_position_embeddings": longest + 2, "hidden_act": activation}
    check_parity("MPNet", longest, tmp_path, layer_norm_eps=1e-5, **options)


@pytest.mark.parametrize("remat", [pytest.param(True, marks=pytest.mark.each_backend), False])
def test_gradients_equal_those_of_transformers(remat, tmp_path):
    reference, inputs = random_reference("MPNet", 0, max_position_embeddings=16)
    found = check_gradients(reference, inputs, tmp_path, remat=remat)
    assert np.abs(found["encoder/attention_bias/table/embeddings"]).max() > 1e-3
