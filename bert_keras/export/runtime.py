"""Answers of an exported task without Keras: onnxruntime, tokenizers and NumPy are all it needs.

`task.export("served", format="onnx")` writes a folder with a copy of this file, which answers where
this package is not installed, from the shell too:

    python served/runtime.py "What a film!" "Never again."

| in the folder | what it is |
|---|---|
| `model.onnx` | from `token_ids`, `padding_mask`, `segment_ids` to logits, spans or vectors |
| `tokenizer.json` | from texts to ids, as the `tokenizers` library reads it |
| `config.json` | how the task answers: its answerers, their settings, special tokens and lengths |
| `runtime.py` | this file |
| `library/` | from texts to rows, from arrays to answers: copies of the modules that this needs |
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bert_keras.types import Path

# Raised when a key of `config.json` gets another meaning.
FORMAT = 3
# The most numbers that a call of a language model returns: 128 MiB of float32.
_VALUES_AT_ONCE = 2**25


def _package() -> str:
    """Returns the name of the package: this library, or its copy in an exported folder."""
    if __package__ == "bert_keras.export":
        return "bert_keras"
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "library")
    # Under a name of its own, since a program may load several folders.
    name = f"library_{zlib.crc32(folder.encode())}"
    options = {"submodule_search_locations": [folder]}
    path = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(name, path, **options)
    package = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    return name


PACKAGE = _package()


def load(folder: Path, providers: Iterable[str] = ("CPUExecutionProvider",)) -> ExportedTask:
    """Returns the exported task of a folder.

    Args:
        folder: str or path, which a task's `export(folder, format="onnx")` wrote.
        providers: names of execution providers, see `onnxruntime.InferenceSession`.

    Returns:
        An `ExportedTask`.

    Raises:
        ImportError: onnxruntime is not installed.
        ValueError: the folder is of another kind, or of another version.

    Example:
    ```python
    from bert_keras.export import runtime

    classifier = runtime.load("served")
    classifier.classify(["What a film!", "Never again."])
    ```
    """
    return ExportedTask(folder, providers)


def is_exported(folder: Path) -> bool:
    """Returns whether an export wrote a folder: other folders have files of the same names."""
    return "format" in _config_of(folder)


def _config_of(folder):
    """Returns the dict in config.json beside a program; `{}` where there is no such dict."""
    try:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    is_dict = isinstance(config, dict) and os.path.isfile(os.path.join(folder, "model.onnx"))
    return config if is_dict else {}


class _UnknownAnswer(ValueError):
    """A folder answers by a class that this program has not imported."""


def _answerers_of(config, folder):
    """Returns the classes of the answers in a config, a dict by the names of their methods.

    Those of this package are imported. Another is the user's: its module is imported from the
    folder only by the folder's own runtime.py; elsewhere, the program must have imported it.
    """
    answerers = importlib.import_module(f"{PACKAGE}.answers.answerer")
    found = {}
    for name in config["answerers"]:
        module, _, class_name = name.rpartition(".")
        is_own = not module.startswith("bert_keras.answers.")
        if is_own and PACKAGE == "bert_keras":
            cls = answerers.KNOWN.get(name)
        else:
            module = "answers.own" if is_own else module.removeprefix("bert_keras.")
            cls = getattr(importlib.import_module(f"{PACKAGE}.{module}"), class_name, None)
        if cls is None or not issubclass(cls, answerers.Answerer):
            raise _UnknownAnswer(
                f"{folder} answers by {name}, which this program does not know. Import its module "
                "first, or load the folder by the runtime.py in it."
            )
        found[cls.method] = cls
    return found


class ExportedTask:
    """Answers as the exported task does, by the methods that `answers` names.

    `task.classify(...)`, `task.tag(...)`, ... take what the task's methods of these names take.

    Attributes:
        answers: list of str, the names of the methods.
        answerers: dict, name of a method -> its `bert_keras.answers.answerer.Answerer`.
        config: dict, the content of config.json.
        tokenizer: a `bert_keras.tokenizers.text_encoder.TextEncoder`.

    Args:
        folder, providers: see `load`.
    """

    def __init__(self, folder: Path, providers: Iterable[str] = ("CPUExecutionProvider",)) -> None:
        import onnxruntime

        self.config = config = _config_of(folder)
        if "format" not in config:
            raise ValueError(
                "A folder that `export(folder, format='onnx')` wrote holds model.onnx and "
                f"config.json. Received: {folder}."
            )
        if config["format"] != FORMAT:
            raise ValueError(
                f"config.json must have the format {FORMAT}. Received: format "
                f"{config['format']!r} of version {config.get('version')} in {folder}. Export it "
                "again, or load it by the runtime.py in that folder."
            )
        paths = [os.path.join(folder, name) for name in ("tokenizer.json", "model.onnx")]
        try:
            self.answerers = _answerers_of(config, folder)
            self.preprocessor = _preprocessor_of(config, tokenizers.Tokenizer.from_file(paths[0]))
            options = onnxruntime.SessionOptions()
            # As for other libraries on a CPU; the default is all cores.
            threads = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
            options.intra_op_num_threads = int(threads) if threads.isdigit() else 0
            self._session = onnxruntime.InferenceSession(paths[1], options, list(providers))
        except _UnknownAnswer:
            raise
        except Exception as error:  # The libraries raise errors without a class of their own.
            raise ValueError(f"{folder} cannot be read ({error}). Export it again.") from error
        self.answers = [name for name, cls in self.answerers.items() if cls.about]
        self.tokenizer = self.preprocessor.tokenizer
        self._input_names = [value.name for value in self._session.get_inputs()]
        self._output_names = [value.name for value in self._session.get_outputs()]

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__.get("answerers", ()):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

        fields = [field.name for field in self.answerers[name].fields if field.kind != "optional"]
        names = [*fields, *(option.name for option in self.answerers[name].options)]

        def ask(*arguments, **options):
            if len(arguments) > len(names):
                raise TypeError(
                    f"`{name}` takes {', '.join(names)}, and `batch_size` by its name. Received: "
                    f"{len(arguments)} arguments."
                )
            named = dict(zip(names, arguments, strict=False))
            columns = [named.pop(field) for field in fields if field in named]
            return self.ask(name, *columns, **named, **options)

        return ask

    def answer_settings(self) -> Mapping[str, Any]:
        """Returns the settings that answers depend on, see `bert_keras.Task.answer_settings`."""
        return self.config["settings"]

    def answerer(self, method: str, **options: Any) -> Any:
        """Returns what answers by a method, see `bert_keras.Task.answerer`."""
        if method not in self.answerers:
            raise ValueError(
                f"This exported {self.config['task']} answers by {' and '.join(self.answers)}. "
                f"Received: {method}."
            )
        return self.answerers[method](self.answer_settings(), self.preprocessor, **options)

    def ask(self, method: str, *columns: Any, batch_size: int | None = None, **options: Any) -> Any:
        """Returns the answer to one example, or to columns of examples, see `bert_keras.Task.ask`.

        Args:
            method: str, one of `answers`.
            *columns: for each of its fields a str, or a column of str.
            batch_size: int, 32 by default.
            **options: options of the answer.
        """
        checks = importlib.import_module(f"{PACKAGE}.checks")
        size = checks.check_int("batch_size", 32 if batch_size is None else batch_size)
        read = functools.partial(self.predict_question, batch_size=size)
        return self.answerer(method, **options).ask(read, *columns)

    def ask_rows(self, method: str, rows: Sequence[Sequence[str]], **options: Any) -> Any:
        """Returns the answers to rows of texts, see `bert_keras.Task.ask_rows`."""
        columns = self.answerers[method].columns_of(rows) if rows else ()
        return self.ask(method, *columns, **options) if rows else []

    def predict_question(self, answerer: Any, texts: Any, batch_size: int = 32) -> tuple[Any, Any]:
        """Returns rows and their outputs, see `bert_keras.Task.predict_question`."""
        rows = answerer.encode(texts)
        return rows, self._outputs(rows, batch_size, answerer.values_per_token)

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Returns the program's outputs, a dict of arrays, for a dict of arrays."""
        return dict(zip(self._output_names, self._session.run(None, inputs), strict=True))

    def _outputs(
        self, rows: Any, batch_size: int, values_per_token: int
    ) -> Iterator[tuple[NDArray[np.int64], Any]]:
        """Yields the indices and the outputs of rows; those of like length come together."""
        order, start = np.argsort(rows.lengths, kind="stable"), 0
        while start < len(order):
            indices = order[start : start + batch_size]
            # The longest row comes last.
            sizes = rows.lengths[indices] * values_per_token * np.arange(1, len(indices) + 1)
            indices = indices[: max(1, int(np.count_nonzero(sizes <= _VALUES_AT_ONCE)))]
            start += len(indices)
            inputs = rows.inputs(indices, int(rows.lengths[indices[-1]]))
            outputs = self.run({name: inputs[name] for name in self._input_names})
            positions = inputs.get("mask_positions")
            if positions is not None and "mask_positions" not in self._input_names:
                # The program has computed all tokens.
                outputs = {
                    name: np.take_along_axis(x, positions[:, :, None], 1) if x.ndim == 3 else x
                    for name, x in outputs.items()
                }
            yield indices, outputs["logits"] if outputs.keys() == {"logits"} else outputs


def _preprocessor_of(config, backend):
    """Returns the `TextPacker` of a config around a `tokenizers.Tokenizer`."""
    collate = importlib.import_module(f"{PACKAGE}.preprocessing.collate")
    text_encoder = importlib.import_module(f"{PACKAGE}.tokenizers.text_encoder")
    layout = text_encoder.Layout(**config["layout"])
    encoder = text_encoder.TextEncoder(backend, layout, config["tokens"])
    settings = {**config["packer"], "input_names": tuple(config["packer"]["input_names"])}
    return collate.TextPacker(encoder, **settings)


if __name__ == "__main__":
    task = load(os.path.dirname(os.path.abspath(__file__)))
    for answer in task.ask_rows(task.answers[0], [[text] for text in sys.argv[1:]]):
        print(json.dumps(answer, ensure_ascii=False, default=np.ndarray.tolist))
