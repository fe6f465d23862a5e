"""A folder that answers without Keras: a program, a tokenizer, settings, and their reader."""

import shutil

from bert_keras.engine.atomic_files import replacing_files, write_json
from bert_keras.export import program_formats as formats
from bert_keras.export import runtime
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.version import __version__

# What answers depend on, of those tasks that have it.
_SETTINGS = ("problem_type", "num_classes", "label_names", "num_windows", "stride")
_SETTINGS += ("max_question_length", "max_answer_length", "normalization", "no_answer_threshold")
_WEIGHTS = "model.onnx.data"
_ROLES = ("pad_token", "mask_token", "unknown_token")


def write_folder(model, folder, verbose=None):
    """Writes what `bert_keras.export.runtime.load` reads, all files or none.

    Args:
        model: a `BuiltModel`; further settings are what its `answer_config()` returns.
        folder: str or path, made when missing.
        verbose: see `keras.Model.export`.

    Raises:
        ValueError: the model has no tokenizer, or no answer that `runtime` knows, or a class that
            is not the package's own does with texts what `runtime` cannot know.
    """
    config = _config_of(model)
    formats.check_packages("onnx")
    with replacing_files(folder, stale=[_WEIGHTS]) as new:
        formats.write_onnx(model, str(new / "model.onnx"), verbose)
        model.preprocessor.save_assets(new)
        shutil.copyfile(runtime.__file__, new / "runtime.py")
        write_json(new / "config.json", config)
        _part(new / "model.onnx")


def _part(path):
    """Moves the weights of a program into a file of their own, which is mapped instead of read."""
    import onnx

    program = onnx.load(path)
    path.with_name(_WEIGHTS).unlink(missing_ok=True)  # It would be written on.
    onnx.save(program, path, save_as_external_data=True, location=_WEIGHTS)
    if path.with_name(_WEIGHTS).exists():  # A tiny model has none that are worth it.
        shutil.copymode(path.with_name("config.json"), path.with_name(_WEIGHTS))


def _config_of(model):
    preprocessor, name = getattr(model, "preprocessor", None), type(model).__name__
    is_more = hasattr(model, "part_names") or getattr(model, "further_inputs", ())
    answers = [] if is_more else runtime.answers_of(model)
    if preprocessor is None or not answers:
        raise ValueError(
            "A folder answers from text: it needs one task, with a preprocessor, that answers by "
            f"one of {', '.join(runtime.ANSWERS)}. Received: {name}. Export the program alone by a "
            "path that ends with .onnx, or one of the tasks that it is made of."
        )
    # What these do with texts stands in the config, what another class does does not.
    ways = [getattr(type(model), method).__module__ for method in ("encode_texts", *answers)]
    if type(preprocessor) is not TextPreprocessor or not all(
        way.startswith("bert_keras.") for way in ways
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
