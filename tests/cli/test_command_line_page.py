"""The commands of docs/command_line.md run, and print what stands there."""

import functools
import pathlib
import re
import shlex

import keras
import numpy as np
import onnx
import pytest
from checks import to_numpy
from test_commands import command  # noqa: F401
from tiny import tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.cli import evaluate, sources
from bert_keras.export import program_formats

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "command_line.md"
TRANSCRIPTS = re.findall("```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
TASKS = {
    "tagger": lambda *x, **k: bert_keras.TokenClassifier(*x, 3, **k),
    "qa": bert_keras.QuestionAnswering,
    "choice": bert_keras.MultipleChoice,
    "detector": bert_keras.ReplacedTokenDetector,
}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keras.utils.set_random_seed(0)
    classifier = tiny_classifier()
    # The page's calls every review 1, whatever the draw.
    says = np.diff(classifier.predict(["a b", "c", "d a c", "b"], verbose=0)).sum()
    classifier.head.dense.kernel.assign(classifier.head.dense.kernel * np.sign(says))
    classifier.save("sentiment.keras")
    for name, cls in TASKS.items():
        cls(tiny_backbone(), preprocessor=tiny_preprocessor()).save(f"{name}.keras")
    pathlib.Path("reviews.csv").write_text("id,review\n1,good\n")
    pathlib.Path("labelled.csv").write_text("review,stars\na b,1\nc,0\nd a c,1\nb,1\n")
    pathlib.Path("pairs.jsonl").write_text('{"premise": "a", "hypothesis": "b"}\n')


def write_constants(format, model, path, verbose=None):
    """Writes the model's outputs for the page's text: PyTorch takes 15 seconds for a program."""
    rows = model.answerer("fill_mask").encode(["She opened the [MASK] and went in."])
    inputs = rows.inputs([0], int(rows.lengths[0]))
    found = program_formats.program_of(model)(inputs)
    outputs = {name: onnx.numpy_helper.from_array(to_numpy(x)) for name, x in found.items()}
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Constant", [], [name], value=x) for name, x in outputs.items()],
        "constants",
        [value(name, onnx.TensorProto.INT32, x.shape) for name, x in inputs.items()],
        [value(name, x.data_type, x.dims) for name, x in outputs.items()],
    )
    opsets = [onnx.helper.make_opsetid("", 18)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def numbers(text):
    return [float(number) for number in re.findall(r"\d+\.\d+(?:e[+-]\d+)?", text)]


def words(text):
    return re.sub(r"\d+\.\d+(e[+-]\d+)?", "", text)


@pytest.mark.once  # A command's own tests run on each backend.
def test_the_commands_print_what_the_page_shows(command, capsys, monkeypatch):  # noqa: F811
    monkeypatch.setattr(sources, "load", functools.cache(sources.load))  # Loading takes longest.
    monkeypatch.setattr(program_formats, "write", write_constants)
    ran = 0
    for line in "".join(TRANSCRIPTS).split("$ bert-keras ")[1:]:
        arguments, _, expected = line.partition("\n")
        if arguments.startswith("evaluate "):
            evaluate.main(shlex.split(arguments)[1:])
            found = capsys.readouterr().out
        else:
            found = command(*shlex.split(arguments))
        assert words(found).strip() == words(expected).strip(), arguments
        assert numbers(found) == pytest.approx(numbers(expected), abs=2e-3), arguments
        ran += 1
    assert ran == 19
    # On the program that `convert --to onnx` wrote.
    assert "task: Pretraining" in command("info", "served")
    assert "cannot be converted" in command("convert", "served", "x.keras", "--to", "keras")
    assert "--overwrite" in command("convert", "bert_mini_en_gutenberg", "served", "--to", "onnx")
