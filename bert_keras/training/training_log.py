"""The log of a long run: one line of JSON an epoch."""

import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras

from bert_keras import distribution
from bert_keras.engine.atomic_files import write_text


class TrainingLog(keras.callbacks.Callback):
    """Writes losses, metrics, learning rate and throughput to `metrics.jsonl` after each epoch.

    A run that was killed and goes on drops the lines behind its checkpoint and writes them again,
    so the file is the same as that of a run in one go, but for its times. Of several processes the
    first one writes.

    Args:
        folder: str or path, made when missing.
        step: int, steps done before, as the checkpoint says.
        tokens_per_step: int, for the throughput; set it anew when batches change their shape.
        evaluate: function of the model that returns a dict of floats, or `None`.
        evaluate_every: int, steps between evaluations, which are made at an epoch's end.
        also: function of a line, a dict, called for each of the whole run, or `None`.

    Attributes:
        lines: list of dicts, one an epoch, from the run's first step on.
    """

    def __init__(
        self,
        folder: Path,
        step: int = 0,
        tokens_per_step: int | None = None,
        evaluate: Callable[[Any], Mapping[str, float]] | None = None,
        evaluate_every: int = 1000,
        also: Callable[[dict[str, float]], object] | None = None,
    ) -> None:
        super().__init__()
        self.path = Path(folder) / "metrics.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.step = step
        self.tokens_per_step = tokens_per_step
        self.evaluate = evaluate
        self.evaluate_every = evaluate_every
        self.lines = [line for line in read_log(self.path) if line["step"] <= step]
        self._is_writer = distribution.process()[0] == 0
        if self._is_writer:
            write_text(self.path, "".join(map(_as_text, self.lines)))
        self.also = also or (lambda line: None)
        for line in self.lines:
            self.also(line)

    @property
    def tokens_per_second(self) -> float | None:
        """Median over the epochs of the whole run, or `None` where none was measured."""
        found = [line["tokens_per_second"] for line in self.lines if "tokens_per_second" in line]
        return statistics.median(found) if found else None

    def on_epoch_begin(self, epoch, logs=None):
        self._started, self._batches_done = time.perf_counter(), 0

    def on_train_batch_end(self, batch, logs=None):
        self._batches_done = batch + 1

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.perf_counter() - self._started
        before, self.step = self.step, self.step + self._batches_done
        rate = keras.ops.convert_to_numpy(self.model.optimizer.learning_rate)
        line = {"step": self.step, **{name: float(value) for name, value in logs.items()}}
        line |= {"learning_rate": float(rate), "seconds": round(seconds, 3)}
        if self.tokens_per_step:
            throughput = self.tokens_per_step * self._batches_done / seconds
            line["tokens_per_second"] = round(throughput, 1)
        is_due = self.step // self.evaluate_every > before // self.evaluate_every
        if self.evaluate is not None and is_due:
            line |= {f"heldout_{name}": value for name, value in self.evaluate(self.model).items()}
        self._add(line)

    def _add(self, line):
        self.lines.append(line)
        if not self._is_writer:
            return
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(_as_text(line))
        self.also(line)
        values = [f"{k} {v:.4g}" for k, v in line.items() if k not in ("step", "seconds")]
        print(f"step {line['step']}: {', '.join(values)}", flush=True)


def read_log(path: Path) -> list[dict[str, float]]:
    """Returns the complete lines of a `metrics.jsonl`, a list of dicts; of no file `[]`."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    # A line that a killed run has not finished has no end.
    return [json.loads(line) for line in text.split("\n")[:-1] if line]


def _as_text(line):
    return json.dumps(line) + "\n"
