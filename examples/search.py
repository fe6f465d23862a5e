r"""Search a text classifier's batch size, learning rate and epochs: the paper's appendix A.3.

    python examples/search.py --data_dir glue_data/RTE --sample 200
    python examples/search.py --train_file reviews.csv --text_column review --label_column stars \
        --batch_sizes 32 --learning_rates 1e-5,3e-5 --epoch_counts 3

It trains once (with `--seeds` several times, and takes the mean) for each of the 18 combinations of
batch size 16 or 32, learning rate 5e-5, 3e-5 or 2e-5, and 2, 3 or 4 epochs, and measures on the dev
set. The three lists take the place of `--batch_size`, `--learning_rate` and `--epochs`; the other
flags, and the data, are those of text_classification.py, but for `--test_file` and `--baselines`.

A killed search goes on where it stopped: trials.log in `--output_dir` keeps what was found,
by the examples and the model's settings, and model.keras is the best model so far. Which is best
was chosen on the dev set, so its score there is too high for a result: measure the model on a test
set.

Needs Optuna (`pip install '.[search]'`): its trial is a plain function, so that batch size and
epochs are searched like anything else, and it knows nothing of backends and works with all three.
"""

import hashlib
import json
import math
import os
import statistics
from itertools import product

import keras
import pictures
import recipe
import text_classification
from absl import flags

from bert_keras.cli import mistakes

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(recipe)  # for --help
flags.adopt_module_key_flags(text_classification)

flags.DEFINE_list("batch_sizes", ["16", "32"], "Batch sizes to try.")
flags.DEFINE_list("learning_rates", ["5e-5", "3e-5", "2e-5"], "Peak learning rates to try.")
flags.DEFINE_list("epoch_counts", ["2", "3", "4"], "Numbers of epochs to try.")

LEAST = {"batch_sizes": 1, "learning_rates": 1e-12, "epoch_counts": 1}
for name, least in LEAST.items():
    flags.register_validator(
        name,
        lambda values, least=least: values and all(is_number(value, least) for value in values),
        f"must be numbers from {least} on, separated by commas, whole ones but for rates.",
    )
# Flags of text_classification.py that are searched, or that nothing is made of here.
NOT_HERE = ("batch_size", "learning_rate", "epochs", "test_file", "baselines")
# What a trial's score depends on, beside what is searched and the examples.
SETTINGS = (
    *("preset", "seed", "seeds", "label_smoothing"),
    *("pooling", "truncation", "max_length", "dtype", "sort_window"),
)


def is_number(text, least):
    """Whether a flag's value is a number from `least` on; a whole one, if that is an int."""
    try:
        return least <= type(least)(text) < math.inf
    except ValueError:
        return False


def main(argv):
    grid = {
        "batch_size": [int(size) for size in FLAGS.batch_sizes],
        "learning_rate": [float(rate) for rate in FLAGS.learning_rates],
        "epochs": [int(count) for count in FLAGS.epoch_counts],
    }
    for name in NOT_HERE:
        if FLAGS[name].present:
            raise SystemExit(f"--{name} has no meaning here: see --help.")
    train, dev = text_classification.load_data()
    recipe.check_labelled(train=train, dev=dev)
    train = recipe.sampled(train)
    print(f"{len(train)} examples to train on, {len(dev)} to measure on.")
    study = open_study(grid, train, dev)

    def objective(trial):
        chosen = {name: trial.suggest_categorical(name, values) for name, values in grid.items()}
        print(f"Next: {chosen}", flush=True)
        model, rows = recipe.run_seeds(lambda seed: run(train, dev, **chosen))
        metric = next(iter(rows[0]))
        trial.set_user_attr("metric", metric)
        score = float(statistics.mean(row[metric] for row in rows))
        earlier = completed(study)
        if score > max((other.value for other in earlier), default=-math.inf):
            recipe.save_and_load(model)
        print(
            f"{metric} {score:.4f}; {len(earlier) + 1} of {len(settings)} trials are done.",
            flush=True,
        )
        return score

    settings = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    done = [trial.params for trial in completed(study)]
    print(f"{len(done)} of {len(settings)} trials were done before.")
    # Not Optuna's GridSampler, for which a trial that was interrupted is done.
    for chosen in settings:
        if chosen not in done:
            study.enqueue_trial(chosen)
            study.optimize(objective, n_trials=1)
    report(completed(study), grid)


def open_study(grid, *examples):
    """Returns the study of these settings and examples, with what an earlier run found."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    recipe.make_folders()
    settings = {name: FLAGS[name].value for name in SETTINGS}
    settings |= {"grid": grid, "backend": keras.backend.backend()}
    settings["examples"] = [
        [part.texts, part.labels.tolist(), part.label_names, part.problem_type] for part in examples
    ]
    # A plain file; Optuna's databases take seconds to open.
    file = optuna.storages.journal.JournalFileBackend(os.path.join(FLAGS.output_dir, "trials.log"))
    return optuna.create_study(
        study_name=hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16],
        storage=optuna.storages.JournalStorage(file),
        direction="maximize",
        load_if_exists=True,
    )


def completed(study):
    """Returns the trials that ended with a score."""
    return [trial for trial in study.get_trials(deepcopy=False) if trial.value is not None]


def run(train, dev, batch_size, learning_rate, epochs):
    """Fine-tunes once; returns the classifier and its scores on the dev set."""
    classifier = text_classification.make_classifier(train)
    classifier.compile(learning_rate=learning_rate, label_smoothing=FLAGS.label_smoothing)
    classifier.fit(
        train.texts,
        train.labels,
        batch_size=batch_size,
        epochs=epochs,
        sort_window=FLAGS.sort_window,
        verbose=2,
    )
    return classifier, text_classification.scores_of(classifier, dev)


def report(trials, grid):
    """Prints the trials, the best first, and how far they are apart; draws them; ends."""
    if not trials:
        raise ValueError("No trial has a score: what the model is measured by was never defined.")
    trials = sorted(trials, key=lambda trial: -trial.value)
    metric = trials[0].user_attrs["metric"]
    print(f"{metric:>20}" + "".join(f"{name:>15}" for name in grid))
    for trial in trials:
        print(f"{trial.value:20.4f}" + "".join(f"{trial.params[name]:15g}" for name in grid))
    values = [trial.value for trial in trials]
    scores = {tuple(trial.params[name] for name in grid): trial.value for trial in trials}
    recipe.save_pictures(lambda: [("search.png", pictures.search(scores, metric))])
    summary = {
        "best": values[0],
        "mean": statistics.mean(values),
        "standard_deviation": statistics.stdev(values) if len(values) > 1 else 0.0,
        "worst": values[-1],
    }
    results = {f"{metric}_{name}": value for name, value in summary.items()}
    recipe.finish({**results, **trials[0].params, "trials": len(values)})


if __name__ == "__main__":
    mistakes.run(main)
