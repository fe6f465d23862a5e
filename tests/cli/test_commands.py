"""The command line answers as the methods do, from wherever the texts come."""

import contextlib
import csv
import datetime
import functools
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import warnings

import keras
import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet
import pytest
from checks import assert_close, cases, inputs_of, refused
from tiny import tiny_backbone, tiny_classifier, tiny_preprocessor, tiny_task

import bert_keras
from bert_keras.cli import main, serve, sources, text_rows
from bert_keras.export import program_formats

TEXTS = ["good film", "bad", "", "a good bad film"]
pytestmark = pytest.mark.once


@pytest.fixture
def command(capsys):
    """Returns a function that runs a command and returns its output, or its error if it fails."""

    def run(*arguments):
        try:
            main.run_command(main.main, "bert-keras", [*map(str, arguments)])
        except SystemExit as stopped:
            assert stopped.code == 2
            lines = capsys.readouterr().err.splitlines()
            return next(line for line in lines if line.startswith("bert-keras: "))
        return capsys.readouterr().out

    return run


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands") / "preset"
    backbone = tiny_backbone(activation="gelu_tanh")
    tiny_classifier(backbone, label_names=("no", "yes")).save_to_preset(folder)
    return folder


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    path = tmp_path_factory.mktemp("tagger") / "tagger.keras"
    bert_keras.TokenClassifier(tiny_backbone(), 3, preprocessor=tiny_preprocessor()).save(path)
    return path


@pytest.fixture
def answers_to(command, preset, tmp_path):
    """Returns a function that classifies the texts of a file; it returns the CSV of answers."""

    def classify(path, *options):
        output = tmp_path / "new" / "answers.csv"
        assert command("classify", preset, "--input", path, *options, "--output", output) == ""
        return output.read_text(encoding="utf-8")

    return classify


def rows_of(text):
    return list(csv.DictReader(text.splitlines()))


def standard_input(text):
    """Returns text, or bytes, as a process gets it."""
    text = text.encode() if isinstance(text, str) else text
    return io.TextIOWrapper(io.BufferedReader(io.BytesIO(text)))


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_texts_come_from_arguments_files_and_standard_input(
    command, preset, write, answers_to, monkeypatch, capsys
):
    expected = bert_keras.TextClassifier.from_preset(preset).classify(TEXTS)
    rounded = functools.partial(keras.tree.map_structure, lambda x: pytest.approx(x, abs=1e-6))
    expected = rounded(expected)
    assert json_lines(command("classify", preset, *TEXTS)) == expected
    lines = "".join(f"{text}\n" for text in TEXTS)
    for arguments in ((), ("-",), ("--input", "-")):
        monkeypatch.setattr(sys, "stdin", standard_input(lines))
        assert json_lines(command("classify", preset, *arguments)) == expected
    monkeypatch.setattr(sys, "stdin", standard_input(""))
    main.main(["classify", str(preset)])
    assert "bert-keras classify: the input has no texts." in capsys.readouterr().err
    refused = command("classify", preset, "--columns", "review")
    assert "no columns to name" in refused and "--input_format csv" in refused
    table = "id,review\n" + "".join(f"1,{text}\n" for text in TEXTS)
    for name, content, own, *options in (
        ("x.txt", lines, []),
        ("x.jsonl", [{"text": text} for text in TEXTS], ["text"]),
        ("x.csv", table, ["id", "review"], "--columns", "review"),
    ):
        source = ("classify", preset, "--input", path := write(name, content), *options)
        assert json_lines(command(*source, "--batch_size", 1)) == expected
        assert "from --input. Received both." in command(*source, "-")
        rows = rows_of(answers_to(path, *options))
        assert [row["label"] for row in rows] == [x["label"] for x in expected]
        assert list(rows[0]) == [*own, "label", "probability", "probabilities"]
        for row in rows:
            assert row["probability"] == str(json.loads(row["probabilities"])[row["label"]])
        assert all([row[column] for row in rows] == TEXTS for column in own[-1:])


def test_dates_in_other_columns_are_text(answers_to, tmp_path):
    date = datetime.date(2020, 1, 31)
    table = pa.table({"text": ["good"], "day": [date], "days": [[date]]})
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    [row] = rows_of(answers_to(tmp_path / "x.parquet"))
    assert (row["day"], row["days"]) == ("2020-01-31", '["2020-01-31"]')


@cases(
    ("x.csv", ";", "\ufeff", "\ufeff", ()),
    ("x.csv", "\t", "", "", ()),
    ("-", ",", "\ufeff", "\ufeff", ()),
    ("-", ";", "", "\ufeff", ("--encoding", "gb18030")),
)
def test_answers_to_a_table_begin_and_separate_as_it_does(
    answers_to, write, monkeypatch, source, separator, mark, expected, options
):
    table = f"{mark}编号{separator}text\n1{separator}good\n"
    path = write("x.csv", table) if source == "x.csv" else source
    encoded = table.encode(options[-1] if options else "utf-8")
    monkeypatch.setattr(sys, "stdin", standard_input(encoded))
    first = answers_to(path, "--input_format", "csv", *options).splitlines()[0]
    assert first.startswith(separator.join((f"{expected}编号", "text", "label", "probability")))


def test_answers_to_a_workbook_have_the_mark_by_which_excel_knows_utf_8(answers_to, tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["编号", "text"])
    book.active.append([1, "good"])
    book.save(tmp_path / "x.xlsx")
    assert answers_to(tmp_path / "x.xlsx").startswith("\ufeff编号,text,label")


def test_a_pair_has_two_columns(command, preset, write):
    path = write("x.jsonl", {"a": "good film", "b": "bad"})
    (found,) = json_lines(command("classify", preset, "--input", path, "--columns", "a,b"))
    model = bert_keras.TextClassifier.from_preset(preset)
    assert found == model.classify(("good film", "bad")) != model.classify("good film")


@cases(
    ("tag", lambda *x, **k: bert_keras.TokenClassifier(*x, 3, **k), ["good film"]),
    ("answer", bert_keras.QuestionAnswering, ["good", "a good film"]),
    ("choose", bert_keras.MultipleChoice, ["a film", "good", "bad", "a"]),
    ("fill-mask", bert_keras.MaskedLM, ["a [MASK] film"]),
    ("embed", bert_keras.TextEmbedder, ["good film"]),
    ("embed", bert_keras.TextEmbedder, ["good film", "--prompt=query: "]),
    ("is-next", bert_keras.NextSentencePrediction, ["good", "bad"]),
)
def test_each_task_answers(command, tmp_path, name, cls, arguments):
    model = cls(tiny_backbone(), preprocessor=tiny_preprocessor())
    model.save(tmp_path / "x.keras")
    method = getattr(model, main.COMMANDS[name][0].method)
    texts = [argument.removeprefix("--prompt=") for argument in arguments]
    texts = [texts[0], texts[1:]] if name == "choose" else texts
    (found,) = json_lines(command(name, tmp_path / "x.keras", *arguments))
    expected = method(*texts)
    expected = expected.tolist() if name == "embed" else expected
    assert found == json.loads(json.dumps(expected))


def test_embed_writes_the_vectors_of_each_kind_of_embedder(command, write, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "load", functools.cache(sources.load))  # Loading takes longest.
    texts, lengths = ["good film", "a bad film"], {"query_length": 8, "query_expansion": 8}
    source = write("x.txt", "".join(f"{text}\n" for text in texts))
    sparse = tiny_task("SparseTextEmbedder")
    sparse.save(tmp_path / "sparse.keras")
    asked = ("embed", tmp_path / "sparse.keras", "--input", source)
    expected = [dict(weights) for weights in sparse.token_weights(texts)]
    assert json_lines(command(*asked)) == expected
    (found,) = json_lines(command(*asked[:2], texts[0], "--top_k", 2))
    assert found == dict(sparse.token_weights(texts[0], top_k=2))
    token, weight = sparse.token_weights(texts[0])[0]
    lines = command(*asked, "--output_format", "text").splitlines()
    assert lines[0].startswith(f"{token} {weight:.3f}, ")
    rows = rows_of(command(*asked, "--output_format", "csv"))
    assert [json.loads(row["weights"]) for row in rows] == expected

    tokens = tiny_task("MultiVectorEmbedder", **lengths)
    tokens.save(tmp_path / "tokens.keras")
    asked = ("embed", tmp_path / "tokens.keras", texts[0], "--prompt", "query")
    (found,) = json_lines(command(*asked))
    np.testing.assert_array_equal(np.float32(found), tokens.embed(texts[0], "query"))
    assert command(*asked, "--output_format", "text").startswith("[[")
    dense = tiny_task("TextEmbedder")
    dense.save(tmp_path / "dense.keras")
    for name in ("x.npy", "y.NPY"):
        command("embed", tmp_path / "dense.keras", "--input", source, "--output", tmp_path / name)
        np.testing.assert_array_equal(np.load(tmp_path / name), dense.embed(texts))

    refused = functools.partial(command, *asked[:2], "x")
    assert "by a `TextEmbedder`" in refused("--output", "x.npy")
    assert "--top_k=2" in refused("--output", "x.npy", "--top_k", 2)
    assert "`kind` must be" in refused("--prompt", "title")


def test_rerank_prints_the_texts_that_answer_best(command, write, tmp_path, capsys):
    reranker = bert_keras.Reranker(tiny_backbone(), tiny_preprocessor())
    reranker.save(tmp_path / "x.keras")
    path, texts = write("x.txt", "".join(f"{x}\n" for x in TEXTS)), [x for x in TEXTS if x]
    ranked = reranker.rank("a film", TEXTS, top_k=2)
    expected = [{**hit, "text": TEXTS[hit["index"]]} for hit in ranked]
    asked = ("rerank", tmp_path / "x.keras", "a film")
    assert json_lines(command(*asked, "--input", path, "--top_k", 2)) == expected
    lines = command(*asked, *texts, "--output_format", "text").splitlines()
    best = reranker.rank("a film", texts)
    assert lines == [f"{hit['score']:.3f}  {texts[hit['index']]}" for hit in best]
    assert "rerank SOURCE QUERY" in command("rerank", tmp_path / "x.keras")
    main.main([*map(str, asked), "--input", str(write("empty.txt", ""))])
    assert "empty.txt has no texts." in capsys.readouterr().err


def test_labels_make_classify_zero_shot(command, tmp_path):
    model = tiny_classifier(label_names=("contradiction", "entailment"))
    model.save(tmp_path / "x.keras")
    asked = ("classify", tmp_path / "x.keras", *TEXTS, "--labels", "good,bad")
    classifier = bert_keras.ZeroShotClassifier(model)
    expected = classifier.classify(TEXTS, ["good", "bad"], "It is {}.", multi_label=True)
    found = json_lines(command(*asked, "--hypothesis", "It is {}.", "--multi_label"))
    assert found == expected
    assert json_lines(command(*asked)) == classifier.classify(TEXTS, ["good", "bad"])


def test_the_folder_of_a_run_and_a_model_without_a_head_are_served(command, tmp_path):
    model, run = tiny_classifier(label_names=("no", "yes")), tmp_path / "sentiment"
    run.mkdir()
    model.save(run / "model.keras")
    (run / "results.json").write_text("{}")
    assert json_lines(command("classify", run, *TEXTS)) == model.classify(TEXTS)
    assert isinstance(serve.loaded(str(run), "keras"), bert_keras.TextClassifier)
    bare = tmp_path / "bare"
    served = serve.models_of([str(run / "model.keras"), str(bare), "x=y"], None)
    assert [model.name for model in served] == ["sentiment", "bare", "x"]
    model.backbone.save_to_preset(bare)
    tiny_preprocessor().save_assets(bare)
    assert isinstance(serve.loaded(str(bare), "keras"), bert_keras.TextEmbedder)
    with pytest.raises(ValueError, match=r"bare lacks a part .* has no values for these weights"):
        serve.loaded(str(bare), "keras", "fill-mask")
    with pytest.raises(ValueError, match=r"answers by fill-mask\. Received: .*answers by classify"):
        serve.loaded(str(run), "keras", "fill-mask")


@cases(
    ({"label": "no", "probabilities": {"no": 0.75, "yes": 0.25}}, "no 0.750"),
    ({"label": 0, "probabilities": {0: 0.75, 1: 0.25}}, "0 0.750"),
    ({"labels": [], "probabilities": {"no": 0.25}}, "no label"),
    ({"score": 2.5}, "2.500"),
    ({"answer": "", "start": None, "end": None, "probability": 0.5}, "no answer 0.500"),
    ({"choice": "b", "index": 1, "probabilities": [0.25, 0.75]}, "b 0.750"),
    ({"is_next": False, "probability": 0.25}, "False 0.250"),
    ({"text": "A B", "words": [], "entities": [{"type": "X", "text": "A"}]}, "X 'A'"),
    ([[("a", 0.5), ("b", 0.25)], [("c", 1.0)]], "a 0.500, b 0.250; c 1.000"),
    ([0.5, 1.0], "[0.5, 1.0]"),
)
def test_answers_in_words(answer, words):
    assert text_rows.in_words(answer) == words


def test_info_describes_a_model_and_a_backbone(command, preset, tmp_path):
    tiny_backbone().save_to_preset(tmp_path / "backbone")
    for model, source in (("BertBackbone", tmp_path / "backbone"), ("TextClassifier", preset)):
        found = dict(line.split(": ", 1) for line in command("info", source).splitlines())
        assert found["model"] == model and found["backbone"] == "BertBackbone"
        assert "not loaded" not in found
    assert found["labels"] == "no, yes"
    assert int(found["parameters"].replace(",", "")) == tiny_classifier().count_params()


@pytest.mark.parametrize("to", ["keras", "preset", "huggingface", "keras_hub", "onnx"])
def test_convert_writes_files_with_the_same_outputs(command, preset, tmp_path, monkeypatch, to):
    written, write = [], lambda *job: written.append(job) or pathlib.Path(job[2]).touch()
    monkeypatch.setattr(program_formats, "write", write)  # See tests/export for programs.
    target = tmp_path / "new" / {"keras": "x.keras", "onnx": "x.onnx"}.get(to, "folder")
    assert command("convert", preset, target, "--to", to) == f"Wrote {target}.\n"
    assert target.exists()
    model = bert_keras.TextClassifier.from_preset(preset)
    if to == "onnx":
        [(format, found, *_)] = written
        assert format == "onnx"
    else:
        load = {"keras": keras.saving.load_model}.get(to, bert_keras.TextClassifier.from_preset)
        found = load(target)
    inputs = inputs_of(model, 2, 7)
    assert_close(found(inputs), model(inputs), atol=1e-5)
    assert "--overwrite" in command("convert", preset, target, "--to", to)


def test_convert_asks_another_backend_for_its_format(
    command, preset, tmp_path, asked_of_other_backends
):
    command("convert", preset, tmp_path / "folder", "--to", "saved_model")
    [(format, _, backend)] = asked_of_other_backends
    assert (format, backend) == ("tf_saved_model", "tensorflow")


@cases(
    ((), "Write a command"),
    (("clasify", "PRESET", "x"), "--help. Received: clasify"),
    (("classify", "nowhere/at all", "x"), "nowhere"),
    (("tag", "PRESET", "x"), "num_classes"),
    (("fill-mask", "PRESET", "x"), "start at random"),
    (("embed", "TAGGER", "x"), "needs a model that answers by embed"),
    (("classify", "TAGGER", "x"), "a TokenClassifier, which answers by tag"),
    (("classify", "x.tflite", "x"), "without a tokenizer"),
    (("classify", "x.xml", "x"), "without a tokenizer"),
    (("info", "PRESET", "x"), "Write `info SOURCE`"),
    (("classify", "PRESET", "--input", "nothing.txt"), "not found"),
    (("classify", "PRESET", "x", "--top_k", "2"), "Unknown command line flag 'top_k'"),
    (("classify", "PRESET", "x", "--columns", "a,b,c"), "--columns"),
    (("classify", "PRESET", "x", "--output", "a.xlsx"), "Answers are text, JSON lines or CSV"),
    (("convert", "PRESET", "x"), "--to=None: Pass it. Format that `convert` writes"),
    (("classify", "PRESET", "a", "b", "c", "--columns", "x,y"), "one text each for x and y"),
    (("classify", "PRESET", "x", "--input_format", "csv"), "or from --input"),
    (("embed", "PRESET", "x", "--output", "x.npz"), ".jsonl or .csv, or pass --output_format"),
    (("classify", "PRESET", "x", "--output", "x.csv.gz"), "or pass --output_format"),
    (("classify", "PRESET", "x", "--labels", "a,b"), "named 'entailment'"),
    (
        ("classify", "PRESET", "x", "--hypothesis", "{}"),
        "`labels` must be different names, at least one",
    ),
    (("classify",), "Write `classify SOURCE ...`"),
    (("serve", "x=PRESET", "x=PRESET"), "its own name"),
    (("serve", "nowhere/at all"), "nowhere"),
    (("classify", "PRESET", "x", "--threshold=2"), "is not a number in the range [0.0, 1.0]"),
)
def test_a_mistake_is_one_line(command, preset, tagger, arguments, message):
    paths = {"PRESET": preset, "TAGGER": tagger}
    assert message in command(*(paths.get(x, x) for x in arguments))


def test_a_command_that_fails_leaves_no_new_folder(command, preset, tmp_path):
    (tmp_path / "old").mkdir()
    for folder in (tmp_path / "new" / "newer", tmp_path / "old" / "newer"):
        output = ("--output", folder / "answers.jsonl")
        assert "nowhere" in command("classify", "nowhere/at all", "x", *output)
        assert ".keras" in command("convert", preset, f"{folder}/", "--to", "keras")
    assert [*tmp_path.iterdir()] == [tmp_path / "old"] and not [*(tmp_path / "old").iterdir()]


def test_a_text_may_begin_with_a_hyphen(command, preset):
    texts = ["-5 degrees", "-5", "- bad", "–"]
    expected = bert_keras.TextClassifier.from_preset(preset).classify(texts)
    found = json_lines(command("classify", preset, *texts, "--batch_size", 4))
    assert [x["label"] for x in found] == [x["label"] for x in expected]
    assert "Unknown command line flag 'bad'" in command("classify", preset, "-bad")
    assert "Unknown command line flag" in command("classify", preset, "x", "--batch-size", 4)
    assert len(json_lines(command("classify", preset, "--", "-bad", "--"))) == 2


def test_a_row_without_its_field_is_named(command, preset, write, tmp_path):
    path, output = write("x.csv", "id,review\n1,good\n"), tmp_path / "out.jsonl"
    message = command("classify", preset, "--input", path, "--output", output)
    assert "the header has no column 'text'" in message and "review" in message
    assert not output.exists()


@refused(
    ('{"text": ["good", "bad"]}', "texts"),
    ('{"text": NaN}', "texts"),
    ('{"review": "good"}', "a row must have the fields"),
    prefix=r"x\.jsonl, line 1: ",
)
def test_rows_that_are_no_texts_are_refused(write, content):
    list(text_rows.read_rows(str(write("x.jsonl", content)), "jsonl", ("text",)))


def test_lines_without_text_are_rows(write):
    path = write("x.txt", "\ufeffgood\tbad\n\nnul\0\n")
    rows = text_rows.read_rows(str(path), "text", ("text",))
    assert list(rows) == [(("good\tbad",), {}), (("",), {}), (("nul\0",), {})]


def test_answers_of_lone_surrogates_are_written(tmp_path, capsys):
    with text_rows.answers_to(str(tmp_path / "x.jsonl"), "jsonl") as write:
        write({"text": "\ud800é"}, ["\ud800é"], {})
    written = (tmp_path / "x.jsonl").read_text(encoding="utf-8")
    assert json.loads(written) == {"text": "\ud800é"} and "é" in written
    with text_rows.answers_to(None, "text") as write:
        write({"score": 1.0}, ["a\nb"], {})
    assert capsys.readouterr().out == "1.000  a b\n"


def test_an_unforeseen_error_is_not_a_mistake(command):
    with pytest.raises(ValueError, match="invalid literal"):
        main.run_command(lambda arguments: int(arguments[0]), "bert-keras", ["x"])
    with pytest.raises(ValueError, match="Write a command"):
        command("nothing", "--traceback")


@cases(
    (["--help"], "bert-keras serve"),
    (["embed", "x", "-h"], "bert-keras embed SOURCE"),
    (["--version"], bert_keras.__version__),
    (["clasify", "x"], "Write a command, one of"),
    (["classify", "x", "--colums", "y"], "Did you mean: columns"),
)
def test_help_and_mistakes_in_arguments_import_no_keras(arguments, words):
    command = [sys.executable, "-X", "importtime", "-m", "bert_keras", *arguments, "--traceback"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert words in done.stdout + done.stderr
    assert "bert_keras.cli.main" in done.stderr and "| keras" not in done.stderr


INTERRUPTED = """
import signal, sys
class Finder:
    def find_spec(name, path, target=None):
        if name == "keras": signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder)
sys.argv = ["bert-keras", "info", "x"]
import bert_keras
"""


@cases(("jux", "backend : jux"), ("torch", "No module named 'torch"))
def test_a_backend_that_cannot_be_imported_is_a_mistake_of_one_line(monkeypatch, backend, message):
    code = "import sys; sys.modules['torch'] = None; sys.argv = ['bert-keras', 'info', 'x']"
    monkeypatch.setenv("KERAS_BACKEND", backend)
    command = [sys.executable, "-c", f"{code}; import bert_keras"]
    done = subprocess.run(command, capture_output=True, text=True)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and message in line and "Set KERAS_BACKEND to" in line


def test_ctrl_c_while_keras_is_imported_prints_nothing():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


ALL_COMMANDS = """
import importlib, sys
sys.argv = ["bert-keras", "vocabulary", "-h"]
from bert_keras.cli import main
from bert_keras.preprocessing import Masking
from bert_keras.tokenizers import Tokenizer
for name in main.WITH_OWN_FLAGS.values():
    importlib.import_module(f"bert_keras.cli.{name}")
"""


def test_a_process_of_the_command_has_the_whole_package():
    subprocess.run([sys.executable, "-c", ALL_COMMANDS], check=True)


# Both runs are forks of one process, which imports what takes longest.
TWO_RUNS = """
import os, sys
sys.orig_argv = sys.argv = ["bert-keras", *sys.argv[1:]]
from bert_keras import TextClassifier
from bert_keras.cli import main
for _ in range(2):
    if not os.fork():
        sys.exit(main.run())
    os.wait()
    names = os.listdir(os.path.expanduser("~/.cache/bert_keras/jax"))
    print(sorted(name for name in names if name.endswith("-cache")), flush=True)
"""


def test_with_jax_the_second_run_of_a_command_compiles_nothing(preset, tmp_path):
    kept = {name: x for name, x in os.environ.items() if not name.startswith("JAX_")}
    environment = {**kept, "HOME": str(tmp_path), "KERAS_BACKEND": "jax"}
    command = [sys.executable, "-c", TWO_RUNS, "classify", preset, "good film", "bad"]
    lines = subprocess.check_output(command, env=environment, text=True).splitlines()
    assert len(lines) == 6 and lines[:3] == lines[3:] and lines[2].count("-cache") > 1


@cases(
    (["-h"], ["bert-keras classify", "bert-keras COMMAND -h"]),
    *(
        ([name, "--help"], [f"bert-keras {name} SOURCE", *flags])
        for name, flags in {
            "classify": ("columns", "labels", "separator"),
            "embed": ("prompt", "top_k"),
            "info": ("traceback",),
            "convert": ("overwrite",),
            "serve": ("wait_ms", "<auto|keras|onnx>"),
        }.items()
    ),
    (["vocabulary", "-h"], ["--limit_alphabet", "bert-keras vocabulary"]),
    (["pretraining-data", "-h"], ["--num_workers", "bert-keras pretraining-data"]),
    (["pretrain", "-h"], ["--shares", "bert-keras pretrain"]),
    (["train", "-h"], ["text_classification"]),
)
def test_the_help_has_commands_and_flags(monkeypatch, capsys, arguments, words):
    monkeypatch.setattr(sys, "argv", ["bert-keras", *arguments])
    monkeypatch.setattr(text_rows, "write_utf8", lambda: None)
    monkeypatch.setattr(main.logging, "getLogger", lambda: main.logging.Logger("bert-keras"))
    with warnings.catch_warnings(), contextlib.suppress(SystemExit):
        main.run()
    printed = capsys.readouterr().out
    assert all(word in printed for word in words)


def test_the_help_of_a_command_leaves_out_the_flags_of_others():
    for name, of_another in (("embed", "labels"), ("classify", "prompt"), ("info", "columns")):
        _, groups = main.help_of(name)
        assert of_another not in [option.name for flags in groups.values() for option in flags]
