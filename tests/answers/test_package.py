"""An exported folder has copies of modules that need NumPy and `tokenizers` alone."""

import subprocess
import sys

import pytest

from bert_keras.answers.catalog import ANSWERERS
from bert_keras.export.runtime_folder import library_of


@pytest.mark.once
def test_a_copy_imports_only_numpy_and_tokenizers(tmp_path):
    library = library_of(ANSWERERS)
    for name, source in library.items():
        path = tmp_path / "copied" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    names = [
        name.removesuffix(".py").replace("/", ".") for name in library if "__init__" not in name
    ]
    assert {"answers.answerer", "preprocessing.collate", "tokenizers.text_encoder"} <= {*names}
    assert not [name for name in names if name.startswith(("tasks", "models", "engine"))]
    code = (
        "import sys, numpy, numpy.typing, tokenizers\n"
        "before = {*sys.modules, *sys.stdlib_module_names}\n"
        f"import {', '.join(f'copied.{name}' for name in names)}\n"
        "new = {name.partition('.')[0] for name in sys.modules.keys() - before}\n"
        "print(sorted(new - {'copied', 'numpy', *sys.stdlib_module_names}))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == "[]\n"
