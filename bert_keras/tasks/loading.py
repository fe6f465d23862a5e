"""A task from a preset, with or without its head."""

import numpy as np

from bert_keras.engine.atomic_files import reading, retry_if_changed
from bert_keras.migration_hints import renamed_argument
from bert_keras.models.backbone import Backbone
from bert_keras.models.model import arguments_of
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.presets import presets
from bert_keras.presets.assign import NewHead, head_weights, warn


@retry_if_changed
def load_task(cls, preset, load_weights, arguments):
    """Returns a task of a class, or of the user's subclass of it that the preset was saved by.

    Args:
        cls: subclass of `Task`.
        preset: see `Task.from_preset`.
        load_weights: bool.
        arguments: dict, the keywords that `Task.from_preset` received.
    """
    source = presets.open_preset(preset)
    cls = source.task_class(cls)
    passed = _split_arguments(cls, source.backbone_class(Backbone), arguments)
    saved, changed = _saved_settings(cls, source, arguments)
    backbone = source.backbone(Backbone, load_weights, passed["backbone"])
    if "preprocessor" not in arguments:
        options = passed["preprocessor"]
        passed["task"]["preprocessor"] = _preset_preprocessor(source, cls, backbone, options)
    settings = _with_defaults(cls, source, {**saved, **passed["task"]}, load_weights)
    # A head from the preset must not be larger than the preset's weights; a new one may be.
    is_preset_head = load_weights and saved and not changed
    is_as_saved = passed["task"].keys() <= {"preprocessor"}
    with (
        source.limiting_parameters(is_preset_head),
        reading(source.folder if is_as_saved else None),
    ):
        task = cls(backbone, **settings)
    if load_weights:
        _load_weights(source, backbone, task, changed)
    return task


def _saved_settings(cls, source, arguments):
    """Returns a preset's settings of a task, and the arguments that its head cannot have."""
    with reading(source.folder):
        saved = source.task_arguments(cls, arguments)
    changed = _changed_head_arguments(cls, saved, {**cls.decided_arguments, **arguments})
    dropped = {"name", *cls.decided_arguments}
    if {"num_classes", "label_names"} & set(changed):
        dropped |= {"num_classes", "label_names", "temperature"}
        # A regression's scores are not classes, so the default type of problem takes its place.
        if saved.get("problem_type") == "regression":
            dropped.add("problem_type")
    if "pooling" in changed:
        dropped.add("head_options")
    return {name: value for name, value in saved.items() if name not in dropped}, changed


def _with_defaults(cls, source, settings, load_weights):
    """Returns settings with the pooling of a new head; raises if a required one is missing."""
    parameters = cls.parameters_of_constructor()
    pooling = parameters.get("pooling")
    # An embedder has a default of its own.
    if "pooling" not in settings and pooling is not None and pooling.default is None:
        with reading(source.folder):
            pooling = source.pooling_of_new_head(cls, load_weights)
        settings |= {} if pooling is None else {"pooling": pooling}
    supplied = {"backbone", *settings}
    if missing := [n for n, p in parameters.items() if p.default is p.empty and n not in supplied]:
        absence = f"no head for a {cls.__name__}, which would set {missing}"
        raise TypeError(f"{source.source} has {absence}. Pass {missing} to `from_preset`.")
    return settings


def _load_weights(source, backbone, task, changed):
    """Loads the backbone, and the head unless it was changed; a warning says if the head is new."""
    with reading(source.folder):
        source.load_backbone_weights(backbone, task)
        if not changed:
            source.load_head_weights(task)
    if changed and head_weights(task):
        rule = f"The preset's head has other {changed} than requested"
        warn(f"{rule}, so the new head starts at random and needs training.", NewHead)


def _split_arguments(cls, backbone_class, arguments):
    """Returns three dicts of arguments: those of `task`, of `backbone` and of `preprocessor`.

    The user passes those of the backbone as a dict, since they could contradict the checkpoint.
    """
    arguments = dict(arguments)
    backbone = arguments.pop("backbone", {})
    names_of = {
        "task": arguments_of(cls) - {"backbone"},
        "preprocessor": arguments_of(TextPreprocessor) - {"tokenizer", "input_names"},
    }
    settings = arguments_of(backbone_class) - {"name"}
    if not isinstance(backbone, dict) or not backbone.keys() <= settings:
        raise TypeError(
            f"`backbone` must be a dict with some of {sorted(settings)}. Received: "
            f"{backbone!r:.200}. A task on a backbone of your own: {cls.__name__}(backbone)."
        )
    for name, value in arguments.items():
        if any(name in names for names in names_of.values()):
            continue
        anyway = f" The backbone's: backbone={{{name!r}: {value!r}}}." if name in settings else ""
        raise TypeError(
            f"{cls.__name__}.from_preset has no argument {name!r}.{anyway}{renamed_argument(name)} "
            f"It takes those of the task, {sorted(names_of['task'])}, of the preprocessor, "
            f"{sorted(names_of['preprocessor'])}, and `backbone`, a dict of {sorted(settings)}."
        )
    if "num_classes" in names_of["task"] and arguments.get("label_names") is not None:
        arguments = {"num_classes": len(arguments["label_names"]), **arguments}
    arguments_by_owner = {
        part: {name: value for name, value in arguments.items() if name in names}
        for part, names in names_of.items()
    }
    if "dtype" in arguments:
        backbone = {"dtype": arguments["dtype"], **backbone}
    return {**arguments_by_owner, "backbone": backbone}


def _changed_head_arguments(cls, saved, arguments):
    """Returns the arguments that rule out the preset's head: other classes, another pooling."""
    requested = dict(arguments)
    names = requested.get("label_names")
    if names is not None:
        requested.setdefault("num_classes", len(names))
    changed = [
        name
        for name in cls.head_config_keys
        if name in requested and name in saved and requested[name] != saved[name]
    ]
    saved_names = saved.get("label_names")
    if names is None or saved_names is None or list(saved_names) == list(names):
        return changed
    if sorted(map(str, saved_names)) == sorted(map(str, names)):
        raise ValueError(
            f"The head that comes with the preset has its labels in the order {list(saved_names)}. "
            f"Received label_names={list(names)}. Keep the preset's order, or use other names for "
            "other labels."
        )
    return changed if "num_classes" in changed else [*changed, "label_names"]


def _preset_preprocessor(source, cls, backbone, arguments):
    with reading(None if arguments else source.folder):
        config = source.preprocessor_config(cls)
        if config is None:
            tokenizer = source.tokenizer()
            preset_limit = source.max_length(cls) or tokenizer.model_max_length
            limits = (preset_limit, backbone.max_sequence_length)
            longest = min((limit for limit in limits if limit), default=np.inf)
            length = {} if longest == np.inf else {"max_length": int(longest)}
            return TextPreprocessor(tokenizer, **{**length, **arguments})
        preprocessor_class = source.registered_class(config["registered_name"], TextPreprocessor)
        preprocessor = preprocessor_class.from_config({**config["config"], **arguments})
        preprocessor.load_assets(source.folder)
        return preprocessor
