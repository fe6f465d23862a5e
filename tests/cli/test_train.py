"""`train`, from flags to results.json, with files and a checkpoint small enough for seconds.

It runs on PyTorch, which compiles nothing. The tasks themselves are tested on every backend, and so
is `train`, as the quickstart of each.
"""

import contextlib
import csv
import json
import os
import pathlib
import types

import keras
import numpy as np
import pytest
import scipy.sparse.csgraph
import sklearn.metrics
from absl import flags
from checks import cases, refused
from files import read_json
from matplotlib.figure import Figure

import bert_keras
from bert_keras.answers.span_search import NBest, Span
from bert_keras.cli import (
    compare,
    evaluate,
    example_files,
    main,
    measures,
    options,
    run_folder,
    train,
)
from bert_keras.cli.kinds import TASKS
from bert_keras.datasets import LabelledTexts
from bert_keras.engine.atomic_files import remove_empty_folders
from bert_keras.presets.assign import NewHead
from bert_keras.training import schedules

TEXTS, LONG, TAGS = "text_classification", "long_text_classification", "token_classification"
QUESTIONS, PAIRS, CHOICES = "question_answering", "text_embedding", "multiple_choice"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PNG = "*.png"
pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    """Every test runs in an empty folder."""
    monkeypatch.chdir(tmp_path)


def write_preset(folder, tokenizer, **sizes):
    """Writes a random checkpoint; returns its folder."""
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16, **sizes}
    backbone = bert_keras.BertBackbone(tokenizer.vocabulary_size, **sizes)
    backbone.save_to_preset(folder)
    tokenizer.save(folder)
    return folder


@pytest.fixture(scope="module")
def tokenizer():
    """A tokenizer that can spell every word."""
    pieces = [*LETTERS, *".?!,0123456789", *("##" + letter for letter in LETTERS)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return bert_keras.WordPieceTokenizer([*special, *pieces])


@pytest.fixture(scope="module")
def preset(tmp_path_factory, tokenizer):
    keras.utils.set_random_seed(0)  # Before that of the first test.
    return write_preset(tmp_path_factory.mktemp("preset"), tokenizer)


def arguments(**values):
    """Returns flags as arguments; `True` is a flag without a value."""
    return [f"--{name}" if x is True else f"--{name}={x}" for name, x in values.items()]


def read(name, **values):
    """Returns the `Splits` that a task reads by its flags."""
    flags, _ = options.parse(name, "", train.groups(TASKS[name]), arguments(**values))
    example_files.check_paths(flags)
    example_files.find_dataset(TASKS[name], flags)
    return TASKS[name].read(flags)


@pytest.fixture
def run(preset, capsys):
    """Returns a function that trains a task and returns its metrics, its output and its folder."""

    def run_task(name, **values):
        defaults = {"preset": preset, "output_dir": "output", "epochs": 1, "batch_size": 4}
        defaults |= {} if "pictures" in values else {"nopictures": True}
        defaults |= {} if "resume" in values else {"overwrite": True}
        train.main([name, *arguments(**defaults | values)])
        printed, output = capsys.readouterr().out, pathlib.Path("output")
        results = json.loads(printed.strip().splitlines()[-1])
        found = read_json(output / "results.json")
        assert {k: v for k, v in found["metrics"].items() if k != "setting"} == results
        assert not list(output.glob("setting_*")) and not list(output.glob("epoch*"))
        return results, printed, output

    return run_task


@pytest.fixture
def drawn_and_not_written(monkeypatch):
    """Pictures are empty files: to write one takes longer than to train."""
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, dpi: pathlib.Path(path).touch())


@pytest.fixture
def measure(capsys):
    """Returns a function that evaluates a trained model and returns its scores and its output."""

    def run_evaluation(path, **values):
        source = "output" if pathlib.Path("output/results.json").exists() else "output/model.keras"
        evaluate.main([source, path, *arguments(**values, output="scores.json")])
        printed, found = capsys.readouterr().out, read_json(pathlib.Path("scores.json"))
        scores = json.loads(printed.strip().splitlines()[-1])
        assert found == {"model": source, "file": path, "scores": scores}
        return scores, printed

    return run_evaluation


def read_lines(path):
    return path.read_text().splitlines()


def write(name, rows, separator="\t"):
    """Writes lines, or rows of fields, or JSON objects; returns the file's name."""
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.dumps(row) if isinstance(row, dict) else row for row in rows]
    lines = [row if isinstance(row, str) else separator.join(map(str, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


def train_and_dev(rows, name="train.tsv", **options):
    """Writes a file and returns the flags that train and measure on it."""
    return dict.fromkeys(("train_file", "dev_file"), write(name, rows, **options))


@pytest.mark.parametrize("name", TASKS)
def test_the_help_of_a_task_explains_each_flag(name, capsys):
    for flag in ("-h", "--help"):
        with pytest.raises(SystemExit) as stopped:
            train.main([name, flag])
        assert not stopped.value.code
        printed = capsys.readouterr().out
        assert f"bert-keras train {name}" in printed
        for title, rows in train.groups(TASKS[name]).items():
            assert f"{title}:" in printed
            assert all(row.name in printed and len(row.about) > 10 for row in rows)
    train.main(["-h"])
    assert name in capsys.readouterr().out


def test_the_command_works_without_docstrings(monkeypatch):
    monkeypatch.setattr(train, "__doc__", None)
    monkeypatch.setattr(bert_keras.TextClassifier, "__doc__", None)
    train.main(["-h"])
    with pytest.raises(FileNotFoundError, match="Received: 'x', not found"):
        train.main([TEXTS, "--train_file=x"])


# Text classification


def test_thresholds_are_tuned_on_other_examples_than_those_reported(run, monkeypatch):
    labels = [f"{i % 3},27" if i % 2 else i % 3 for i in range(12)]
    for part in ("train", "dev", "test"):
        rows = [(f"{part} text {i}", label, f"id{i}") for i, label in enumerate(labels)]
        write(f"goemotions/{part}.tsv", rows)
    calls = counted(monkeypatch, bert_keras.TextClassifier, "classify")
    results, _, output = run(TEXTS, data_dir="goemotions")
    assert ["test text 0" in texts for _, texts in calls].count(True) == 1
    starts = ("", "test_", "test_tuned_")
    assert set(results) == {f"{x}{a}_f1" for x in starts for a in ("macro", "micro")}
    thresholds = read_json(output / "thresholds.json")
    assert len(thresholds) == 28 and list(thresholds)[-1] == "neutral"
    model = keras.models.load_model(output / "model.keras")
    answer = model.classify("a text", threshold=list(thresholds.values()))
    chosen = [name for name, p in answer["probabilities"].items() if p >= thresholds[name]]
    assert answer["labels"] == chosen


def test_without_a_labelled_test_set_thresholds_are_measured_on_half_of_dev(run):
    files = train_and_dev([(f"text {i}", i % 3, f"id{i}") for i in range(20)])
    results, printed, _ = run(TEXTS, **files, dataset="goemotions")
    assert "dev_half_tuned_micro_f1" in results
    assert "tuned on 10 examples, measured on 10 others" in printed
    rows = [("text", "label"), *((f"text {i}", ("joy", "pride")[i % 2]) for i in range(8))]
    files = train_and_dev(rows) | {"dev_file": write("dev.tsv", rows[:2])}
    results, printed, _ = run(TEXTS, **files, problem_type="multi_label")
    assert set(results) == {"macro_f1", "micro_f1"} and "No thresholds are tuned" in printed


def test_a_field_may_hold_several_labels(run, measure):
    rows = [(f"text {i}", ("joy", "joy; pride", "")[i % 3]) for i in range(18)]
    files = train_and_dev([("text", "label"), *rows]) | {"test_file": "train.tsv"}
    labels = {"problem_type": "multi_label", "label_separator": ";"}
    results, _, output = run(TEXTS, **files, **labels)
    assert {"macro_f1", "test_tuned_micro_f1"} <= set(results)
    assert list(read_json(output / "thresholds.json")) == ["joy", "pride"]
    model = keras.models.load_model(output / "model.keras")
    assert model.problem_type == "multi_label"
    wrong = list(csv.DictReader(read_lines(output / "wrong_dev.csv")))
    true = {"joy": "joy", "joy; pride": "joy, pride", "": "none"}
    assert wrong
    assert all(x["label"] == true[dict(rows)[x["text"]]] != x["predicted"] for x in wrong)
    found, printed = measure("train.tsv", label_separator=";")
    names = ("macro_f1", "micro_f1")
    assert found == {name: pytest.approx(results[f"test_tuned_{name}"]) for name in names}
    assert "The thresholds are those of output." in printed
    main.main(["classify", "output", "text 1", "--output", "answers.jsonl"])
    [answer] = map(json.loads, read_lines(pathlib.Path("answers.jsonl")))
    least = read_json(output / "thresholds.json")
    assert answer["labels"] == [x for x, p in answer["probabilities"].items() if p >= least[x]]
    run(TEXTS, **train_and_dev([("text", "label"), *rows[:2], *rows[3:5]]))
    assert not (output / "thresholds.json").exists()  # Those of the run that was replaced.


def results_on_dev(results):
    return {name: x for name, x in results.items() if not name.startswith("test_")}


@pytest.fixture
def yes_and_no():
    rows = [(f"{'good' if i % 2 else 'bad'} text {LETTERS[i]}", i % 2) for i in range(12)]
    return train_and_dev([("text", "label"), *rows])


@pytest.mark.usefixtures("drawn_and_not_written")
def test_pairs_in_numbered_columns_are_scored(run, measure):
    rows = [(i / 4, f"text {LETTERS[i]}", f"word {LETTERS[-i]}") for i in range(12)]
    files = train_and_dev(rows) | {"test_file": "train.tsv"}
    columns = {"columns": "-2,2", "label_column": 0}
    results, _, output = run(TEXTS, **files, **columns, problem_type="regression")
    assert set(results) == {"pearson", "spearman", "test_pearson", "test_spearman"}
    assert results["test_pearson"] == pytest.approx(results["pearson"])
    assert len(read_lines(output / "test_predictions.jsonl")) == 12
    found, printed = measure("train.tsv", **columns)
    assert found == {name: pytest.approx(results[name]) for name in ("pearson", "spearman")}
    assert "one score for all texts gets 0.000" in printed


def test_the_main_score_of_cola_is_that_of_glue(run):
    rows = [("gj04", int(i % 3 > 0), "", f"text {LETTERS[i]}") for i in range(12)]
    results, _, output = run(TEXTS, **train_and_dev(rows), dataset="CoLA")
    answers = map(json.loads, read_lines(output / "predictions.jsonl"))
    found = [answer["label"] == "acceptable" for answer in answers]
    expected = sklearn.metrics.matthews_corrcoef([row[1] for row in rows], found)
    assert next(iter(results.items())) == ("matthews_correlation", pytest.approx(expected))


def test_without_a_training_file_the_dev_file_is_split(run):
    labels = ("contradiction", "entailment", "neutral")
    rows = [(f"text {LETTERS[i]}", f"word {LETTERS[i]}", labels[i % 3]) for i in range(15)]
    write("mnli/dev_matched.tsv", [("sentence1", "sentence2", "gold_label"), *rows])
    results, printed, _ = run(TEXTS, data_dir="mnli", epochs=0)
    assert "12 examples to train on, 3 to measure on" in printed
    assert "accuracy" in results


def test_a_vocabulary_of_another_language_is_warned_of(run):
    rows = [("text", "label"), *((f"\u4f60\u597d \u4e16\u754c {i}", i % 2) for i in range(8))]
    _, printed, _ = run(TEXTS, **train_and_dev(rows), epochs=0)
    assert "Warning: 8" in printed and "bert_base_zh" in printed


def test_a_short_run_says_how_it_trains_and_how_good_it_is(
    preset, yes_and_no, capsys, monkeypatch, recwarn
):
    monkeypatch.setattr(schedules, "LEAST_STEPS", 12)
    train.main([TEXTS, *arguments(**yes_and_no, preset=preset, batch_size=4, output_dir="x")])
    printed = capsys.readouterr().out
    assert "Training for 4 epochs, 12 steps, at a peak rate of 0.0005" in printed
    # A line for each epoch, no bar that is drawn again.
    assert printed.count("3/3 - ") == 4 and "\r" not in printed and "\x08" not in printed
    assert "12 texts, 95 % confidence" in printed and "for every text gets 0.500" in printed
    assert not [warning for warning in recwarn if issubclass(warning.category, NewHead)]


def test_the_default_length_is_at_most_the_positions_of_the_checkpoint(
    run, tokenizer, yes_and_no, tmp_path
):
    short = write_preset(tmp_path / "short", tokenizer, max_sequence_length=24)
    files = {**yes_and_no, "preset": short, "epochs": 0}
    _, _, output = run(TEXTS, **files)
    assert read_json(output / "results.json")["settings"]["max_length"] == 24
    with pytest.raises(ValueError, match=r"`max_length` must be an int from 1 to 24"):
        run(TEXTS, **files, max_length=128)


def test_unequal_classes_are_named_weighted_and_stopped_early(run, measure, capsys):
    rows = [(f"text {LETTERS[i]}", (3, 3, 1, 3, 2)[i % 5]) for i in range(20)]
    options = {"class_weight": "balanced", "early_stopping": True, "epochs": 3, "baselines": True}
    files, names = train_and_dev([("text", "label"), *rows]), "low,middle,high"
    results, printed, output = run(TEXTS, **files, **options, label_names=names, pictures=True)
    pictures = ["confusion_matrix.png", "learning_curves_0_seed_0.png"]
    assert sorted(path.name for path in output.glob(PNG)) == pictures
    assert all(picture in printed for picture in pictures)
    model = keras.models.load_model(output / "model.keras")
    assert list(model.label_names) == names.split(",") and "Restoring the weights" in printed

    predicted = model.predict([text for text, _ in rows], verbose=0).argmax(-1)
    expected = sklearn.metrics.precision_recall_fscore_support(
        [label - 1 for _, label in rows], predicted, labels=[0, 1, 2], zero_division=0.0
    )
    found = read_json(output / "scores_by_class.json")
    columns = ("precision", "recall", "f1", "support")
    measured = np.transpose([[found[name][x] for x in columns] for name in names.split(",")])
    np.testing.assert_allclose(measured, expected)
    assert "precision" in printed and "frozen_accuracy " in printed and "frozen_macro_f1" in results
    assert results["macro_f1"] == pytest.approx(expected[2].mean())

    wrong = list(csv.DictReader(read_lines(output / "wrong_dev.csv")))
    chosen = [names.split(",")[number] for number in predicted]
    true = [names.split(",")[label - 1] for _, label in rows]
    answers = zip([text for text, _ in rows], true, chosen, strict=True)
    expected = sorted(x for x in answers if x[1] != x[2])
    assert sorted((x["text"], x["label"], x["predicted"]) for x in wrong) == expected
    probabilities = [float(x["probability"]) for x in wrong]
    assert probabilities == sorted(probabilities, reverse=True)
    examples = LabelledTexts(["a text"], np.array([0]))
    train._write_wrong(model, examples, measures.Measured({}, {}, [("1", "1")]), "none.csv")
    assert read_lines(pathlib.Path("none.csv")) == ["text,label,predicted"]
    card = (output / "README.md").read_text()
    assert "pipeline_tag" in card and f"- accuracy: {results['accuracy']}" in card
    with contextlib.chdir(output):
        exec(card.split("```python")[1].split("```")[0], {})
    assert "{'label': " in capsys.readouterr().out
    assert measure("train.tsv", label_names=names)[0]["accuracy"] == results["accuracy"]
    # The run knows its classes: a file may lack some of them.
    assert read_json(output / "results.json")["settings"]["classes"] == ["1", "2", "3"]
    few = write("few.tsv", [("text", "label"), *(row for row in rows if row[1] != 1)])
    right = np.mean([c == t for c, t in zip(chosen, true, strict=True) if t != "low"])
    for passed in ({}, {"label_names": names}):
        assert measure(few, **passed)[0]["accuracy"] == pytest.approx(right)
    with pytest.raises(ValueError, match="must have the labels of the model"):
        measure(few, label_names="high,middle,low")


def test_runs_are_compared_by_their_scores_and_what_differs(run, yes_and_no, capsys):
    for number, epochs in enumerate((1, 2)):
        run(TEXTS, **yes_and_no, epochs=epochs, output_dir="output")
        pathlib.Path("output").rename(f"run{number}")
    run_folder.RunFolder("run2", "task", {"preset": "x"}).begin()
    compare.main(["run0", "run1", "run2"])
    header, *rows = capsys.readouterr().out.splitlines()
    chosen = read_json(pathlib.Path("run1/results.json"))["trials"][0]["chosen"]
    assert chosen["epochs"] == 2 and str(chosen["learning_rate"]) in rows[0] + rows[1]
    assert header.split("  ")[0] == "run" and "epochs" in header and "batch_size" in header
    verdict = read_json(pathlib.Path("run1/results.json"))["verdict"]
    (row,) = (row for row in rows if row.startswith("run1"))
    interval = f"{verdict['low']:.3f} to {verdict['high']:.3f}"
    assert f"Accuracy {verdict['value']:.3f}  {interval}" in row
    assert rows[-1].startswith("run2  not finished")
    with pytest.raises(FileNotFoundError, match=r"not finished.* --output_dir run2 --resume"):
        evaluate.main(["run2", yes_and_no["train_file"]])
    for folders, match in ((["run0"], "RUN"), (["run0", "nowhere"], "folder of `train`.*nowhere")):
        with pytest.raises(ValueError, match=match):
            compare.main(folders)


# The run folder


@pytest.mark.usefixtures("drawn_and_not_written")
def test_a_grid_tries_every_setting_once_and_continues_after_a_kill(run, yes_and_no, monkeypatch):
    grid = {"epochs": 2, "batch_size": "6,12,6", "learning_rate": 0.01, "seeds": 2} | yes_and_no
    _, printed, _ = run(TEXTS, **grid | {"seeds": 1})
    assert printed.count("Training with seed 0") == printed.count("Training with") == 2
    # More seeds continue with those that are done; other settings and other data do not.
    expected, printed, output = run(TEXTS, **grid, pictures=True, resume=True)
    assert printed.count("Training with seed 1") == printed.count("Training with") == 2
    assert "too high to report" in printed and "The best of 2 seeds is" in printed
    whole = read_json(output / "results.json")
    scores = {6: [], 12: []}
    for trial in whole["trials"]:
        scores[trial["setting"]["batch_size"]].append(trial["scores"]["accuracy"])
    assert whole["metrics"]["accuracy"] == pytest.approx(max(map(np.mean, scores.values())))

    # Killed after an epoch of the second trial, when its state is on the disk.
    epochs = iter(range(9))

    def killed_later(self, epoch, logs=None):
        on_epoch_end(self, epoch, logs)
        if next(epochs) == 2:
            raise KeyboardInterrupt

    on_epoch_end = run_folder.EachEpoch.on_epoch_end
    with monkeypatch.context() as patch:
        patch.setattr(run_folder.EachEpoch, "on_epoch_end", killed_later)
        with pytest.raises(KeyboardInterrupt):
            run(TEXTS, **grid)
    assert (output / "epoch.json").exists()
    results, printed, _ = run(TEXTS, **grid, resume=True)
    assert "Trials done already: 1." in printed and "Continuing after epoch 1" in printed
    assert results == expected
    trials = read_json(output / "results.json")["trials"]
    assert sorted(trials, key=str) == sorted(whole["trials"], key=str)
    model = keras.models.load_model(output / "model.keras")
    rows = [line.split("\t") for line in read_lines(pathlib.Path("train.tsv"))[1:]]
    chosen = [answer["label"] for answer in model.classify([text for text, _ in rows])]
    right = np.mean([a == label for a, (_, label) in zip(chosen, rows, strict=True)])
    of_best = [t for t in whole["trials"] if t["setting"] == whole["metrics"]["setting"]]
    assert right == pytest.approx(max(t["scores"]["accuracy"] for t in of_best))
    results, printed, _ = run(TEXTS, **grid, resume=True)
    assert results == expected and "Training with" not in printed
    with pytest.raises(ValueError, match=r"has other values of: max_length\. Pass the same"):
        run(TEXTS, **grid, resume=True, max_length=64)
    write("train.tsv", [*read_lines(pathlib.Path("train.tsv")), ("another", 1)])
    with pytest.raises(ValueError, match=r"has other values of: examples\. Pass the same"):
        run(TEXTS, **grid, resume=True)


@refused(
    ("output/task-1", {}, r"task-1 holds a run\. --resume continues it"),
    (None, {"resume": True}, "--resume needs the --output_dir"),
    ("new", {"resume": True}, "--resume needs a run. Received: none in new"),
    ("output/task-1/results.json", {}, "--output_dir must be a folder that can be made"),
)
def test_a_run_has_a_folder_of_its_own(folder, options):
    first, second = (run_folder.RunFolder(None, "task", {}) for _ in range(2))
    assert [str(run.path) for run in (first, second)] == ["output/task-1", "output/task-2"]
    first.begin()
    run_folder.RunFolder(folder, "task", {}, **options)


def test_a_run_that_fails_before_it_keeps_anything_leaves_the_folder_as_it_was(run, yes_and_no):
    def files():
        return {path: path.is_file() and path.read_bytes() for path in pathlib.Path().rglob("*")}

    missing = {**yes_and_no, "preset": "no/such/preset"}
    unknown = {**yes_and_no, "pooling": "none"}
    pathlib.Path("empty").mkdir()  # By the user.
    run(TEXTS, **yes_and_no)
    before = files()
    for values, folder, error, message in (
        (missing, "new/folder", FileNotFoundError, "no/such/preset"),
        (missing, "output", FileNotFoundError, "no/such/preset"),  # With --overwrite.
        (unknown, "new", ValueError, "`pooling` must be"),
        (unknown, "empty", ValueError, "`pooling` must be"),
    ):
        with pytest.raises(error, match=message):
            run(TEXTS, **values, output_dir=folder)
        remove_empty_folders()  # As `run_command` does at the end.
        assert files() == before
    # One that was killed before its first epoch ended leaves an empty folder, and begins again.
    # Models of the user stay, if the folder has any.
    pathlib.Path("killed").mkdir()
    pathlib.Path("killed/mine.keras").touch()
    pathlib.Path("killed/setting_0.keras").touch()
    killed = run_folder.RunFolder("killed", "task", {}, resume=True)
    assert not killed.trials
    killed.begin()
    assert sorted(os.listdir("killed")) == ["mine.keras", "results.json"]


def test_an_undefined_score_is_null_and_never_the_best():
    def model(seed):
        saves = {"save": lambda path: path.write_text(str(seed))}
        return types.SimpleNamespace(compile=lambda: None, **saves)

    run = run_folder.RunFolder("run", "task", {})
    for seed, value in enumerate([float("nan"), -0.5, float("nan")]):
        run.add(0, {"setting": {}, "seed": seed}, {"pearson": value}, model(seed))
    assert (run.path / "setting_0.keras").read_text() == "1"
    assert read_json(run.path / "results.json")["trials"][0]["scores"] == {"pearson": None}
    assert run.over_seeds(run.trials) == {"pearson": None}
    assert run.over_seeds([{"scores": {"f1": 0.1}}]) == {"f1": 0.1}
    means = run.over_seeds([{"scores": {"f1": x}} for x in (0.1, 0.3)])
    assert means == {"f1": pytest.approx(0.2), "f1_std": pytest.approx(0.02**0.5)}


# Long texts


def test_long_texts_are_read_in_windows_and_those_without_labels_predicted(run):
    files = {}
    for part in ("train", "dev"):
        rows = [(f"{i % 2} review {i} of {part} " * (1 + i), "yn"[i % 2]) for i in range(20)]
        files[f"{part}_file"] = write(f"reviews/{part}.tsv", [("document", "answer"), *rows])
    files["test_file"] = write("test.tsv", ["document", *(text for text, _ in rows[:3])])
    options = {"combine": "max", "truncation": "tail", "stride": 10, "num_windows": 3}
    sizes = {"columns": "document", "label_column": "answer", "max_length": 16, "sample": 12}
    results, printed, output = run(LONG, **files, **sizes, **options)
    assert "accuracy" in results and "--sample cut the dev set from 20 to 12" in printed
    model = keras.models.load_model(output / "model.keras")
    config = {**model.get_config(), "truncation": model.preprocessor.truncation}
    assert {name: config[name] for name in options} == options
    assert "test_accuracy" not in results
    answers = read_lines(output / "test_predictions.jsonl")
    assert [set(json.loads(answer)) for answer in answers] == [{"label", "probabilities"}] * 3


# Pairs of similar texts


@pytest.mark.usefixtures("drawn_and_not_written")
def test_text_embedding_measures_similarities_and_retrieval(run):
    texts = [(f"text {LETTERS[i]}", f"word {LETTERS[i]}") for i in range(12)]
    for part in ("train", "dev", "test"):
        rows = [("g", "f", "y", i, i % 6, *pair) for i, pair in enumerate(texts)]
        write(f"stsb/sts-{part}.tsv", rows)
    names = {"spearman", "pearson", "mrr", "recall_at_1", "recall_at_5"}
    results, _, output = run(PAIRS, data_dir="stsb", seeds=2, pictures=True)
    measured = {f"{name}{part}" for part in ("", "_std") for name in names}
    assert set(results) == measured | {f"test_{name}" for name in names}
    drawn = ("learning_curves_0_seed_0", "learning_curves_0_seed_1", "similarities")
    assert {path.stem for path in output.glob(PNG)} == {*drawn}


def test_pairs_of_published_tasks_are_similar_or_not():
    rte = [("index", "sentence1", "sentence2", "label"), (0, "a", "b", "entailment")]
    mrpc = [("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"), (1, 1, 1, "a", "b")]
    rows = {"RTE": [*rte, (1, "a", "c", "not_entailment")], "mrpc": [*mrpc, (0, 2, 2, "a", "c")]}
    for folder in rows:
        for part in ("train", "dev"):
            write(f"{folder}/{part}.tsv", rows[folder])
        assert read(PAIRS, data_dir=folder).dev.labels.tolist() == [1.0, 0.0]


def test_text_embedding_ranks_pairs_of_a_file_and_predicts_another(run, measure, capsys):
    rows = [(f"text {LETTERS[i // 2]}", f"word {LETTERS[i]}", 4 * (i % 3 > 0)) for i in range(12)]
    files = {"train_file": write("train.tsv", rows)}
    files["test_file"] = write("test.tsv", [row[:2] for row in rows])
    columns = {"columns": "0,1", "label_column": 2, "highest_score": 4}
    # The vectors of [CLS] could all be equal, and have no correlation.
    options = {"objective": "ranking", "pooling": "max", "max_length": 12}
    read(PAIRS, **files, **columns)
    assert "a tenth of" in capsys.readouterr().out
    # Two pairs, as many as a tenth, have a correlation of 1 or -1.
    _, _, output = run(PAIRS, **files, dev_file="train.tsv", **columns, **options)
    answers = read_lines(output / "test_predictions.jsonl")
    scores = np.array([json.loads(answer)["score"] for answer in answers])
    assert len(scores) == 12 and np.abs(scores).max() < 1 + 1e-6  # Cosines of float32.
    found, printed = measure("train.tsv", **columns)
    assert {"spearman", "mrr"} <= set(found) and "on 12 pairs" in printed


def test_pairs_connected_by_equal_texts_are_one_group():
    pairs = np.random.default_rng(0).integers(0, 40, size=(2, 25))
    graph = np.zeros((40, 40))
    graph[pairs[0], pairs[1]] = 1
    expected = scipy.sparse.csgraph.connected_components(graph, directed=False)[1][pairs[0]]
    found = example_files.groups_of(*pairs.astype(str).tolist())
    assert len(set(zip(found, expected, strict=True))) == len(set(found)) == len(set(expected))


# Tagged words


def test_token_classification_scores_entities_and_writes_tags(run):
    sentence = ["Anna\tB-PER", "lives\tO", "in\tO", "Rome\tB-LOC", ".\tO", ""]
    for part, further in {"train": [], "dev": ["a\tO", "b\tB-Y", ""], "test": []}.items():
        write(f"ner/{part}.conll", sentence * 8 + further)
    results, printed, output = run(TAGS, data_dir="ner", crf=True, sample=6)
    assert {"f1", "test_f1", "precision", "accuracy"} <= set(results)
    assert "6 examples to train on, 9 to measure on" in printed
    lines = read_lines(output / "test_predictions.tsv")
    assert [line.split("\t")[0] for line in lines[:5]] == ["Anna", "lives", "in", "Rome", "."]


def test_segmented_words_are_scored(run, measure):
    files = train_and_dev(["a B", "b M", "c E", "d S", ""] * 4)
    words = write("words.txt", ["a", "b", "", "d"])
    results, _, output = run(TAGS, **files, test_file=words)
    assert set(results) == {"f1", "precision", "recall", "accuracy"}
    assert len(read_lines(output / "test_predictions.tsv")) == 5
    assert measure("train.tsv")[0] == pytest.approx(results)


def test_tags_that_are_numbers_have_names(run, measure):
    rows = [{"tokens": ["a", "b"], "ner_tags": tags} for tags in ([0, 1], [1, 0], [1, 2])]
    files = {"train_file": write("train.jsonl", rows[:2]), "dev_file": write("dev.jsonl", rows)}
    names = {"label_names": "O,B-X,I-X"}
    results, _, _ = run(TAGS, **files, **names, epochs=0)
    assert measure("dev.jsonl", **names)[0] == pytest.approx(results)
    with pytest.raises(ValueError, match=r"Every tag must be one of .* Received 'B-Y'"):
        measure("dev.jsonl", label_names="O,B-Y,I-X")


def test_parts_of_speech_are_scored_by_accuracy(run):
    numbered = [("1-2", "dogsrun", "_"), ("1", "dogs", "NOUN"), ("2", "run", "VERB")]
    rows = [(number, word, word, tag, *"______") for number, word, tag in numbered]
    for part in ("train", "dev"):
        write(f"ud/en-ud-{part}.conllu", ["# text = dogs run", *rows, ""] * 4)
    results, printed, _ = run(TAGS, data_dir="ud", epochs=0)
    assert set(results) == {"accuracy"} and "('NOUN', 'VERB')" in printed


# Choices


def test_multiple_choice_reads_swag_and_writes_answers(run, measure):
    header = ["sent1", "sent2", *(f"ending{number}" for number in range(4)), "label"]
    rows = [("she goes", "she", *"abcd", i % 4) for i in range(10)]
    for part in ("train", "val", "test"):
        write(f"swag/{part}.csv", [header, *rows], ",")
    results, printed, output = run(CHOICES, data_dir="swag")
    assert {"accuracy", "test_accuracy"} <= set(results)
    assert "guessing gets 0.250" in printed
    assert len(read_lines(output / "test_predictions.jsonl")) == 10
    assert measure("swag/val.csv")[0] == {"accuracy": results["accuracy"]}


# Questions


def squad(*contexts):
    """Returns a file in SQuAD's format, of contexts with `(question, answer)` pairs.

    An answer is a str, `None` for an impossible question, or `...` for an unknown answer.
    """
    paragraphs, number = [], 0
    for context, *questions in contexts:
        rows = []
        for question, answer in questions:
            row = {"id": f"{number}", "question": question, "is_impossible": answer is None}
            known = [answer] if isinstance(answer, str) else []
            row["answers"] = [{"text": x, "answer_start": context.index(x)} for x in known]
            rows.append(row)
            number += 1
        paragraphs.append({"context": context, "qas": rows})
    return [{"data": [{"paragraphs": paragraphs}]}]


def six_questions(version):
    """Returns six questions on one context; in version 2 every second one is impossible."""
    answers = ["anna", None if version == 2 else "anna"] * 3
    return squad(["anna lives in rome.", *(("who lives in rome?", answer) for answer in answers)])


def one_per_context(context, *questions):
    return squad(*([f"{context}{number}.", each] for number, each in enumerate(questions)))


CHINESE = "安娜住在羅馬，她喜歡羅馬的冬天"


def counted(monkeypatch, owner, name):
    """Returns a list that gets the arguments of each call of a method of `owner`."""
    calls, function = [], getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *a, **b: calls.append(a) or function(*a, **b))
    return calls


@pytest.mark.parametrize("version", [1, 2])
def test_question_answering_writes_the_official_file(run, measure, monkeypatch, version):
    answered = counted(monkeypatch, bert_keras.QuestionAnswering, "n_best")
    files = train_and_dev(six_questions(version), "questions.json")
    options = {"test_file": "questions.json", "max_length": 32}
    results, _, output = run(QUESTIONS, **files, **options)
    assert len(answered) == 3  # Dev of the trial and of the best model, and test.
    assert ("no_answer_threshold" in results) == (version == 2)
    for prefix in ("", "test_"):
        predictions = read_json(output / f"{prefix}predictions.json")
        assert set(predictions) == {str(number) for number in range(6)}
    assert measure("questions.json")[0] == pytest.approx(results_on_dev(results))


def test_a_single_file_of_questions_is_split_by_contexts(run):
    questions = [("誰住在羅馬?", "安娜"), ("哪裡?", "羅馬"), ("誰?", ...), ("何?", "冬天")] * 3
    write("data/cmrc2018_dev.json", one_per_context(CHINESE, *questions))
    test = write("test.json", one_per_context(CHINESE, *questions[:3]))
    results, printed, output = run(QUESTIONS, data_dir="data", test_file=test, max_length=32)
    assert set(results) == {"f1", "exact_match", "test_f1", "test_exact_match"}
    assert "10 examples to train on, 2 to measure on" in printed
    assert "test.json: 2 of 3 questions have an answer that cmrc can measure" in printed
    assert set(read_json(output / "test_predictions.json")) == {"0", "1", "2"}


def test_only_questions_with_answers_are_scored():
    answer = bert_keras.datasets.squad.Answer("anna", 0)
    rows = [((answer,), False), ((), True), ((), False)]
    example = bert_keras.datasets.QuestionExample
    examples = [example(str(i), "who?", "anna lives", *row) for i, row in enumerate(rows)]
    known, impossible, unknown = examples

    def questions(metric, examples):
        labels = [bool(e.answers) or (metric == "squad_v2" and e.is_impossible) for e in examples]
        return example_files.Questions([e.context for e in examples], examples, labels, metric)

    assert measures.measurable(questions("squad_v1", examples)) == [known]
    assert measures.measurable(questions("squad_v2", examples)) == [known, impossible]

    found = [NBest([Span("anna", 0, 4, 0.9, 0.0, 0.0)], None, score) for score in (-2.0, 2.0, 0.0)]
    qa = bert_keras.QuestionAnswering(bert_keras.BertBackbone(9, 1, 1, 4, 4))

    def score(metric, examples, found, tune=False):
        return measures.question_scores(qa, questions(metric, examples), found, tune)

    assert score("squad_v1", examples, found) == {"f1": 100, "exact_match": 100}
    both = score("squad_v2", examples, found, tune=True)
    assert both["f1"] == both["NoAns_exact"] == 100
    assert qa.no_answer_threshold == both["no_answer_threshold"] == -2.0
    qa.no_answer_threshold = None
    only = score("squad_v2", [known, unknown], found[::2], tune=True)
    assert only == dict.fromkeys(("f1", "exact", "HasAns_f1", "HasAns_exact"), 100)
    assert score("squad_v1", [impossible], found[:1]) == {}


def test_the_answers_written_are_those_of_the_model_saved(run, monkeypatch):
    files = train_and_dev(six_questions(1), "questions.json")
    # The first of two seeds is the best, and measured again.
    found = iter([{"f1": 2.0}, {"f1": 1.0}, {"f1": 2.0}])
    monkeypatch.setattr(measures, "question_scores", lambda *args: next(found))
    options = {"max_length": 32, "epochs": 0, "seeds": 2, "sample": 4}
    _, printed, output = run(QUESTIONS, **files, **options)
    assert "--sample cut the dev set from 6 to 4" in printed
    found = read_json(output / "predictions.json")
    assert len(found) == 4
    model = keras.models.load_model(output / "model.keras")
    best = model.n_best((["who lives in rome?"], ["anna lives in rome."]))[0]
    assert {*found.values()} == {best.spans[0].text}


@cases(("xquad.zh.json", "squad_v1"), ("cmrc2018_dev.json", "cmrc"))
def test_the_official_score_follows_from_the_file_and_is_printed(capsys, name, metric):
    questions = [("誰住在羅馬?", "安娜"), ("哪裡?", "羅馬")] * 3
    files = train_and_dev(one_per_context(CHINESE, *questions), name)
    assert read(QUESTIONS, **files).dev.metric == metric
    assert f"an answer that {metric} can measure; --metric" in capsys.readouterr().out
    assert read(QUESTIONS, **files, metric="squad_v1").dev.metric == "squad_v1"


# What is refused before anything is trained

LABELLED = ["text\tlabel", "a\t1", "b\t0"]
SWAG = {"sent1": "a", "sent2": "b", **{f"ending{number}": "c" for number in range(4)}}
AS_SST2, ONE_OF_SST2 = {"dataset": "sst2"}, ["sentence\tlabel", "a\t1"]
UNANSWERED = squad(["a b", ("why?", ...)])
UNLABELLED = "The dev examples must have"
DEV = {"dev_file": "train"}
MNLI = ["sentence1\tsentence2\tgold_label", "a\tb\tneutral", "c\td\tentailment"]
SIMILAR = "pairs that are similar or not.* Received: "
ONE_NAME_EACH = "--label_names must be different names, one for each"


@refused(
    (TEXTS, ["text\tlabel"], {}, "train must have rows after its header"),
    (TEXTS, LABELLED, {**AS_SST2, "label_column": "x"}, "known columns. Received: --label_column="),
    (TEXTS, LABELLED, {"label_names": "a,b,c", **DEV}, ONE_NAME_EACH),
    (TEXTS, LABELLED, {"label_names": "a,a", **DEV}, ONE_NAME_EACH),
    (TEXTS, ["text\tlabel", "a\tyes", "b\tno"], {"label_names": "a,b", **DEV}, ONE_NAME_EACH),
    (PAIRS, LABELLED, DEV, "--columns must name their two texts"),
    (PAIRS, ONE_OF_SST2, {**AS_SST2, **DEV}, SIMILAR + "sst2"),
    (PAIRS, MNLI, {"dataset": "mnli", **DEV}, SIMILAR + "mnli"),
    (TEXTS, LABELLED, {"dev_file": "train", "output_dir": "train"}, "File exists"),
    (TEXTS, LABELLED, {"dev_file": "train", "output_dir": "train/x"}, "Not a directory"),
    (TAGS, ["a O", "b B-X", "", "0 0"], {}, "Received: '0' among"),
    (TEXTS, ["text\tlabel", *["a\t1", "b\t0"] * 8], {}, "Pass more different texts"),
    (QUESTIONS, six_questions(1), {}, "must leave examples in both parts"),
    (TEXTS, ONE_OF_SST2, {**AS_SST2, "dev_file": ["sentence", "a"]}, UNLABELLED),
    (CHOICES, [SWAG | {"label": 1}], {"dev_file": [SWAG]}, UNLABELLED),
    (QUESTIONS, squad(["a b", ("why?", "a")]), {"dev_file": UNANSWERED}, UNLABELLED),
    error=(ValueError, OSError),
)
def test_files_are_refused_before_training(preset, monkeypatch, task, rows, values):
    monkeypatch.setattr(keras.Model, "fit", None)
    suffix = ".jsonl" if task == CHOICES else ""
    files = {"preset": preset, "train_file": write(f"train{suffix}", rows)}
    values = {k: write(f"dev{suffix}", x) if isinstance(x, list) else x for k, x in values.items()}
    train.main([task, *arguments(**files | values)])


@pytest.fixture
def classifier(preset):
    """A classifier in a folder of a run."""
    pathlib.Path("output").mkdir()
    options = {"num_classes": 2, "label_names": ["no", "yes"]}
    model = bert_keras.TextClassifier.from_preset(preset, **options)
    model.save("output/model.keras")
    return model


@pytest.mark.usefixtures("classifier")
@refused(
    (["text\tlabel", "a\tmaybe"], {}, r"line 2: a label must be one of \['no', 'yes'\]"),
    (ONE_OF_SST2, AS_SST2, "the labels of the model, single_label"),
    (["text", "a"], {}, "no column 'label'"),
    (
        ONE_OF_SST2,
        {**AS_SST2, "columns": "x", "separator": ";"},
        "known columns. .*--columns=.*--separator=';'. Leave out --dataset.",
    ),
    (["text\tlabel", "a\tno"], {"tag_column": "1"}, "Unknown command line flag 'tag_column'"),
    (["text\tlabel", "a\tno"], {"problem_type": "regression"}, "problem_type"),
    error=(ValueError, flags.Error),
)
def test_a_file_that_does_not_fit_the_model_is_not_measured(measure, rows, values):
    measure(write("a.tsv", rows), **values)


def test_a_file_of_one_class_is_measured_without_a_warning(classifier, measure, recwarn):
    label = classifier.classify(["a"])[0]["label"]
    recwarn.clear()
    scores, printed = measure(write("a.tsv", ["text\tlabel", f"a\t{label}"]))
    assert scores["accuracy"] == 1 and scores["matthews_correlation"] == 0
    assert not [x for x in recwarn if "label" in str(x.message)]
    assert f"'{label}' for every text gets 1.000" in printed


def test_models_that_train_does_not_make_are_not_measured(preset):
    write("a.tsv", ["text\tlabel", "a\tno"])
    bert_keras.Reranker.from_preset(preset).save("reranker.keras")
    calls = {
        "a.tsv": "Write `evaluate",
        "nowhere b.tsv": "FILE must be a file of labelled examples. Received: 'b.tsv', not found",
        f"{preset} a.tsv": "measures a TextCl",
        "reranker.keras a.tsv": "measures a TextCl.*a Reranker",
    }
    for source, words in calls.items():
        with pytest.raises((ValueError, FileNotFoundError), match=words):
            evaluate.main(source.split())


@refused(
    (TEXTS, {"data_dir": "nowhere"}, "nowhere"),
    (TAGS, {"data_dir": ""}, "--data_dir must be a path that exists"),
    (TEXTS, {"data_dir": ".", "dev_file": __file__}, "Received: --data_dir, --dev_file"),
    (TEXTS, {"data_dir": ".", "train_file": __file__}, "Received: --data_dir, --train_file"),
    (TEXTS, {"dev_file": __file__}, "Pass --data_dir, .* or --train_file"),
    (TEXTS, {}, "Pass --data_dir, .* or --train_file, .* none of these"),
    (TEXTS, {"crf": True}, "crf"),
    (TEXTS, {"batch_size": "1,x"}, "--batch_size"),
    (TEXTS, {"batch_size": 0}, "--batch_size"),
    (TEXTS, {"epochs": ""}, "--epochs"),
    (TEXTS, {"problem_type": "ranking"}, "multi_label"),
    (TAGS, ["wnut17"], "Write `train token_classification`.*wnut17"),
    ("tagging", {}, r"one of text_classification.*Received: 'tagging'"),
    error=(ValueError, FileNotFoundError, flags.Error),
)
def test_flags_are_refused(task, values):
    train.main([task, *(values if isinstance(values, list) else arguments(**values))])
