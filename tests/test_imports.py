"""Imports point down only, and importing the package stays light."""

import ast
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A folder may import itself and folders of a lower layer, deferred imports included.
LAYERS = [
    {"checks", "other_names", "files", "protocol_buffers", "runtime", "sizes", "version"},
    {"distribution"},
    {"host_memory", "inputs", "tokenizers", "metrics", "training", "datasets", "plots"},
    {"layers", "presets", "preprocessing"},
    {"models", "heads"},
    {"tasks"},
    {"serving"},
    {"cli"},
    {"__main__"},
]
# On one line of the picture, and said so there.
ALSO_ALLOWED = {("heads", "models"), ("models", "presets")}
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imported_parts(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "bert_keras" and len(parts) > 1:
                yield parts[1]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "bert_keras").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT))
)
def test_imports_point_down(path):
    relative = path.relative_to(ROOT / "bert_keras")
    own = relative.parts[0].removesuffix(".py")
    if own == "__init__":
        return
    for other in imported_parts(path):
        is_below = LEVEL[other] < LEVEL[own] or other == own or (own, other) in ALSO_ALLOWED
        assert is_below, f"{relative} imports {other}"


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_importing_the_package_loads_nothing_heavy_beyond_keras(backend):
    code = (
        "import sys, keras; before = set(sys.modules); import bert_keras;"
        "new = {name.split('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new))"
    )
    environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": str(ROOT)}
    output = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
    heavy = {"tensorflow", "jax", "torch", "transformers", "kagglehub", "pandas", "sklearn"}
    assert not heavy & set(ast.literal_eval(output.strip().splitlines()[-1]))
