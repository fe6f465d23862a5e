"""A folder that answers without Keras: a program, a tokenizer, settings, and what reads them."""

import ast
import inspect
import pathlib
import shutil
import sys

import bert_keras
from bert_keras.engine.atomic_files import replacing_files, write_json
from bert_keras.export import program_formats as formats
from bert_keras.export import runtime
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tokenizers.text_encoder import ROLES
from bert_keras.version import __version__

_WEIGHTS = "model.onnx.data"
_ROOT = pathlib.Path(bert_keras.__file__).parent
# The modules that need no Keras: a folder has a copy of them, and of the packages that they are in.
_LIBRARY = ("answers/*.py", "checks.py", "inputs.py", "types.py")
_LIBRARY += tuple(f"preprocessing/{name}.py" for name in ("collate", "ragged", "windows"))
_LIBRARY += tuple(f"preprocessing/{name}_windows.py" for name in ("question", "word"))
_LIBRARY += tuple(f"tokenizers/{name}.py" for name in ("text_encoder", "words"))
_FOLDERS = ("", "answers/", "preprocessing/", "tokenizers/")


def write_folder(model, folder, verbose=None):
    """Writes what `bert_keras.export.runtime.load` reads, all files or none.

    Args:
        model: a `Task` with `answerers`.
        folder: str or path, made when missing.
        verbose: see `keras.Model.export`.

    Raises:
        ValueError: the model has no tokenizer or no answer; its own or its preprocessor's class
            changes how texts become rows; an answer of the user needs more than a folder has; or
            the folder holds something else, such as a preset.
    """
    config = _config_of(model)
    if (pathlib.Path(folder) / "config.json").exists() and not runtime.is_exported(folder):
        raise ValueError(
            "An export goes into a new folder, or replaces another export. Received: "
            f"{folder}, whose config.json is of something else. Name another folder."
        )
    library = library_of(model.answerers)
    formats.check_packages("onnx")
    import onnx

    folder = pathlib.Path(folder)
    # Another version's copy may have had further files.
    copied = [path.relative_to(folder) for path in folder.glob("library/**/*.py")]
    with replacing_files(folder, stale=[_WEIGHTS, *copied]) as new:
        formats.write("onnx", model, str(new / "model.onnx"), verbose)
        model.preprocessor.save_assets(new)
        shutil.copyfile(runtime.__file__, new / "runtime.py")
        for name, source in library.items():
            path = new / "library" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source, encoding="utf-8")
        write_json(new / "config.json", config)
        # Weights in a file of their own are mapped instead of read.
        program = onnx.load(new / "model.onnx")
        (new / _WEIGHTS).unlink(missing_ok=True)  # The library would append to it.
        onnx.save(program, new / "model.onnx", save_as_external_data=True, location=_WEIGHTS)


def _config_of(model):
    preprocessor, name = getattr(model, "preprocessor", None), type(model).__name__
    answerers = getattr(model, "answerers", ())
    if preprocessor is None or not answerers:
        raise ValueError(
            "A folder answers from text: it needs one task with `answerers` and a preprocessor. "
            f"Received: {name}. Export the program alone by a path that ends with .onnx, or one of "
            "the tasks that it is made of."
        )
    # The config holds what these classes do with texts, but not what another class does.
    readers = [getattr(type(model), name) for name in ("encode_texts", "predict_question")]
    if type(preprocessor) is not TextPreprocessor or not all(
        reader.__module__.startswith("bert_keras.") for reader in readers
    ):
        raise ValueError(
            "A folder answers as the package's own classes do with texts. Received: a "
            f"{name} with a {type(preprocessor).__name__}, which do it their own way. Export the "
            "program alone by a path that ends with .onnx."
        )
    tokenizer = preprocessor.tokenizer
    return {
        "format": runtime.FORMAT,
        "version": __version__,
        "task": name,
        "answerers": [f"{cls.__module__}.{cls.__qualname__}" for cls in answerers],
        "settings": model.answer_settings(),
        "packer": {
            "max_length": preprocessor.max_length,
            "truncation": preprocessor.truncation,
            "input_names": preprocessor.input_names,
        },
        "layout": tokenizer.layout._asdict(),
        "tokens": {role: getattr(tokenizer, role) for role in ROLES},
    }


def library_of(answerers):
    """Returns the copied modules and those of a user's answerers, from their paths to sources."""
    paths = [path for pattern in _LIBRARY for path in _ROOT.glob(pattern)]
    library = {path.relative_to(_ROOT).as_posix(): path.read_text("utf-8") for path in paths}
    if own := [cls for cls in answerers if not cls.__module__.startswith("bert_keras.")]:
        library["answers/own.py"] = _own_source(own)
    return library | {f"{folder}__init__.py": "" for folder in _FOLDERS}


def _own_source(classes):
    """Returns a module with a user's answerers, and what they use of their modules.

    Raises:
        ValueError: one is not at the top of its module, or uses a package that a folder lacks.
    """
    if nested := [cls.__qualname__ for cls in classes if "." in cls.__qualname__]:
        raise ValueError(
            "An answer in a folder must be a class at the top of a module, which the folder holds "
            f"a copy of. Received: {nested[0]}. Move it out of the function or class."
        )
    bodies = []
    for module in dict.fromkeys(sys.modules[cls.__module__] for cls in classes):
        tree = ast.parse(inspect.getsource(module))
        names = [cls.__qualname__ for cls in classes if cls.__module__ == module.__name__]
        bodies += _used(tree.body, names)
    return "\n".join(map(ast.unparse, bodies)) + "\n"


def _used(nodes, names):
    """Returns the statements that define names, and those that define what they use."""
    used, size = {*names}, 0
    while len(used) > size:
        size = len(used)
        nodes_used = [node for node in nodes if not used.isdisjoint(_defined(node))]
        parts = (part for node in nodes_used for part in ast.walk(node))
        used |= {part.id for part in parts if isinstance(part, ast.Name)}
    return [_relative(node) for node in nodes_used]


def _defined(node):
    """Returns the names that a statement defines."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return {node.name}
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    parts = [part for target in targets if target for part in ast.walk(target)]
    return {part.id for part in parts if isinstance(part, ast.Name)}


def _relative(node):
    """Returns a statement as it is in a folder: imports of this package are relative."""
    if isinstance(node, ast.ClassDef):
        node.decorator_list = []
    if not isinstance(node, (ast.Import, ast.ImportFrom)):
        return node
    is_from = isinstance(node, ast.ImportFrom)
    modules = [node.module] if is_from else [alias.name for alias in node.names]
    for name in modules:
        top, _, below = name.partition(".")
        path = pathlib.PurePath(f"{below.replace('.', '/')}.py")
        if top == "bert_keras" and is_from and any(map(path.match, _LIBRARY)):
            return ast.ImportFrom(below, node.names, 2)
        if top != "numpy" and top not in sys.stdlib_module_names:
            raise ValueError(
                "An answer in a folder can use NumPy, the standard library and modules of "
                f"bert_keras without Keras, imported by `from bert_keras.answers... import`. "
                f"Received: {name}. Import it in the task instead."
            )
    return node
