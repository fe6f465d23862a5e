"""Each example is one page that says what to expect.

Building the site runs all of them. Here run those that depend on the backend or on arguments.
"""

import ast
import pathlib
import re
import runpy
import string
import sys

import keras
import pytest

import bert_keras

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "examples").glob("*.py"))
MOST_LINES = 80


def code_lines(tree):
    """Returns the number of lines with statements, without docstrings."""
    lines = set()
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, (ast.stmt, ast.expr)) and not is_text and not is_docstring(node):
            lines |= {node.lineno, node.end_lineno}
    return len(lines)


def is_docstring(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.col_offset == 4


@pytest.mark.once
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_is_one_page_of_cells_that_says_what_to_expect(path):
    text = path.read_text(encoding="utf-8")
    first = text.split("\n# %%\n")[0]
    assert text.startswith("# %% [markdown]\n# # ")
    assert f"python examples/{path.name}" in first and "# Expected" in first
    tree = ast.parse(text)
    assert code_lines(tree) <= MOST_LINES
    # A notebook shows a picture, and uses the defaults of flags where a page has them.
    parsing = 'parse_args([] if "ipykernel" in sys.modules else None)'
    assert (parsing in text) == ("argparse" in text)
    assert "plots." in text
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any("._" in name or ".tasks" in name or ".cli" in name for name in modules)


@pytest.fixture
def example(monkeypatch, capsys, tmp_path):
    """Returns a function that runs an example and returns its output and folder."""

    def run(name, *arguments):
        monkeypatch.chdir(ROOT)
        output = f"--output_dir={tmp_path / name}"
        monkeypatch.setattr(sys, "argv", [f"{name}.py", output, *arguments])
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out, tmp_path / name

    return run


@pytest.fixture
def preset(tmp_path):
    return write_preset(tmp_path, num_layers=4)


def write_preset(tmp_path, num_layers):
    """Writes a random checkpoint whose tokens are letters; returns its folder as a flag."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.ascii_lowercase]
    tokens += ["##" + letter for letter in string.ascii_lowercase]
    backbone = bert_keras.BertBackbone(len(tokens), num_layers, 2, 8, 16)
    backbone.save_to_preset(tmp_path / "preset")
    bert_keras.WordPieceTokenizer(tokens).save(tmp_path / "preset")
    return f"--preset={tmp_path / 'preset'}"


def test_a_custom_training_loop_runs_on_this_backend(example, tmp_path):
    preset = write_preset(tmp_path, num_layers=1)
    printed, output = example("custom_training_loop", preset, "--num_steps=10")
    assert printed.startswith(f"{keras.backend.backend()} {{'accuracy'")
    assert (output / "learning_curve.png").exists()


@pytest.mark.once
def test_a_tagger_with_a_custom_vocabulary_tags_chinese(example):
    printed, output = example("chinese_ner", "--epochs=1")
    assert "'accuracy'" in printed and (output / "learning_curves.png").exists()


@pytest.mark.once
def test_the_several_masks_example_takes_its_flags(example, preset):
    printed, _ = example("several_masks", preset, "--dropout_samples=3")
    assert "Regularized 1.0 {'label'" in printed


@pytest.mark.once
def test_the_fine_tuning_playbook_runs_to_the_end(preset, monkeypatch, capsys):
    folder = preset.split("=")[1]
    for name, value in {"PRESET": folder, "NUM_TRAIN": 16, "NUM_DEV": 8}.items():
        monkeypatch.setenv(name, str(value))
    runpy.run_path(str(ROOT / "docs" / "guides" / "fine_tuning_playbook.py"))
    printed = capsys.readouterr().out.splitlines()
    sections = [line.split(". ", 1) for line in printed if re.match(r"\d+\. ", line)]
    assert [number for number, _ in sections] == [str(number) for number in range(1, 11)]
    assert set(ast.literal_eval(sections[-1][1])) == {"label", "probabilities"}
    trained = [line for line in printed if "trained in" in line]
    has_difference = [bool(re.search(r"\([+-]\d\.\d{3}\)", line)) for line in trained]
    # There is nothing to compare the frozen encoder and the plain recipe with.
    assert has_difference == [False] * 4 + [True] * 15
