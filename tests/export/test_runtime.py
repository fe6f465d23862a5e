"""An exported folder answers like its task, with only three libraries installed."""

import functools
import json
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import zlib

import keras
import numpy as np
import pytest
from checks import cases
from files import contents
from programs import programs_of
from small_tokenizers import byte_pair_tokenizer
from test_text_in import Lowering, OfUpperCase
from tiny import guide_to_tasks, tiny_backbone, tiny_preprocessor

import bert_keras
from bert_keras.answers.answerer import Answerer
from bert_keras.export import program_formats as formats
from bert_keras.export import runtime
from bert_keras.search import write_vectors

# PyTorch writes the programs; no backend reads them.
pytestmark = pytest.mark.once

TEXTS = ["a b cab", "dd, ee", "", "h" * 9, "a b c d e f g h a b c d e f g h", "caf\u0301é \ud800b"]
ENTAILMENT = ["contradiction", "neutral", "entailment"]
NAMES = ["O", "B-A", "I-A", "B-B", "E-B", "[PAD]"]
QUESTIONS = ["a b", "c? d d d d d d d d d d"]
CONTEXTS = ["a b, c d e f g h a b c d e f g h a b c d e f e\u0301 g h.", "h a a a c"]


def biased(task):
    """Returns the task with weights that depend only on its class and give clear answers."""
    for weight in (w for w in task.weights if len(w.shape) > 1 or "crf" in w.path):
        rng = np.random.default_rng(zlib.crc32(weight.path.split("/", 1)[1].encode()))
        # Six layers of the spans' head multiply: larger ones would make all probabilities 0 or 1.
        scale = 0.35 if "zero_shot_tagger" in weight.path else 0.5
        weight.assign(rng.normal(0, scale, weight.shape))
    return task


def task_of(name, *, max_length=16, truncation="longest_first", **options):
    preprocessor = tiny_preprocessor(max_length, truncation=truncation)
    return biased(getattr(bert_keras, name)(tiny_backbone(), preprocessor=preprocessor, **options))


def roberta_task_of(name, *, max_length=24, **options):
    """Returns a task without segments whose tokens include the space before a word."""
    tokenizer = byte_pair_tokenizer(["a film for a rainy day é"] * 9, 300)
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}
    sizes |= {"max_sequence_length": 64, "padding_id": tokenizer.pad_token_id}
    backbone = bert_keras.RobertaBackbone(tokenizer.vocabulary_size, **sizes)
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=max_length)
    return biased(getattr(bert_keras, name)(backbone, preprocessor=preprocessor, **options))


def own_task_of(name, **options):
    """Returns a task of the guide to one's own tasks."""
    return biased(getattr(guide_to_tasks(), name)(tiny_backbone(), tiny_preprocessor(), **options))


def case(name, method, *arguments, make=task_of, **options):
    return functools.partial(make, name, **options), method, arguments


classifier = functools.partial(case, "TextClassifier", "classify", num_classes=3)
tagger = functools.partial(case, "TokenClassifier", "tag", num_classes=6, max_length=8)
answerer = functools.partial(case, "QuestionAnswering", "answer")
WORDS = [*TEXTS, ["ab", "", "\u0000", "c d"], ["a", "b"], []]
CHOICES = ["a b", "c"], [["a", "b b b", "c"], ["d e", "f"]]
MASKS = ["a [MASK] b", "[MASK] c [MASK] d e f"]
BYTES, PIECES = ["a film for<mask> day", "<mask> é"], ["a film, rainy", ["for", "a", "é day", ""]]
LATE = {"dim": 4, "query_marker": "h", "document_marker": "g: ", "query_expansion": 9}
LATE |= {"query_length": 9, "document_length": 12, "skipped_tokens": ["a", "##b"]}
FIND = {"prompts": {"find": "h g "}, "default_prompt": "find"}
CASES = {
    "single": classifier(TEXTS),
    "one": classifier("a b", label_names=["a", "b", "c"]),
    "entailment": classifier("a b", label_names=ENTAILMENT),
    "pairs": classifier((TEXTS, TEXTS[::-1]), max_length=9),
    "pair": classifier(("a b", "c d e f g h"), truncation="only_second", max_length=9),
    "multi": classifier(TEXTS, problem_type="multi_label", temperature=2.0),
    "scores": classifier(TEXTS, problem_type="regression"),
    "tail": classifier(TEXTS, truncation="tail", max_length=6),
    "head_tail": classifier(TEXTS, truncation="head_tail", max_length=8),
    "long": case(
        *("LongTextClassifier", "classify", TEXTS),
        **{"num_classes": 3, "max_length": 6, "truncation": "head_tail", "num_windows": 3},
    ),
    "crf": tagger(TEXTS, label_names=NAMES, crf=True),  # Its program is that of "tag" too.
    "tag": tagger(WORDS, label_names=NAMES),
    "numbers": tagger(["ab, c"]),
    "words": tagger(PIECES, num_classes=5, label_names=NAMES[:5], make=roberta_task_of),
    "spans": case(
        *("ZeroShotTagger", "tag", [*TEXTS, ["a", "b"], "a b " * 20], ["a b", "c"], 0.0),
        **{"dim": 8, "max_width": 3, "max_words": 6, "max_length": 16},
    ),
    "answer": answerer(QUESTIONS, CONTEXTS, 3, stride=3, max_answer_length=4),
    "answer_one": answerer(QUESTIONS[0], CONTEXTS[0], stride=2),
    "no_answer": answerer(
        *(QUESTIONS, CONTEXTS[0], 4),
        # Below the difference of any two scores, so that no text has an answer.
        **{"no_answer_threshold": -1e3, "stride": 3},
    ),
    "choose": case("MultipleChoice", "choose", *CHOICES),
    "embed": case("TextEmbedder", "embed", TEXTS),
    "prompt": case("TextEmbedder", "embed", TEXTS, "query", prompts={"query": "h g "}),
    "default_prompt": case(
        *("TextEmbedder", "embed", [" a ", "b"]), prompts={"x": "c"}, default_prompt="x"
    ),
    "sparse": case("SparseTextEmbedder", "token_weights", TEXTS, 3, prompts={"query": "a "}),
    "sparse_query": case(
        *("SparseTextEmbedder", "token_weights", TEXTS, 3, "query"),
        **{"prompts": {"query": "a "}, "query_weights": {"a": 2.0, "b": 0.5, "##b": 3.0}},
    ),
    "query": case("MultiVectorEmbedder", "embed", TEXTS, "query", **LATE),
    "document": case("MultiVectorEmbedder", "embed", TEXTS, "document", **LATE),
    "score": case("Reranker", "classify", (TEXTS, TEXTS[::-1]), **FIND),
    "scores_of_pairs": case("Reranker", "score", "a b", TEXTS, activation="tanh", **FIND),
    "rank": case("Reranker", "rank", "a b", TEXTS, 3),
    "fill_mask": case("MaskedLM", "fill_mask", MASKS, 3),
    "bytes": case("MaskedLM", "fill_mask", BYTES, 40, make=roberta_task_of),
    "both": case("Pretraining", "fill_mask", "a [MASK] b"),
    "span_boundary": case("SpanBoundary", "fill_mask", MASKS, 3),
    "is_next": case("NextSentencePrediction", "is_next", TEXTS, TEXTS[::-1]),
    "is_next_both": case("Pretraining", "is_next", "a b", "c"),
    "is_replaced": case("ReplacedTokenDetector", "is_replaced", TEXTS[:3]),
    "own": case("Grader", "grade", TEXTS, make=own_task_of, num_grades=3),
}


def assert_same(found, expected):
    keras.tree.assert_same_structure(found, expected)
    for one, other in zip(keras.tree.flatten(found), keras.tree.flatten(expected), strict=True):
        assert type(one) is type(other)
        is_float = isinstance(other, (float, np.ndarray))
        assert one == (pytest.approx(other, rel=0, abs=1e-5) if is_float else other)


def program_key(task):
    """Returns what decides a task's program, since `biased` gives equal layers equal weights."""
    return type(task), type(task.backbone), getattr(task, "num_classes", None)


@pytest.fixture(scope="module")
def exported_tasks(tmp_path_factory):
    """The task of each case; their `export` copies programs that are written together."""
    tasks, groups, programs = {name: make() for name, (make, *_) in CASES.items()}, {}, {}
    for task in tasks.values():
        group = groups.setdefault((type(task.backbone), task.num_input_axes), {})
        group.setdefault(program_key(task), task)
    for group in groups.values():
        path = tmp_path_factory.mktemp("programs") / "model.onnx"
        programs |= zip(group, programs_of([*group.values()], path), strict=True)

    def copy(format, model, path, verbose=None):
        pathlib.Path(path).write_bytes(programs[program_key(model)])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formats, "write", copy)
        yield tasks


def run_python(code, *arguments, text=True, **options):
    """Runs code in a process of its own; returns its exit status and output."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=text, **options)


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
    copied = sys.modules[runtime.PACKAGE].__file__
    assert copied == str(folder / name / "library" / "__init__.py")
    answers[name] = getattr(runtime.load(folder / name), method)(*arguments)
(folder / "answers").write_bytes(pickle.dumps(answers))
"""


@pytest.fixture(scope="module")
def folder(exported_tasks, tmp_path_factory):
    """A folder of exported folders and the answers of their tasks."""
    folder, expected = tmp_path_factory.mktemp("served"), {}
    for name, (_, method, arguments) in CASES.items():
        exported_tasks[name].export(folder / name, format="onnx")
        expected[name] = getattr(exported_tasks[name], method)(*arguments)
    asked = {name: case[1:] for name, case in CASES.items()}
    (folder / "asked").write_bytes(pickle.dumps(asked))
    (folder / "expected").write_bytes(pickle.dumps(expected))
    return folder


@pytest.fixture(scope="module")
def answers(folder):
    """Returns answers of the folders, from a process without a backend and this package."""
    run_python(WITHOUT_KERAS, folder, check=True, cwd=folder)
    found, expected = ((folder / name).read_bytes() for name in ("answers", "expected"))
    return pickle.loads(found), pickle.loads(expected)


@pytest.mark.parametrize("name", CASES)
def test_answers_equal_those_of_the_task(answers, name):
    found, expected = answers
    assert_same(found[name], expected[name])


def test_the_compared_answers_include_entities_and_spans(answers):
    found = answers[0]
    assert any(len(answer["entities"]) > 1 for answer in found["tag"] + found["crf"])
    assert {len(best) for best in found["answer"]} == {3}
    assert any(best[0]["answer"] == "" for best in found["no_answer"])


def test_a_folder_answers_by_the_methods_of_its_task(folder):
    names = {name: runtime.load(folder / name).answers for name in ("both", "tag", "embed")}
    assert names == {"both": ["fill_mask", "is_next"], "tag": ["tag"], "embed": ["embed"]}


def test_a_folder_classifies_by_any_labels_and_fills_masks_with_given_tokens(folder):
    make, _, _ = CASES["entailment"]
    task, labels = bert_keras.ZeroShotClassifier(make()), ["c d", "e"]
    exported = runtime.load(folder / "entailment")
    again = bert_keras.ZeroShotClassifier.from_preset(folder / "entailment")
    for multi_label in (False, True):
        expected = task.classify(TEXTS, labels, "a {}", multi_label)
        assert_same(exported.zero_shot(TEXTS, labels, "a {}", multi_label), expected)
        assert_same(again.classify(TEXTS[0], labels, "a {}", multi_label), expected[0])
    with pytest.raises(ValueError, match="takes no arguments"):
        bert_keras.ZeroShotClassifier.from_preset(folder / "entailment", label_names=["a"])
    with pytest.raises(ValueError, match="named 'entailment'"):
        runtime.load(folder / "one").zero_shot(TEXTS, labels)

    make, _, _ = CASES["fill_mask"]
    expected = make().fill_mask(MASKS, targets=["c", "b"])
    assert {token for mask in expected[1] for token, _ in mask} == {"c", "b"}
    assert_same(runtime.load(folder / "fill_mask").fill_mask(MASKS, targets=["c", "b"]), expected)


def test_vectors_that_a_folder_writes_into_a_file_are_whole(folder, tmp_path):
    exported = runtime.load(folder / "prompt")
    write_vectors(exported, TEXTS[:3], tmp_path / "x.npy", "query", batch_size=2)
    expected = CASES["prompt"][0]().embed(TEXTS[:3], "query")
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), expected, atol=1e-5)


def test_a_folder_answers_from_the_shell(folder):
    for name, method in (("one", "classify"), ("embed", "embed")):
        command = [sys.executable, folder / name / "runtime.py", "a b", "c"]
        output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
        answers = list(map(json.loads, output.stdout.splitlines()))
        expected = getattr(runtime.load(folder / name), method)(["a b", "c"])
        assert answers == (expected.tolist() if name == "embed" else expected)


def test_triton_s_example_names_the_inputs_and_outputs_of_a_program(folder):
    import onnxruntime

    path = pathlib.Path(__file__).parents[2] / "examples/serving/triton/sentiment/config.pbtxt"
    text = path.read_text(encoding="utf-8")
    session = onnxruntime.InferenceSession(str(folder / "one" / "model.onnx"))
    types = {"tensor(int32)": "INT32", "tensor(float)": "FP32"}
    for key, values in (("input", session.get_inputs()), ("output", session.get_outputs())):
        tensor = r'\{ name: "(\w+)" data_type: TYPE_(\w+) dims: \[ -1 \] \}'
        named = re.findall(tensor, re.search(rf"(?m)^{key} \[$(.*?)^\]", text, re.S)[1])
        assert sorted(named) == sorted((x.name, types[x.type]) for x in values)
        # Triton adds the axis of rows by itself, up to `max_batch_size`.
        assert all(len(x.shape) == 2 and isinstance(x.shape[0], str) for x in values)


def test_the_command_answers_from_a_folder_without_keras(folder):
    code = (
        "import sys; sys.argv = sys.orig_argv = ['bert-keras', 'classify', sys.argv[1], 'a b']\n"
        "from bert_keras.cli import main\n"
        "try: main.run()\n"
        "finally: print([x for x in ('keras', 'torch', 'jax') if sys.modules.get(x)])"
    )
    done = run_python(code, folder / "one", check=True)
    answer, modules = done.stdout.splitlines()
    assert json.loads(answer) == runtime.load(folder / "one").classify("a b")
    assert modules == "[]" and not done.stderr


@cases(
    (["classify", "SERVED", "--batch_size", "0"], b"", "--batch_size=0"),
    (["--versions"], b"", "--versions"),
    (["tag", "SERVED"], b"\xff\n", "line 1, byte 0: 0xff is not UTF-8"),
    (["tag", "SERVED", "--batch_size", "1"], "\ufeffcaf\u00e9".encode(), None),
)
def test_the_command_reads_utf8_and_reports_mistakes_in_one_line(folder, arguments, stdin, message):
    code = "import sys; sys.modules['keras'] = None\nfrom bert_keras.cli import main; main.run()"
    arguments = [str(folder / "tag") if word == "SERVED" else word for word in arguments]
    ascii = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run_python(code, *arguments, input=stdin, env=ascii, text=False)
    if message is None:
        assert json.loads(done.stdout.decode())["words"][0][0] == "caf\u00e9"
    else:
        (line,) = done.stderr.decode().splitlines()
        assert done.returncode == 2 and message in line and not done.stdout


def test_without_keras_the_runtime_imports_and_the_rest_says_what_it_needs():
    code = (
        "import sys; sys.modules['keras'] = None; import bert_keras.export.runtime, bert_keras\n"
        "from bert_keras import TextClassifier"
    )
    done = run_python(code)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: bert_keras.TextClassifier needs Keras")


def test_the_code_of_a_folder_does_not_run_in_this_library(folder):
    code = (
        "import sys; sys.modules['keras'] = None  # Importing it takes seconds.\n"
        "from bert_keras.export import runtime; runtime.load(sys.argv[1])"
    )
    done = run_python(code, folder / "own")
    assert "a_task_of_your_own.GradeAnswerer, which this program does not know" in done.stderr
    assert "Export it again" not in done.stderr
    # Here the class has been imported.
    assert runtime.load(folder / "own").grade(TEXTS, 0.9) == runtime.load(folder / "own").grade(
        TEXTS, confidence=0.9
    )


class OfKeras(Answerer):
    """An answer that a folder cannot hold."""

    method = about = "own"

    def answers(self, arrays):
        return keras.ops.argmax(arrays)


def test_an_answer_in_a_folder_needs_numpy_alone_and_a_module(tmp_path):
    class Nested(Answerer):
        method = about = "own"

    for cls, message in ((OfKeras, "NumPy, the standard library"), (Nested, "top of a module")):
        own = type("Own", (guide_to_tasks().Grader,), {"answerers": (cls,)})
        with pytest.raises(ValueError, match=message):
            own(tiny_backbone(), tiny_preprocessor()).export(tmp_path / "own", format="onnx")
    assert not list(tmp_path.iterdir())


MISTAKES = [
    ("fill_mask", "fill_mask", ["a b"], "needs a .MASK. to fill"),
    ("fill_mask", "fill_mask", ["[MASK]", -1], "`top_k` must be an int from 1"),
    ("fill_mask", "fill_mask", ["[MASK]", 1, 32, "b"], "takes text, top_k.* Received: 4 arguments"),
    ("one", "classify", [["a", None]], "must hold str only"),
    ("one", "classify", [[("a", "b")]], "must hold str only"),
    ("long", "classify", [(["a"], ["b"])], "takes text. Received: 2 columns"),
    ("multi", "classify", ["a", {"a": 0.5}], "each label's name"),
    ("choose", "choose", ["a", []], "at least one choice"),
    ("is_replaced", "is_replaced", ["a " * 15], "at most 14 tokens"),
    ("answer", "answer", ["", "a"], "question needs text"),
]


@pytest.mark.parametrize(("name", "method", "arguments", "message"), MISTAKES)
def test_wrong_arguments_are_refused(folder, name, method, arguments, message):
    error = TypeError if "str only" in message or "arguments" in message else ValueError
    with pytest.raises(error, match=message):
        getattr(runtime.load(folder / name), method)(*arguments)


@pytest.mark.parametrize("name", CASES)
def test_no_texts_have_no_answers(folder, name):
    method = CASES[name][1]
    two = "answer", "choose", "is_next", "rank", "score"
    columns = [[]] * (2 if method in two else 1)
    options = {"labels": ["a"]} if name == "spans" else {}
    found = getattr(runtime.load(folder / name), method)(*columns, **options)
    is_matrix = method == "embed" and name not in ("query", "document")
    assert np.shape(found) == ((0, 16) if is_matrix else (0,))


def test_folders_of_another_kind_or_version_are_refused(folder, tmp_path):
    with pytest.raises(ValueError, match="that `export"):
        runtime.load(tmp_path)
    (tmp_path / "model.onnx").touch()
    (tmp_path / "config.json").write_text('{"format": 1, "version": "9"}')
    with pytest.raises(ValueError, match="of version 9"):
        runtime.load(tmp_path)
    config = runtime.load(folder / "answer").config
    for wrong, message in (
        ({"answerers": 1}, "cannot be read"),
        ({"answerers": ["os.system"]}, "answers by os.system, which"),
        ({"answerers": ["bert_keras.answers.classes.check_threshold"]}, "cannot be read"),
    ):
        (tmp_path / "config.json").write_text(json.dumps({**config, **wrong}))
        with pytest.raises(ValueError, match=re.escape(message)):
            runtime.load(tmp_path)


def test_other_folders_with_these_files_are_not_taken_for_exports(tmp_path):
    (tmp_path / "model.onnx").touch()
    for text in ("", "[" * 99999, "[1]", '{"model_type": "bert"}'):
        (tmp_path / "config.json").write_text(text)
        assert not runtime.is_exported(tmp_path)


def test_a_preset_and_an_export_do_not_overwrite_each_other(folder, tmp_path):
    task = task_of("TextClassifier", num_classes=3)
    task.save_to_preset(tmp_path / "preset")
    with pytest.raises(ValueError, match=r"Name another folder"):
        task.export(tmp_path / "preset", format="onnx")
    assert bert_keras.TextClassifier.from_preset(tmp_path / "preset").num_classes == 3
    shutil.copytree(folder / "single", tmp_path / "exported")
    with pytest.raises(ValueError, match=r"exported task.*Name another folder"):
        task.save_to_preset(tmp_path / "exported")
    assert runtime.load(tmp_path / "exported").classify("a b")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"file, a file\. Name another folder"):
        task.export(tmp_path / "file", format="onnx")


def test_classes_that_change_texts_in_their_own_way_are_refused(tmp_path):
    own = Lowering(tiny_preprocessor().tokenizer, max_length=16)
    for cls, preprocessor in ((bert_keras.TextClassifier, own), (OfUpperCase, tiny_preprocessor())):
        with pytest.raises(ValueError, match="their own way"):
            cls(tiny_backbone(), 2, preprocessor).export(tmp_path / "served", format="onnx")
    assert not list(tmp_path.iterdir())


PROGRAMS_THAT_IMPORT = {
    "bert-keras": (["/bin/bert-keras", "info", "x"], False),
    "module": (
        ["-m", "info", "x"],
        False,
        ["python", "-W", "ignore", "-m", "bert_keras", "info", "x"],
    ),
    "another module": (["-m", "tag"], True, ["python", "-m", "mine.train", "tag"]),
    "another script": (["bert-keras-mine.py"], True),
    "no arguments": ([], True),
    "a text": (["bert-keras", "classify", "x.keras", "SERVED"], False),
    "a source": (["bert-keras", "classify", "SERVED", "x"], False),
}


@pytest.mark.parametrize("name", PROGRAMS_THAT_IMPORT)
def test_the_package_prepares_only_for_its_own_command(name, folder):
    argv, is_heard, *others = PROGRAMS_THAT_IMPORT[name]
    argv = [str(folder / "one") if word == "SERVED" else word for word in argv]
    original = others[0] if others else ["python", *argv]
    # Keras itself would take seconds.
    code = (
        f"import os, sys; sys.argv = {argv}; sys.orig_argv = {original}\n"
        "class Finder:\n"
        "    def find_spec(name, path, target=None):\n"
        "        if name == 'keras': raise SystemExit(3)\n"
        "sys.meta_path.insert(0, Finder)\n"
        "try: import bert_keras\n"
        "finally: os.write(2, b'heard')"
    )
    done = run_python(code)
    assert done.returncode == (0 if name == "a source" else 3), done.stderr
    assert ("heard" in done.stderr) == is_heard


def test_an_export_replaces_a_folder_as_a_whole_or_not_at_all(
    exported_tasks, tmp_path, monkeypatch
):
    task, folder = exported_tasks["one"], tmp_path / "served"
    task.export(folder, format="onnx")
    before = contents(folder)
    # A module of another version is removed; a file of the user stays.
    for name in ("library/answers/older.py", "notes.txt"):
        (folder / name).touch()
    task.export(folder, format="onnx")
    assert contents(folder).keys() - before.keys() == {"notes.txt"}
    before = contents(folder)
    with monkeypatch.context() as patch, pytest.raises(FileNotFoundError):
        patch.setattr(runtime, "__file__", "nowhere")
        exported_tasks["single"].export(folder, format="onnx")
    assert contents(folder) == before
    for model in (tiny_backbone(), bert_keras.TextClassifier(tiny_backbone())):
        with pytest.raises(ValueError, match="needs one task with `answerers`"):
            model.export(tmp_path / "other", format="onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["served"]
