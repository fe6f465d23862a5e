"""A command's SOURCE: loading, describing and converting it.

Keras is imported only where it is needed: an exported folder does without it.
"""

import os
import pathlib
import warnings

import bert_keras
from bert_keras.engine.atomic_files import read_json
from bert_keras.export import runtime

# The formats of a model: the method that writes it, and its arguments.
TARGETS = {
    "keras": ("save", {}),
    "preset": ("save_to_preset", {}),
    "huggingface": ("export_to_huggingface", {}),
    "keras_hub": ("export_to_keras_hub", {}),
    "saved_model": ("export", {"format": "tf_saved_model", "verbose": False}),
    "litert": ("export", {"format": "litert", "verbose": False}),
    "onnx": ("export", {"format": "onnx", "verbose": False}),
    "openvino": ("export", {"format": "openvino", "verbose": False}),
}


def refuse_untrained(source, command, warned):
    """Raises `ValueError` if loading a model for a command warned of parts that start at random.

    Args:
        source: str.
        command: str, such as `"classify"`.
        warned: the warnings that `load` returned.
    """
    if not warned:
        return
    from bert_keras.cli.kinds import TASKS

    answered = (
        (name, kind.model_class.answerers[0].method, command) for name, kind in TASKS.items()
    )
    trained, advice = next((name for name, method, x in answered if method == x), None), ""
    if trained:
        advice = (
            f" Train a model first: `bert-keras train {trained} --preset {source} "
            f"--train_file FILE --output_dir output/mine`; `{command}` then takes output/mine."
        )
    raise ValueError(
        f"{source} lacks a part that `{command}` needs. {warned[0]}{advice} Or name a checkpoint "
        f"that was trained for `{command}`."
    )


def load(source, answerers=(), headless=()):
    """Returns a model and the warnings from loading it.

    Args:
        source: str, a `.keras` file, the folder of a run of `train`, or a source of `from_preset`.
        answerers: list of classes of answers, one of which the model must give; if the source holds
            no such task, it is loaded as a task of the first. `()` for the source's own class.
        headless: likewise, without `answerers`, if the source holds no task at all; `()` for its
            backbone.

    Raises:
        ValueError: the source is of a kind that cannot answer.
    """
    if runtime.is_exported(source):
        return runtime.load(source), []
    _check_source(source)

    from bert_keras.presets.presets import open_preset

    source = model_of_run(source)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        if str(source).endswith(".keras"):
            model = bert_keras.load_model(source)
        else:
            model = _class_of(open_preset(source), answerers, headless).from_preset(source)
    return model, [str(x.message) for x in caught if issubclass(x.category, UserWarning)]


def model_of_run(source):
    """Returns the best model's file for the folder of a run of `train`, else the source itself."""
    folder = pathlib.Path(source).expanduser()
    is_run = all((folder / name).is_file() for name in ("model.keras", "results.json"))
    return str(folder / "model.keras") if is_run else source


def name_of(model):
    """Returns the name of a model's class, of an exported task that of the task."""
    is_program = isinstance(model, runtime.ExportedTask)
    return model.config["task"] if is_program else type(model).__name__


def thresholds_of(source):
    """Returns the thresholds that `train` tuned, a dict by label; `None` if source has none.

    Only the folder of a run has them.
    """
    path = pathlib.Path(source).expanduser() / "thresholds.json"
    return read_json(path) if model_of_run(source) != source and path.is_file() else None


def _check_source(source):
    """Refuses a program alone, which has no tokenizer, and a run that has no model yet."""
    folder = pathlib.Path(source).expanduser()
    has_model = any([*folder.glob("model.keras"), *folder.glob("*config.json")])
    path = folder / "results.json"
    results = read_json(path) if path.is_file() and not has_model else {}
    if isinstance(results, dict) and {"settings", "trials"} <= results.keys():
        raise FileNotFoundError(
            f"{source} is a run of `train` that is not finished and has no model yet. Continue it "
            f"with the same command and --output_dir {source} --resume."
        )
    is_program = source.endswith((".onnx", ".tflite", ".xml"))
    if is_program or os.path.isfile(os.path.join(source, "saved_model.pb")):
        raise ValueError(
            f"{source} is a program without a tokenizer, which cannot answer. Pass the model that "
            "it was made from, or a folder written by `convert SOURCE TARGET --to onnx`."
        )


def tasks_of(answerers):
    """Returns the package's tasks that mainly answer by one of some classes."""
    tasks = [x for x in vars(bert_keras).values() if isinstance(x, type) and "answerers" in vars(x)]
    return tuple(task for cls in answerers for task in tasks if cls in task.answerers[:1])


def _class_of(preset, answerers, headless):
    from bert_keras.models.backbone import Backbone

    name = preset.task_name()
    saved_class = preset.registered_class(name, object) if name else None
    if not answerers and (saved_class is not None or not headless):
        return saved_class or preset.registered_class(preset.backbone_name, Backbone)
    tasks = tasks_of(answerers or headless)
    return saved_class if saved_class is not None and issubclass(saved_class, tasks) else tasks[0]


def description(source):
    """Returns a description of a source, a dict of the values to show."""
    model, warned = load(source)
    if isinstance(model, runtime.ExportedTask):
        size = sum(path.stat().st_size for path in pathlib.Path(source).rglob("*.*"))
        return {**model.config, "size": f"{size:,} bytes"}
    backbone = getattr(model, "backbone", model)
    preprocessor = getattr(model, "preprocessor", None)
    tokenizer = getattr(preprocessor, "tokenizer", None)
    sizes = {name: x for name, x in backbone.get_config().items() if type(x) in (int, float, str)}
    facts = {
        "model": type(model).__name__,
        "backbone": type(backbone).__name__,
        **{name: size for name, size in sizes.items() if name not in ("name", "dtype")},
        "head": (hasattr(model, "head") and type(model.head).__name__) or None,
        "parameters": f"{model.count_params():,}",
        "dtype": backbone.dtype_policy.name,
        "labels": getattr(model, "label_names", None) and ", ".join(map(str, model.label_names)),
        "problem_type": getattr(model, "problem_type", None),
        "tokenizer": tokenizer
        and f"{type(tokenizer).__name__}, {tokenizer.vocabulary_size} tokens",
        "max_length": preprocessor and preprocessor.max_length,
        "not loaded": " ".join(warned) or None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def convert(source, target, to):
    """Writes a source in another format.

    Args:
        source: str.
        target: str.
        to: one of `TARGETS`.

    Returns:
        The warnings from reading the source.

    Raises:
        ValueError: the format does not support the model.
    """
    model, warned = load(source)
    if isinstance(model, runtime.ExportedTask):
        raise ValueError(
            f"{source} holds a program, which cannot be converted. Pass the model that it was made "
            "from."
        )
    method, arguments = TARGETS[to]
    getattr(model, method)(target, **arguments)
    return warned
