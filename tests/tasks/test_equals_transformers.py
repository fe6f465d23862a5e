"""Tasks and their exports compute what the checkpoint's model in transformers computes."""

import numpy as np
import pytest
from theirs import exported_model, outputs_of, reference_model
from tiny import ready_inputs

import bert_keras

# Our outputs by their names in transformers, where a model has several.
OF_BOTH_OBJECTIVES = {"prediction_logits": "masked_lm", "seq_relationship_logits": "next_sentence"}
OF_SPANS = {"start_logits": "start_logits", "end_logits": "end_logits"}
OTHER_SIZES = {"hidden_act": "gelu_new", "layer_norm_eps": 1e-5}
once = pytest.mark.once


def logits_of(outputs, names, inputs, at_positions):
    """Returns a list of arrays: each output, at masked positions or without padding."""
    found = []
    for name in names:
        logits = outputs[name] if isinstance(outputs, dict) else outputs
        if at_positions and logits.ndim == 3 and logits.shape[1] == inputs["token_ids"].shape[1]:
            logits = np.take_along_axis(logits, inputs["mask_positions"][..., None], 1)
        elif not at_positions and logits.shape[:2] == inputs["token_ids"].shape:
            logits = logits[inputs["padding_mask"] == 1]
        found.append(logits)
    return found


@pytest.mark.parametrize(
    ("name", "architecture", "outputs", "overrides"),
    [
        ("TokenClassifier", "BertForTokenClassification", {}, {"num_labels": 5}),
        ("QuestionAnswering", "BertForQuestionAnswering", OF_SPANS, {}),
        ("MultipleChoice", "BertForMultipleChoice", {}, {}),
        pytest.param("MaskedLM", "BertForMaskedLM", {}, {}, marks=once),
        pytest.param("NextSentencePrediction", "BertForNextSentencePrediction", {}, {}, marks=once),
        pytest.param("Pretraining", "BertForPreTraining", OF_BOTH_OBJECTIVES, {}, marks=once),
        pytest.param(
            "Pretraining", "BertForPreTraining", OF_BOTH_OBJECTIVES, OTHER_SIZES, marks=once
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*pooler:UserWarning")  # Some architectures have none.
def test_logits_equal_transformers_in_both_directions(
    name, architecture, outputs, overrides, tmp_path
):
    reference = reference_model(architecture, tmp_path, **overrides)
    task = getattr(bert_keras, name).from_preset(tmp_path)
    exported = exported_model(task, architecture, tmp_path / "exported")
    again = getattr(bert_keras, name).from_preset(tmp_path / "exported")
    shape = (3, 4, 7) if name == "MultipleChoice" else (3, 7)
    inputs = ready_inputs(*shape, least=3, num_predictions=2)
    at_positions = "mask_positions" in task.input_names
    ours = {key: array for key, array in inputs.items() if key in task.input_names}
    names = outputs or {"logits": "logits"}
    expected = logits_of(outputs_of(reference, inputs), names, inputs, at_positions)
    found = [logits_of(outputs_of(exported, inputs), names, inputs, at_positions)]
    for model in (task, again):
        predicted = model.predict(ours, verbose=0)
        found.append(logits_of(predicted, names.values(), inputs, at_positions))
    for each in found:
        for a, b in zip(each, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)
