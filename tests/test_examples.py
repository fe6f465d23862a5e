"""Each example is one page that says what to expect.

Building the site runs all of them. Here run those that depend on the backend.
"""

import ast
import pathlib
import re
import runpy
import string

import keras
import pytest

import bert_keras

pytestmark = pytest.mark.once

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "examples").glob("*.py"))
MOST_LINES = 80


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_is_one_page_of_cells_that_says_what_to_expect(path):
    text = path.read_text(encoding="utf-8")
    first = text.split("\n# %%\n")[0]
    assert text.startswith("# %% [markdown]\n# # ")
    assert f"python examples/{path.name}" in first and "# Expected" in first
    code = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert len(code) <= MOST_LINES
    assert "parse_args" not in text and text.rpartition("# ## ")[2].startswith("With your own ")
    assert "plots." in text
    modules = re.findall(r"(?m)^from (\S+) import", text)
    assert not any("._" in name or ".tasks" in name or ".cli" in name for name in modules)


@pytest.fixture
def example(monkeypatch, capsys, tmp_path):
    """Returns a function that runs an example with other values: its output and its folder."""

    def run(name, values):
        for folder in ("examples", "tests"):
            (tmp_path / folder).symlink_to(ROOT / folder)
        monkeypatch.chdir(tmp_path)
        text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
        for old, new in values.items():
            assert old in text
            text = text.replace(old, new)
        exec(compile(text, name, "exec"), {"__name__": name})
        return capsys.readouterr().out, tmp_path / "output" / name

    return run


def write_preset(tmp_path, num_layers):
    """Writes a random checkpoint whose tokens are letters; returns its folder."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.ascii_lowercase]
    tokens += ["##" + letter for letter in string.ascii_lowercase]
    backbone = bert_keras.BertBackbone(len(tokens), num_layers, 2, 8, 16)
    backbone.save_to_preset(tmp_path / "preset")
    bert_keras.WordPieceTokenizer(tokens).save(tmp_path / "preset")
    return str(tmp_path / "preset")


@pytest.mark.each_backend
def test_a_custom_training_loop_runs_on_this_backend(example, tmp_path):
    preset = write_preset(tmp_path, num_layers=1)
    values = {"bert_mini_en_gutenberg": preset, "(60, 32)": "(10, 32)"}
    values["max_length=48"] = "max_length=8"  # JAX compiles each length.
    printed, output = example("custom_training_loop", values)
    assert printed.startswith(f"{keras.backend.backend()} {{'accuracy'")
    assert (output / "learning_curve.png").exists()


def test_a_tagger_with_a_custom_vocabulary_tags_chinese(example):
    printed, output = example("chinese_ner", {"epochs=6": "epochs=1"})
    assert "'accuracy'" in printed and (output / "learning_curves.png").exists()


@pytest.mark.parametrize("library", ["transformers", "keras_hub", "sentence_transformers"])
def test_each_line_beside_another_library_is_run_by_its_page(library):
    name = f"migrating_from_{library}"
    text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    code = "\n".join(line for line in text.splitlines() if line[:1] != "#")
    chinese = (ROOT / "docs" / "zh" / "tutorials" / f"{name}.md").read_text(encoding="utf-8")
    rows = re.compile(r"(?m)^(?:# )?\| `(.+)` \| `(.+)` \|$").findall
    assert len(rows(text)) > 7 and rows(text) == rows(chinese)
    for theirs, ours in rows(text):
        assert ours in code, theirs


def test_the_fine_tuning_playbook_runs_to_the_end(tmp_path, monkeypatch, capsys):
    preset = write_preset(tmp_path, num_layers=3)
    for name, value in {"PRESET": preset, "NUM_TRAIN": 16, "NUM_DEV": 8}.items():
        monkeypatch.setenv(name, str(value))
    runpy.run_path(str(ROOT / "docs" / "guides" / "fine_tuning_playbook.py"))
    printed = capsys.readouterr().out.splitlines()
    sections = [line.split(". ", 1) for line in printed if re.match(r"\d+\. ", line)]
    assert [number for number, _ in sections] == [str(number) for number in range(1, 11)]
    assert set(ast.literal_eval(sections[-1][1])) == {"label", "probabilities"}
    trained = [line for line in printed if "trained in" in line]
    has_difference = [bool(re.search(r"\([+-]\d\.\d{3}\)", line)) for line in trained]
    # There is nothing to compare the plain recipe with.
    assert has_difference == [False] * 3 + [True] * 10
