"""The folder of one training run: its settings, the scores of each trial, and the best model."""

import itertools
import json
import math
import shutil
import statistics
import tempfile
from pathlib import Path

import keras

from bert_keras import distribution
from bert_keras.engine.atomic_files import make_folder_of, read_json, write_json


class RunFolder:
    """Keeps the trials of a run, one per setting and seed, so that it can continue after a kill.

    The files in the folder stay as they are until an epoch or a trial is kept, see `begin`.

    Args:
        folder: str; `None` for a new one, `output/NAME-1` or the next free number.
        name: str, the name of the task.
        settings: JSON value, everything the scores depend on.
        resume: bool, whether the run in the folder continues; it must have these settings.
        overwrite: bool, whether another run in the folder is replaced.

    Attributes:
        path: `Path`.
        trials: list of dicts, `setting`, `seed`, `scores` (the main one first).

    Raises:
        ValueError: there is a run already, or none with these settings to resume, or the folder
            cannot be made.
    """

    def __init__(self, folder, name, settings, resume=False, overwrite=False):
        if folder is None and resume:
            raise ValueError("--resume needs the --output_dir of the run to continue.")
        new = (Path("output", f"{name}-{number}") for number in itertools.count(1))
        self.path = next(x for x in new if not x.exists()) if folder is None else Path(folder)
        self.settings = json.loads(json.dumps(settings))
        self.trials = []
        results = self.path / "results.json"
        self._has_begun = resume and results.exists()
        if self._has_begun:
            self._continue(results)
        elif resume and not self.path.is_dir():
            raise ValueError(
                f"--resume needs a run. Received: none in {self.path}. Leave out --resume."
            )
        elif results.exists() and not overwrite:
            raise ValueError(
                f"{self.path} holds a run. --resume continues it, --overwrite replaces it, and "
                "without --output_dir a new folder is made."
            )
        if distribution.process()[0]:
            # Only the first process keeps the run; each of the others has a temporary folder.
            self._own = tempfile.TemporaryDirectory()
            if resume:
                hidden = shutil.ignore_patterns(".*")
                shutil.copytree(self.path, self._own.name, ignore=hidden, dirs_exist_ok=True)
            self.path = Path(self._own.name)
        try:
            make_folder_of(self.path / "results.json")
        except OSError as error:
            raise ValueError(f"--output_dir must be a folder that can be made: {error}") from error

    def begin(self):
        """Makes the folder this run's, before its first file: removes what another run left."""
        if not self._has_begun:
            self._has_begun = True
            # Only files that a run writes: the folder may hold others, such as the user's models.
            patterns = ("epoch.json", "thresholds.json", "model.keras")
            for pattern in (*patterns, "setting_*.keras", "epoch_*.keras"):
                for path in self.path.glob(pattern):
                    path.unlink()
            self.write()

    def _continue(self, results):
        saved = read_json(results)
        names = sorted({*saved["settings"], *self.settings})
        differing = [n for n in names if saved["settings"].get(n) != self.settings.get(n)]
        if differing:
            raise ValueError(
                f"A run continues with the settings it began with. {results} has other values of: "
                f"{', '.join(differing)}. Pass the same flags and data, or leave out --resume."
            )
        self.trials = saved["trials"]
        print(f"Trials done already: {len(self.trials)}.")

    def write(self, **ended):
        """Writes results.json, at the end of the run with its `metrics` and its `verdict`."""
        results = {"settings": self.settings, "trials": self.trials, **ended}
        write_json(self.path / "results.json", results)

    # Trials

    def is_done(self, setting, seed):
        """Whether a trial has scores."""
        return any((t["setting"], t["seed"]) == (setting, seed) for t in self.trials)

    def add(self, number, trial, scores, model):
        """Keeps a trial's scores, and its model if it is the best among the setting's seeds.

        Args:
            number: int, the number of the setting.
            trial: dict with `setting` and `seed`, and what `fit` has `chosen`.
            scores: dict of floats, the main one first. NaN is kept as `None`, which ranks lowest.
            model: the trained task.
        """
        self.begin()
        scores = {name: x if math.isfinite(x) else None for name, x in scores.items()}
        trial = {**trial, "scores": scores}
        others = [t for t in self.trials if t["setting"] == trial["setting"]]
        if all(_rank(trial) > _rank(other) for other in others):
            model.compile()  # Drops the optimizer's moments, which are twice the model's size.
            model.save(self.path / f"setting_{number}.keras")
        self.trials.append(trial)
        self.write()
        for path in (self.path / "epoch.json", *self.path.glob("epoch_*.keras")):
            path.unlink(missing_ok=True)

    def settle(self, number, setting):
        """Keeps the setting's model as the run's, if the setting is the best so far."""
        path = self.path / f"setting_{number}.keras"
        if path.exists() and self.ranked()[0][0] == setting:
            path.replace(self.path / "model.keras")
        path.unlink(missing_ok=True)

    def ranked(self):
        """Returns pairs of a setting and its trials, the best first, of both.

        Settings are ordered by the mean of the main score.
        """
        settings = {str(t["setting"]): t["setting"] for t in self.trials}.values()
        trials = sorted(self.trials, key=_rank, reverse=True)
        pairs = [(s, [t for t in trials if t["setting"] == s]) for s in settings]
        return sorted(pairs, key=lambda pair: -sum(map(_rank, pair[1])) / len(pair[1]))

    @staticmethod
    def over_seeds(trials):
        """Returns means over trials, `None` if undefined, and for several trials `name_std`."""
        columns = {name: [t["scores"][name] for t in trials] for name in trials[0]["scores"]}
        defined = {name: column for name, column in columns.items() if None not in column}
        means = {n: statistics.mean(defined[n]) if n in defined else None for n in columns}
        if len(trials) == 1:
            return means
        return {**means, **{f"{n}_std": statistics.stdev(x) for n, x in defined.items()}}

    # Epochs within a trial

    def last_epoch(self, setting, seed):
        """Returns a trial's model (`None` if it has not begun), epochs done and history."""
        path = self.path / "epoch.json"
        state = read_json(path) if self._has_begun and path.exists() else {}
        if (state.get("setting"), state.get("seed")) != (setting, seed):
            return None, 0, {}
        print(f"Continuing after epoch {state['epoch']}.")
        model = keras.saving.load_model(self.path / f"epoch_{state['epoch']}.keras")
        return model, state["epoch"], state["history"]


class EachEpoch(keras.callbacks.Callback):
    """Saves the state after each epoch except the last, and keeps the logs.

    Args:
        run: `RunFolder`.
        trial: dict with a trial's `setting` and `seed`.
        history: dict of lists of floats, the logs of earlier epochs.
    """

    def __init__(self, run, trial, history):
        super().__init__()
        self.run, self.trial, self.history = run, trial, history

    def on_epoch_end(self, epoch, logs=None):
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(float(value))
        if epoch + 1 < self.params["epochs"]:
            self.run.begin()
            self.model.save(self.run.path / f"epoch_{epoch + 1}.keras")
            state = {**self.trial, "epoch": epoch + 1, "history": self.history}
            write_json(self.run.path / "epoch.json", state)
            (self.run.path / f"epoch_{epoch}.keras").unlink(missing_ok=True)


def _rank(trial):
    """Returns a trial's main score; an undefined score ranks lowest."""
    score = next(iter(trial["scores"].values()))
    return -math.inf if score is None else score
