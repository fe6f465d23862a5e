"""`train` from flags to results.json, on files and a checkpoint small enough for seconds.

Told apart from what it trains: it runs on PyTorch, which compiles nothing; the tasks themselves are
tested on every backend, and `train` itself as the quickstart of each.
"""

import json

import keras
import numpy as np
import pytest
from absl import flags
from tokenizers import pre_tokenizers

import bert_keras
from bert_keras.answers.span_search import NBest, Span
from bert_keras.cli import likeness, mistakes, options, run_folder, scores, train
from bert_keras.cli import training_files as data
from bert_keras.cli.tasks import RECIPES

LETTERS = "abcdefghijklmnopqrstuvwxyz"
pytestmark = pytest.mark.once


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
def run(preset, tmp_path, capsys):
    """Returns a function that trains a task and gives its metrics, what it printed, its folder."""

    def run_task(name, *arguments):
        output = tmp_path / "output"
        shared = [f"--preset={preset}", f"--output_dir={output}", "--epochs=1", "--batch_size=4"]
        given = list(map(str, arguments))
        shared += [] if "--resume" in given else ["--overwrite"]
        train.main([name, *shared, *given])
        printed = capsys.readouterr().out
        results = json.loads(printed.strip().splitlines()[-1])
        found = json.loads((output / "results.json").read_text())
        assert {k: v for k, v in found["metrics"].items() if k != "setting"} == results
        assert not list(output.glob("setting_*")) and not list(output.glob("epoch*"))
        keras.models.load_model(output / "model.keras")
        return results, printed, output

    return run_task


def flags_of(name, *arguments):
    """Returns the flags of a task."""
    return options.parse(name, "", train.groups(RECIPES[name]), [*arguments])


def write(path, rows, separator="\t"):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else separator.join(map(str, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", RECIPES)
def test_every_task_says_how_to_run_it_and_what_its_flags_mean(name, capsys):
    for flag in ("-h", "--help"):
        with pytest.raises(SystemExit) as stopped:
            train.main([name, flag])
        assert not stopped.value.code
        printed = capsys.readouterr().out
        assert f"bert-keras train {name}" in printed
        for title, rows in train.groups(RECIPES[name]).items():
            assert f"{title}:" in printed
            assert all(row.name in printed and len(row.help) > 10 for row in rows)
    train.main(["-h"])
    assert name in capsys.readouterr().out


def test_a_flag_of_another_task_is_refused():
    with pytest.raises(flags.UnrecognizedFlagError, match="crf"):
        train.main(["text_classification", "--crf"])
    with pytest.raises(ValueError, match=r"one of text_classification.*Received: 'tagging'"):
        train.main(["tagging"])
    with pytest.raises(ValueError, match=r"flags alone.*wnut17"):
        train.main(["token_classification", "wnut17"])


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
    flags_of_files = [f"--train_file={train}", f"--dev_file={dev}", "--dataset=goemotions"]
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


def test_text_classification_draws_what_the_model_looks_at(run, yes_and_no):
    arguments = [f"--train_file={yes_and_no}", f"--dev_file={yes_and_no}", "--baselines"]
    results, printed, output = run("text_classification", *arguments, "--pictures")
    assert {"accuracy", "frozen_accuracy", "majority_accuracy"} <= set(results)
    names = ["attention_heads", "attention_layers", "confusion_matrix", "learning_curves_0_seed_0"]
    names += ["projection", "saliency"]
    assert sorted(path.stem for path in output.glob("*.png")) == names
    assert all(f"{name}.png" in printed for name in names)


def test_text_classification_scores_pairs_in_numbered_columns(run, tmp_path):
    rows = [(i / 4, f"text {LETTERS[i]}", f"word {LETTERS[-i]}") for i in range(12)]
    data = write(tmp_path / "pairs.tsv", rows)
    arguments = [f"--train_file={data}", f"--dev_file={data}", f"--test_file={data}"]
    arguments += ["--text_column=-2", "--pair_column=2", "--label_column=0"]
    arguments += ["--problem_type=regression", "--pictures"]
    results, _, output = run("text_classification", *arguments)
    assert set(results) == {"pearson", "spearman", "test_pearson", "test_spearman"}
    assert results["test_pearson"] == pytest.approx(results["pearson"])
    assert len((output / "test_predictions.jsonl").read_text().splitlines()) == 12
    assert {"projection.png", "saliency.png"} <= {path.name for path in output.iterdir()}


def test_text_classification_without_a_training_file_splits_the_dev_file(run, tmp_path):
    labels = ("contradiction", "entailment", "neutral")
    rows = [(f"text {LETTERS[i]}", f"word {LETTERS[i]}", labels[i % 3]) for i in range(15)]
    for name in ("matched", "mismatched"):
        header = ("sentence1", "sentence2", "gold_label")
        write(tmp_path / "mnli" / f"dev_{name}.tsv", [header, *rows])
    arguments = [f"--data_dir={tmp_path / 'mnli'}", "--epochs=0", "--pictures"]
    results, printed, output = run("text_classification", *arguments)
    assert "12 examples to train on, 3 to measure on" in printed
    assert {"accuracy", "mismatched_accuracy"} <= set(results)
    assert (output / "confusion_matrix.png").exists()


def test_a_grid_tries_every_setting_once_and_goes_on_where_it_stopped(run, yes_and_no, monkeypatch):
    arguments = [f"--train_file={yes_and_no}", f"--dev_file={yes_and_no}", "--epochs=2"]
    arguments += ["--batch_size=6,12", "--learning_rate=0.01", "--seeds=2"]
    expected, printed, output = run("text_classification", *arguments, "--pictures")
    assert printed.count("Trains with the seed") == 4 and "too high for a result" in printed
    assert {"seeds.png", "settings.png"} <= {path.name for path in output.iterdir()}
    whole = json.loads((output / "results.json").read_text())
    best, *others = sorted(
        (
            np.mean([t["scores"]["accuracy"] for t in whole["trials"] if t["setting"] == setting])
            for setting in ({"epochs": 2, "batch_size": n, "learning_rate": 0.01} for n in (6, 12))
        ),
        reverse=True,
    )
    assert whole["metrics"]["accuracy"] == pytest.approx(best) and len(others) == 1
    model = keras.models.load_model(output / "model.keras")
    rows = [line.split("\t") for line in yes_and_no.read_text().splitlines()[1:]]
    chosen = [answer["label"] for answer in model.classify([text for text, _ in rows])]
    right = np.mean([a == label for a, (_, label) in zip(chosen, rows, strict=True)])
    of_best = [t for t in whole["trials"] if t["setting"] == whole["metrics"]["setting"]]
    assert right == pytest.approx(max(t["scores"]["accuracy"] for t in of_best))

    # Killed after an epoch of the second trial, where the state is on the disk.
    epochs = iter(range(9))

    def killed_later(self, epoch, logs=None):
        on_epoch_end(self, epoch, logs)
        if next(epochs) == 2:
            raise KeyboardInterrupt

    on_epoch_end = run_folder.EachEpoch.on_epoch_end
    with monkeypatch.context() as patch:
        patch.setattr(run_folder.EachEpoch, "on_epoch_end", killed_later)
        with pytest.raises(KeyboardInterrupt):
            run("text_classification", *arguments)
    assert (output / "epoch.json").exists()
    results, printed, _ = run("text_classification", *arguments, "--resume")
    assert "1 trials were done before" in printed and "Goes on after epoch 1" in printed
    assert results == expected
    again = json.loads((output / "results.json").read_text())
    assert again["trials"] == whole["trials"]
    results, printed, _ = run("text_classification", *arguments, "--resume")
    assert results == expected and "Trains with" not in printed
    # More seeds go on with those that are done; other settings and other data do not.
    _, printed, _ = run("text_classification", *arguments, "--resume", "--seeds=3")
    assert printed.count("Trains with the seed 2") == printed.count("Trains with") == 2
    with pytest.raises(ValueError, match=r"has other: label_smoothing\. Give the same"):
        run("text_classification", *arguments, "--resume", "--label_smoothing=0.1")
    write(yes_and_no, [*yes_and_no.read_text().splitlines(), ("another", 1)])
    with pytest.raises(ValueError, match=r"has other: examples\. Give the same"):
        run("text_classification", *arguments, "--resume")


def test_a_run_has_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = (run_folder.RunFolder(None, "task", {}) for _ in range(2))
    assert [str(run.path) for run in (first, second)] == ["output/task-1", "output/task-2"]
    with pytest.raises(ValueError, match=r"task-1 holds a run\. --resume goes on"):
        run_folder.RunFolder("output/task-1", "task", {})
    with pytest.raises(ValueError, match="--resume needs the --output_dir"):
        run_folder.RunFolder(None, "task", {}, resume=True)
    with pytest.raises(ValueError, match="holds none"):
        run_folder.RunFolder(tmp_path / "new", "task", {}, resume=True)


@pytest.mark.parametrize(
    "argument", ["--batch_size=1,x", "--batch_size=0", "--epochs=", "--learning_rate=1e-5,1e-5"]
)
def test_lists_that_are_no_numbers_are_refused(argument):
    with pytest.raises(flags.IllegalFlagValueError):
        flags_of("text_classification", argument)


@pytest.mark.parametrize("place", ["a file", "in a file"])
def test_a_folder_that_cannot_be_made_is_refused_before_training(yes_and_no, monkeypatch, place):
    monkeypatch.setattr(bert_keras.TextClassifier, "from_preset", None)
    files = [f"--train_file={yes_and_no}", f"--dev_file={yes_and_no}"]
    folder = yes_and_no if place == "a file" else yes_and_no / "folder"
    with pytest.raises(ValueError, match="--output_dir must be a folder"):
        train.main(["text_classification", *files, f"--output_dir={folder}"])


def test_columns_without_a_file_are_refused(yes_and_no):
    arguments = [f"--train_file={yes_and_no}", "--dataset=sst2", "--label_column=stars"]
    with pytest.raises(ValueError, match="--label_column is for files of your own"):
        train.main(["text_classification", *arguments])


def test_a_dev_set_that_cannot_be_halved_tunes_no_thresholds(run, tmp_path):
    rows = [(f"text {i}", ("joy", "pride")[i % 2]) for i in range(8)]
    train = write(tmp_path / "train.tsv", [("text", "label"), *rows])
    dev = write(tmp_path / "dev.tsv", [("text", "label"), rows[0]])
    arguments = [f"--train_file={train}", f"--dev_file={dev}", "--problem_type=multi_label"]
    results, printed, _ = run("text_classification", *arguments)
    assert set(results) == {"macro_f1", "micro_f1"} and "No thresholds are tuned" in printed


def test_what_is_not_defined_is_null_and_never_the_best(tmp_path):
    class Model:
        def compile(self):
            pass

        def save(self, path):
            path.write_text("saved")

    run = run_folder.RunFolder(tmp_path / "run", "task", {})
    values = [float("nan"), -0.5, float("nan")]
    kept = [
        run.add(0, {"setting": {}, "seed": seed}, {"pearson": value}, Model())
        for seed, value in enumerate(values)
    ]
    assert kept == [False, True, False] or kept == [True, True, False]
    assert json.loads((run.path / "results.json").read_text())["trials"][0]["scores"] == {
        "pearson": None
    }
    assert run.over_seeds(run.trials) == {"pearson": None}
    assert run.over_seeds([{"scores": {"f1": 0.1}}]) == {"f1": 0.1}
    assert run.over_seeds([{"scores": {"f1": x}} for x in (0.1, 0.3)]) == {
        "f1": pytest.approx(0.2),
        "f1_std": pytest.approx(0.02**0.5),
    }


@pytest.fixture
def reviews(tmp_path):
    for part in ("train", "test"):
        for label in ("pos", "neg"):
            for number in range(10):
                text = f"{label} review {number} of {part} " * (1 + number)
                write(tmp_path / "aclImdb" / part / label / f"{number}_5.txt", [text])
    return tmp_path / "aclImdb"


def test_long_text_classification_makes_a_table_of_its_strategies(run, reviews):
    names = ["head_tail", "max", "self_attention"]
    arguments = [f"--data_dir={reviews}", f"--strategy={','.join(names)}", "--max_length=16"]
    arguments += ["--sample=12"]
    results, printed, output = run("long_text_classification", *arguments, "--stride=10")
    found = json.loads((output / "results.json").read_text())
    scores = {t["setting"]["strategy"]: t["scores"]["accuracy"] for t in found["trials"]}
    assert set(scores) == set(names)
    assert scores[found["metrics"]["setting"]["strategy"]] == max(scores.values())
    assert "test_accuracy" in results
    assert "--sample cut the test set from 20 to 12" in printed
    assert all(f"strategy {name})" in printed for name in names)


def test_long_text_classification_predicts_a_file_without_labels(run, tmp_path):
    rows = [(f"some text {i} " * 9, "yes" if i % 2 else "no") for i in range(20)]
    train = write(tmp_path / "train.tsv", [("document", "answer"), *rows])
    test = write(tmp_path / "test.tsv", ["document", *(text for text, _ in rows[:3])])
    columns = ["--text_column=document", "--label_column=answer"]
    arguments = [f"--train_file={train}", f"--test_file={test}", "--strategy=mean", *columns]
    arguments += ["--max_length=16", "--pictures"]
    results, _, output = run("long_text_classification", *arguments)
    names = {"learning_curves_0_seed_0.png", "confusion_matrix.png"}
    assert {path.name for path in output.glob("*.png")} == names
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
    results, _, output = run("text_embedding", data, "--seeds=2", "--pictures")
    measured = {f"{name}{part}" for part in ("", "_std") for name in names}
    assert set(results) == measured | {f"{p}_{n}" for p in ("test", "untrained") for n in names}
    drawn = ("seeds", "learning_curves_0_seed_0", "learning_curves_0_seed_1", "similarities")
    assert {path.stem for path in output.glob("*.png")} == {*drawn}


def test_text_embedding_knows_which_of_rte_s_pairs_are_alike(tmp_path):
    rows = [("index", "sentence1", "sentence2", "label"), (0, "a", "b", "entailment")]
    write(tmp_path / "RTE" / "dev.tsv", [*rows, (1, "a", "c", "not_entailment")])
    write(tmp_path / "RTE" / "train.tsv", [*rows, (1, "a", "c", "not_entailment")])
    pairs = likeness.read_pairs(flags_of("text_embedding", f"--data_dir={tmp_path / 'RTE'}")).dev
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


def test_pairs_that_equal_texts_connect_are_one_group():
    groups_of = likeness.groups_of
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
    assert "6 examples to train on, 8 to measure on" in printed
    lines = (output / "test_predictions.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines[:5]] == ["Anna", "lives", "in", "Rome", "."]


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
def test_a_mistyped_tag_is_refused_by_file_and_line_before_training(
    tmp_path, rows, arguments, message
):
    file = write(tmp_path / "train.txt", rows)
    with pytest.raises(ValueError, match=message):
        train.main(["token_classification", f"--train_file={file}", *arguments])
    with pytest.raises(flags.IllegalFlagValueError, match="BMES"):
        train.main(["token_classification", "--scheme=IOB3"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data_dir=nowhere"], "--data_dir names 'nowhere', which is not there"),
        (["--data_dir="], "--data_dir names '', which is not there"),
        (["--train_file=no.tsv"], "--train_file names 'no.tsv', which is not there"),
        (["--data_dir=.", "--dev_file=FILE"], "--dev_file would not be read"),
        (["--dev_file=FILE"], "Pass --data_dir, or --train_file"),
        ([], "Pass --data_dir, or --train_file"),
        (["--data_dir=.", "--train_file=FILE"], "--train_file would not be read"),
    ],
)
def test_paths_that_are_not_there_or_not_read_are_refused(arguments, message):
    arguments = [argument.replace("FILE", __file__) for argument in arguments]
    with pytest.raises(ValueError, match=message):
        train.main(["text_classification", *arguments])


def test_a_text_is_not_taken_for_a_word_or_a_tag(tmp_path):
    rows = [f"a{i}\tthis is text {i}" for i in range(200)]
    file = write(tmp_path / "train.tsv", rows)
    with pytest.raises(ValueError, match=r"train.tsv must hold words.*200 different tags"):
        train.main(["token_classification", f"--train_file={file}"])
    rows = ["sentence\tlabel", *(f"this is text {i} .\t{i % 2}" for i in range(9))]
    write(tmp_path / "sst2" / "train.tsv", rows)
    with pytest.raises(ValueError, match=r"train.tsv must hold a word and its tag a line"):
        train.main(["token_classification", f"--data_dir={tmp_path / 'sst2'}"])


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
    assert "10 examples to train on, 2 to measure on" in printed and "as cmrc" in printed
    assert "1 of 3 test questions have no answer that cmrc can measure" in printed
    assert set(json.loads((output / "test_predictions.json").read_text())) == {"0", "1", "2"}


def test_question_answering_measures_what_has_answers(capsys):
    answer = bert_keras.datasets.squad.Answer("anna", 0)
    rows = [((answer,), False), ((), True), ((), False)]
    told, impossible, not_told = (
        bert_keras.datasets.QuestionExample(str(i), "who?", "anna lives", *row)
        for i, row in enumerate(rows)
    )
    examples = [told, impossible, not_told]
    assert data.answered("squad_v1", examples) == [told]
    assert data.answered("squad_v2", examples) == [told, impossible]

    found = [NBest([Span("anna", 0, 4, 0.9, 0.0, 0.0)], None, score) for score in (-2.0, 2.0, 0.0)]
    qa = bert_keras.QuestionAnswering(bert_keras.BertBackbone(9, 1, 1, 4, 4))
    score = scores.question_scores
    assert score(qa, "squad_v1", examples, found) == {"f1": 100, "exact_match": 100}
    both = score(qa, "squad_v2", examples, found, tune=True)
    assert both["f1"] == both["NoAns_exact"] == 100
    assert qa.no_answer_threshold == both["no_answer_threshold"] == -2.0
    qa.no_answer_threshold = None
    only = score(qa, "squad_v2", [told, not_told], found[::2], tune=True)
    assert only == {"f1": 100, "exact": 100, "HasAns_f1": 100, "HasAns_exact": 100}
    assert "Only questions with an answer" in capsys.readouterr().out
    assert score(qa, "squad_v1", [impossible], found[:1]) == {}


def test_a_sample_has_both_kinds_of_questions():
    for num_impossible in (0, 1, 20, 39, 40):
        examples = [
            bert_keras.datasets.QuestionExample(str(i), "q", "c", (), i < num_impossible)
            for i in range(40)
        ]
        for seed in range(3):
            sample = data.sampled(examples, 10, seed)
            assert len({example.id for example in sample}) == 10
            count = sum(example.is_impossible for example in sample)
            assert count == {0: 0, 1: 1, 20: 5, 39: 9, 40: 10}[num_impossible]


def test_question_answering_names_a_question_without_tokens_before_it_trains(
    preset, tmp_path, monkeypatch
):
    rows = [("who?", "anna"), ("\u200b", "anna")]
    file = write_questions(tmp_path / "questions.json", "anna lives in rome", *rows)
    monkeypatch.setattr(bert_keras.QuestionAnswering, "fit", None)
    files = [f"--train_file={file}", f"--dev_file={file}", f"--preset={preset}"]
    with pytest.raises(ValueError, match=r"question needs a token.*index 1"):
        output = f"--output_dir={tmp_path / 'run'}"
        train.main(["question_answering", *files, "--max_length=32", output])


def test_question_answering_writes_the_answers_of_the_model_that_it_saves(
    run, tmp_path, monkeypatch
):
    files = write_squad(tmp_path, version=1)
    found = iter([{"f1": 2.0}, {"f1": 1.0}])  # the first of two seeds is the best
    monkeypatch.setattr(scores, "question_scores", lambda *args: next(found))
    arguments = [f"--train_file={files[0]}", f"--dev_file={files[1]}", "--max_length=32"]
    arguments += ["--epochs=0", "--seeds=2", "--sample=4"]
    _, printed, output = run("question_answering", *arguments)
    assert "--sample cut the dev set from 6 to 4" in printed
    found = json.loads((output / "nbest_predictions.json").read_text())
    assert len(found) == 4
    model = keras.models.load_model(output / "model.keras")
    best = model.n_best((["who lives in rome?"], ["anna lives in rome."]))[0]
    for spans in found.values():
        assert [span["text"] for span in spans] == [span.text for span in best.spans]
        assert spans[0]["probability"] == pytest.approx(best.spans[0].probability, rel=1e-4)


@pytest.mark.parametrize("name", ["multiple_choice", "question_answering", "token_classification"])
def test_a_file_for_a_folder_is_refused(name, yes_and_no):
    with pytest.raises(ValueError, match=r"is none\. Pass a file by --train_file"):
        train.main([name, f"--data_dir={yes_and_no}"])


def test_question_answering_names_what_cannot_be_split_or_learned(tmp_path):
    file, _ = write_squad(tmp_path, version=1)
    with pytest.raises(
        ValueError, match=r"two contexts or more .* 6 questions on 1\. .*--dev_file"
    ):
        train.main(["question_answering", f"--train_file={file}"])
    wrong = tmp_path / "wrong.json"
    wrong.write_text(file.read_text().replace('"answer_start": 0', '"answer_start": 1'))
    with pytest.raises(ValueError, match="None of the 6 answers to train on stands"):
        train.main(["question_answering", f"--train_file={wrong}", f"--dev_file={file}"])


def test_the_official_score_goes_by_the_file_and_is_told(tmp_path, capsys):
    context = "安娜住在羅馬，她喜歡羅馬的冬天"
    for name, metric in (("xquad.zh.json", "squad_v1"), ("cmrc2018_dev.json", "cmrc")):
        rows = [("誰住在羅馬?", "安娜"), ("哪裡?", "羅馬")] * 3
        file = write_questions(tmp_path / name, context, *rows)
        given = [f"--train_file={file}", f"--dev_file={file}"]
        found = data.read_questions(flags_of("question_answering", *given))
        assert found.further["metric"] == metric
        assert f"Scored as {metric}; --metric chooses" in capsys.readouterr().out
        asked = flags_of("question_answering", *given, "--metric=squad_v1")
        assert data.read_questions(asked).further["metric"] == "squad_v1"


def test_text_embedding_refuses_sets_without_likeness(tmp_path):
    for task in ("mnli", "sst2"):
        with pytest.raises(ValueError, match="no pairs that are like or unlike"):
            train.main(["text_embedding", f"--data_dir={tmp_path}", f"--dataset={task}"])


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
def test_files_with_bad_rows_are_refused_by_name_and_row(tmp_path, name, rows, arguments, message):
    path = write(tmp_path / "data.tsv", ["text\tlabel", *rows])
    with pytest.raises(ValueError, match=message):
        train.main([name, f"--train_file={path}", f"--dev_file={path}", *arguments])


@pytest.mark.parametrize("name", ["text_classification", "multiple_choice", "question_answering"])
def test_a_dev_set_without_labels_is_refused_before_training(tmp_path, name):
    choices = {"sent1": "a", "sent2": "b", **{f"ending{number}": "c" for number in range(4)}}
    question = {"id": "1", "question": "why?", "answers": [{"text": "a", "answer_start": 0}]}

    def squad(answers):
        asked = [{**question, "answers": answers}]
        return json.dumps({"data": [{"paragraphs": [{"context": "a b", "qas": asked}]}]})

    rows, dev, arguments = {
        "text_classification": (["sentence\tlabel", "a\t1"], ["sentence", "a"], ["--dataset=sst2"]),
        "multiple_choice": ([json.dumps({**choices, "label": 1})], [json.dumps(choices)], []),
        "question_answering": ([squad(question["answers"])], [squad([])], []),
    }[name]
    suffix = ".tsv" if name == "text_classification" else ".jsonl"
    files = [
        f"--{part}_file={write(tmp_path / (part + suffix), lines)}"
        for part, lines in (("train", rows), ("dev", dev))
    ]
    with pytest.raises(ValueError, match="The dev examples must have"):
        train.main([name, *files, *arguments])


@pytest.mark.parametrize("suffix", ["json", "jsonl", "parquet", "semicolon.csv"])
def test_files_as_people_have_them(run, tmp_path, suffix):
    import pandas

    rows = [{"id": i, "review": f"some; text {i}", "good": bool(i % 2)} for i in range(12)]
    path, table = tmp_path / f"reviews.{suffix}", pandas.DataFrame(rows)
    if suffix == "parquet":
        table.to_parquet(path)
    elif suffix.endswith("csv"):
        table.to_csv(path, sep=";", index=False)
    else:
        table.to_json(path, orient="records", lines=suffix == "jsonl")
    columns = ["--text_column=review", "--label_column=good"]
    arguments = [f"--train_file={path}", f"--dev_file={path}", *columns]
    _, _, output = run("text_classification", *arguments)
    names = keras.models.load_model(output / "model.keras").label_names
    assert sorted(name.lower() for name in names) == ["false", "true"]
    with pytest.raises(
        ValueError, match=r"no column 'text'.*\['id', 'review', 'good'\].*text_column"
    ):
        train.main(["text_classification", f"--train_file={path}"])


def test_a_mistake_is_one_line(yes_and_no, capsys):
    for arguments, told in (
        (["text_classification", "--nothing"], "nothing"),
        (
            ["text_classification", f"--train_file={yes_and_no}", "--label_column=x"],
            "no column 'x'",
        ),
    ):
        with pytest.raises(SystemExit) as stopped:
            mistakes.run_alone(train.main, ["bert-keras", "train", *arguments])
        (line,) = capsys.readouterr().err.splitlines()
        assert stopped.value.code == 2 and line.startswith("bert-keras train: ") and told in line


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
    *_, output = run("text_classification", preset, *files, "--pictures", "--max_length=40")
    assert {"attention_layers.png", "saliency.png", "projection.png"} <= {
        path.name for path in output.iterdir()
    }
    train = write(tmp_path / "tags.txt", ["a O", "text B-X", "exact I-X", ""] * 4)
    files = [f"--train_file={train}", f"--dev_file={train}", "--max_length=12"]
    run("token_classification", preset, *files)
    files = write_squad(tmp_path, 2)
    run(
        "question_answering", preset, f"--train_file={files[0]}", f"--dev_file={files[1]}",
        "--max_length=36",
    )  # fmt: skip
