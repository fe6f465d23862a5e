"""Type hints: public names have them, they match the code, and a type checker reads them."""

import ast
import importlib
import inspect
import pathlib
import re
import subprocess
import sys
import typing

import keras
import pytest

import bert_keras
from bert_keras.models.backbone import Backbone
from bert_keras.tasks.teacher_student import JointTask
from bert_keras.training.recipe import DEFAULTS

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = {"corpora", "datasets", "export", "plots", "search"}
LIBRARY = {"distribution", "heads", "layers", "metrics", "models", "preprocessing", "tasks"}
LIBRARY |= {"tokenizers", "training"}
# Keras has these methods too, and ours take more.
EXTENDED = {"__init__", "compile", "evaluate", "export", "fit", "predict", "quantize", "save"}


def public_objects():
    modules = [bert_keras, *(importlib.import_module(f"bert_keras.{n}") for n in LIBRARY | ROOMS)]
    values = [(m, getattr(m, name)) for m in modules for name in dir(m) if name[0] != "_"]
    # A package exports what it imports, a module what it defines.
    owners = [(v, "bert_keras." if hasattr(m, "__path__") else m.__name__) for m, v in values]
    ours = {v for v, owner in owners if callable(v) and v.__module__.startswith(owner)}
    return sorted(ours, key=lambda value: (value.__module__, value.__qualname__))


PUBLIC = public_objects()
CLASSES = [value for value in PUBLIC if inspect.isclass(value)]
TASKS = [c for c in CLASSES if bert_keras.Task in c.__mro__[1:] and not issubclass(c, JointTask)]
BACKBONES = [c for c in CLASSES if issubclass(c, Backbone)]
PARTS = (keras.layers.Layer, keras.losses.Loss, keras.optimizers.Optimizer)
PARTS = [c for c in CLASSES if issubclass(c, PARTS) and not issubclass(c, keras.Model)]


def functions_of(cls):
    """Yields a class's public functions. A method that overrides one of ours needs no types."""
    ours = [part for part in cls.__mro__ if part.__module__.startswith("bert_keras.")]
    others = {name for part in {*cls.__mro__, keras.Model} - {*ours} for name in dir(part)}
    for name in {name for part in ours for name in vars(part)}:
        members = [vars(part)[name] for part in ours if name in vars(part)]
        if name not in EXTENDED:
            members = members[-1:] if name[0] != "_" and name not in others else []
        functions = [getattr(m, "fget", getattr(m, "__func__", m)) for m in members]
        yield from (f for f in functions if inspect.isfunction(f) and "bert_keras" in f.__module__)


@pytest.mark.parametrize("value", PUBLIC, ids=lambda value: value.__qualname__)
def test_public_functions_and_methods_have_types(value):
    for function in functions_of(value) if inspect.isclass(value) else [value]:
        for typed in typing.get_overloads(inspect.unwrap(function)) or [function]:
            signature = inspect.signature(typed)
            parameters = [p for n, p in signature.parameters.items() if n not in ("self", "cls")]
            hints = [signature.return_annotation, *(p.annotation for p in parameters)]
            assert signature.empty not in hints, typed.__qualname__


def keywords(function):
    """Returns the names of a function's arguments, with the keys of its TypedDict of keywords."""
    names = set()
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if parameter.kind == parameter.VAR_KEYWORD:
            for options in typing.get_args(parameter.annotation):
                names |= typing.get_type_hints(options).keys()
        elif name != "self":
            names.add(name)
    return names


def named_by_bases(cls, method):
    """Returns the names of a method's arguments in a class and all its bases."""
    functions = [vars(part)[method] for part in cls.__mro__ if method in vars(part)]
    found = [p for f in functions for p in inspect.signature(f).parameters.values()]
    return {p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)} - {"self"}


@pytest.mark.parametrize("cls", [*TASKS, *BACKBONES], ids=lambda cls: cls.__name__)
def test_the_types_of_a_model_name_the_arguments_of_its_constructor(cls):
    assert keywords(cls.__init__) == cls.argument_names()


@pytest.mark.parametrize("method", ["compile", "fit", "evaluate", "predict"])
def test_a_method_names_its_arguments(method):
    passed_on = set()
    if method == "compile":  # It passes on to Keras how steps are run.
        passed_on = {"loss_weights", "run_eagerly", "steps_per_execution", "jit_compile"}
        passed_on |= {"auto_scale_loss"}
    named = keywords(getattr(bert_keras.Task, method))
    assert named == named_by_bases(bert_keras.Task, method) - passed_on


def test_the_recipe_has_the_defaults_of_compile():
    parameters = inspect.signature(bert_keras.Task.compile).parameters
    assert {name: parameters[name].default for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize("cls", PARTS, ids=lambda cls: cls.__name__)
def test_the_types_of_layers_name_arguments_that_exist(cls):
    assert keywords(cls.__init__) <= named_by_bases(cls, "__init__")


def test_the_package_re_exports_its_names_for_type_checkers():
    tree = ast.parse((ROOT / "bert_keras" / "__init__.py").read_text(encoding="utf-8"))
    names = {a.asname for x in ast.walk(tree) if isinstance(x, ast.ImportFrom) for a in x.names}
    exported = {name for name in dir(bert_keras) if not inspect.ismodule(getattr(bert_keras, name))}
    assert names >= exported - {"__version__"} | ROOMS | {"heads", "layers", "metrics", "training"}
    assert (ROOT / "bert_keras" / "py.typed").exists()


def test_a_type_checker_accepts_right_programs_and_finds_each_wrong_line():
    programs = ROOT / "tests" / "typing" / "programs.py"
    command = [sys.executable, "-m", "mypy", "--cache-dir=/dev/null", "--no-error-summary"]
    command += ["--config-file", str(programs.with_name("mypy.ini")), str(programs)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    errors = {(name, int(n)) for name, n in re.findall(r"^(.+?):(\d+): error", found, re.MULTILINE)}
    lines = programs.read_text(encoding="utf-8").splitlines()
    wrong = {n for n, line in enumerate(lines, start=1) if line.endswith("# wrong")}
    assert errors == {(str(programs.relative_to(ROOT)), n) for n in wrong}, found
