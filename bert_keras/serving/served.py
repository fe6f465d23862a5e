"""A model that a server has: its answers, the worker that computes them, and its newer versions."""

import asyncio
import inspect
import os
from typing import NamedTuple

from bert_keras.serving.batcher import Batcher

# A method of a task, and the fields of a row that it takes.
METHODS = {
    "classify": ("text",),
    "tag": ("text",),
    "answer": ("question", "context"),
    "choose": ("context", "choices"),
    "fill_mask": ("text",),
    "embed": ("text",),
    "is_next": ("first", "second"),
    "is_replaced": ("text",),
}


class Settings(NamedTuple):
    """How a server gathers and refuses; times in seconds, sizes in bytes."""

    max_batch: int = 32
    wait: float = 0.003
    max_waiting: int = 1024
    deadline: float = 30.0
    max_body: int = 2**21
    api_keys: tuple = ()


class Served:
    """A model under a name.

    Args:
        name: str.
        load: function that returns the model: a task, or what `bert_keras.runtime.load` returns.
        source: str, path of what is loaded, whose changes `reload_if_changed` sees.
        settings: `Settings`.
        observe: see `Batcher`.
        pads_rows: bool, whether batches are filled up to a power of two, for backends that compile
            each number of rows.
    """

    def __init__(self, name, load, source=None, settings=None, observe=None, pads_rows=False):
        settings = settings or Settings()
        self.name, self.load, self.source, self.pads_rows = name, load, source, pads_rows
        self.model, self._state = None, None
        limits = settings.max_batch, settings.wait, settings.max_waiting
        self.batcher = Batcher(self._answer, *limits, observe)

    def start(self):
        """Loads the model, and has it answer a short and a longer text, which compiles.

        Raises:
            ValueError: it has no answer.
        """
        state = state_of(self.source)
        self.model, self._state = self._load_warm(), state

    async def reload_if_changed(self):
        """Loads the model again where its files changed; who asks meanwhile gets the old one's."""
        state = state_of(self.source)
        if state is not None and state != self._state:
            await asyncio.to_thread(self.start)

    @property
    def method(self):
        """Name of the model's answer, a key of `METHODS`; of several the first."""
        return methods_of(self.model)[0]

    def has(self, method):
        """Whether the model answers so."""
        return method in methods_of(self.model)

    async def ask(self, method, rows, **options):
        """Returns the answers to rows, tuples of str, of one method."""
        return await self.batcher.ask((method, len(rows[0]), tuple(sorted(options.items()))), rows)

    def _load_warm(self):
        model = self.load()
        method = next(iter(methods_of(model)), None)
        if method is None:
            raise ValueError(
                f"A model that is served answers by {', '.join(METHODS)}. Received: a "
                f"{type(model).__name__} as {self.name!r}, without any of them."
            )
        first = f"{model.tokenizer.mask_token} " if method == "fill_mask" else ""
        for length in (1, model.preprocessor.max_length // 8):
            row = [first + " ".join(["a"] * length)] * len(METHODS[method])
            answers_of(model, (method, len(row), ()), [tuple(row)])
        return model

    def _answer(self, key, rows):
        wanted = len(rows)
        if self.pads_rows:
            rows = rows + rows[-1:] * (2 ** (wanted - 1).bit_length() - wanted)
        return answers_of(self.model, key, rows)[:wanted]


def methods_of(model):
    """Returns the names of a model's answers; what else has such a name only names another."""
    named = [(name, getattr(model, name, None)) for name in METHODS]
    return [
        x for x, method in named if method and "batch_size" in inspect.signature(method).parameters
    ]


def answers_of(model, key, rows):
    """Returns a model's answers to rows.

    Args:
        model: what has the method.
        key: the method's name, the number of fields, and its options as pairs.
        rows: list of tuples of str.
    """
    method, width, options = key
    if method == "choose":
        columns = [[row[0] for row in rows], [list(row[1:]) for row in rows]]
    else:
        columns = [list(column) for column in zip(*rows, strict=True)]
    if method == "classify" and width == 2:
        columns = [tuple(columns)]
    return getattr(model, method)(*columns, **dict(options))


def state_of(source):
    """Returns what changes when a file or a folder's files are replaced, or `None`."""
    if source is None or not os.path.exists(source):
        return None
    paths = [os.fspath(source)]
    if os.path.isdir(source):
        paths += [entry.path for entry in os.scandir(paths[0]) if entry.is_file()]
    stats = sorted((path, os.stat(path)) for path in paths)
    return tuple((path, stat.st_ino, stat.st_mtime_ns, stat.st_size) for path, stat in stats)
