"""Exports a model in any format; existing files are replaced, all of them or none."""

import pathlib

import keras
from absl import logging

from bert_keras.checks import refuse_options
from bert_keras.engine.atomic_files import replacing, replacing_files
from bert_keras.export import program_formats as formats
from bert_keras.export import text_program
from bert_keras.export.runtime_folder import write_folder

_SAVED_MODEL = ("saved_model.pb", "fingerprint.pb", "variables", "assets")


def export(model, filepath, format, verbose=None, input_signature=None, *, text=False, **options):
    """Writes a model as a program or a folder, see `ExportMixin.export`.

    Args:
        model: a `BuiltModel`.
        filepath: str or path.
        format: one of `program_formats.FORMATS`.
        verbose: bool; `False` prints nothing at the end.
        input_signature, **options: arguments of the format's writer.
        text: bool, whether the program takes texts.
    """
    if text:
        text_program.check(model, format, input_signature, options)
        return _write_program(model, filepath, "texts", verbose)
    if format in ("onnx", "openvino"):
        rule = f"{format!r} is exported for any number of rows and tokens, without arguments"
        unused = {"input_signature": input_signature, **options}
        refuse_options(rule, unused, "Leave them out.")
    else:
        options = {"input_signature": input_signature, **options}
    if format == "onnx" and not str(filepath).endswith(".onnx"):
        return write_folder(model, filepath, verbose)
    formats.check_format(format, filepath, options)
    _write_program(model, filepath, format, verbose, **options)


def _write_program(model, filepath, format, verbose, **options):
    """Writes a program; existing files are replaced, all of them or none."""
    formats.check_packages(format)
    path = pathlib.Path(filepath).resolve()  # A link to a file stays a link.
    files = {
        "tf_saved_model": lambda: replacing_files(path, _SAVED_MODEL),
        "texts": lambda: replacing_files(path, _SAVED_MODEL),
        "onnx": lambda: replacing_files(path.parent, [f"{path.name}.data"], index=path.name),
        "openvino": lambda: replacing_files(path.parent, [f"{path.stem}.bin"], index=path.name),
    }
    with files.get(format, lambda: replacing(path))() as temporary:
        if format in ("onnx", "openvino"):
            temporary /= path.name
        formats.write(format, model, str(temporary), verbose, **options)
    if verbose is not False:
        say = print if keras.config.is_interactive_logging_enabled() else logging.info
        say(f"Saved {format} at '{filepath}'.")
