import pytest
from checks import TINY, check_backbone

import bert_keras

pytestmark = pytest.mark.once


def tiny_backbone(**overrides):
    return bert_keras.RobertaBackbone(**{**TINY, **overrides})


@pytest.mark.each_backend
def test_it_keeps_the_contract(tmp_path):
    check_backbone(tiny_backbone(), "roberta_backbone.json", tmp_path)


@pytest.mark.parametrize("padding_id", [None, -1, 50, 1.0])
def test_a_padding_id_outside_the_vocabulary_is_refused(padding_id):
    with pytest.raises(ValueError, match="`padding_id` must be an int from 0 to 49"):
        tiny_backbone(padding_id=padding_id)
