"""Layers are made again from their configs."""

import pytest
from checks import made_again

from bert_keras.layers.crf import LinearChainCRF
from bert_keras.layers.dropout import Dropout

pytestmark = pytest.mark.once


@pytest.mark.parametrize("layer", [Dropout(0.25, seed=3), LinearChainCRF(3, name="crf")])
def test_a_layer_is_made_again_from_its_config(layer):
    made_again(layer)
