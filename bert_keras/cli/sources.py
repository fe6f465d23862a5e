"""A command's SOURCE: loading, describing and converting it.

Keras is imported only where it is needed: an exported folder does without it.
"""

import os
import pathlib
import warnings

import bert_keras
from bert_keras.engine.atomic_files import make_folder_of, read_json
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


def load(source, answerers=(), headless=(), command=None):
    """Returns a model and the warnings from loading it.

    Args:
        source: str, a `.keras` file, the folder of a run of `train`, or a source of `from_preset`.
        answerers: list of classes of answers, one of which the model must give; if the source holds
            no such task, it is loaded as a task of the first. `()` for the source's own class.
        headless: likewise, without `answerers`, if the source holds no task at all; `()` for its
            backbone.
        command: str, such as `"classify"`, which needs all parts of the model; `None` for one that
            does not.

    Raises:
        ValueError: the source is of a kind that cannot answer, or a part that the command needs
            would start at random.
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
    warned = [str(x.message) for x in caught if issubclass(x.category, UserWarning)]
    if command is None or not warned:
        return model, warned
    from bert_keras.cli.kinds import KINDS

    tasks, advice = {x.model_class.answerers[0].method: x.name for x in KINDS[::-1]}, ""
    if command in tasks:
        advice = (
            f" Train a model first: `bert-keras train {tasks[command]} --preset {source} "
            f"--train_file FILE --output_dir output/mine`; `{command}` then takes output/mine."
        )
    raise ValueError(
        f"{source} lacks a part that `{command}` needs. {warned[0]}{advice} Or name a checkpoint "
        f"that was trained for `{command}`."
    )


def model_of_run(source):
    """Returns the best model's file for the folder of a run of `train`, else the source itself."""
    folder = pathlib.Path(source).expanduser()
    is_run = all((folder / name).is_file() for name in ("model.keras", "results.json"))
    return str(folder / "model.keras") if is_run else source


def name_of(model):
    """Returns the name of a model's class, of an exported task that of the task."""
    is_program = isinstance(model, runtime.ExportedTask)
    return model.config["task"] if is_program else type(model).__name__


def read_from_run(source, name):
    """Returns the value of a JSON file in the folder of a run of `train`, `{}` if there is none."""
    path = pathlib.Path(source).expanduser() / name
    return read_json(path) if model_of_run(source) != source and path.is_file() else {}


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


def _class_of(preset, answerers, headless):
    from bert_keras.models.backbone import Backbone

    name = preset.task_name()
    saved_class = preset.registered_class(name, object) if name else None
    if not answerers and (saved_class is not None or not headless):
        return saved_class or preset.registered_class(preset.backbone_name, Backbone)
    tasks = [x for x in vars(bert_keras).values() if isinstance(x, type) and "answerers" in vars(x)]
    tasks = tuple(x for cls in answerers or headless for x in tasks if cls in x.answerers[:1])
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


def convert(source, target, to, overwrite=False):
    """Writes a source in another format, and prints the warnings from reading it.

    Args:
        source: str.
        target: str.
        to: one of `TARGETS`.
        overwrite: bool, whether to replace what is there.

    Raises:
        FileExistsError: there is a target already.
        ValueError: the format does not support the model.
    """
    if os.path.exists(target) and not overwrite:
        raise FileExistsError(f"{target} exists. --overwrite replaces it.")
    model, warned = load(source)
    if isinstance(model, runtime.ExportedTask):
        raise ValueError(
            f"{source} holds a program, which cannot be converted. Pass the model that it was made "
            "from."
        )
    make_folder_of(target)
    method, arguments = TARGETS[to]
    getattr(model, method)(target, **arguments)
    print(*warned, f"Wrote {target}.", sep="\n")
