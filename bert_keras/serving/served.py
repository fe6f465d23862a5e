"""A model that a server has: its answers, the worker that computes them, and its newer versions."""

import asyncio
import os
from typing import NamedTuple

from bert_keras.export import runtime
from bert_keras.serving.batcher import Batcher
from bert_keras.serving.inside import INSTRUMENTS
from bert_keras.serving.rows import METHODS, Refusal


class Settings(NamedTuple):
    """How a server gathers and refuses; times in seconds, a body in bytes."""

    max_batch: int = 32
    wait: float = 0.003
    max_waiting: int = 1024
    deadline: float = 30.0
    max_body: int = 2**21
    max_text: int = 2**16
    api_keys: tuple = ()


class Served:
    """A model under a name.

    Args:
        name: str.
        load: function that returns a task, or what `bert_keras.export.runtime.load` returns, whose
            `tokenizer` is a `Tokenizer`.
        source: str, path of what is loaded, whose changes `reload_if_changed` sees.
        settings: `Settings`.
        observe: see `Batcher`.
        pads_rows: bool, whether batches of a task are filled up to a power of two, for backends
            that compile each number of rows.
    """

    def __init__(self, name, load, source=None, settings=None, observe=None, pads_rows=False):
        self.settings = settings = settings or Settings()
        self.name, self.load, self.source, self.pads_rows = name, load, source, pads_rows
        self.model, self._state = None, None
        limits = settings.max_batch, settings.wait, settings.max_waiting
        self.batcher = Batcher(self._answer, *limits, observe)

    def start(self):
        """Loads the model, and has it answer a short and a longer text, which compiles.

        Raises:
            ValueError: it has no answer.
        """
        # Files that cannot be loaded are not tried again before they change.
        self._state = state_of(self.source)
        self.model = self._load_warm()

    async def reload_if_changed(self):
        """Loads the model again if its files changed; until then the old one answers."""
        state = state_of(self.source)
        if state is not None and state != self._state:
            await asyncio.to_thread(self.start)

    @property
    def method(self):
        """Name of the model's answer, a key of `METHODS`; of several the first."""
        return runtime.answers_of(self.model)[0]

    @property
    def mask_token(self):
        """The token that `fill_mask` guesses."""
        return self.model.tokenizer.mask_token

    @property
    def max_length(self):
        """Tokens that the model reads at most, of a document in all its windows."""
        longest, layout = _max_length(self.model), self.model.tokenizer.layout
        further = (self.setting("num_windows") or 1) - 1
        return longest + further * (self.setting("stride") or longest - layout.num_special(False))

    def setting(self, name):
        """Returns a setting of the task by its name, or `None`."""
        if isinstance(self.model, runtime.ExportedTask):
            return self.model.config.get(name)
        return getattr(self.model, name, None)

    def check_whole(self, rows):
        """Raises `Refusal`, 413, where rows have more tokens than the model reads."""
        columns, most = zip(*map(list, rows), strict=True), self.max_length
        for place, encoded in enumerate(self.model.tokenizer.encode(*map(list, columns))):
            if len(encoded.ids) > most:
                raise Refusal(
                    413,
                    f"inputs[{place}]: at most {most} tokens, special ones included, without "
                    f"`truncate`. Received: {len(encoded.ids)}.",
                )

    def has(self, method):
        """Whether the model answers so."""
        return method in runtime.answers_of(self.model)

    async def ask(self, method, rows, **options):
        """Returns the answers to rows, tuples of str, of one method or instrument."""
        if method == "choose":  # Each choice is an example of its batch.
            options["batch_size"] = max(1, self.settings.max_batch // len(rows[0]))
        # An instrument takes a row's time for each, so that others have their turns in between.
        alike = rows[0] if method in INSTRUMENTS else len(rows[0])
        return await self.batcher.ask((method, alike, tuple(sorted(options.items()))), rows)

    def _load_warm(self):
        model = self.load()
        method = next(iter(runtime.answers_of(model)), None)
        if method is None:
            raise ValueError(
                f"A model that is served answers by {', '.join(METHODS)}. Received: a "
                f"{type(model).__name__} as {self.name!r}, without any of them."
            )
        first = f"{model.tokenizer.mask_token} " if method == "fill_mask" else ""
        for length in (1, _max_length(model) // 8):
            row = [first + " ".join(["a"] * length)] * len(METHODS[method])
            runtime.ask(model, method, [tuple(row)])
        return model

    def _answer(self, key, rows):
        wanted, (method, _, options) = len(rows), key
        if method in INSTRUMENTS:
            return [INSTRUMENTS[method](self.model, rows[0], **dict(options))] * wanted
        if isinstance(self.model, runtime.ExportedTask):
            # A call costs it little, and rows of all lengths together are padded to the longest.
            options = {"batch_size": 8, **dict(options)}
        elif self.pads_rows:
            rows = rows + rows[-1:] * (2 ** (wanted - 1).bit_length() - wanted)
        return runtime.ask(self.model, method, rows, **dict(options))[:wanted]


def _max_length(model):
    preprocessor = getattr(model, "preprocessor", None)
    return preprocessor.max_length if preprocessor else model.config["max_length"]


def state_of(source):
    """Returns what changes when a file or a folder's files are replaced, or `None`."""
    if source is None or not os.path.exists(source):
        return None
    paths = [os.fspath(source)]
    if os.path.isdir(source):
        paths += [entry.path for entry in os.scandir(paths[0]) if entry.is_file()]
    stats = sorted((path, os.stat(path)) for path in paths)
    return tuple((path, stat.st_ino, stat.st_mtime_ns, stat.st_size) for path, stat in stats)
