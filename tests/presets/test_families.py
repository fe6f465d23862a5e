"""Every family and every head against transformers: in, out, and in again there.

transformers makes a tiny folder of an odd shape with random weights; ours loads it and gives the
same numbers; what ours writes transformers loads, weight for weight.
"""

import json
import warnings

import keras
import numpy as np
import pytest
from checks import to_numpy
from safetensors.numpy import load_file, save_file
from tiny import VOCABULARY

import bert_keras
from bert_keras.models.backbone import Backbone
from bert_keras.presets.assign import relative_path
from bert_keras.presets.families import head_options, records
from bert_keras.presets.families.record import Head
from bert_keras.presets.formats.huggingface import _KINDS
from bert_keras.presets.name_map import expand

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

BATCH, LENGTH, CHOICES = 3, 9, 2
LABELS = ("bad", "fine", "good", "no")
# A family's other names differ in names only.
CASES = [
    (record, name, task)
    for record in records("HUGGING_FACE")
    for number, name in enumerate(record.names)
    for task in ("Backbone", *record.heads)
    if number == 0 or task in ("Backbone", "TextClassifier")
]
IDS = [f"{name}-{task}" for _, name, task in CASES]


def sizes_of(name):
    """An odd shape for each family, by our names of the arguments."""
    rng = np.random.default_rng(list(name.encode()))
    num_heads, head_dim = [(2, 13), (3, 9), (4, 7), (5, 6)][rng.integers(4)]
    return {
        "vocabulary_size": int(rng.integers(37, 60)),
        "num_layers": 2,
        "num_heads": num_heads,
        "hidden_dim": num_heads * head_dim,
        "intermediate_dim": int(rng.integers(17, 44)),
        "max_sequence_length": int(rng.integers(LENGTH, 20)),
        "num_segments": int(rng.integers(2, 4)),
        "padding_id": int(rng.integers(5)),
        "dropout": 0.31,
        "attention_dropout": 0.17,
        "layer_norm_epsilon": float(10.0 ** -rng.integers(4, 13)),
        "initializer_range": 0.3,
        "causal": False,
    }


def config_of(record, name):
    sizes = {**sizes_of(name), **record.fixed}
    key, activations = record.activation
    config = {theirs: sizes[ours] for theirs, ours in record.config.items()}
    config |= {key: values[0] for key, values in record.allowed.items()}
    for field in record.fields:
        config |= field.write(sizes)
    return {**config, key: sorted(activations)[len(name) % len(activations)]}


def their_class(record, name, task):
    head = record.heads.get(task, Head(architecture="Model"))
    return getattr(transformers, record.names[name] + head.architecture)


def save_with_transformers(folder, record, name, task):
    torch.manual_seed(len(name))
    cls, head = their_class(record, name, task), record.heads.get(task, Head())
    config = config_of(record, name)
    if "num_classes" in head.says:
        config["id2label"] = dict(enumerate(LABELS))
        config["label2id"] = {label: i for i, label in enumerate(LABELS)}
    if "problem_type" in head.says:
        config["problem_type"] = "multi_label_classification"
    if "dropout" in head.says:
        config[head.dropout] = 0.43
    model = cls(cls.config_class(**config)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    return model


def load(folder, task, **options):
    if task == "Backbone":
        return Backbone.from_preset(folder, **options)
    return getattr(bert_keras, task).from_preset(folder, preprocessor=None, **options)


def inputs_of(model, task):
    backbone = getattr(model, "backbone", model)
    padding = backbone.padding_id or 0
    rng = np.random.default_rng(0)
    shape = (BATCH, CHOICES, LENGTH) if task == "MultipleChoice" else (BATCH, LENGTH)
    token_ids = rng.integers(5, backbone.vocabulary_size, shape)
    padding_mask = np.arange(LENGTH) < rng.integers(3, LENGTH + 1, (*shape[:-1], 1))
    token_ids[~padding_mask] = padding
    token_ids[0, ..., 2] = padding  # as text may have it
    arrays = {"token_ids": token_ids, "padding_mask": padding_mask}
    if backbone.num_segments > 1:
        arrays["segment_ids"] = rng.integers(0, backbone.num_segments, shape)
    return {key: array.astype("int32") for key, array in arrays.items()}


def their_outputs(model, arrays):
    names = {"token_ids": "input_ids", "padding_mask": "attention_mask"}
    names["segment_ids"] = "token_type_ids"
    batch = {names[key]: torch.tensor(array).long() for key, array in arrays.items()}
    with torch.no_grad():
        outputs = model(**batch)
    renamed = {
        "last_hidden_state": "sequence_output",
        "pooler_output": "pooled_output",
        "prediction_logits": "masked_lm",
        "seq_relationship_logits": "next_sentence",
    }
    return {renamed.get(name, name): value.numpy() for name, value in outputs.items()}


def our_outputs(model, arrays):
    if isinstance(model, bert_keras.MaskedLM):
        everywhere = np.tile(np.arange(LENGTH, dtype="int32"), (BATCH, 1))
        arrays = {**arrays, "mask_positions": everywhere}
    outputs = model(arrays)
    outputs = outputs if isinstance(outputs, dict) else {"logits": outputs}
    return {name: to_numpy(value) for name, value in outputs.items()}


def difference(ours, theirs, padding_mask):
    assert set(ours) == set(theirs)
    real = padding_mask.astype(bool)
    largest = 0.0
    for name, value in ours.items():
        is_per_token = value.shape[:2] == (BATCH, LENGTH)
        error = np.abs(value - theirs[name])
        largest = max(largest, float((error[real] if is_per_token else error).max()))
    return largest


@pytest.mark.parametrize(("record", "name", "task"), CASES, ids=IDS)
def test_in_out_and_in_again(tmp_path, record, name, task):
    reference = save_with_transformers(tmp_path / "theirs", record, name, task)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = load(tmp_path / "theirs", task)
    arrays = inputs_of(model, task)
    worst = difference(
        our_outputs(model, arrays), their_outputs(reference, arrays), arrays["padding_mask"]
    )
    print(f"{name} {task}: {worst:.1e}")
    assert worst <= 1e-5
    head = record.heads.get(task, Head())
    if "num_classes" in head.says:
        assert (model.num_classes, model.label_names) == (len(LABELS), LABELS)
    if "problem_type" in head.says:
        assert model.problem_type == "multi_label"
    if "dropout" in head.says:
        assert model.dropout == 0.43

    model.export_to_huggingface(tmp_path / "ours")
    cls = their_class(record, next(iter(record.names)), task)
    again, info = cls.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"] and not info["mismatched_keys"]
    exported = again.state_dict()
    for key, value in reference.state_dict().items():
        np.testing.assert_array_equal(exported[key].numpy(), value.numpy(), err_msg=key)
    before, after = reference.config.to_dict(), again.config.to_dict()
    keys = {*config_of(record, name), "id2label", "problem_type", "architectures", head.dropout}
    keys -= {None, *([] if name in list(record.names)[:1] else ["architectures"])}
    activation, table = record.activation
    assert table[before.pop(activation)] == table[after[activation]]
    assert {key: after.get(key) for key in keys & set(before)} == {
        key: before[key] for key in keys & set(before)
    }
    second = load(tmp_path / "ours", task)
    for ours, theirs in zip(model.weights, second.weights, strict=True):
        if "pooler" not in ours.path:
            np.testing.assert_array_equal(to_numpy(ours), to_numpy(theirs), err_msg=ours.path)


@pytest.mark.once
@pytest.mark.parametrize(("record", "name", "task"), CASES, ids=IDS)
def test_the_rows_are_the_weights_of_the_backbone_and_of_each_head(record, name, task):
    cls = keras.saving.get_registered_object(record.backbone)
    sizes = {**sizes_of(name), **record.fixed}
    known = cls(**{ours: sizes[ours] for ours in record.config.values()}, activation="gelu")
    layers, rows = [known], record.rows
    if task != "Backbone":
        made = getattr(bert_keras, task)
        options = {"num_classes": 4} if "num_classes" in record.heads[task].says else {}
        layers, rows = [made(known, **options).head], record.heads[task].rows
        asked = head_options(known, task)
        assert {key: getattr(layers[0], key) for key in asked} == asked
    counts = {letter: getattr(known, count) for letter, count in record.counts.items()}
    names = expand(rows, _KINDS, **counts)
    assert {relative_path(v) for layer in layers for v in layer.weights} == set(names)
    assert len({theirs for theirs, _ in names.values()}) == len(names)
