"""Fine-tune on a data set, measure, save and predict, in a run folder.

    bert-keras train TASK --data_dir FOLDER
    bert-keras train TASK --train_file FILE --dev_file FILE --output_dir my_run
    bert-keras train TASK ... --batch_size 16,32 --learning_rate 5e-5,3e-5 --epochs 2,3,4

Several values of a flag make a table of all combinations, and several seeds give their mean and
spread. The run folder holds the best model as model.keras, its card README.md, results.json,
scores_by_class.json, the predictions for the dev and the test set, the wrong dev examples as
wrong_dev.csv, and pictures. After a kill the same command with --resume
continues. `bert-keras compare` shows several runs side by side. The environment variable
KERAS_BACKEND selects the backend.
"""

import dataclasses
import functools
import hashlib
import importlib.util
import itertools
import json
import sys
import warnings

import keras
import numpy as np

from bert_keras import datasets, metrics, plots
from bert_keras.checks import require
from bert_keras.cli import devices, example_files
from bert_keras.cli.baseline import defined
from bert_keras.cli.kinds import LENGTH, TASKS
from bert_keras.cli.measures import frozen_scores
from bert_keras.cli.options import TRACEBACK, Option, parse
from bert_keras.cli.run_folder import EachEpoch, RunFolder
from bert_keras.cli.text_rows import in_a_cell
from bert_keras.engine.atomic_files import write_json, write_text
from bert_keras.engine.keras_internals import schedule_of
from bert_keras.engine.malloc import keep_freed_memory
from bert_keras.engine.train_step import inner_optimizer
from bert_keras.models.backbone import Backbone
from bert_keras.presets.assign import NewHead
from bert_keras.presets.model_card import write_card
from bert_keras.presets.presets import open_preset
from bert_keras.training.callbacks import BestOnMetric

SAMPLE = (
    "Train on this many examples, drawn by --seed. Other sets stay whole, except long texts and "
    "questions, which take hours to measure."
)
FILES = (
    Option("data_dir", str, None, "Folder with the dataset's original files."),
    Option("train_file", str, None, "File to train on, instead of --data_dir."),
    Option("dev_file", str, None, "File to measure on; without it, a part of --train_file."),
    Option("test_file", str, None, "File to predict, and to measure on if it has labels."),
    Option("sample", int, None, SAMPLE, 1),
)
BUCKET_WINDOW = (
    "Batches that are sorted by length together, which saves padding; 1 keeps them random. By "
    "default a quarter of an epoch, at least 4 and at most 100."
)
EPOCHS = "Passes over the training set. By default 3, and more for few examples."
RATE = "Peak after 10 % warm-up. By default 5e-5, and more for few steps."
# Epochs without a better score after which `--early_stopping` stops.
PATIENCE = 2
EARLY_STOPPING = (
    f"Stop after {PATIENCE} epochs without a better score on dev, and keep the best weights."
)
TRAINING = (
    Option("epochs", [int], None, EPOCHS, 0),
    Option("batch_size", [int], [32], "Examples in a step.", 1),
    Option("learning_rate", [float], None, RATE, 0.0),
    Option("class_weight", ("balanced",), None, "Weight rare classes more, for unequal classes."),
    Option("early_stopping", bool, False, EARLY_STOPPING),
    Option("seed", int, 0, "Seed of the weights, the dropout and the order of examples."),
    Option("seeds", int, 1, "Number of runs, with seeds from --seed; the best one is saved.", 1),
    Option("bucket_window", int, None, BUCKET_WINDOW, 1),
    Option("devices", int, None, devices.ABOUT, 1),
)
DTYPES = ("float32", "mixed_bfloat16", "mixed_float16")
MODEL = (
    Option("preset", str, "minilm_l6_en_uncased", "Registered name, folder or hf:// address."),
    LENGTH,
    Option("dtype", DTYPES, "float32", "The mixed dtypes are for GPUs and CPUs that support them."),
)
HAS_PLOTS = importlib.util.find_spec("matplotlib") is not None
OUTPUT = (
    Option("output_dir", str, None, "Folder of the run; by default a new one, output/TASK-1."),
    Option("resume", bool, False, "Continue the run in --output_dir after a kill."),
    Option("overwrite", bool, False, "Replace another run in --output_dir."),
    Option("pictures", bool, HAS_PLOTS, "Draw pictures, by default if matplotlib is installed."),
    TRACEBACK,
)
GRID = ("epochs", "batch_size", "learning_rate")
# The flags that may differ when a run continues: paths, and what does not change the scores.
NOT_SETTINGS = (
    *("data_dir", "train_file", "dev_file", "test_file", "pictures"),
    *("output_dir", "resume", "overwrite", "traceback", "seeds", "devices"),
)


def main(arguments):
    """Runs the command with the arguments after `train`."""
    name = "".join(arguments[:1])
    if name in ("-h", "--help", ""):
        print("bert-keras train TASK; `train TASK -h` lists the flags of a task. Tasks:")
        print(*(f"    {key:26}{kind.about()}" for key, kind in TASKS.items()), sep="\n")
        return
    if name not in TASKS:
        raise ValueError(f"A task must be one of {', '.join(TASKS)}. Received: {name!r}.")
    kind = TASKS[name]
    about = f"{kind.about()}\n\n{(__doc__ or '').replace('TASK', name)}"
    flags, _ = parse(f"train {name}", about, groups(kind), arguments[1:])
    keep_freed_memory()
    warnings.simplefilter("ignore", NewHead)  # It is about to be trained.
    devices.share(flags.devices, ["train", *arguments])
    check_can_measure()
    if flags.pictures:
        require("matplotlib", "draw pictures", extra="plots")
    train(kind, flags)


def groups(kind):
    """Returns the options of a kind of examples, by title."""
    return {
        "Data": (*FILES, *kind.data),
        "Model": tuple({option.name: option for option in (*MODEL, *kind.model)}.values()),
        "Training": (*TRAINING, *kind.training),
        "Output": OUTPUT,
    }


def train(kind, flags):
    """Reads the data, trains each setting with each seed, and writes the run folder."""
    example_files.check_paths(flags)
    example_files.find_dataset(kind, flags)
    splits = kind.read(flags)
    for name in ("train", "dev"):
        example_files.check_labelled(f"The {name} examples", getattr(splits, name))
    splits = _sampled(kind, flags, splits)
    names = splits.settings.get("label_names")
    labels = f"; labels: {names}" if names else ""
    print(f"{len(splits.train)} examples to train on, {len(splits.dev)} to measure on{labels}.")
    source = open_preset(flags.preset)  # A wrong one is refused before a folder is made.
    if flags.max_length and not flags["max_length"].present:
        cls = source.registered_class(source.backbone_name, Backbone)
        flags.max_length = min(flags.max_length, source.num_positions(cls) or flags.max_length)
    settings = {key: flags[key].value for key in flags if key not in NOT_SETTINGS}
    settings |= {
        "task": kind.name,
        "backend": keras.backend.backend(),
        "examples": _digest(splits.train, splits.dev),
        "classes": splits.classes,
    }
    run = RunFolder(flags.output_dir, kind.name, settings, flags.resume, flags.overwrite)
    for number, setting in enumerate(combinations(flags)):
        for seed in range(flags.seed, flags.seed + flags.seeds):
            if not run.is_done(setting, seed):
                _run_trial(kind, flags, splits, run, number, setting, seed)
        run.settle(number, setting)
    _show_trials(run)
    finish(kind, flags, splits, run)


def combinations(flags):
    """Yields each combination of the values of flags that accept several, as a dict by flag."""
    names = [name for name in GRID if flags[name].value is not None]
    for values in itertools.product(*(flags[name].value for name in names)):
        yield dict(zip(names, values, strict=True))


def make_model(kind, flags, splits, **changes):
    """Returns a new model for the training examples; `changes` are arguments in place of flags."""
    names = ["max_length", "dtype", *(option.name for option in kind.model)]
    options = {n: flags[n].value for n in names if flags[n].value is not None}
    options |= splits.settings | changes
    return kind.model_class.from_preset(flags.preset, **options)


def _run_trial(kind, flags, splits, run, number, setting, seed):
    """Trains with a seed, measures, and keeps model and scores in the run's folder."""
    print(f"Training with seed {seed}, {_in_words(setting)}.", flush=True)
    keras.utils.set_random_seed(seed)
    model, num_epochs, history = run.last_epoch(setting, seed)
    if model is None:
        model = make_model(kind, flags, splits)
        if not run.trials and model.tokenizer.unknown_token is not None:
            _warn_of_unknown_tokens(flags, model.tokenizer, splits.train)
        model.compile(learning_rate=setting.get("learning_rate"), **kind.compile_options(flags))
    trial = {"setting": setting, "seed": seed}
    each_epoch, epochs = EachEpoch(run, trial, history), setting.get("epochs")
    if epochs != 0:
        model.fit(
            **kind.fit_options(flags, splits),
            batch_size=setting["batch_size"],
            epochs=epochs,
            initial_epoch=num_epochs,
            verbose="auto" if sys.stdout.isatty() else 2,
            bucket_window=flags.bucket_window,
            callbacks=[*_measuring(kind, flags, splits, run), each_epoch],
            class_weight=flags.class_weight,
        )
    scores = kind.measure(model, splits.dev, tune=True).scores
    print(_in_words(scores), flush=True)
    if epochs != 0:
        rate = schedule_of(inner_optimizer(model)).peak_learning_rate
        trial["chosen"] = {"epochs": each_epoch.params["epochs"], "learning_rate": rate}
    run.add(number, trial, scores, model)
    if flags.pictures and epochs != 0:
        path = run.path / f"learning_curves_{number}_seed_{seed}.png"
        plots.learning_curves(each_epoch.history, path=path)


def _measuring(kind, flags, splits, run):
    """Returns the callback of `--early_stopping`, which measures each epoch."""
    if not flags.early_stopping:
        return []

    def measure(model):
        run.begin()  # Before the file of the best weights is written.
        scores = kind.measure(model, splits.dev, tune=True).scores
        return {"main_score": next(iter(scores.values())), **scores}

    path = run.path / "epoch_best.keras"
    return [BestOnMetric(measure, "main_score", patience=PATIENCE, path=path, verbose=True)]


def finish(kind, flags, splits, run):
    """Loads the best model, measures the test set, and writes the results."""
    model = keras.saving.load_model(run.path / "model.keras")
    setting, trials = run.ranked()[0]
    results = run.over_seeds(trials)
    if len(trials) > 1:
        best = f"The best of {len(trials)} seeds is {trials[0]['seed']}"
        print(f"{best}. The saved model, the scores by class and the files of answers are its own.")
    verdict = kind.verdict(results, splits.dev).report()
    if "baselines" in flags and flags.baselines:
        make = functools.partial(make_model, kind, flags, splits)
        frozen = frozen_scores(flags, splits, make)
        print(_in_words(frozen))
        results |= frozen
    sets = {prefix: x for prefix, x in (("", splits.dev), ("test_", splits.test)) if x}
    measured = {prefix: kind.measure(model, examples) for prefix, examples in sets.items()}
    if "test_" in measured:
        results |= {f"test_{name}": x for name, x in measured["test_"].scores.items()}
    show_classes(measured[""], run.path / "scores_by_class.json")
    if getattr(splits.dev, "problem_type", None) == "multi_label":
        thresholds, tuned = _tune_thresholds(kind, model, sets, measured)
        results |= tuned
        if thresholds is not None:
            write_json(run.path / "thresholds.json", thresholds)
            for prefix, x in sets.items():
                options = {"thresholds": thresholds, "answers": measured[prefix].answers}
                measured[prefix] = kind.measure(model, x, **options)
    for prefix, found in measured.items():
        for name, text in found.files.items():
            write_text(run.path / f"{prefix}{name}", text)
    _write_wrong(model, splits.dev, measured[""], run.path / "wrong_dev.csv")
    if flags.pictures:
        if measured[""].picture is not None:
            name, draw, columns = measured[""].picture
            draw(*columns, path=run.path / f"{name}.png")
        print(f"Drew {', '.join(sorted(path.name for path in run.path.glob('*.png')))}.")
    results = defined(results)
    chosen = {"setting": setting} if len(run.ranked()) > 1 else {}
    run.write(metrics={**results, **chosen}, verdict=verdict)
    _write_card(kind, flags, model, run, results)
    print(json.dumps(results, allow_nan=False), flush=True)


def _tune_thresholds(kind, model, sets, measured):
    """Returns thresholds tuned on dev, a dict by label, and the scores of other examples.

    The other examples, scored with 0.5 and with the thresholds, are the labelled test set, or
    without one half of the dev set. A dev set without two halves of different texts gives `None`.
    """
    dev, dev_answers, name = sets[""], measured[""].answers, "test"
    if measured.get(name + "_") and measured[name + "_"].scores:
        test, test_answers = sets["test_"], measured["test_"].answers
    else:
        name = "dev_half"
        try:
            halves = datasets.split_indices(dev.texts, len(dev) // 2)
        except ValueError:
            print("No thresholds are tuned: dev has too few different texts for two halves.")
            return None, {}
        test_answers, dev_answers = ([dev_answers[i] for i in half] for half in halves[::-1])
        dev, test = map(dev.take, halves)
    probabilities = [[*answer["probabilities"].values()] for answer in dev_answers]
    thresholds = metrics.tune_thresholds(dev.labels, probabilities).tolist()
    thresholds = dict(zip(dev.label_names, thresholds, strict=True))
    scores = {}
    for prefix, least in ((name, None), (f"{name}_tuned", thresholds)):
        found = kind.measure(model, test, thresholds=least, answers=test_answers).scores
        scores |= {f"{prefix}_{key}": value for key, value in found.items()}
    print(f"Thresholds tuned on {len(dev)} examples, measured on {len(test)} others: {scores}")
    return thresholds, scores


def show_classes(measured, path=None):
    """Prints the scores of each class, and writes them to a file if there is a path."""
    if scores := measured.by_class:
        table = _table([*scores.values()], index=[*scores]).astype({"support": int})
        print(table.to_string(float_format="{:.3f}".format))
        if path is not None:
            write_json(path, scores)


def _write_wrong(model, examples, measured, path):
    """Writes a table of the examples that the model answers wrongly, the surest first."""
    if measured.labels is None:
        return
    columns = example_files.columns_of(examples)
    columns = columns if isinstance(columns, tuple) else (columns,)
    names = [field.name for field in model.answerers[0].fields]
    table = _table({n: [*map(in_a_cell, x)] for n, x in zip(names, columns, strict=False)})
    table["label"], table["predicted"] = zip(*measured.labels, strict=True)
    if measured.answers and "label" in measured.answers[0]:
        table["probability"] = [x["probabilities"][x["label"]] for x in measured.answers]
        table = table.sort_values("probability", ascending=False)
    wrong = table[table["label"] != table["predicted"]]
    wrong.to_csv(path, index=False, errors="backslashreplace")
    print(f"{len(wrong)} of {len(examples)} dev examples are wrong, see {path}.")


def _table(rows, **options):
    return require("pandas", "make a table", "examples").DataFrame(rows, **options)


def _write_card(kind, flags, model, run, results):
    facts = [
        f"Trained by `bert-keras train {kind.name}` from {flags.preset}; results.json has all "
        "settings and scores",
        f"Data: {flags.data_dir or flags.train_file}",
        *(f"{name}: {value}" for name, value in results.items() if value is not None),
    ]
    write_card(run.path, model, run.path, "bert_keras", facts=facts, file="model.keras")


def _show_trials(run):
    """Prints the scores of each setting, the best first, with their spread over seeds."""
    ranked = run.ranked()
    if len(ranked) == 1 == len(run.trials):
        return
    for setting, trials in ranked:
        print(f"{_in_words(run.over_seeds(trials))}  ({len(trials)} seeds, {_in_words(setting)})")
    if len(ranked) > 1:
        print("The best setting was chosen on the dev set: its score there is too high to report.")


def _in_words(values):
    """Returns names and values in words."""
    pairs = ((name, f"{x:.4g}" if isinstance(x, float) else x) for name, x in values.items())
    return ", ".join(f"{name} {value}" for name, value in pairs)


def check_can_measure():
    """Raises `ImportError` if a package that measures examples is missing."""
    for package in ("pandas", "scipy", "sklearn"):
        require(package, "measure", extra="examples")


def _warn_of_unknown_tokens(flags, tokenizer, examples):
    """Prints a warning if the vocabulary lacks a tenth of the first tokens to train on."""
    column = example_files.texts_of(examples.take(slice(1000)))
    ids, _ = tokenizer.flat_ids(column[0] if isinstance(column, tuple) else column)
    share = np.sum(ids == tokenizer.unknown_token_id) / max(len(ids), 1)
    if share > 0.1:
        print(
            f"Warning: {share:.0%} of the tokens to train on are not in the vocabulary of "
            f"{flags.preset}. Pass a --preset for their language: bert_base_zh for Chinese, "
            "bert_base_multi_cased for many others."
        )


def _sampled(kind, flags, splits):
    """Returns at most `--sample` examples to train on, and for some kinds to measure on."""
    names = ("train", "dev", "test") if kind.cuts_all else ("train",)
    # Each row of --test_file has its line of predictions.
    for name in names[:2] if flags.test_file else names:
        examples = getattr(splits, name)
        if examples and flags.sample is not None and flags.sample < len(examples):
            order = np.random.default_rng(flags.seed).permutation(len(examples))
            splits = splits._replace(**{name: examples.take(order[: flags.sample])})
            print(f"--sample cut the {name} set from {len(examples)} to {flags.sample}.")
    return splits


def _digest(*example_sets):
    """Returns a checksum of the examples to train on and to measure on."""

    def plain(value):
        return value.tolist() if hasattr(value, "tolist") else dataclasses.astuple(value)

    columns = [[getattr(examples, name) for name in examples.columns] for examples in example_sets]
    text = json.dumps(columns, ensure_ascii=True, default=plain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
