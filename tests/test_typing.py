"""Type hints: each public name has them, they say what is there, and a checker reads them."""

import ast
import functools
import importlib
import inspect
import pathlib
import re
import subprocess
import sys

import pytest

import bert_keras
from bert_keras.models.backbone import Backbone
from bert_keras.models.model import BuiltModel, arguments_of
from bert_keras.tasks.task import Task
from bert_keras.training.recipe import DEFAULTS

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = ROOT / "bert_keras" / "_types.pyi"
STUBS = sorted(set(ROOT.glob("bert_keras/**/*.pyi")) - {SHARED})
PACKAGES = ("datasets", "heads", "layers", "metrics", "models", "preprocessing", "tasks")
PACKAGES += ("tokenizers", "training")
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
# Whose keyword arguments a stub names one and all; of others those that a user may want.
WHOLE = {"from_preset", "load", "compile", "fit", "evaluate", "predict"}
# Of the class that it stands in front of.
FROM_ELSEWHERE = {("SeveralMasks", "from_preset")}


@functools.cache
def bodies(path):
    """Returns name -> nodes of that name in a file; of a class's inside, names with a dot."""
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        inside = node.body if isinstance(node, ast.ClassDef) else ()
        for owner, part in [("", node), *((f"{node.name}.", part) for part in inside)]:
            names = [part.name] if hasattr(part, "name") else []
            # `from x import y as y` is how a stub hands a name on.
            handed_on = part.names if isinstance(part, ast.ImportFrom) else ()
            names += [alias.asname for alias in handed_on if alias.asname]
            names += [ast.unparse(part.target)] if isinstance(part, ast.AnnAssign) else []
            names += map(ast.unparse, part.targets) if isinstance(part, ast.Assign) else []
            for name in names:
                found.setdefault(owner + name, []).append(part)
    return found


def parameters(definition):
    """Returns name -> (kind, default) of a stub's function; no default is `inspect._empty`."""
    given, empty = definition.args, inspect.Parameter.empty
    positional, defaults = [*given.posonlyargs, *given.args], given.defaults
    defaults = [empty] * (len(positional) - len(defaults)) + defaults
    found = {
        argument.arg: (NAMED[0], default)
        for argument, default in zip(positional, defaults, strict=True)
    }
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        found[argument.arg] = NAMED[1], empty if default is None else default
    return found


def accepted(owner, name):
    """Returns the names of the keyword arguments that a method takes by `**kwargs`."""
    if issubclass(owner, BuiltModel) and name in ("__init__", "from_preset"):
        if issubclass(owner, Backbone):
            return set().union(*map(arguments_of, [owner, *owner.__subclasses__()]))
        of_preprocessor = arguments_of(bert_keras.TextPreprocessor) - {"tokenizer", "input_names"}
        return arguments_of(owner) | (of_preprocessor if name == "from_preset" else set())
    if name == "from_preset" and owner is bert_keras.TextPreprocessor:
        return arguments_of(owner) - {"tokenizer"}
    if name in ("from_preset", "load"):
        makers = (bert_keras.WordPieceTokenizer, bert_keras.BytePairTokenizer)
        return set().union(*map(arguments_of, makers)) - {"vocabulary", "merges"}
    functions = [vars(part)[name] for part in owner.__mro__ if name in vars(part)]
    found = [p for f in functions for p in inspect.signature(f).parameters.values()]
    names = {p.name for p in found if p.kind in NAMED}
    return names | set(DEFAULTS) if name == "compile" else names


def check_signature(owner, function, definition):
    stub, real = parameters(definition), inspect.signature(function).parameters
    named = {name: p for name, p in real.items() if p.kind in NAMED}
    where = f"{owner and owner.__name__}.{definition.name}"
    assert [name for name in stub if name in named] == list(named), where
    for name, parameter in named.items():
        kind, default = stub[name]
        is_overload = any(ast.unparse(d) == "overload" for d in definition.decorator_list)
        assert kind == parameter.kind, f"{where}: {name}"
        if default is inspect.Parameter.empty:
            # One of several signatures may want what another leaves out.
            assert is_overload or parameter.default is default, f"{where}: {name}"
        elif ast.unparse(default) != "...":
            assert ast.literal_eval(default) == parameter.default, f"{where}: {name}"
        else:
            assert parameter.default is not inspect.Parameter.empty, f"{where}: {name}"
    further = set(stub) - set(named)
    if not further and definition.args.kwarg:
        return
    kinds = {parameter.kind for parameter in real.values()}
    assert not further or inspect.Parameter.VAR_KEYWORD in kinds or definition.args.vararg, where
    if further:
        known = accepted(owner, definition.name)
        assert further <= known, f"{where}: {further - known}"
        is_task = issubclass(owner, Task) and definition.name == "__init__"
        if (is_task or definition.name in WHOLE) and not definition.args.kwarg:
            assert known <= set(stub), f"{where}: {known - set(stub)}"


@pytest.mark.parametrize("path", STUBS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_stub_says_what_is_there(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    for name, nodes in bodies(path).items():
        owner_name, _, own = name.rpartition(".")
        if (owner_name, own) in FROM_ELSEWHERE or (own.startswith("_") and not own.endswith("__")):
            continue
        owner = getattr(module, owner_name) if owner_name else None
        if not isinstance(nodes[0], ast.FunctionDef):
            # What an instance has is known at run time only.
            assert owner or hasattr(module, name), name
            continue
        # A layer takes what its `call` does.
        own = "call" if own == "__call__" and "call" in vars(owner) else own
        found = inspect.getattr_static(owner or module, own)
        found = getattr(found, "__func__", found)
        for node in nodes if inspect.isfunction(found) else ():
            check_signature(owner, found, node)


def public_objects():
    modules = [bert_keras, *(importlib.import_module(f"bert_keras.{name}") for name in PACKAGES)]
    found = {}
    for module in modules:
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            if callable(value) and value.__module__.startswith("bert_keras."):
                found[value] = None
    return sorted(found, key=lambda value: (value.__module__, value.__name__))


def is_typed(value):
    """Whether a stub beside its module, or its own module, says the types of its arguments."""
    path = pathlib.Path(inspect.getfile(value))
    if path.with_suffix(".pyi").exists():
        return value.__name__ in bodies(path.with_suffix(".pyi"))
    arguments = bodies(path)[f"{value.__name__}.__init__"][0].args
    return all(a.annotation for a in [*arguments.args[1:], *arguments.kwonlyargs])


@pytest.mark.parametrize("value", public_objects(), ids=lambda value: value.__qualname__)
def test_what_is_public_has_types(value):
    assert is_typed(value)
    if not inspect.isclass(value):
        return
    ours = [part for part in value.__mro__ if part.__module__.startswith("bert_keras.")]
    others = {name for part in value.__mro__ if part not in ours for name in dir(part)}
    typed = set()
    for part in ours:
        stub = pathlib.Path(inspect.getfile(part)).with_suffix(".pyi")
        if stub.exists():
            typed |= {n.rpartition(".")[2] for n in bodies(stub) if n.startswith(part.__name__)}
    for part in (part for part in ours if part.__name__ in bert_keras.__dict__):
        for name, member in vars(part).items():
            # A name of another library refuses to be called.
            is_refusal = "refuse" in getattr(
                getattr(member, "__func__", member), "__qualname__", ""
            )
            if not name.startswith("_") and name not in others and not is_refusal:
                assert name in typed, f"{part.__name__}.{name}"


def test_each_package_exports_what_its_stub_says():
    for stub in STUBS:
        if stub.name == "__init__.pyi":
            module = importlib.import_module(".".join(stub.parent.relative_to(ROOT).parts))
            names = {name for name in getattr(module, "__all__", dir(module)) if name[0] != "_"}
            names = {name for name in names if not inspect.ismodule(getattr(module, name))}
            modules = {name for name in bodies(stub) if inspect.ismodule(getattr(module, name))}
            assert set(bodies(stub)) - modules - {"__version__"} == names
            others = {"plots", "distribution"}
            assert modules == ({*PACKAGES, *others} if module is bert_keras else set())
    assert (ROOT / "bert_keras" / "py.typed").exists()


def test_a_checker_passes_right_programs_and_the_stubs_and_finds_what_is_wrong():
    programs = ROOT / "tests" / "typing" / "programs.py"
    command = [sys.executable, "-m", "mypy", "--cache-dir=/dev/null", "--no-error-summary"]
    command += ["--config-file", str(programs.with_name("mypy.ini")), str(programs)]
    found = subprocess.run(
        [*command, *map(str, [*STUBS, SHARED])], cwd=ROOT, capture_output=True, text=True
    )
    errors = re.findall(r"^(.+?):(\d+): error", found.stdout, re.MULTILINE)
    lines = programs.read_text(encoding="utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, start=1) if line.endswith("# wrong")}
    elsewhere = {name for name, _ in errors} - {str(programs.relative_to(ROOT))}
    assert {int(number) for _, number in errors} == wrong and not elsewhere, found.stdout
