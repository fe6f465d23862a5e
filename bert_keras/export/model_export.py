"""Exports a model in any format; existing files are replaced, all of them or none."""

import pathlib

import keras
from absl import logging

from bert_keras.engine.atomic_files import replacing, replacing_files
from bert_keras.export import program_formats as formats
from bert_keras.export import text_program
from bert_keras.export.runtime_folder import write_folder

_SAVED_MODEL = ("saved_model.pb", "fingerprint.pb", "variables", "assets")


def export(model, filepath, format, verbose, text):
    """Writes a model as a program or a folder, see `ExportMixin.export`.

    Args:
        model: a `BuiltModel`.
        filepath: str or path.
        format: one of `program_formats.FORMATS`.
        verbose: bool; `False` prints nothing at the end.
        text: bool, whether the program takes texts.
    """
    if text:
        text_program.check(model, format)
        format = "texts"
    elif format == "onnx" and not str(filepath).endswith(".onnx"):
        write_folder(model, filepath, verbose)
        return
    else:
        formats.check_format(format, filepath)
    formats.check_packages(format)
    path = pathlib.Path(filepath).resolve()  # A link to a file stays a link.
    if format in ("onnx", "openvino"):
        weights = f"{path.name}.data" if format == "onnx" else f"{path.stem}.bin"
        with replacing_files(path.parent, [weights], index=path.name) as folder:
            formats.write(format, model, str(folder / path.name), verbose)
    else:
        is_file = format == "litert"
        with replacing(path) if is_file else replacing_files(path, _SAVED_MODEL) as temporary:
            formats.write(format, model, str(temporary), verbose)
    if verbose is not False:
        say = print if keras.config.is_interactive_logging_enabled() else logging.info
        say(f"Saved {format} at '{filepath}'.")
