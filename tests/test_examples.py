"""The recipes from flags to the last line, on files and a checkpoint small enough for seconds.

They are told apart from what they train: every script runs in this process, on PyTorch, which
compiles nothing; the tasks themselves are tested on every backend.
"""

import ast
import importlib.util
import json
import pathlib
import re
import runpy
import sys

import keras
import numpy as np
import pytest
from absl import flags
from tokenizers import pre_tokenizers

import bert_keras
from bert_keras import datasets
from bert_keras.tasks.span_search import NBest, Span

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "examples"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SCRIPTS = (
    "feature_extraction",
    "long_text_classification",
    "multiple_choice",
    "question_answering",
    "search",
    "several_masks",
    "text_classification",
    "text_embedding",
    "token_classification",
)

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "torch", reason="runs where nothing needs to be compiled"
)


@pytest.fixture
def script(monkeypatch, tmp_path):
    """Returns a function that loads a script with its flags, which are gone after the test."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.chdir(tmp_path)  # Without `--output_dir` a script makes `output`.
    names_before = set(flags.FLAGS)

    def load(name):
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in ("recipe", "pictures", "tables", "tagged", "text_classification"):
        sys.modules.pop(name, None)
    for name in set(flags.FLAGS) - names_before:
        delattr(flags.FLAGS, name)


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """Returns a folder with a random checkpoint that spells every word."""
    folder = tmp_path_factory.mktemp("preset")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *".?!,0123456789"]
    vocabulary += ["##" + letter for letter in LETTERS]
    backbone = bert_keras.BertBackbone(
        len(vocabulary), num_layers=4, num_heads=2, hidden_dim=8, intermediate_dim=16
    )
    backbone.save_to_preset(folder)
    bert_keras.WordPieceTokenizer(vocabulary).save(folder)
    return folder


@pytest.fixture
def run(script, preset, tmp_path, capsys):
    """Returns a function that runs a script and gives its metrics and what it printed."""

    def run_script(name, *arguments):
        module = script(name)
        output = tmp_path / "output"
        shared = [f"--preset={preset}", f"--output_dir={output}"]
        if name != "search":
            shared += ["--epochs=1", "--batch_size=4"]
        flags.FLAGS([f"{name}.py", *shared, *map(str, arguments)])
        module.main([name])
        printed = capsys.readouterr().out
        last = printed.strip().splitlines()[-1]
        results = json.loads(last)
        assert json.loads((output / "metrics.json").read_text()) == results
        assert all(value == value for value in results.values())
        with pytest.MonkeyPatch.context() as patch:
            # A recipe's file must not need the recipe.
            patch.delitem(sys.modules, name)
            keras.models.load_model(output / "model.keras")
        return results, printed, output

    return run_script


def write(path, rows, separator="\t"):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else separator.join(map(str, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_says_how_to_run_it_and_what_its_flags_mean(name, script):
    module = script(name)
    assert f"python examples/{name}.py" in module.__doc__
    # Of these `--help` tells.
    shown = {flag.name: flag.help for flag in flags.FLAGS.get_key_flags_for_module(module.__name__)}
    assert {"preset", "epochs", "sample", "seeds", "output_dir"} <= set(shown)
    own = flags.FLAGS.flags_by_module_dict()[name]
    assert {flag.name for flag in own} <= set(shown)
    assert all(len(text) > 10 for text in shown.values())


def test_text_classification_tunes_thresholds_away_from_what_it_reports(run, tmp_path):
    folder = tmp_path / "goemotions"
    for part in ("train", "dev", "test"):
        rows = [
            (f"{part} text {i}", f"{i % 3},27" if i % 2 else i % 3, f"id{i}") for i in range(12)
        ]
        write(folder / f"{part}.tsv", rows)
    results, _, output = run("text_classification", f"--data_dir={folder}")
    names = {f"{a}_f1" for a in ("macro", "micro")}
    assert {f"test_tuned_{n}" for n in names} | {f"test_{n}" for n in names} | names == set(results)
    thresholds = json.loads((output / "thresholds.json").read_text())
    assert len(thresholds) == 28 and list(thresholds)[-1] == "neutral"
    model = keras.models.load_model(output / "model.keras")
    answer = model.classify("a text", threshold=list(thresholds.values()))
    chosen = [name for name, p in answer["probabilities"].items() if p >= thresholds[name]]
    assert answer["labels"] == chosen


def test_text_classification_without_a_labelled_test_set_measures_on_half_of_dev(run, tmp_path):
    rows = [(f"text {i}", i % 3, f"id{i}") for i in range(20)]
    train, dev = (write(tmp_path / f"{part}.tsv", rows) for part in ("train", "dev"))
    flags_of_files = [f"--train_file={train}", f"--dev_file={dev}", "--task=goemotions"]
    results, printed, _ = run("text_classification", *flags_of_files)
    assert "dev_half_tuned_micro_f1" in results
    assert "tuned on 10 examples, measured on 10 others" in printed


def test_text_classification_reads_several_labels_of_a_field(run, tmp_path):
    rows = [(f"text {i}", ("joy", "joy; pride", "")[i % 3]) for i in range(18)]
    train = write(tmp_path / "train.tsv", [("text", "label"), *rows])
    arguments = [f"--train_file={train}", f"--dev_file={train}", f"--test_file={train}"]
    arguments += ["--problem_type=multi_label", "--label_separator=;"]
    results, printed, output = run("text_classification", *arguments)
    assert {"macro_f1", "test_tuned_micro_f1"} <= set(results)
    assert list(json.loads((output / "thresholds.json").read_text())) == ["joy", "pride"]
    model = keras.models.load_model(output / "model.keras")
    assert model.problem_type == "multi_label" and "(joy, pride)" in printed


@pytest.fixture
def yes_and_no(tmp_path):
    rows = [(f"{'good' if i % 2 else 'bad'} text {LETTERS[i]}", i % 2) for i in range(12)]
    return write(tmp_path / "texts.tsv", [("text", "label"), *rows])


def test_text_classification_draws_what_the_model_looks_at(run, yes_and_no, tmp_path):
    pytest.importorskip("matplotlib")
    pictures = tmp_path / "pictures"
    arguments = [f"--train_file={yes_and_no}", f"--dev_file={yes_and_no}", "--baselines"]
    results, printed, _ = run("text_classification", *arguments, f"--plot_dir={pictures}")
    assert {"accuracy", "frozen_accuracy", "majority_accuracy"} <= set(results)
    names = ["attention_heads", "attention_layers", "confusion_matrix", "learning_curves"]
    names += ["projection", "saliency"]
    assert sorted(path.stem for path in pictures.iterdir()) == names
    assert all(f"Drew {pictures / name}.png" in printed for name in names)


def test_text_classification_scores_pairs_in_numbered_columns(run, tmp_path):
    pytest.importorskip("matplotlib")
    rows = [(i / 4, f"text {LETTERS[i]}", f"word {LETTERS[-i]}") for i in range(12)]
    data = write(tmp_path / "pairs.tsv", rows)
    arguments = [f"--train_file={data}", f"--dev_file={data}", f"--test_file={data}"]
    arguments += ["--text_column=-2", "--pair_column=2", "--label_column=0"]
    arguments += ["--problem_type=regression", f"--plot_dir={tmp_path / 'pictures'}"]
    results, _, output = run("text_classification", *arguments)
    assert set(results) == {"pearson", "spearman", "test_pearson", "test_spearman"}
    assert results["test_pearson"] == pytest.approx(results["pearson"])
    assert len((output / "test_predictions.jsonl").read_text().splitlines()) == 12
    assert {"projection.png", "saliency.png"} <= {p.name for p in (tmp_path / "pictures").iterdir()}


def test_text_classification_without_a_training_file_splits_the_dev_file(run, tmp_path):
    pytest.importorskip("matplotlib")
    labels = ("contradiction", "entailment", "neutral")
    rows = [(f"text {LETTERS[i]}", f"word {LETTERS[i]}", labels[i % 3]) for i in range(15)]
    for name in ("matched", "mismatched"):
        header = ("sentence1", "sentence2", "gold_label")
        write(tmp_path / "mnli" / f"dev_{name}.tsv", [header, *rows])
    arguments = [f"--data_dir={tmp_path / 'mnli'}", "--epochs=0", f"--plot_dir={tmp_path / 'p'}"]
    results, printed, _ = run("text_classification", *arguments)
    assert "12 examples to train on, 3 to measure on" in printed
    assert {"accuracy", "mismatched_accuracy"} <= set(results)
    assert (tmp_path / "p" / "confusion_matrix.png").exists()


def test_search_tries_every_setting_once_and_goes_on_where_it_stopped(
    run, yes_and_no, tmp_path, monkeypatch
):
    pytest.importorskip("optuna")
    pytest.importorskip("matplotlib")
    arguments = [f"--train_file={yes_and_no}", f"--dev_file={yes_and_no}", "--epoch_counts=1"]
    arguments += ["--batch_sizes=6,12", "--learning_rates=0.01"]
    arguments += [f"--plot_dir={tmp_path / 'pictures'}"]
    with monkeypatch.context() as patch:
        # Stopped while it trains for the second time.
        fit = bert_keras.TextClassifier.fit
        fits = iter([fit])
        patch.setattr(bert_keras.TextClassifier, "fit", lambda *a, **k: next(fits, stop)(*a, **k))
        with pytest.raises(KeyboardInterrupt):
            run("search", *arguments)
    results, printed, output = run("search", *arguments)
    assert results["trials"] == 2 and "1 of 2 trials were done before" in printed
    assert results["accuracy_best"] >= results["accuracy_mean"] >= results["accuracy_worst"]
    assert (tmp_path / "pictures" / "search.png").exists()
    model = keras.models.load_model(output / "model.keras")
    rows = [line.split("\t") for line in yes_and_no.read_text().splitlines()[1:]]
    chosen = [answer["label"] for answer in model.classify([text for text, _ in rows])]
    right = np.mean([a == label for a, (_, label) in zip(chosen, rows, strict=True)])
    assert right == pytest.approx(results["accuracy_best"])
    again, printed, _ = run("search", *arguments)
    assert "2 of 2 trials were done before" in printed and "Next" not in printed
    assert again == results
    third, printed, _ = run("search", *arguments, "--seed=1")
    assert "0 of 2 trials were done before" in printed and third["trials"] == 2
    write(yes_and_no, [*yes_and_no.read_text().splitlines(), ("another", 1)])
    fourth, printed, _ = run("search", *arguments)
    assert "0 of 2 trials were done before" in printed and fourth["trials"] == 2


def test_search_tells_studies_apart_by_every_flag_of_the_classifier(script):
    search = script("search")
    own = {flag.name for flag in flags.FLAGS.flags_by_module_dict()["text_classification"]}
    data = {"task", *sys.modules["text_classification"].FILE_FLAGS}
    assert own - data <= {*search.SETTINGS, *search.NOT_HERE}


@pytest.mark.parametrize(
    "argument", ["--batch_sizes=0", "--batch_sizes=1.5", "--epoch_counts=a", "--learning_rates=inf"]
)
def test_search_refuses_lists_that_are_no_numbers(script, argument):
    script("search")
    with pytest.raises(flags.IllegalFlagValueError, match=r"must be numbers from"):
        flags.FLAGS(["search", argument])


def test_search_refuses_what_it_makes_nothing_of(script):
    module = script("search")
    flags.FLAGS(["search", "--epochs=9"])
    with pytest.raises(SystemExit, match="--epochs has no meaning here"):
        module.main(["search"])


@pytest.mark.parametrize("name", ["output_dir", "plot_dir"])
@pytest.mark.parametrize("place", ["a file", ""])
def test_folders_that_cannot_be_made_are_refused_before_training(
    script, yes_and_no, tmp_path, monkeypatch, name, place
):
    pytest.importorskip("matplotlib")
    module = script("text_classification")
    monkeypatch.setattr(bert_keras.TextClassifier, "from_preset", None)
    files = [f"--train_file={yes_and_no}", f"--dev_file={yes_and_no}"]
    place = yes_and_no if place else ""
    flags.FLAGS(["name", *files, f"--output_dir={tmp_path / 'output'}", f"--{name}={place}"])
    with pytest.raises(SystemExit, match=f"--{name} must be a folder"):
        module.main([])


def test_columns_without_a_file_are_refused(script, yes_and_no):
    module = script("text_classification")
    flags.FLAGS(["name", "--label_column=stars"])
    with pytest.raises(SystemExit, match="--label_column is for files"):
        module.main([])
    flags.FLAGS(["name", f"--train_file={yes_and_no}", "--task=sst2"])
    with pytest.raises(SystemExit, match="without --task"):
        module.main([])


def test_a_dev_set_that_cannot_be_halved_tunes_no_thresholds(run, tmp_path):
    rows = [(f"text {i}", ("joy", "pride")[i % 2]) for i in range(8)]
    train = write(tmp_path / "train.tsv", [("text", "label"), *rows])
    dev = write(tmp_path / "dev.tsv", [("text", "label"), rows[0]])
    arguments = [f"--train_file={train}", f"--dev_file={dev}", "--problem_type=multi_label"]
    results, printed, _ = run("text_classification", *arguments)
    assert set(results) == {"macro_f1", "micro_f1"} and "No thresholds are tuned" in printed


def stop(*args, **kwargs):
    raise KeyboardInterrupt


def test_the_fine_tuning_playbook_runs_to_its_end(preset, monkeypatch, capsys):
    for name, value in {"PRESET": preset, "NUM_TRAIN": 16, "NUM_DEV": 8}.items():
        monkeypatch.setenv(name, str(value))
    runpy.run_path(str(FOLDER.parent / "docs" / "guides" / "fine_tuning_playbook.py"))
    printed = capsys.readouterr().out.splitlines()
    sections = [line.split(". ", 1) for line in printed if re.match(r"\d+\. ", line)]
    assert [number for number, _ in sections] == [str(number) for number in range(1, 11)]
    assert set(ast.literal_eval(sections[-1][1])) == {"label", "probabilities"}
    told = [line for line in printed if "trained in" in line]
    # The frozen encoder and the plain recipe have nothing yet to be compared with.
    assert [bool(re.search(r"\([+-]\d\.\d{3}\)", line)) for line in told] == [False] * 4 + [
        True
    ] * 15


def test_several_masks_trains_by_r_drop_and_keeps_its_settings(run, tmp_path):
    rows = [("text", "label"), *((f"some text {i}", "yes" if i % 2 else "no") for i in range(12))]
    data = write(tmp_path / "texts.tsv", rows)
    arguments = [f"--train_file={data}", f"--dev_file={data}", "--dropout_samples=3"]
    results, printed, output = run("several_masks", *arguments)
    assert set(results) == {"accuracy"} and "Loaded again, a Regularized" in printed
    model = keras.models.load_model(output / "model.keras")
    assert (model.consistency, model.dropout_samples) == (1.0, 3)


def test_distillation_writes_a_student_of_its_teacher(script, preset, tmp_path, capsys):
    lines, output = tmp_path / "lines.txt", tmp_path / "student"
    lines.write_text("some text to hide a word of\n" * 9, encoding="utf-8")
    files = [f"--train_file={lines}", f"--heldout_file={lines}", f"--output_dir={output}"]
    module = script("distillation")
    flags.FLAGS(["distillation.py", f"--preset={preset}", *files, "--layers=1,3", "--epochs=1"])
    module.main([])
    printed = capsys.readouterr().out
    assert "2 layers" in printed
    assert set(json.loads(printed.splitlines()[-1])) == {"teacher", "before", "perplexity"}
    assert bert_keras.MaskedLM.from_preset(output).backbone.num_layers == 2


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("tables")
    sys.modules.pop("tables", None)


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (["a", "b"], (["0"], "1")),
        (["a", "b"], (["0"], "-1")),
        (["text", "a", "b"], (["0"], "label")),
        (["id\ttext", "1\ta", "2\tb"], (["text", None], "label")),
    ],
)
def test_files_to_predict_may_lack_labels(tables, tmp_path, rows, columns):
    path = write(tmp_path / "test.tsv", rows)
    found = tables.read_texts(path, *columns, ("no", "yes"), may_lack_labels=True)
    assert found.texts == ["a", "b"] and found.labels is None
    with pytest.raises(ValueError, match=r"test\.tsv"):
        tables.read_texts(path, *columns, ("no", "yes"))


def test_labels_are_read_by_name_and_their_lines_are_known(tables, tmp_path):
    path = write(tmp_path / "t.csv", ['"a\nb",yes', "c,no", "d,maybe"])
    with pytest.raises(ValueError, match=r"t\.csv, line 4: .*Received: 'maybe'"):
        tables.read_texts(path, ["-2"], "-1", ("no", "yes"))
    found = tables.read_texts(path, ["-2"], "-1")
    assert found.label_names == ("maybe", "no", "yes") and found.labels.tolist() == [2, 1, 0]
    path = write(tmp_path / "s.tsv", ["a\t1", "b\t6", "c\tnan"])
    for limits, line in (((0.0, 5.0), 2), ((0.0, 9.0), 3)):
        with pytest.raises(ValueError, match=f"line {line}: a score must be a number from 0.0"):
            tables.read_texts(path, ["0"], "1", None, "regression", limits)


def test_columns_of_texts_and_labels_must_differ_and_hold_two_classes(tables, tmp_path, capsys):
    path = write(tmp_path / "t.tsv", ["text\tlabel", "a\t1.5", "b\t2.5"])
    with pytest.raises(ValueError, match=r"different columns. Received: \['text', 'text'\]"):
        tables.read_texts(path, ["text"], "text")
    assert tables.read_texts(path, ["text"], "label").label_names == ("1.5", "2.5")
    assert "1.5 are taken for classes" in capsys.readouterr().out
    path = write(tmp_path / "t.tsv", ["text\tlabel", "a\t", "b\t"])
    with pytest.raises(ValueError, match=r"t\.tsv, line 2: .*Received: ''"):
        tables.read_texts(path, ["text"], "label")
    path = write(tmp_path / "t.tsv", ["text\tlabel", "a\tx", "b\tx"])
    with pytest.raises(ValueError, match=r"at least two classes .* 'x' alone"):
        tables.read_texts(path, ["text"], "label")


def test_several_labels_are_zeros_and_ones_and_their_lines_are_known(tables, tmp_path):
    path = write(tmp_path / "t.csv", ['a,"yes, no"', "b,", "c,no"])
    found = tables.read_texts(path, ["0"], "1", problem_type="multi_label")
    assert found.label_names == ("no", "yes") and found.problem_type == "multi_label"
    assert found.labels.tolist() == [[1, 1], [0, 0], [1, 0]]
    with pytest.raises(ValueError, match=r"t\.csv, line 1: .* \['no'\]\. Received: 'yes'"):
        tables.read_texts(path, ["0"], "1", ("no",), "multi_label")
    path = write(tmp_path / "empty.csv", ["a,", "b,"])
    with pytest.raises(ValueError, match=r"empty\.csv has no labels"):
        tables.read_texts(path, ["0"], "1", problem_type="multi_label")


def test_what_is_not_defined_is_null_and_never_the_best(script, tmp_path, capsys):
    script("text_classification")
    recipe = sys.modules["recipe"]
    flags.FLAGS(["name", f"--output_dir={tmp_path}", "--seeds=3"])
    scores = iter([float("nan"), -0.5, float("nan")])
    best, rows = recipe.run_seeds(lambda seed: (seed, {"pearson": next(scores)}))
    assert best == 1 and len(rows) == 3
    assert recipe.over_seeds([{"f1": 0.1}]) == {"f1": 0.1}
    assert recipe.over_seeds([{"f1": 0.1}, {"f1": 0.3}]) == {
        "f1": pytest.approx(0.2),
        "f1_std": pytest.approx(0.02**0.5),
    }
    recipe.finish({"pearson": rows[0]["pearson"], "trials": 3})
    printed = capsys.readouterr().out.splitlines()
    assert "pearson is not defined" in printed[-2]
    assert json.loads(printed[-1]) == {"pearson": None, "trials": 3}


@pytest.fixture
def pictures(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("pictures")
    sys.modules.pop("pictures", None)


def test_projections_are_those_of_scikit_learn(pictures):
    decomposition = pytest.importorskip("sklearn.decomposition")
    vectors = np.random.default_rng(0).normal(size=(30, 7)) * np.arange(7)
    places, shares = pictures.principal_components(vectors)
    twin = decomposition.PCA(2).fit(vectors)
    np.testing.assert_allclose(np.abs(places), np.abs(twin.transform(vectors)), atol=1e-9)
    np.testing.assert_allclose(shares, twin.explained_variance_ratio_, atol=1e-9)
    alone, _ = pictures.principal_components(vectors[:1])
    assert alone.tolist() == [[0, 0]]


def test_shaded_texts_wrap_and_their_tokens_do_not_overlap(pictures):
    tokens = ["[CLS]", *["word", "##piece", "a"] * 30, "[SEP]"]
    with pictures.drawing() as plt:
        lines = pictures._lines(plt, tokens, width=5.0)
    assert len(lines) > 2
    assert [number for line in lines for _, _, number in line] == list(range(len(tokens)))
    for line in lines:
        ends = [place + size for place, size, _ in line]
        assert ends[-1] <= 5.0
        assert all(end <= next_[0] + 1e-9 for end, next_ in zip(ends, line[1:], strict=False))


def test_a_text_that_no_font_can_show_is_warned_of(pictures, monkeypatch):
    import matplotlib
    from matplotlib import font_manager

    own = [
        entry
        for entry in font_manager.fontManager.ttflist
        if entry.fname.startswith(matplotlib.get_data_path())
    ]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    scores = np.array([0, 1, -1, 0], "float32")
    found = bert_keras.Saliency(["[CLS]", "很", "好", "[SEP]"], scores, "positive", 1.0, 1.0)
    with pytest.warns(UserWarning, match="No installed font has the characters '好很'") as told:
        pictures.saliency([found])
    # Garbage of other tests may be collected meanwhile, which warns of files left open.
    assert sum("No installed font" in str(warning.message) for warning in told) == 1
    assert pictures.fonts_for("plain text") == ["DejaVu Sans"]
    # Where a font has them, it is the second choice.
    monkeypatch.setattr(pictures, "characters_of", lambda path, wanted: {"好"} & wanted)
    assert len(pictures.fonts_for("好")) == 1
    monkeypatch.setattr(
        pictures, "characters_of", lambda path, wanted: wanted if "STIXGeneral" in path else set()
    )
    assert pictures.fonts_for("好") == ["DejaVu Sans", "STIXGeneral"]


@pytest.fixture
def reviews(tmp_path):
    for part in ("train", "test"):
        for label in ("pos", "neg"):
            for number in range(10):
                text = f"{label} review {number} of {part} " * (1 + number)
                write(tmp_path / "aclImdb" / part / label / f"{number}_5.txt", [text])
    return tmp_path / "aclImdb"


def test_long_text_classification_makes_a_table_of_its_strategies(run, reviews, tmp_path):
    names = ["head_tail", "max", "self_attention"]
    arguments = [f"--data_dir={reviews}", f"--strategy={','.join(names)}", "--max_length=16"]
    arguments += ["--sample=12"]
    results, printed, _ = run("long_text_classification", *arguments, "--stride=10")
    assert results["strategy"] in names
    assert {f"{name}_accuracy" for name in names} <= set(results)
    best = max(results[f"{name}_accuracy"] for name in names)
    assert results[f"{results['strategy']}_accuracy"] == best
    assert "accuracy" not in results
    assert "test_accuracy" in results and "12 documents to test on" in printed
    assert "--sample cut the test set from 20 to 12 documents" in printed
    assert all(any(line.startswith(f"{n} ") for line in printed.splitlines()) for n in names)


def test_long_text_classification_predicts_a_file_without_labels(run, tmp_path):
    pytest.importorskip("matplotlib")
    rows = [(f"some text {i} " * 9, "yes" if i % 2 else "no") for i in range(20)]
    train = write(tmp_path / "train.tsv", [("document", "answer"), *rows])
    test = write(tmp_path / "test.tsv", ["document", *(text for text, _ in rows[:3])])
    columns = ["--text_column=document", "--label_column=answer"]
    arguments = [f"--train_file={train}", f"--test_file={test}", "--strategy=mean", *columns]
    pictures = tmp_path / "pictures"
    arguments += ["--max_length=16", f"--plot_dir={pictures}"]
    results, _, output = run("long_text_classification", *arguments)
    names = {"learning_curves_mean.png", "confusion_matrix.png"}
    assert {path.name for path in pictures.iterdir()} == names
    assert "test_accuracy" not in results
    answers = (output / "test_predictions.jsonl").read_text().splitlines()
    assert [set(json.loads(answer)) for answer in answers] == [{"label", "probabilities"}] * 3


def test_text_embedding_measures_before_and_after_training(run, tmp_path):
    rows = [
        ("g", "f", "y", i, i % 6, f"text {LETTERS[i]}", f"word {LETTERS[i]}") for i in range(12)
    ]
    for part in ("train", "dev", "test"):
        write(tmp_path / "stsb" / f"sts-{part}.tsv", rows)
    data = f"--data_dir={tmp_path / 'stsb'}"
    names = {"spearman", "pearson", "mrr", "recall_at_1", "recall_at_5"}
    pictures = tmp_path / "pictures"
    results, _, _ = run("text_embedding", data, "--seeds=2", f"--plot_dir={pictures}")
    measured = {f"{part}{name}" for part in ("", "untrained_") for name in names}
    over_seeds = measured | {f"{name}_std" for name in measured}
    assert set(results) == over_seeds | {f"test_{name}" for name in names}
    drawn = ("seeds", "learning_curves_seed_0", "learning_curves_seed_1")
    assert all((pictures / f"{name}.png").exists() for name in drawn)


def test_text_embedding_knows_which_of_rte_s_pairs_are_alike(script, tmp_path):
    rows = [("index", "sentence1", "sentence2", "label"), (0, "a", "b", "entailment")]
    write(tmp_path / "RTE" / "dev.tsv", [*rows, (1, "a", "c", "not_entailment")])
    module = script("text_embedding")
    flags.FLAGS(["text_embedding", f"--data_dir={tmp_path / 'RTE'}"])
    pairs = module.load_split(datasets.get_glue_task("rte"), "dev")
    assert pairs.labels.tolist() == [1.0, 0.0]


def test_text_embedding_trains_to_rank(run, tmp_path):
    header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
    rows = [(i % 2, i, i, f"text {LETTERS[i]}", f"word {LETTERS[i]}") for i in range(12)]
    for part in ("train", "dev"):
        write(tmp_path / "mrpc" / f"{part}.tsv", [header, *rows])
    arguments = [f"--data_dir={tmp_path / 'mrpc'}", "--objective=ranking", "--symmetric"]
    results, _, _ = run("text_embedding", *arguments, "--pooling=cls", "--max_length=12")
    assert results["spearman"] != results["untrained_spearman"]


def test_text_embedding_ranks_pairs_of_a_file_and_predicts_another(run, tmp_path):
    rows = [(f"text {LETTERS[i // 2]}", f"word {LETTERS[i]}", 4 * (i % 3 > 0)) for i in range(12)]
    train = write(tmp_path / "train.tsv", rows)
    test = write(tmp_path / "test.tsv", [row[:2] for row in rows])
    arguments = [f"--train_file={train}", f"--test_file={test}", "--objective=ranking"]
    arguments += ["--text_column=0", "--pair_column=1", "--label_column=2", "--highest_score=4"]
    results, printed, output = run("text_embedding", *arguments)
    assert {"spearman", "untrained_spearman"} <= set(results) and "a tenth of" in printed
    answers = (output / "test_predictions.jsonl").read_text().splitlines()
    assert len(answers) == 12 and all(-1 <= json.loads(answer)["score"] <= 1 for answer in answers)


def test_pairs_that_equal_texts_connect_are_one_group(script):
    groups_of = script("text_embedding").groups_of
    first, second = ["a", "c", "c", "e", "d"], ["b", "b", "d", "f", "g"]
    assert groups_of(first, second).tolist() == [0, 0, 0, 1, 0]
    csgraph = pytest.importorskip("scipy.sparse.csgraph")
    pairs = np.random.default_rng(0).integers(0, 40, size=(2, 25))
    graph = np.zeros((40, 40))
    graph[pairs[0], pairs[1]] = 1
    expected = csgraph.connected_components(graph, directed=False)[1][pairs[0]]
    found = groups_of(*pairs.astype(str).tolist())
    assert len(set(zip(found, expected, strict=True))) == len(set(found)) == len(set(expected))


@pytest.fixture
def tagged(tmp_path):
    sentence = ["Anna\tB-PER", "lives\tO", "in\tO", "Rome\tB-LOC", ".\tO", ""]
    for part in ("train", "dev", "test"):
        write(tmp_path / "ner" / f"{part}.conll", sentence * 8)
    return tmp_path / "ner"


def test_token_classification_scores_entities_and_writes_tags(run, tagged):
    results, printed, output = run(
        "token_classification", f"--data_dir={tagged}", "--crf", "--sample=6"
    )
    assert {"f1", "test_f1", "precision", "accuracy"} <= set(results)
    assert "6 sentences to train on, 8 to measure on" in printed
    lines = (output / "test_predictions.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines[:5]] == ["Anna", "lives", "in", "Rome", "."]


def test_feature_extraction_has_the_rows_of_the_paper_s_table(run, tagged):
    rows = ("weighted_sum_last_4", "concat_last_4")
    arguments = [f"--strategy={','.join(rows)}"]
    arguments += [f"--data_dir={tagged}", "--lstm_units=4", "--sample=4", "--max_length=16"]
    results, printed, _ = run("feature_extraction", *arguments)
    assert set(results) == {f"{row}_{name}" for row in rows for name in ("f1", "test_f1")}
    assert all(f"{part}: {n} sentences" in printed for part, n in [("train", 4), ("dev", 8)])
    all_rows = ("embeddings", "second_to_last", "last", *rows, "weighted_sum_all")
    assert flags.FLAGS["strategy"].default == list(all_rows)


def test_feature_extraction_without_training_measures_and_tags_words(run, tagged, tmp_path, capsys):
    words = write(tmp_path / "words.txt", ["anna", "lives", "", "rome"])
    train = tagged / "train.conll"
    arguments = [f"--train_file={train}", f"--test_file={words}", "--strategy=last", "--epochs=0"]
    arguments += ["--lstm_units=2", "--dtype=mixed_bfloat16"]
    results, printed, output = run("feature_extraction", *arguments, "--max_length=16")
    assert set(results) == {"last_f1"} and "a tenth of" in printed
    lines = (output / "test_predictions.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["anna", "lives", "", "rome", ""]
    # The recipe, alone with the file, which holds the encoder and the vocabulary.
    module = sys.modules["feature_extraction"]
    flags.FLAGS(["", f"--output_dir={output}", "--sentence=anna  lives", "--sentence=rome"])
    module.main([])
    words = " ".join(line.replace("\t", "/") for line in lines[:2])
    assert capsys.readouterr().out == f"  {words}\n  {lines[3]}\n".replace("\t", "/")
    flags.FLAGS(["", f"--output_dir={tmp_path}", "--sentence=anna"])
    with pytest.raises(SystemExit, match=r"tagger\.keras"):
        module.main([])


def test_token_classification_scores_segmented_words_by_their_scheme(run, tmp_path):
    train = write(tmp_path / "train.txt", ["a B", "b M", "c E", "d S", ""] * 4)
    words = write(tmp_path / "words.txt", ["a", "b", "", "d"])
    arguments = [f"--train_file={train}", f"--dev_file={train}", f"--test_file={words}"]
    results, _, output = run("token_classification", *arguments, "--scheme=BMES")
    assert set(results) == {"f1", "precision", "recall", "accuracy"}
    assert len((output / "test_predictions.tsv").read_text().splitlines()) == 5


def test_tags_that_no_sentence_teaches_are_told_of_by_file_and_line(run, tmp_path):
    train = write(tmp_path / "train.txt", ["a O", "b B-X", "c I-X", ""] * 4)
    dev = write(tmp_path / "dev.txt", ["a O", "b B-Y", ""])
    arguments = [f"--train_file={train}", f"--dev_file={dev}"]
    _, printed, _ = run("token_classification", *arguments)
    assert "dev.txt, line 2: no sentence to train on has the tag 'B-Y'." in printed


def test_token_classification_scores_parts_of_speech_by_accuracy(run, tmp_path):
    numbered = [("1-2", "dogsrun", "_"), ("1", "dogs", "NOUN"), ("2", "run", "VERB")]
    rows = [(number, word, word, tag, *"______") for number, word, tag in numbered]
    for part in ("train", "dev"):
        write(tmp_path / "ud" / f"en-ud-{part}.conllu", ["# text = dogs run", *rows, ""] * 4)
    results, printed, _ = run("token_classification", f"--data_dir={tmp_path / 'ud'}")
    assert set(results) == {"accuracy"} and "('NOUN', 'VERB')" in printed


@pytest.mark.parametrize(
    ("rows", "arguments", "message"),
    [
        (["a O", "b B-X", "c I-X", "", "0 0"], [], r"train.txt, line 5: .*Received: '0'"),
        (["a O", "b S-X"], ["--scheme=IOB2"], r"train.txt, line 2: .*IOB2.*Received: 'S-X'"),
    ],
)
@pytest.mark.parametrize("name", ["token_classification", "feature_extraction"])
def test_a_mistyped_tag_is_refused_by_file_and_line_before_training(
    script, tmp_path, name, rows, arguments, message
):
    module = script(name)
    flags.FLAGS([name, f"--train_file={write(tmp_path / 'train.txt', rows)}", *arguments])
    with pytest.raises(ValueError, match=message):
        module.main([name])
    with pytest.raises(flags.IllegalFlagValueError, match="BMES"):
        flags.FLAGS([name, "--scheme=IOB3"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data_dir=nowhere"], "--data_dir names 'nowhere', which is not there"),
        (["--data_dir="], "--data_dir names '', which is not there"),
        (["--train_file=no.tsv"], "--train_file names 'no.tsv', which is not there"),
        (["--data_dir=.", "--dev_file=README.md"], "--dev_file would not be read"),
        (["--dev_file=README.md"], "--dev_file needs --train_file"),
        (["--data_dir=.", "--train_file=README.md"], "--train_file would not be read"),
    ],
)
def test_paths_that_are_not_there_or_not_read_are_refused(script, monkeypatch, arguments, message):
    script("text_classification")
    monkeypatch.chdir(pathlib.Path(__file__).parent.parent)
    with pytest.raises(flags.IllegalFlagValueError, match=message):
        flags.FLAGS(["text_classification", *arguments])


def test_a_text_is_not_taken_for_a_tag(script, tmp_path):
    module = script("token_classification")
    rows = [f"a{i}\tthis is text {i}" for i in range(200)]
    flags.FLAGS(["token_classification", f"--train_file={write(tmp_path / 'train.tsv', rows)}"])
    with pytest.raises(ValueError, match=r"train.tsv must hold words.*200 different tags"):
        module.main(["token_classification"])


def test_a_vocabulary_of_another_language_is_told(run, tmp_path):
    rows = [("text", "label"), *((f"\u4f60\u597d \u4e16\u754c {i}", i % 2) for i in range(8))]
    data = write(tmp_path / "texts.tsv", rows)
    files = [f"--train_file={data}", f"--dev_file={data}"]
    _, printed, _ = run("text_classification", *files)
    assert "Beware: 8" in printed and "bert_base_zh" in printed


@pytest.mark.parametrize("layout", ["commonsense_qa", "e_care"])
def test_multiple_choice_reads_json_lines(run, tmp_path, layout):
    choices = [{"label": letter, "text": f"a {letter}"} for letter in "ABC"]
    record = {
        "commonsense_qa": {
            "question": {"stem": "what is it", "choices": choices},
            "answerKey": "B",
        },
        "e_care": {
            "premise": "it rains",
            "ask-for": "effect",
            "hypothesis1": "wet",
            "hypothesis2": "dry",
            "label": 0,
        },
    }[layout]
    for part in ("train", "dev"):
        write(tmp_path / layout / f"{part}.jsonl", [json.dumps(record)] * 4)
    results, printed, _ = run("multiple_choice", f"--data_dir={tmp_path / layout}")
    assert set(results) == {"accuracy"}
    assert f"right {100 / (3 if layout == 'commonsense_qa' else 2):.1f}% of the time" in printed


def test_multiple_choice_reads_swag_and_writes_answers(run, tmp_path):
    header = ["sent1", "sent2", *(f"ending{number}" for number in range(4)), "label"]
    rows = [("she goes", "she", *"abcd", i % 4) for i in range(10)]
    for part in ("train", "val", "test"):
        write(tmp_path / "swag" / f"{part}.csv", [header, *rows], ",")
    results, printed, output = run("multiple_choice", f"--data_dir={tmp_path / 'swag'}")
    assert {"accuracy", "test_accuracy"} <= set(results)
    assert "right 25.0% of the time" in printed
    assert len((output / "test_predictions.jsonl").read_text().splitlines()) == 10


def write_squad(tmp_path, version):
    """Writes six questions on one context to train and to measure on; returns both files."""
    questions = [
        {
            "id": f"{number}",
            "question": "who lives in rome?",
            "answers": [] if version == 2 and number % 2 else [{"text": "anna", "answer_start": 0}],
            "is_impossible": version == 2 and number % 2 == 1,
        }
        for number in range(6)
    ]
    paragraphs = [{"context": "anna lives in rome.", "qas": questions}]
    data = {"version": f"v{version}", "data": [{"title": "t", "paragraphs": paragraphs}]}
    files = [tmp_path / f"{part}-v{version}.json" for part in ("train", "dev")]
    for file in files:
        file.write_text(json.dumps(data))
    return files


@pytest.mark.parametrize("version", [1, 2])
def test_question_answering_writes_the_official_files(run, tmp_path, version):
    files = write_squad(tmp_path, version)
    arguments = [f"--train_file={files[0]}", f"--dev_file={files[1]}", "--max_length=32"]
    results, _, output = run("question_answering", *arguments, f"--test_file={files[1]}")
    assert ("no_answer_threshold" in results) == (version == 2)
    assert (output / "null_odds.json").exists() == (version == 2)
    for prefix in ("", "test_"):
        predictions = json.loads((output / f"{prefix}predictions.json").read_text())
        assert set(predictions) == {str(number) for number in range(6)}


def write_questions(path, context, *questions):
    """Writes a file in SQuAD's format: paragraphs of one context with `(question, answer)`.

    An answer is a str, `None` for an impossible question, or `...` where it is not told.
    """
    paragraphs = []
    for number, (question, answer) in enumerate(questions):
        text = f"{context}{number}."
        row = {"id": f"{number}", "question": question, "is_impossible": answer is None}
        is_told = isinstance(answer, str)
        row["answers"] = [{"text": answer, "answer_start": text.index(answer)}] if is_told else []
        paragraphs.append({"context": text, "qas": [row]})
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), encoding="utf-8")
    return path


def test_question_answering_splits_a_lone_chinese_file_by_contexts(run, tmp_path):
    context = "安娜住在羅馬，她喜歡羅馬的冬天"
    rows = [("誰住在羅馬?", "安娜"), ("哪裡?", "羅馬"), ("誰?", ...), ("何?", "冬天")] * 3
    write_questions(tmp_path / "cmrc2018_dev.json", context, *rows)
    test = write_questions(tmp_path / "test.json", context, *rows[:3])
    arguments = [f"--data_dir={tmp_path}", f"--test_file={test}", "--max_length=32"]
    results, printed, output = run("question_answering", *arguments)
    assert set(results) == {"f1", "exact_match", "test_f1", "test_exact_match"}
    assert "10 questions to train on, 2 to measure on by cmrc" in printed
    assert "1 of 3 test questions have no answer that cmrc can measure" in printed
    assert set(json.loads((output / "test_predictions.json").read_text())) == {"0", "1", "2"}


def test_question_answering_measures_what_has_answers(script, capsys):
    module = script("question_answering")
    answer = bert_keras.datasets.squad.Answer("anna", 0)
    rows = [((answer,), False), ((), True), ((), False)]
    told, impossible, not_told = (
        bert_keras.datasets.QuestionExample(str(i), "who?", "anna lives", *row)
        for i, row in enumerate(rows)
    )
    examples = [told, impossible, not_told]
    module.tell_unanswered("squad_v1", dev=examples, test=[told])
    module.tell_unanswered("squad_v2", dev=examples)
    printed = capsys.readouterr().out.splitlines()
    assert [line[:22] for line in printed] == ["2 of 3 dev questions h", "1 of 3 dev questions h"]

    found = [NBest([Span("anna", 0, 4, 0.9, 0.0, 0.0)], None, score) for score in (-2.0, 2.0, 0.0)]
    qa = bert_keras.QuestionAnswering(bert_keras.BertBackbone(9, 1, 1, 4, 4))
    assert module.score(qa, "squad_v1", examples, found) == {"f1": 100, "exact_match": 100}
    both = module.score(qa, "squad_v2", examples, found, tune=True)
    assert both["f1"] == both["NoAns_exact"] == 100
    assert qa.no_answer_threshold == both["no_answer_threshold"] == -2.0
    qa.no_answer_threshold = None
    only = module.score(qa, "squad_v2", [told, not_told], found[::2], tune=True)
    assert only == {"f1": 100, "exact": 100, "HasAns_f1": 100, "HasAns_exact": 100}
    assert "Only questions with an answer" in capsys.readouterr().out


def test_question_answering_samples_both_kinds_of_questions(script):
    module = script("question_answering")
    for num_impossible in (0, 1, 20, 39, 40):
        examples = [
            bert_keras.datasets.QuestionExample(str(i), "q", "c", (), i < num_impossible)
            for i in range(40)
        ]
        for seed in range(3):
            flags.FLAGS(["question_answering", "--sample=10", f"--seed={seed}"])
            sample = module.sampled(examples)
            assert len({example.id for example in sample}) == 10
            count = sum(example.is_impossible for example in sample)
            assert count == {0: 0, 1: 1, 20: 5, 39: 9, 40: 10}[num_impossible]


def test_question_answering_names_a_question_without_tokens_before_it_trains(
    script, preset, tmp_path, monkeypatch
):
    module = script("question_answering")
    rows = [("who?", "anna"), ("\u200b", "anna")]
    file = write_questions(tmp_path / "questions.json", "anna lives in rome", *rows)
    monkeypatch.setattr(bert_keras.QuestionAnswering, "fit", None)
    files = [f"--train_file={file}", f"--dev_file={file}", f"--preset={preset}"]
    flags.FLAGS(["question_answering", *files, "--max_length=32"])
    with pytest.raises(ValueError, match=r"question needs a token.*index 1"):
        module.main([])


def test_question_answering_writes_the_answers_of_the_model_that_it_saves(
    script, preset, tmp_path, monkeypatch, capsys
):
    files = write_squad(tmp_path, version=1)
    module = script("question_answering")
    scores = iter([{"f1": 2.0}, {"f1": 1.0}])  # the first of two seeds is the best
    monkeypatch.setattr(module, "score", lambda *args, **kwargs: next(scores))
    flags_given = [f"--preset={preset}", f"--output_dir={tmp_path}", "--epochs=0", "--seeds=2"]
    flags_given += [f"--train_file={files[0]}", f"--dev_file={files[1]}", "--max_length=32"]
    flags.FLAGS(["question_answering", *flags_given, "--sample=4"])
    module.main([])
    assert "--sample cut the 6 dev questions to 4" in capsys.readouterr().out
    found = json.loads((tmp_path / "nbest_predictions.json").read_text())
    assert len(found) == 4
    model = keras.models.load_model(tmp_path / "model.keras")
    best = model.n_best((["who lives in rome?"], ["anna lives in rome."]))[0]
    for spans in found.values():
        assert [span["text"] for span in spans] == [span.text for span in best.spans]
        assert spans[0]["probability"] == pytest.approx(best.spans[0].probability, rel=1e-4)


@pytest.mark.parametrize(
    "name", ["feature_extraction", "multiple_choice", "text_embedding", "token_classification"]
)
def test_a_script_without_data_says_what_it_needs(script, name):
    module = script(name)
    flags.FLAGS([name])
    with pytest.raises(SystemExit, match="--data_dir"):
        module.main([name])


@pytest.mark.parametrize("name", ["multiple_choice", "question_answering", "token_classification"])
def test_a_file_for_a_folder_is_refused(script, name, yes_and_no):
    module = script(name)
    flags.FLAGS([name, f"--data_dir={yes_and_no}"])
    with pytest.raises(SystemExit, match=r"is none\. Pass a file by --train_file"):
        module.main([name])


def test_question_answering_names_what_cannot_be_split_or_learned(script, tmp_path):
    module = script("question_answering")
    file, _ = write_squad(tmp_path, version=1)
    flags.FLAGS(["name", f"--train_file={file}"])
    with pytest.raises(
        ValueError, match=r"two contexts or more .* 6 questions on 1\. .*--dev_file"
    ):
        module.main([])
    data = json.loads(file.read_text().replace('"answer_start": 0', '"answer_start": 1'))
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(data))
    flags.FLAGS(["name", f"--train_file={wrong}", f"--dev_file={file}"])
    with pytest.raises(ValueError, match="None of the 6 answers to train on stands"):
        module.main([])


def test_text_embedding_refuses_sets_without_likeness(script, tmp_path):
    module = script("text_embedding")
    for task in ("mnli", "sst2"):
        flags.FLAGS(["name", f"--data_dir={tmp_path}", f"--task={task}"])
        with pytest.raises(SystemExit, match="no pairs that are like or unlike"):
            module.main([])


@pytest.mark.parametrize(
    ("name", "rows", "arguments", "message"),
    [
        ("text_classification", ["a\t1", "b\t", "c\t0"], [], r"data.tsv, line 3: .*Received: ''"),
        ("text_classification", [], [], r"data.tsv holds a header and no rows"),
        ("text_classification", ["a\t1", "b"], [], r"data.tsv, line 3: .* as the first, 2"),
        (
            "text_classification",
            ["a\t1.5", "b\tmany"],
            ["--problem_type=regression"],
            r"data.tsv, line 3: .*Received: 'many'",
        ),
        ("long_text_classification", ["a\t1", "b\t"], [], r"data.tsv, line 3: .*Received: ''"),
    ],
)
def test_files_with_bad_rows_are_refused_by_name_and_row(
    script, tmp_path, name, rows, arguments, message
):
    module = script(name)
    path = write(tmp_path / "data.tsv", ["text\tlabel", *rows])
    flags.FLAGS([name, f"--train_file={path}", f"--dev_file={path}", *arguments])
    with pytest.raises(ValueError, match=message):
        module.main([name])


@pytest.mark.parametrize("name", ["text_classification", "multiple_choice", "question_answering"])
def test_a_dev_set_without_labels_is_refused_before_training(script, tmp_path, name):
    choices = {"sent1": "a", "sent2": "b", **{f"ending{number}": "c" for number in range(4)}}
    question = {"id": "1", "question": "why?", "answers": [{"text": "a", "answer_start": 0}]}

    def squad(answers):
        asked = [{**question, "answers": answers}]
        return json.dumps({"data": [{"paragraphs": [{"context": "a b", "qas": asked}]}]})

    train, dev, arguments = {
        "text_classification": (["sentence\tlabel", "a\t1"], ["sentence", "a"], ["--task=sst2"]),
        "multiple_choice": ([json.dumps({**choices, "label": 1})], [json.dumps(choices)], []),
        "question_answering": ([squad(question["answers"])], [squad([])], []),
    }[name]
    module = script(name)
    suffix = ".tsv" if name == "text_classification" else ".json"
    files = [
        f"--{part}_file={write(tmp_path / (part + suffix), rows)}"
        for part, rows in (("train", train), ("dev", dev))
    ]
    flags.FLAGS([name, *files, *arguments])
    with pytest.raises(ValueError, match="The dev examples must have"):
        module.main([name])


# Other families


@pytest.fixture(scope="module")
def family_preset(tmp_path_factory):
    """Returns a function of a class: a folder with a random checkpoint of that family."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *letters, "Ġt", "ex", "<mask>"]
    byte_pairs = bert_keras.BytePairTokenizer(
        {token: number for number, token in enumerate(tokens)}, [("Ġ", "t"), ("e", "x")]
    )
    words = bert_keras.WordPieceTokenizer(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + x for x in LETTERS)]
    )
    tokenizers = {"RobertaBackbone": byte_pairs, "DistilBertBackbone": words}
    tokenizers |= {"ModernBertBackbone": byte_pairs}

    def make(name):
        folder = tmp_path_factory.mktemp(name)
        tokenizer = tokenizers[name]
        backbone = getattr(bert_keras, name)(
            tokenizer.vocabulary_size, num_layers=4, num_heads=2, hidden_dim=8, intermediate_dim=16
        )
        backbone.save_to_preset(folder)
        tokenizer.save(folder)
        return folder

    return make


FAMILIES = ("RobertaBackbone", "DistilBertBackbone", "ModernBertBackbone")


@pytest.mark.parametrize("family", FAMILIES)
def test_recipes_take_a_preset_of_any_family(run, family_preset, tmp_path, family):
    preset = f"--preset={family_preset(family)}"
    header = ("text", "pair", "label")
    rows = [(f"some text {i}", f"a word {i}", "yes" if i % 2 else "no") for i in range(12)]
    data = write(tmp_path / "pairs.tsv", [header, *rows])
    files = [f"--train_file={data}", f"--dev_file={data}", "--pair_column=pair"]
    drawn = tmp_path / "pictures"
    run("text_classification", preset, *files, f"--plot_dir={drawn}", "--max_length=40")
    assert {"attention_layers.png", "saliency.png", "projection.png"} <= {
        path.name for path in drawn.iterdir()
    }
    train = write(tmp_path / "tags.txt", ["a O", "text B-X", "exact I-X", ""] * 4)
    files = [f"--train_file={train}", f"--dev_file={train}", "--max_length=12"]
    run("feature_extraction", preset, *files, "--strategy=last", "--lstm_units=4")
    run("token_classification", preset, *files)
    files = write_squad(tmp_path, 2)
    run(
        "question_answering", preset, f"--train_file={files[0]}", f"--dev_file={files[1]}",
        "--max_length=36",
    )  # fmt: skip


def test_tokens_are_drawn_as_they_are_written(pictures):
    drawn = pictures.as_written(["[CLS]", "word", "##piece", "[SEP]"])
    assert drawn == [("[CLS]", False), ("word", False), ("piece", True), ("[SEP]", False)]
    expected = [("<s>", False), ("caf", False), ("é", True), ("bar", False), ("</s>", False)]
    assert pictures.as_written(["<s>", "caf", "Ã©", "Ġbar", "</s>"]) == expected
    assert pictures.as_written(["<s>", "▁caf", "é", "▁bar", "</s>"]) == expected
