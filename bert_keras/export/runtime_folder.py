"""A folder that answers without Keras: a program, a tokenizer, settings, and what reads them."""

import pathlib
import shutil

from bert_keras.engine.atomic_files import replacing_files, write_json
from bert_keras.export import program_formats as formats
from bert_keras.export import runtime
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.version import __version__

# Attributes of tasks that answers depend on; each task has some.
_SETTINGS = ("problem_type", "num_classes", "label_names", "num_windows", "stride")
_SETTINGS += ("max_question_length", "max_answer_length", "normalization", "no_answer_threshold")
_SETTINGS += ("temperature",)
_WEIGHTS = "model.onnx.data"
_ROLES = ("pad_token", "mask_token", "unknown_token")


def write_folder(model, folder, verbose=None):
    """Writes what `bert_keras.export.runtime.load` reads, all files or none.

    Args:
        model: a `BuiltModel`; its `answer_config()`, where it has one, returns further settings.
        folder: str or path, made when missing.
        verbose: see `keras.Model.export`.

    Raises:
        ValueError: the model has no tokenizer, or no answer that `runtime` knows, or its own or its
            preprocessor's class is the user's, so that `runtime` cannot know what it does with
            texts.
    """
    config = _config_of(model)
    formats.check_packages("onnx")
    folder = pathlib.Path(folder)
    # Another version's copy may have had further files.
    copied = [path.relative_to(folder) for path in folder.glob("answers/*.py")]
    with replacing_files(folder, stale=[_WEIGHTS, *copied]) as new:
        formats.write_onnx(model, str(new / "model.onnx"), verbose)
        model.preprocessor.save_assets(new)
        shutil.copyfile(runtime.__file__, new / "runtime.py")
        (new / "answers").mkdir()
        for path in pathlib.Path(runtime.answers.__file__).parent.glob("*.py"):
            shutil.copyfile(path, new / "answers" / path.name)
        write_json(new / "config.json", config)
        _split_off_weights(new / "model.onnx")


def _split_off_weights(path):
    """Moves a program's weights to a file of their own, which is then mapped instead of read."""
    import onnx

    program = onnx.load(path)
    path.with_name(_WEIGHTS).unlink(missing_ok=True)  # The library would append to it.
    onnx.save(program, path, save_as_external_data=True, location=_WEIGHTS)


def _config_of(model):
    preprocessor, name = getattr(model, "preprocessor", None), type(model).__name__
    is_composite = hasattr(model, "part_names") or getattr(model, "further_inputs", ())
    answers = [] if is_composite else runtime.answers_of(model)
    if preprocessor is None or not answers:
        raise ValueError(
            "A folder answers from text: it needs one task, with a preprocessor, that answers by "
            f"one of {', '.join(runtime.ANSWERS)}. Received: {name}. Export the program alone by a "
            "path that ends with .onnx, or one of the tasks that it is made of."
        )
    # The config holds what these classes do with texts, but not what another class does.
    modules = [getattr(type(model), method).__module__ for method in ("encode_texts", *answers)]
    if type(preprocessor) is not TextPreprocessor or not all(
        module.startswith("bert_keras.") for module in modules
    ):
        raise ValueError(
            "A folder answers as the package's own classes do with texts. Received: a "
            f"{name} with a {type(preprocessor).__name__}, which do it their own way. Export the "
            "program alone by a path that ends with .onnx."
        )
    tokenizer = preprocessor.tokenizer
    tokens = {role: getattr(tokenizer, role) for role in _ROLES}
    return {
        "format": runtime.FORMAT,
        "version": __version__,
        "task": name,
        "answers": answers,
        "max_length": preprocessor.max_length,
        "truncation": preprocessor.truncation,
        **tokenizer.layout._asdict(),
        **{f"{r}_id": token and tokenizer.token_to_id(token) for r, token in tokens.items()},
        "is_wordpiece": tokenizer.settings["model"]["type"] == "WordPiece",
        **{name: getattr(model, name) for name in _SETTINGS if hasattr(model, name)},
        **getattr(model, "answer_config", dict)(),
    }
