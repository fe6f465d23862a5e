"""The log of a long run: one line of JSON for each epoch."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from bert_keras import distribution
from bert_keras.engine.atomic_files import write_text
from bert_keras.training.callbacks import BatchCounter


class TrainingLog(BatchCounter):
    """Writes losses, metrics, learning rate and throughput to `metrics.jsonl` after each epoch.

    A run that continues after a kill drops the lines after its checkpoint and writes them again.
    Except for times, the file then equals that of an uninterrupted run. If several processes share
    a run, the first one writes.

    Args:
        folder: str or path, created if missing.
        step: int, steps done before, from the checkpoint.
        tokens_per_step: int, for the throughput; set it again when the shape of batches changes.
        evaluate: function of the model that returns a dict of floats, or `None`.
        evaluate_every: int, steps between evaluations, which run at the end of an epoch.

    Attributes:
        lines: list of dicts, one for each epoch since the first step of the run.
    """

    def __init__(
        self,
        folder: Path,
        step: int = 0,
        tokens_per_step: int | None = None,
        evaluate: Callable[[Any], Mapping[str, float]] | None = None,
        evaluate_every: int = 1000,
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

    @property
    def tokens_per_second(self) -> float | None:
        """Median over all epochs of the run, or `None` if it was not measured."""
        rates = [line["tokens_per_second"] for line in self.lines if "tokens_per_second" in line]
        return float(np.median(rates)) if rates else None

    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch)
        self._started = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.perf_counter() - self._started
        before, self.step = self.step, self.step + self.batches_done
        rate = keras.ops.convert_to_numpy(self.model.optimizer.learning_rate)
        line = {"step": self.step, **{name: float(value) for name, value in logs.items()}}
        line |= {"learning_rate": float(rate), "seconds": round(seconds, 3)}
        if self.tokens_per_step:
            throughput = self.tokens_per_step * self.batches_done / seconds
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
        values = [f"{k} {v:.4g}" for k, v in line.items() if k not in ("step", "seconds")]
        print(f"step {line['step']}: {', '.join(values)}", flush=True)


def read_log(path: Path) -> list[dict[str, float]]:
    """Returns the complete lines of a `metrics.jsonl`, a list of dicts; `[]` without a file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    # The last line of a killed run may be incomplete; it then has no line break.
    return [json.loads(line) for line in text.split("\n")[:-1] if line]


def _as_text(line):
    return json.dumps(line) + "\n"
