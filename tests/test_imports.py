"""Folders import only what is below them, and importing the library imports no room."""

import ast
import collections
import graphlib
import itertools
import os
import pathlib
import subprocess
import sys

from bert_keras.engine import malloc

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A folder, or a module at the top, may import itself and what a lower level has.
LIBRARY = [
    {"checks", "migration_hints", "types", "version"},
    {"distribution", "inputs", "signatures"},
    {"engine"},
    {"tokenizers"},
    {"preprocessing"},
    {"answers"},
    {"layers", "metrics", "training"},
    {"heads", "presets"},
    {"models"},
    {"tasks"},
]
# The library does not import these when it is imported, but from its doors, inside functions.
ROOMS = [{"datasets", "export", "plots"}, {"corpora"}, {"search", "serving"}]
ROOMS += [{"cli"}, {"__main__"}]
DOORS = {"bert_keras.models.export_mixin"}
LEVELS = {name: level for level, names in enumerate([*LIBRARY, *ROOMS]) for name in names}


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


PATHS = {name_of(path): path for path in sorted((ROOT / "bert_keras").rglob("*.py"))}


def statements(nodes):
    """Yields statements that run at import, also those inside `if`, `try` and `with`."""
    for node in nodes:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from statements(n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt))


def imported(nodes, importer=""):
    """Returns the names of all modules that import statements among the nodes import."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = importer.split(".")[: -node.level] if node.level else []
            module = ".".join([*parts, *filter(None, [node.module])])
            full = {f"{module}.{alias.name}" for alias in node.names}
            found |= {name if name in PATHS else module for name in full}
    return found


TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in PATHS.items()}
AT_IMPORT = {name: imported(statements(tree.body), name) for name, tree in TREES.items()}
EVER = {name: imported(ast.walk(tree), name) for name, tree in TREES.items()}


def ours(names):
    return {name for name in names if name in PATHS and name != "bert_keras"}


def level_of(name):
    return LEVELS[name.split(".")[1]]


def test_a_folder_imports_only_what_is_below_it():
    for name in ours(PATHS):
        for other in ours(AT_IMPORT[name] if name in DOORS else EVER[name]):
            is_own = other.split(".")[1] == name.split(".")[1]
            assert is_own or level_of(other) < level_of(name), f"{name} imports {other}"


def test_no_module_imports_itself_by_way_of_others():
    graph = {name: ours(EVER[name]) for name in ours(PATHS)}
    graphlib.TopologicalSorter(graph).prepare()


def test_a_file_name_stands_in_the_package_once():
    names = collections.Counter(path.name for path in PATHS.values())
    assert {name for name, count in names.items() if count > 1} <= {"__init__.py"}


def test_a_backbone_needs_few_modules():
    needed, found = ["bert_keras.models.bert"], set()
    while needed:
        found.add(name := needed.pop())
        needed += ours(AT_IMPORT[name]) - found
    assert len(found) <= 35, sorted(found)


def test_only_engine_imports_the_inside_of_keras():
    for name in PATHS:
        inside = [other for other in EVER[name] if other.startswith("keras.src")]
        assert not inside or name.startswith("bert_keras.engine."), (name, inside)


# The server needs its extra as a whole.
FREE = ("bert_keras.serving.",)


def where_it_is_the_backend(name, backend):
    """Returns `{backend}` for a module of engine/ that imports it below such a condition only."""
    conditions = [f"{x} == {backend!r}" for x in ("_BACKEND", "keras.backend.backend()")]
    conditions += ["_IS_TORCH"] if backend == "torch" else []
    imports = [node for node in statements(TREES[name].body) if backend in imported([node])]
    branches = [node for node in TREES[name].body if isinstance(node, ast.If)]
    branches = [node.body for node in branches if ast.unparse(node.test) in conditions]
    below = [*itertools.chain(*branches)]
    is_free = name.startswith("bert_keras.engine.") and all(node in below for node in imports)
    return {backend} if is_free else set()


def test_a_package_of_an_extra_is_imported_where_it_is_needed():
    required = {"bert_keras", "absl", "h5py", "keras", "ml_dtypes", "numpy"}
    required |= {"safetensors", "tokenizers"}
    for name, modules in AT_IMPORT.items():
        roots = {module.split(".")[0] for module in modules} - sys.stdlib_module_names
        roots -= where_it_is_the_backend(name, "torch") | where_it_is_the_backend(name, "jax")
        assert roots <= required or name.startswith(FREE), (name, roots - required)


def test_the_import_is_light_and_returns_freed_memory():
    code = (
        "import sys; sys.modules.update(matplotlib=None, sklearn=None);"  # Keras would import both.
        "import keras; del sys.modules['matplotlib'], sys.modules['sklearn'];"
        "before = set(sys.modules); import bert_keras;"
        "new = sorted(set(sys.modules) - before); import page_faults;"
        "print([new, page_faults.shares_of_two_threads()])"
    )
    # On JAX, since Keras on PyTorch imports both.
    environment = {k: v for k, v in os.environ.items() if not malloc.is_set_by_user({k: v})}
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "engine")])
    environment |= {"KERAS_BACKEND": "jax", "PYTHONPATH": paths}
    command = [sys.executable, "-c", code]
    printed = subprocess.check_output(command, env=environment, text=True)
    new, page_faults = ast.literal_eval(printed.strip().splitlines()[-1])
    heavy = {"tensorflow", "jax", "torch", "transformers", "kagglehub", "pandas", "sklearn"}
    heavy |= {"huggingface_hub", "matplotlib"}
    assert not heavy & {name.split(".")[0] for name in new}
    assert not [name for name in ours(new) if level_of(name) >= len(LIBRARY)]
    # The memory of a freed block is returned, so that the next block faults again.
    assert min(page_faults) > 0.9 or not malloc.has_glibc()
