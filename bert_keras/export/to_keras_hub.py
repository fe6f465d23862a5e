"""Writes a KerasHub preset, without KerasHub."""

import io
import pathlib

import h5py
import keras
import ml_dtypes

from bert_keras.checks import check_choice, check_int
from bert_keras.engine.atomic_files import replacing_files, write_json
from bert_keras.export import keras_hub_tokenizer as tokenizers
from bert_keras.presets.assign import by_path, head_weights, warn
from bert_keras.presets.formats import checkpoint as base
from bert_keras.presets.formats import keras_hub as names
from bert_keras.presets.model_card import write_card
from bert_keras.presets.name_map import expand
from bert_keras.presets.safetensors_io import weights_files
from bert_keras.tokenizers.keras_hub_settings import ASSETS
from bert_keras.tokenizers.tokenizer_files import TOKENIZER_FILES

_THERE = "KerasHub"


def export_to_keras_hub(model, folder):
    """Writes a preset that `keras_hub.models....from_preset` loads, with adapters merged.

    Args:
        model: a backbone or a task of a family that has a record of this format.
        folder: str or path, made if missing. All files are replaced or, after an error, none.

    Raises:
        ValueError: the model is quantized, or KerasHub has no model with equal numbers.
    """
    model = base.merged(model)
    backbone = getattr(model, "backbone", model)
    task = None if backbone is model else model
    record, head = base.counterpart(model, _THERE, "KERAS_HUB")
    preprocessor = getattr(task, "preprocessor", None)
    family, files = _family(record, preprocessor), {}
    class_name = family + ("Backbone" if head is None else head.architecture[0])
    config = {"dtype": keras.dtype_policies.serialize(backbone.dtype_policy)}
    config |= base.written_config(record, backbone, _THERE)
    advice = f"{_THERE} needs it. Use `save_to_preset` or `export_to_huggingface`."
    check_int("num_segments", config.get("num_segments", 2), 2, advice=advice)
    configs = {"config.json": _serialized(f"{family}Backbone", config)}
    weights = {names.WEIGHTS: _backbone_tensors(record, backbone, task)}
    if task is not None:
        rows = expand(head.rows, names.KINDS)
        weights[names.TASK_WEIGHTS] = _tensors(head_weights(task), rows, backbone)
        arguments = {
            **_task_arguments(task, head),
            "backbone": configs["config.json"],
            "preprocessor": None,
        }
        if preprocessor is not None:
            settings, files = tokenizers.to_keras_hub(preprocessor.tokenizer)
            configs["tokenizer.json"] = _serialized(f"{family}Tokenizer", settings)
            packing = {"tokenizer": configs["tokenizer.json"], **_packing(task, head)}
            arguments["preprocessor"] = _serialized(f"{class_name}Preprocessor", packing)
            configs[names.PREPROCESSOR] = arguments["preprocessor"]
        configs[names.TASK] = _serialized(class_name, arguments)
    configs[names.METADATA] = {
        "keras_version": keras.version(),
        "parameter_count": backbone.count_params(),
        "tasks": [each.architecture[0] for each in record.heads.values()],
        names.LABELS: getattr(task, "label_names", None),
    }
    code = f'import keras_hub\n\nmodel = keras_hub.models.{class_name}.from_preset(".")'
    shards = [path.name for path in pathlib.Path(folder).glob("model_*.weights.h5")]
    stale = (*names.FILES, *shards, *weights_files(folder), *TOKENIZER_FILES)
    with replacing_files(folder, stale=stale) as new:
        for name, tensors in weights.items():
            if tensors:
                (new / name).write_bytes(_hdf5(tensors))
        for name, data in files.items():
            (new / ASSETS).mkdir(parents=True, exist_ok=True)
            (new / ASSETS / name).write_bytes(data)
        for name, value in configs.items():
            write_json(new / name, value)
        write_card(new, model, folder, "keras-hub", code)


def _family(record, preprocessor):
    """Returns the prefix of class names in KerasHub; the tokenizer decides between several."""
    families = list(record.names.values())
    if preprocessor is None:
        return families[0]
    family_of = {record.tokenizers[family]: family for family in reversed(families)}
    advice = "Set the task's `preprocessor` to None to export it for ready inputs."
    kind = preprocessor.tokenizer.settings["model"]["type"]
    return family_of[check_choice("type of the tokenizer", kind, family_of, advice)]


def _serialized(class_name, config):
    return {
        "module": "keras_hub.models",
        "class_name": class_name,
        "config": config,
        "registered_name": f"keras_hub>{class_name}",
    }


def _backbone_tensors(record, backbone, task):
    rows = expand(record.rows, names.KINDS, record.counts, backbone)
    variables = by_path(backbone.weights)
    left_out = [p for p in variables if p not in rows and p.startswith(base.POOLER)]
    if left_out and task is None:
        warn(f"{_THERE} has no place for {left_out}, which are left out: it has no pooler here.")
    written = {path: variable for path, variable in variables.items() if path not in left_out}
    tensors = _tensors(written, rows, backbone)
    return tensors if record.tables is None else record.tables.write(tensors, backbone)


def _tensors(variables, rows, backbone):
    """Returns the variables' values as KerasHub's arrays, by their paths in a weights file."""
    found = base.tensors_of(variables, rows, _THERE, "Use `save_to_preset`.", backbone.num_heads)
    # HDF5 has no bfloat16.
    return {
        names.without_first(name): x.astype("float32") if x.dtype == ml_dtypes.bfloat16 else x
        for name, x in found.items()
    }


def _task_arguments(task, head):
    """Returns the arguments of KerasHub's task."""
    config, arguments = task.get_config(), {}
    if hasattr(task, "num_classes"):
        arguments["num_classes"] = task.num_classes
        if task.problem_type == "regression":
            advice = f"A regression gives one score in {_THERE}. Export the backbone instead."
            check_int("num_classes", task.num_classes, most=1, advice=advice)
        is_multi_label = task.problem_type == "multi_label"
        arguments["activation"] = (
            "sigmoid" if is_multi_label else getattr(task, "activation", "linear")
        )
    for name, key in (("dropout", head.dropout), ("pooling", head.pooling), ("normalize",) * 2):
        if key and name in config:
            arguments[key] = config[name]
    if head.pooling:
        check_choice("pooling", config["pooling"], ("cls", "max", "mean"), f"{_THERE} has these.")
    return arguments


def _packing(task, head):
    """Returns the arguments of KerasHub's preprocessor."""
    preprocessor = task.preprocessor
    advice = f"{_THERE} truncates texts in no other of our ways."
    check_choice("truncation", preprocessor.truncation, ("longest_first",), advice)
    arguments = {"sequence_length": preprocessor.max_length, "truncate": "round_robin"}
    if hasattr(task, "masking"):
        masking = task.masking
        advice = f"{_THERE} masks pieces. Train with that, or export the backbone."
        check_choice("strategy", masking.strategy, ("pieces",), advice)
        arguments |= {theirs: getattr(masking, ours) for theirs, ours in names.MASKING.items()}
        arguments["mask_selection_length"] = masking.num_predictions(preprocessor.max_length)
    return arguments


def _hdf5(tensors):
    """Returns the bytes of a weights file from memory: on a full disk HDF5 ends the process."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for name, array in tensors.items():
            file[name] = array
    return buffer.getbuffer()
