import numpy as np
import pytest
from checks import TINY, check_backbone

import bert_keras

pytestmark = pytest.mark.once


def tiny_backbone(**overrides):
    return bert_keras.DistilBertBackbone(**{**TINY, **overrides})


@pytest.mark.each_backend
def test_it_keeps_the_contract(tmp_path):
    check_backbone(tiny_backbone(), "distilbert_backbone.json", tmp_path)


def test_it_has_no_pooler():
    backbone = tiny_backbone()
    assert set(backbone({"token_ids": np.ones((1, 2), int)})) == {"sequence_output"}
    with pytest.raises(ValueError, match="needs a backbone with a pooler"):
        bert_keras.NextSentencePrediction(backbone)
    with pytest.raises(ValueError, match="pooler"):
        bert_keras.TextClassifier(backbone, pooling="pooler")
