"""A task from a preset: open it, read its settings, make the model, and fill it."""

from bert_keras.engine.atomic_files import reading, retry_if_changed
from bert_keras.migration_hints import renamed_argument
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.presets.assign import NewHead, head_weights, warn
from bert_keras.presets.presets import open_preset
from bert_keras.signatures import parameters_of


@retry_if_changed
def load_task(cls, preset, load_weights, arguments):
    """Returns a task of a class, or of the user's subclass of it that the preset was saved by.

    Args:
        cls: subclass of `Task`.
        preset: see `Task.from_preset`.
        load_weights: bool.
        arguments: dict, the keywords that `Task.from_preset` received.
    """
    source = open_preset(preset)
    cls = source.task_class(cls)
    names = arguments.get("label_names")
    if names is not None and "num_classes" in cls.argument_names():
        arguments = {"num_classes": len(names), **arguments}
    backbone_class = source.registered_class(source.backbone_name, Backbone)
    own, options, of_backbone = _split_arguments(cls, backbone_class, arguments)
    with reading(source.folder):
        saved = source.task_arguments(cls, arguments)
    saved, changed = _saved_settings(cls, saved, {**cls.decided_arguments, **arguments})
    backbone = source.backbone(backbone_class, load_weights, of_backbone)
    is_as_saved = own.keys() <= {"preprocessor"}
    if "preprocessor" not in own:
        own["preprocessor"] = _preset_preprocessor(source, cls, backbone, options)
    settings = _with_defaults(cls, source, {**saved, **own}, load_weights)
    # A head from the preset must not be larger than the preset's weights; a new one may be.
    is_preset_head = load_weights and saved and not changed
    with (
        source.limiting_parameters(is_preset_head),
        reading(source.folder if is_as_saved else None),
    ):
        task = cls(backbone, **settings)
    if load_weights:
        with reading(source.folder):
            source.load_backbone_weights(backbone, task)
            if not changed:
                source.load_head_weights(task)
        if changed and head_weights(task):
            rule = f"The preset's head has other {changed} than requested"
            warn(f"{rule}, so the new head starts at random and needs training.", NewHead)
    return task


def _saved_settings(cls, saved, requested):
    """Returns a preset's settings that still apply, and the names of those requested otherwise.

    With other classes or another pooling, the preset's head is of no use.

    Args:
        cls: class of the task.
        saved: dict, the preset's settings of the task.
        requested: dict, the arguments that the class and the user decide.

    Raises:
        ValueError: the labels are those of the preset in another order.
    """
    changed = []
    for name in cls.head_config_keys:
        if name in requested and name in saved and requested[name] != saved[name]:
            changed.append(name)
    names, saved_names = requested.get("label_names"), saved.get("label_names")
    if names is not None and saved_names is not None and list(saved_names) != list(names):
        if sorted(map(str, saved_names)) == sorted(map(str, names)):
            raise ValueError(
                "The head that comes with the preset has its labels in the order "
                f"{list(saved_names)}. Received label_names={list(names)}. Keep the preset's "
                "order, or use other names for other labels."
            )
        changed += [] if "num_classes" in changed else ["label_names"]
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
    if "pooling" not in settings and "pooling" in parameters:
        with reading(source.folder):
            pooling = source.pooling_of_new_head(cls, load_weights)
        settings |= {} if pooling is None else {"pooling": pooling}
    required = [name for name, x in parameters.items() if x.default is x.empty]
    if missing := [name for name in required if name not in {"backbone", *settings}]:
        absence = f"no head for a {cls.__name__}, which would set {missing}"
        raise TypeError(f"{source.source} has {absence}. Pass {missing} to `from_preset`.")
    return settings


def _split_arguments(cls, backbone_class, arguments):
    """Returns three dicts of arguments: the task's, the preprocessor's and the backbone's.

    The user passes those of the backbone as a dict, since they could contradict the checkpoint.
    """
    backbone, settings = arguments.get("backbone", {}), backbone_class.argument_names() - {"name"}
    if not isinstance(backbone, dict) or not backbone.keys() <= settings:
        raise TypeError(
            f"`backbone` must be a dict with some of {sorted(settings)}. Received: "
            f"{backbone!r:.200}. A task on a backbone of your own: {cls.__name__}(backbone)."
        )
    of_task = cls.argument_names() - {"backbone"}
    of_preprocessor = parameters_of(TextPreprocessor)[0].keys() - {"tokenizer", "input_names"}
    for name, value in arguments.items():
        if name in {"backbone", *of_task, *of_preprocessor}:
            continue
        anyway = f" The backbone's: backbone={{{name!r}: {value!r}}}." if name in settings else ""
        raise TypeError(
            f"{cls.__name__}.from_preset has no argument {name!r}.{anyway}{renamed_argument(name)} "
            f"It takes those of the task, {sorted(of_task)}, of the preprocessor, "
            f"{sorted(of_preprocessor)}, and `backbone`, a dict of {sorted(settings)}."
        )
    if "dtype" in arguments:
        backbone = {"dtype": arguments["dtype"], **backbone}
    own = {name: value for name, value in arguments.items() if name in of_task}
    return own, {name: arguments[name] for name in arguments.keys() & of_preprocessor}, backbone


def _preset_preprocessor(source, cls, backbone, arguments):
    with reading(None if arguments else source.folder):
        config = source.preprocessor_config
        if config is None:
            tokenizer = source.tokenizer()
            limits = {source.max_length(cls, tokenizer), backbone.max_sequence_length} - {None}
            if limits:
                arguments = {"max_length": min(limits), **arguments}
            return TextPreprocessor(tokenizer, **arguments)
        name, saved = config
        preprocessor_class = source.registered_class(name, TextPreprocessor)
        preprocessor = preprocessor_class.from_config({**saved, **arguments})
        preprocessor.load_assets(source.folder)
        return preprocessor
