"""An exported folder answers as its task does, where nothing but three libraries is installed."""

import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import zlib

import numpy as np
import pytest
from small_tokenizers import byte_pair_tokenizer
from tiny import tiny_backbone, tiny_preprocessor

import bert_keras
from bert_keras.export import program_formats as formats
from bert_keras.export import runtime

# PyTorch, on which programs are written; what reads them has no backend.
pytestmark = pytest.mark.once

TEXTS = ["a b cab", "dd, ee", "", "h" * 9, "a b c d e f g h a b c d e f g h", "caf\u0301é \ud800b"]
NAMES = ["O", "B-A", "I-A", "B-B", "E-B", "[PAD]"]


def biased(task):
    """Returns a task whose answers differ clearly, with the same weights in each of its class."""
    for weight in (w for w in task.weights if len(w.shape) > 1 or "crf" in w.path):
        rng = np.random.default_rng(zlib.crc32(weight.path.split("/", 1)[1].encode()))
        weight.assign(rng.normal(0, 0.5, weight.shape))
    return task


def task_of(cls, *args, max_length=16, truncation="longest_first", **options):
    preprocessor = tiny_preprocessor(max_length, truncation=truncation)
    return biased(cls(tiny_backbone(), *args, preprocessor=preprocessor, **options))


def without_segments(cls, *args, **options):
    """Returns a task of another layout, whose tokens hold the spaces before words."""
    tokenizer = byte_pair_tokenizer(["a film for a rainy day é"] * 9, 300)
    backbone = bert_keras.RobertaBackbone(
        tokenizer.vocabulary_size,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=32,
        max_sequence_length=64,
        padding_id=tokenizer.pad_token_id,
    )
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=24)
    return biased(cls(backbone, *args, preprocessor=preprocessor, **options))


def classifier(**options):
    return lambda: task_of(bert_keras.TextClassifier, **options)


QUESTIONS = ["a b", "c? d d d d d d d d d d"]
CONTEXTS = ["a b, c d e f g h a b c d e f g h a b c d e f e\u0301 g h.", "h a a a c"]
CASES = {
    "single": (classifier(num_classes=3), "classify", [TEXTS]),
    "one": (classifier(num_classes=3, label_names=["a", "b", "c"]), "classify", ["a b"]),
    "pairs": (classifier(num_classes=3, max_length=9), "classify", [(TEXTS, TEXTS[::-1])]),
    "pair": (
        classifier(num_classes=3, truncation="only_second", max_length=9),
        "classify",
        [("a b", "c d e f g h")],
    ),
    "multi": (classifier(num_classes=3, problem_type="multi_label"), "classify", [TEXTS]),
    "scores": (classifier(num_classes=3, problem_type="regression"), "classify", [TEXTS]),
    "tail": (classifier(num_classes=3, truncation="tail", max_length=6), "classify", [TEXTS]),
    "head_tail": (
        classifier(num_classes=3, truncation="head_tail", max_length=8),
        "classify",
        [TEXTS],
    ),
    "long": (
        lambda: task_of(
            bert_keras.LongTextClassifier, 3, max_length=6, truncation="head_tail", num_windows=3
        ),
        "classify",
        [TEXTS],
    ),
    "tag": (
        lambda: task_of(bert_keras.TokenClassifier, 6, label_names=NAMES, max_length=8),
        "tag",
        [[*TEXTS, ["ab", "", "\u0000", "c d"], ["a", "b"], []]],
    ),
    "crf": (
        lambda: task_of(bert_keras.TokenClassifier, 6, label_names=NAMES, max_length=8, crf=True),
        "tag",
        [TEXTS],
    ),
    "numbers": (lambda: task_of(bert_keras.TokenClassifier, 6), "tag", ["ab, c"]),
    "answer": (
        lambda: task_of(bert_keras.QuestionAnswering, stride=3, max_answer_length=4),
        "answer",
        [QUESTIONS, CONTEXTS, 3],
    ),
    "answer_one": (
        lambda: task_of(bert_keras.QuestionAnswering, stride=2),
        "answer",
        [QUESTIONS[0], CONTEXTS[0]],
    ),
    "no_answer": (
        lambda: task_of(
            bert_keras.QuestionAnswering,
            normalization="per_window",
            no_answer_threshold=-9.0,
            stride=3,
        ),
        "answer",
        [QUESTIONS, CONTEXTS[0], 4],
    ),
    "choose": (
        lambda: task_of(bert_keras.MultipleChoice),
        "choose",
        [["a b", "c"], [["a", "b b b", "c"], ["d e", "f"]]],
    ),
    "embed": (lambda: task_of(bert_keras.TextEmbedder), "embed", [TEXTS]),
    "fill_mask": (
        lambda: task_of(bert_keras.MaskedLM),
        "fill_mask",
        [["a [MASK] b", "[MASK] c [MASK] d e f"], 3],
    ),
    "bytes": (
        lambda: without_segments(bert_keras.MaskedLM),
        "fill_mask",
        [["a film for<mask> day", "<mask> é"], 40],
    ),
    "words": (
        lambda: without_segments(bert_keras.TokenClassifier, 5, label_names=NAMES[:5]),
        "tag",
        [["a film, rainy", ["for", "a", "é day", ""]]],
    ),
    "both": (lambda: task_of(bert_keras.Pretraining), "fill_mask", ["a [MASK] b"]),
    "is_next": (
        lambda: task_of(bert_keras.NextSentencePrediction),
        "is_next",
        [TEXTS, TEXTS[::-1]],
    ),
    "is_next_both": (lambda: task_of(bert_keras.Pretraining), "is_next", ["a b", "c"]),
    "is_replaced": (lambda: task_of(bert_keras.ReplacedTokenDetector), "is_replaced", [TEXTS[:3]]),
}


def assert_same(found, expected):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, (list, tuple, np.ndarray)):
        assert type(found) is type(expected) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, (float, np.floating)):
        assert abs(found - expected) < 1e-5
    else:
        assert found == expected and type(found) is type(expected)


# By classes and numbers of classes, since a program takes seconds to write.
PROGRAMS = {}


def write_once():
    """Returns `formats.write_onnx` that writes the program of tasks with the same weights once."""
    write = formats.write_onnx

    def write_onnx(model, path, verbose=None):
        key = type(model), type(model.backbone), getattr(model, "num_classes", None)
        if key not in PROGRAMS:
            write(model, path, verbose)
            PROGRAMS[key] = pathlib.Path(path).read_bytes()
        pathlib.Path(path).write_bytes(PROGRAMS[key])

    return write_onnx


WITHOUT_KERAS = """
import importlib.util, pathlib, pickle, sys
for name in ("keras", "torch", "tensorflow", "jax", "transformers", "bert_keras", "onnx"):
    sys.modules[name] = None
folder = pathlib.Path(sys.argv[1])
answers = {}
for name, (method, arguments) in pickle.loads((folder / "asked").read_bytes()).items():
    spec = importlib.util.spec_from_file_location("runtime", folder / name / "runtime.py")
    runtime = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runtime)
    answers[name] = getattr(runtime.load(folder / name), method)(*arguments)
(folder / "answers").write_bytes(pickle.dumps(answers))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of exported folders, and what their tasks answered."""
    folder, expected = tmp_path_factory.mktemp("served"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formats, "write_onnx", write_once())
        for name, (make, method, arguments) in CASES.items():
            task = make()
            task.export(folder / name, format="onnx")
            expected[name] = getattr(task, method)(*arguments)
    asked = {name: case[1:] for name, case in CASES.items()}
    (folder / "asked").write_bytes(pickle.dumps(asked))
    (folder / "expected").write_bytes(pickle.dumps(expected))
    return folder


@pytest.fixture(scope="module")
def answers(folder):
    """What the folders answer in a process that can import neither a backend nor this package."""
    subprocess.run([sys.executable, "-c", WITHOUT_KERAS, folder], check=True, cwd=folder)
    found, expected = ((folder / name).read_bytes() for name in ("answers", "expected"))
    return pickle.loads(found), pickle.loads(expected)


@pytest.mark.parametrize("name", CASES)
def test_answers_are_the_tasks_own(answers, name):
    found, expected = answers
    assert_same(found[name], expected[name])


def test_tags_and_spans_that_the_cases_compare_are_there(answers):
    found = answers[0]
    assert any(len(answer["entities"]) > 1 for answer in found["tag"] + found["crf"])
    assert {len(best) for best in found["answer"]} == {3}
    assert any(best[0]["answer"] == "" for best in found["no_answer"])


def test_a_folder_answers_by_what_its_task_does(folder):
    names = {name: runtime.load(folder / name).answers for name in ("both", "tag", "embed")}
    assert names == {"both": ["fill_mask", "is_next"], "tag": ["tag"], "embed": ["embed"]}


def test_a_folder_answers_from_the_shell(folder):
    for name, texts in (("one", ["a b"]), ("choose", ["a b", "a", "b b b", "c"])):
        command = [sys.executable, folder / name / "runtime.py", *texts]
        told = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
        (answer,) = map(json.loads, told.stdout.splitlines())
        task = runtime.load(folder / name)
        assert answer == runtime.ask(task, task.answers[0], [texts])[0]


def test_tritons_example_names_what_a_program_takes_and_gives(folder):
    import onnxruntime

    path = pathlib.Path(__file__).parents[1] / "examples/serving/triton/sentiment/config.pbtxt"
    text = path.read_text(encoding="utf-8")
    session = onnxruntime.InferenceSession(str(folder / "one" / "model.onnx"))
    types = {"tensor(int32)": "INT32", "tensor(float)": "FP32"}
    for key, values in (("input", session.get_inputs()), ("output", session.get_outputs())):
        tensor = r'\{ name: "(\w+)" data_type: TYPE_(\w+) dims: \[ -1 \] \}'
        told = re.findall(tensor, re.search(rf"(?m)^{key} \[$(.*?)^\]", text, re.S)[1])
        assert sorted(told) == sorted((x.name, types[x.type]) for x in values)
        # Before it the axis of rows, of which Triton makes as many as `max_batch_size`.
        assert all(len(x.shape) == 2 and isinstance(x.shape[0], str) for x in values)


def test_the_command_answers_from_a_folder_without_keras(folder):
    code = (
        "import sys; sys.argv = sys.orig_argv = ['bert-keras', 'classify', sys.argv[1], 'a b']\n"
        "from bert_keras.cli import main\n"
        "try: main.run()\n"
        "finally: print([x for x in ('keras', 'torch', 'jax') if sys.modules.get(x)])"
    )
    command = [sys.executable, "-c", code, folder / "one"]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    answer, modules = told.stdout.splitlines()
    assert json.loads(answer) == runtime.load(folder / "one").classify("a b")
    assert modules == "[]" and not told.stderr


@pytest.mark.parametrize(
    "arguments, given, told",
    [
        (["classify", "SERVED", "--batch_size", "0"], b"", "--batch_size=0"),
        (["--version"], b"", "'version'"),
        (["tag", "SERVED"], b"\xff\n", "standard input cannot be read"),
        (["tag", "SERVED", "--batch_size", "1"], "\ufeffcaf\u00e9".encode(), None),
    ],
)
def test_the_command_speaks_utf8_and_tells_mistakes_in_a_line(folder, arguments, given, told):
    code = "import sys; sys.modules['keras'] = None\nfrom bert_keras.cli import main; main.run()"
    arguments = [str(folder / "tag") if word == "SERVED" else word for word in arguments]
    command, ascii = [sys.executable, "-c", code], {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*command, *arguments], input=given, capture_output=True, env=ascii)
    if told is None:
        assert json.loads(done.stdout.decode())["words"][0][0] == "caf\u00e9"
    else:
        (line,) = done.stderr.decode().splitlines()
        assert done.returncode == 2 and told in line and not done.stdout


def test_the_package_without_keras_has_its_runtime_and_says_what_the_rest_needs():
    code = (
        "import sys; sys.modules['keras'] = None; import bert_keras.export.runtime, bert_keras\n"
        "from bert_keras import TextClassifier"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = told.stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: bert_keras.TextClassifier needs Keras")


def test_mistakes_are_told(folder, tmp_path):
    task = runtime.load(folder / "fill_mask")
    with pytest.raises(ValueError, match="answers by fill_mask"):
        task.tag("a")
    with pytest.raises(ValueError, match="Received: 0 within"):
        task.fill_mask("a b")
    with pytest.raises(TypeError, match="A text must be a str"):
        runtime.load(folder / "one").classify(["a", None])
    with pytest.raises(TypeError, match="A text must be a str"):
        runtime.load(folder / "one").classify([("a", "b")])
    with pytest.raises(ValueError, match="Documents are single texts"):
        runtime.load(folder / "long").classify(("a", "b"))
    with pytest.raises(ValueError, match="`top_k` must be an int from 1"):
        task.fill_mask("[MASK]", top_k=-1)
    with pytest.raises(ValueError, match="at least one choice"):
        runtime.load(folder / "choose").choose("a", [])
    assert runtime.load(folder / "embed").embed([]).shape == (0, 16)
    with pytest.raises(ValueError, match="each label's name"):
        runtime.load(folder / "multi").classify("a", threshold={"a": 0.5})
    with pytest.raises(ValueError, match="at most 14 tokens"):
        runtime.load(folder / "is_replaced").is_replaced("a " * 15)
    with pytest.raises(ValueError, match="need a token each"):
        runtime.load(folder / "answer").answer("", "a")
    with pytest.raises(ValueError, match="that `export"):
        runtime.load(tmp_path)
    (tmp_path / "model.onnx").touch()
    (tmp_path / "config.json").write_text('{"format": 2, "version": "9"}')
    with pytest.raises(ValueError, match="of version 9"):
        runtime.load(tmp_path)
    config = runtime.load(folder / "answer").config
    for wrong in ({"answers": ["run"]}, {"answers": 1}, {"stride": 0}, {"max_answer_length": "1"}):
        (tmp_path / "config.json").write_text(json.dumps({**config, **wrong}))
        with pytest.raises(ValueError, match=re.escape(repr(next(iter(wrong.values()))))):
            runtime.load(tmp_path)


def test_other_folders_with_such_files_are_not_exported_ones(tmp_path):
    (tmp_path / "model.onnx").touch()
    for text in ("", "[" * 99999, "[1]", '{"model_type": "bert"}'):
        (tmp_path / "config.json").write_text(text)
        assert not runtime.is_exported(tmp_path)


class Lowering(bert_keras.TextPreprocessor):
    def tokenize(self, texts, pairs=None):
        return super().tokenize([text.lower() for text in texts], pairs)


class OfUpperCase(bert_keras.TextClassifier):
    def encode_texts(self, x, *args, **kwargs):
        return super().encode_texts([text.upper() for text in x], *args, **kwargs)


def test_what_classes_of_one_s_own_do_with_texts_is_refused(tmp_path):
    own = Lowering(tiny_preprocessor().tokenizer, max_length=16)
    for cls, preprocessor in (
        (bert_keras.TextClassifier, own),
        (OfUpperCase, tiny_preprocessor()),
    ):
        with pytest.raises(ValueError, match="their own way"):
            cls(tiny_backbone(), 2, preprocessor).export(tmp_path / "served", format="onnx")
    assert not list(tmp_path.iterdir())


PROGRAMS_THAT_IMPORT = {
    "bert-keras": (["/bin/bert-keras", "info"], False),
    "module": (["-m", "info"], False, ["python", "-W", "ignore", "-m", "bert_keras", "info"]),
    "another module": (["-m", "info"], True, ["python", "-m", "mine.train", "info"]),
    "another script": (["bert-keras-mine.py"], True),
    "no arguments": ([], True),
    "a text": (["bert-keras", "classify", "x.keras", "SERVED"], False),
    "a source": (["bert-keras", "classify", "SERVED", "x"], False),
}


@pytest.mark.parametrize("name", PROGRAMS_THAT_IMPORT)
def test_the_package_prepares_for_its_command_alone(name, folder):
    argv, is_heard, *others = PROGRAMS_THAT_IMPORT[name]
    argv = [str(folder / "one") if word == "SERVED" else word for word in argv]
    original = others[0] if others else ["python", *argv]
    # Keras itself would take seconds.
    code = (
        f"import os, signal, sys; sys.argv = {argv}; sys.orig_argv = {original}\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Finder:\n"
        "    def find_spec(name, path, target=None):\n"
        "        if name == 'keras': raise SystemExit(3)\n"
        "sys.meta_path.insert(0, Finder)\n"
        "try: import bert_keras\n"
        "finally: os.write(2, b'heard'); print(signal.getsignal(signal.SIGINT) == 0)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.returncode == (0 if name == "a source" else 3), told.stderr
    assert ("heard" in told.stderr) == is_heard
    assert told.stdout == f"{not is_heard}\n"  # Whether Ctrl-C ends it without a traceback.


def test_a_folder_is_whole_or_as_it_was(tmp_path, monkeypatch):
    def files():
        return {path.name: path.read_bytes() for path in (tmp_path / "served").iterdir()}

    monkeypatch.setattr(formats, "write_onnx", write_once())
    task = CASES["one"][0]()
    task.export(tmp_path / "served", format="onnx")
    before = files()
    monkeypatch.setattr(runtime, "__file__", "nowhere")
    with pytest.raises(FileNotFoundError):
        task_of(bert_keras.TextClassifier, num_classes=3).export(tmp_path / "served", format="onnx")
    assert files() == before
    for model in (tiny_backbone(), bert_keras.TextClassifier(tiny_backbone())):
        with pytest.raises(ValueError, match="needs one task, with a preprocessor"):
            model.export(tmp_path / "other", format="onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["served"]
