"""`bert-keras train TASK`: fine-tune on a data set, measure, save and answer, in a run folder."""

import dataclasses
import hashlib
import importlib.util
import itertools
import json
import logging

import keras

from bert_keras import plots
from bert_keras.cli import devices
from bert_keras.cli import training_files as data
from bert_keras.cli.options import Option, parse
from bert_keras.cli.run_folder import EachEpoch, RunFolder
from bert_keras.cli.tasks import FILES, RECIPES
from bert_keras.engine.atomic_files import write_json, writing
from bert_keras.engine.host_memory import keep_freed_memory

ABOUT = """{about}

    bert-keras train {name} --data_dir FOLDER
    bert-keras train {name} --train_file FILE --dev_file FILE --output_dir my_run
    bert-keras train {name} ... --batch_size 16,32 --learning_rate 5e-5,3e-5 --epochs 2,3,4

Several values of a flag make a table of all combinations, and of several seeds their mean and
spread. The run folder holds model.keras, the best one, results.json, predictions for a test
set, of questions for the dev set too, and with --pictures pictures. The same command with --resume
goes on where a killed run stopped. KERAS_BACKEND chooses the backend.
"""
TRAINING = (
    Option("epochs", int, [3], "Times to go through the training set.", 0, is_list=True),
    Option("batch_size", int, [32], "Examples a step.", 1, is_list=True),
    Option("learning_rate", float, [5e-5], "Peak, after a warm-up of 10 %.", 0.0, is_list=True),
    Option("seed", int, 0, "Seed of the weights, the dropout and the order of examples."),
    Option("seeds", int, 1, "Runs, with seeds from --seed on; the best one is saved.", 1),
    Option(
        "sort_window",
        int,
        None,
        "Batches that are sorted by length together, which saves padding; 1 keeps them random. By "
        "default a twentieth of an epoch, at least 4 and at most 100.",
        1,
    ),
    Option("devices", int, None, devices.ABOUT, 1),
)
MODEL = (
    Option("preset", str, "minilm_l6_en_uncased", "Registered name, folder or hf:// address."),
    Option("max_length", int, 128, "Longest sequence in tokens.", 3),
    Option(
        "dtype",
        ("float32", "mixed_bfloat16", "mixed_float16"),
        "float32",
        "The mixed ones are for hardware that is made for them.",
    ),
)
OUTPUT = (
    Option("output_dir", str, None, "The run's folder; by default a new one, output/TASK-1."),
    Option("resume", bool, False, "Whether a killed run in --output_dir goes on."),
    Option("overwrite", bool, False, "Whether another run in --output_dir is replaced."),
    Option(
        "pictures",
        bool,
        False,
        "Draw into the run's folder (needs matplotlib); measures on dev after each epoch too.",
    ),
    Option("traceback", bool, False, "Whether a mistake shows where in the code it was found."),
)
GRID = ("epochs", "batch_size", "learning_rate", "strategy")
# What may differ when a run goes on: where files lie, and what changes no number.
NOT_SETTINGS = (
    *("data_dir", "train_file", "dev_file", "test_file"),
    *("output_dir", "resume", "overwrite", "traceback", "seeds", "devices"),
)
# A vocabulary that knows less of a text was made from another language or case.
MOST_UNKNOWN = 0.1


def main(arguments):
    """Trains as the arguments after `train` say."""
    name, *rest = [*arguments, ""][: max(1, len(arguments))]
    if name not in RECIPES:
        if name in ("-h", "--help", ""):
            print("bert-keras train TASK; `train TASK -h` has the flags of each. Tasks:")
            print(*(f"    {key:26}{recipe.about}" for key, recipe in RECIPES.items()), sep="\n")
            return
        raise ValueError(f"A task must be one of {', '.join(RECIPES)}. Received: {name!r}.")
    recipe = RECIPES[name]
    given = parse(
        f"train {name}", ABOUT.format(name=name, about=recipe.about), groups(recipe), rest
    )
    keep_freed_memory()  # Where the process did not begin with huge pages.
    # JAX tells of accelerators that are not there in words that look like errors.
    logging.getLogger("jax").setLevel(logging.WARNING)
    devices.share(given.devices, ["train", *arguments])
    train(name, recipe, given)


def groups(recipe):
    """Returns the flags of a task, by title."""
    found = {
        "Data": (*FILES, *recipe.data),
        "Model": (*MODEL, *recipe.model),
        "Training": (*TRAINING, *recipe.training),
        "Output": OUTPUT,
    }
    defaults = recipe.defaults
    return {
        title: [o._replace(default=defaults.get(o.name, o.default)) for o in options]
        for title, options in found.items()
    }


def train(name, recipe, given):
    """Reads, trains each setting with each seed, and writes the run folder."""
    _check_installed(recipe, given)
    data.check_paths(given)
    parts = recipe.read(given)
    _check_labelled(train=parts.train, dev=parts.dev)
    parts = _sampled(recipe, given, parts)
    names = recipe.settings(given, parts).get("label_names")
    labels = f"; labels: {names}" if names else ""
    print(f"{len(parts.train)} examples to train on, {len(parts.dev)} to measure on{labels}.")
    settings = {f: given[f].value for f in given if f not in NOT_SETTINGS}
    settings |= {"task": name, "backend": keras.backend.backend(), "examples": _digest(parts)}
    run = RunFolder(given.output_dir, name, settings, given.resume, given.overwrite)

    def make(setting=None, **others):
        return make_model(recipe, given, parts, setting or next(combinations(given)), **others)

    compared = recipe.before(given, make, parts)
    for number, setting in enumerate(combinations(given)):
        for seed in range(given.seed, given.seed + given.seeds):
            if not run.is_done(setting, seed):
                _run_trial(recipe, given, parts, run, number, setting, seed, make)
        run.settle(number, setting)
    _show_trials(run)
    finish(recipe, given, parts, run, compared)


def combinations(given):
    """Yields the settings to train with: each combination of the flags that take several values."""
    names = [name for name in GRID if name in given]
    for values in itertools.product(*(given[name].value for name in names)):
        yield dict(zip(names, values, strict=True))


def make_model(recipe, given, parts, setting, **others):
    """Returns a new model for the training examples."""
    names = ["max_length", "dtype", *(option.name for option in recipe.model)]
    options = {n: given[n].value for n in names if given[n].value is not None}
    options |= {**recipe.settings(given, parts), **others}
    return recipe.make(recipe, given, setting, options)


def _run_trial(recipe, given, parts, run, number, setting, seed, make):
    """Trains with a seed, measures, and keeps both in the run's folder."""
    print(f"Trains with the seed {seed}, {_told(setting)}.", flush=True)
    keras.utils.set_random_seed(seed)
    model, done, history = run.last_epoch(setting, seed)
    if model is None:
        model = make(setting)
        _check_vocabulary(given, model, parts.train)
        recipe.check(model, parts)
        model.compile(learning_rate=setting["learning_rate"], **recipe.compile(given))

    def evaluate(model, examples=parts.dev):
        return recipe.evaluate(given, model, examples, {**parts.further, "tune": True})

    measure = (lambda model: evaluate(model)[0]) if given.pictures else None
    trial = {"setting": setting, "seed": seed}
    each_epoch = EachEpoch(run, trial, setting["epochs"], history, measure)
    if setting["epochs"]:
        model.fit(
            **recipe.fit(given, parts),
            batch_size=setting["batch_size"],
            epochs=setting["epochs"],
            initial_epoch=done,
            sort_window=given.sort_window,
            callbacks=[each_epoch],
        )
    scores, files = evaluate(model)
    for name, examples in parts.dev_sets.items():
        scores |= {f"{name}_{key}": x for key, x in evaluate(model, examples)[0].items()}
    print(_told(scores), flush=True)
    if run.add(number, trial, scores, model) and recipe.keeps_answers:
        _write(run.path, files())
    if given.pictures and setting["epochs"]:
        path = run.path / f"learning_curves_{number}_seed_{seed}.png"
        plots.learning_curves(each_epoch.history, path=path)


def finish(recipe, given, parts, run, compared):
    """Loads the best model, lets it answer, measures the test set, and writes the results."""
    model = keras.saving.load_model(run.path / "model.keras")
    print(f"Loaded {run.path / 'model.keras'} again, it answers:")
    dev = parts.dev
    for line in recipe.answer(model, dev[:3] if isinstance(dev, list) else dev.take(slice(3))):
        print(f"  {line}")
    setting, trials = run.ranked()[0]
    results = run.over_seeds(trials)
    for name, scores in compared.items():
        print(f"{name}: {_told(scores)}")
        results |= {f"{name}_{key}": value for key, value in scores.items()}
    thresholds, found = recipe.after(given, model, parts)
    results |= found
    further = {**parts.further, "tune": False}
    if thresholds is not None:
        further["thresholds"] = thresholds
        named = dict(zip(dev.label_names, thresholds.tolist(), strict=True))
        write_json(run.path / "thresholds.json", named)
    if parts.test:
        scores, files = recipe.evaluate(given, model, parts.test, further)
        _write(run.path, files(), "test_")
        results |= {f"test_{name}": value for name, value in scores.items()}
    if given.pictures:
        _draw(recipe, model, parts, run)
    undefined = [name for name, value in results.items() if value is None or value != value]
    for name in undefined:
        print(f"{name} is not defined, as a correlation is not where all predictions are equal.")
    results |= dict.fromkeys(undefined)
    run.write({**results, **({"setting": setting} if len(run.ranked()) > 1 else {})})
    print(json.dumps(results, allow_nan=False), flush=True)


def _show_trials(run):
    """Prints the settings, the best first, and how far the seeds and the settings are apart."""
    ranked = run.ranked()
    if len(ranked) == 1 == len(run.trials):
        return
    for setting, trials in ranked:
        print(f"{_told(run.over_seeds(trials))}  ({len(trials)} seeds, {_told(setting)})")
    if len(ranked) > 1:
        print("The best was chosen on the dev set: its score there is too high for a result.")


def _told(values):
    """Returns names and values in words."""
    told = {name: f"{x:.4g}" if isinstance(x, float) else x for name, x in values.items()}
    return ", ".join(f"{name} {value}" for name, value in told.items())


def _draw(recipe, model, parts, run):
    recipe.draw(model, parts, run.path)
    ranked = run.ranked()
    if len(ranked[0][1]) > 1:
        plots.seeds([trial["scores"] for trial in ranked[0][1]], path=run.path / "seeds.png")
    if len(ranked) > 1:
        rows = {_told(setting): run.over_seeds(found) for setting, found in ranked}
        plots.settings(rows, path=run.path / "settings.png")
    print(f"Drew {', '.join(sorted(path.name for path in run.path.glob('*.png')))}.")


def _write(folder, files, prefix=""):
    """Writes answers: JSON, a line each where the name says so, or text."""
    for name, content in files.items():
        with writing(folder / f"{prefix}{name}") as file:
            if name.endswith(".jsonl"):
                file.writelines(json.dumps(x, ensure_ascii=False) + "\n" for x in content)
            elif name.endswith(".json"):
                json.dump(content, file, ensure_ascii=False, indent=1)
            else:
                file.write(content)


# Checks before anything is trained


def _check_installed(recipe, given):
    needed = (*recipe.needs, *(["matplotlib"] if given.pictures else []))
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"{' and '.join(missing)} must be installed for this: "
            "pip install scikit-learn scipy matplotlib"
        )


def _check_labelled(**parts):
    for name, examples in parts.items():
        if not isinstance(examples, list) and (
            not len(examples) or getattr(examples, examples.columns[-1]) is None
        ):
            raise ValueError(
                f"The {name} examples must have labels. Received: {len(examples)} examples without "
                "any, as in GLUE's test sets. Pass such a file by --test_file."
            )


def _check_vocabulary(given, model, examples):
    """Says so where the model's vocabulary knows too little of its training texts."""
    tokenizer = model.preprocessor.tokenizer
    if tokenizer.unknown_token is None:
        return  # It spells every text.
    few = [e.context for e in examples] if isinstance(examples, list) else None
    few = few or getattr(examples, examples.columns[0])
    few = list((few[0] if isinstance(few, tuple) else few)[:1000])
    few = [text if isinstance(text, str) else " ".join(text) for text in few]
    ids = [token for row in tokenizer(few) for token in row]
    share = ids.count(tokenizer.unknown_token_id) / max(len(ids), 1)
    if share > MOST_UNKNOWN:
        print(
            f"Beware: {share:.0%} of the tokens to train on are unknown to the vocabulary of "
            f"{given.preset}. Pass a --preset for their language: bert_base_zh for Chinese, "
            "bert_base_multi_cased for many others."
        )


def _sampled(recipe, given, parts):
    def cut(name, examples):
        found = data.sampled(examples, given.sample, given.seed)
        if name != "train" and len(found) < len(examples):
            print(f"--sample cut the {name} set from {len(examples)} to {len(found)}.")
        return found

    parts = parts._replace(train=cut("train", parts.train))
    if not recipe.cuts_all:
        return parts
    # Of a file to predict, each row has its line of predictions.
    test = parts.test and (parts.test if given.test_file else cut("test", parts.test))
    return parts._replace(dev=cut("dev", parts.dev), test=test)


def _digest(parts):
    """Returns a checksum of the examples to train and to measure on."""

    def plain(examples):
        if isinstance(examples, list):
            return [dataclasses.astuple(example) for example in examples]
        columns = (getattr(examples, name) for name in examples.columns)
        return [x.tolist() if hasattr(x, "tolist") else x for x in columns]

    text = json.dumps([plain(parts.train), plain(parts.dev)], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
