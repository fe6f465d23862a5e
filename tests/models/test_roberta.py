import pytest
from checks import TINY, check_backbone, check_parity

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


@pytest.mark.parametrize(
    ("padding_id", "activation"), enumerate(("gelu", "gelu_new", "relu", "silu"))
)
def test_outputs_equal_transformers(padding_id, activation, tmp_path):
    options = {"pad_token_id": padding_id, "hidden_act": activation, "type_vocab_size": 1}
    check_parity("Roberta", padding_id, tmp_path, **options)
