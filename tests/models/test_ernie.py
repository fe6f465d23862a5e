import warnings

import numpy as np
import pytest
from checks import (
    assert_close,
    check_equals_transformers,
    model_of_transformers,
    random_inputs,
    to_numpy,
    transformers_outputs,
)
from files import change_json

import bert_keras
from bert_keras.models.backbone import Backbone

pytestmark = pytest.mark.once

SIZES = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 24, "max_position_embeddings": 32, "type_vocab_size": 4}


def reference_of(architecture="Model", **overrides):
    return model_of_transformers(f"Ernie{architecture}", **{**SIZES, **overrides})


def theirs_of(model, inputs):
    return [array.numpy() for array in transformers_outputs(model, inputs).values()]


@pytest.mark.parametrize("use_task_id", [True, False])
def test_outputs_equal_transformers_and_those_of_the_exported_bert(use_task_id, tmp_path):
    reference = reference_of(use_task_id=use_task_id)
    inputs = random_inputs(num_segments=4)
    backbone = check_equals_transformers(reference, inputs, tmp_path / "theirs")
    assert type(backbone) is bert_keras.BertBackbone
    backbone.export_to_huggingface(tmp_path / "ours")
    import transformers

    bert = transformers.AutoModel.from_pretrained(tmp_path / "ours")
    assert isinstance(bert, transformers.BertModel)
    for a, b in zip(theirs_of(bert, inputs), theirs_of(reference, inputs), strict=True):
        assert_close(a, b, 1e-5)


def test_a_table_of_tasks_that_the_config_turns_off_is_not_added(tmp_path):
    reference = reference_of(use_task_id=True)
    reference.save_pretrained(tmp_path)
    change_json(tmp_path / "config.json", use_task_id=False)
    reference.embeddings.task_type_embeddings.weight.data.zero_()
    inputs = random_inputs(num_segments=4)
    found = Backbone.from_preset(tmp_path)(inputs)["sequence_output"]
    mask = inputs["padding_mask"]
    assert_close(to_numpy(found)[mask], theirs_of(reference, inputs)[0][mask], 1e-5)


HEADS = {
    "MaskedLM": "ForMaskedLM",
    "TextClassifier": "ForSequenceClassification",
    "TokenClassifier": "ForTokenClassification",
    "QuestionAnswering": "ForQuestionAnswering",
}


@pytest.mark.parametrize("task", HEADS)
def test_heads_equal_transformers(task, tmp_path):
    reference = reference_of(HEADS[task], use_task_id=True)
    reference.save_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = getattr(bert_keras, task).from_preset(tmp_path, preprocessor=None)
    inputs = random_inputs(num_segments=4)
    mask, expected = inputs["padding_mask"], theirs_of(reference, inputs)
    if task == "MaskedLM":
        inputs["mask_positions"] = np.tile(np.arange(7), (3, 1))
    found = model(inputs)
    found = list(found.values()) if isinstance(found, dict) else [found]
    for a, b in zip(found, expected, strict=True):
        real = mask if b.shape[:2] == mask.shape else slice(None)
        assert_close(to_numpy(a)[real], b[real], 1e-5)
