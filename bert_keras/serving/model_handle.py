"""A model on a server: its answers, and the worker that computes them."""

from typing import NamedTuple

from bert_keras.answers.catalog import answerers_of
from bert_keras.answers.prompts import USUAL, prompt_text, split_marker
from bert_keras.engine import kernels
from bert_keras.engine.jax_compilation_cache import COMPILES_SHAPES
from bert_keras.export import runtime
from bert_keras.serving.batcher import Batcher
from bert_keras.serving.explain import INSTRUMENTS
from bert_keras.serving.rows import check, refusing


class Settings(NamedTuple):
    """Limits of a server; times in seconds, bodies in bytes, texts in characters."""

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
        load: function that returns a task, or an `ExportedTask`.
        source: str, the path that `load` reads.
        settings: `Settings`.
    """

    def __init__(self, name, load, source=None, settings=None):
        self.settings = settings = settings or Settings()
        self.name, self.load, self.source = name, load, source
        self.model = None
        limits = settings.max_batch, settings.wait, settings.max_waiting
        self.batcher = Batcher(self._answer, *limits)

    def start(self):
        """Loads the model and compiles it by answering a short and a longer text.

        Raises:
            ValueError: the model has no answer.
        """
        self.model = self._load_warm()

    @property
    def answerers(self):
        """The model's answers, see `answerers_of`."""
        return answerers_of(self.model)

    @property
    def method(self):
        """The model's first answer."""
        return next(iter(self.answerers))

    def fields(self, method):
        """Returns the `Field`s of a row for a method; `()` if it is no answer of the model."""
        return getattr(answerers_of(self.model, with_steps=True).get(method), "fields", ())

    @property
    def max_length(self):
        """The largest number of tokens that the model reads, over all windows of a document."""
        longest, layout = self.model.preprocessor.max_length, self.model.tokenizer.layout
        more_windows = (self.setting("num_windows") or 1) - 1
        stride = self.setting("stride") or longest - layout.num_special(False)
        return longest + more_windows * stride

    def setting(self, name):
        """Returns a setting of the task by name, or `None`; see `Task.answer_settings`."""
        return self.model.answer_settings().get(name)

    def prompt(self, name=None):
        """Returns the text of a prompt, see `prompt_text`.

        Raises:
            HTTPException: 422, there is no prompt of that name.
        """
        prompts, default = self.setting("prompts") or USUAL, self.setting("default_prompt")
        with refusing("inputs: "):
            return prompt_text(name, prompts, default)

    def num_tokens(self, rows, prompt=None):
        """Returns how many tokens of rows of one text are read, special ones and prompt included.

        Raises:
            HTTPException: see `prompt`.
        """
        before, tokenizer = self.prompt(prompt), self.model.tokenizer
        encodings = tokenizer.encode([before + text for (text,) in rows])
        return sum(min(self.max_length, len(x.ids)) for x in encodings)

    def check_whole(self, rows, prompt=None):
        """Raises `HTTPException`, 413, if a row has more tokens than the model reads."""
        before, limit = self._beginning(prompt)
        for place, (first, *others) in enumerate(rows):  # A text may stand beside a pair.
            length = len(self.model.tokenizer.encode(before + first, *others).ids)
            rule = f"inputs[{place}]: at most {limit} tokens, special ones included, without"
            check(length <= limit, f"{rule} `truncate`. Received: {length}.", 413)

    def _beginning(self, prompt):
        """Returns the prompt before each text, and the most tokens of a whole row with it."""
        if "token_vectors" not in self.answerers:
            return self.prompt(prompt), self.max_length
        kind = prompt or "document"
        marker, before = split_marker(self.model.tokenizer, self.setting(f"{kind}_marker"))
        return before, (self.setting(f"{kind}_length") or self.max_length) - len(marker)

    async def ask(self, method, rows, client=None, **options):
        """Returns the answers to rows.

        Args:
            method: str, an answer of the model, or a name in `INSTRUMENTS`.
            rows: list of tuples of str.
            client: hashable, who asks.
            **options: options of the method.
        """
        fields = self.fields(method)
        if fields and fields[-1].kind == "texts":  # Each text is an example in its batch.
            options["batch_size"] = max(1, self.settings.max_batch // len(rows[0]))
        # An instrument gets one row at a time, so that other requests are answered in between.
        alike = rows[0] if method in INSTRUMENTS else None
        key = method, alike, tuple(sorted(options.items()))
        return await self.batcher.ask(key, rows, client)

    def _load_warm(self):
        model = self.load()
        answerers = answerers_of(model)
        if not answerers:
            raise ValueError(
                "A served model must answer from text: a task with `answerers` and a preprocessor. "
                f"Received: a {type(model).__name__} as {self.name!r}."
            )
        for length in (1, model.preprocessor.max_length // 8):
            text = " ".join(["a"] * max(1, length))
            method, cls = next(iter(answerers.items()))
            row, options = cls.sample(model.preprocessor, text)
            _computed(model, method, [row], **options)
        return model

    def _answer(self, key, rows):
        method, _, options = key
        options, is_program = dict(options), isinstance(self.model, runtime.ExportedTask)
        if method in INSTRUMENTS:
            return [INSTRUMENTS[method](self.model, rows[0], **options)] * len(rows)
        if is_program or COMPILES_SHAPES:
            # Small batches have less padding, and on a CPU a call of a program has little overhead.
            is_on_cpu = is_program or not kernels.has_accelerator()
            options = {"batch_size": 8 if is_on_cpu else self.settings.max_batch, **options}
        return _computed(self.model, method, rows, **options)


def _computed(model, method, rows, **options):
    if method == "logits":
        answerer = model.answerer("classify")
        columns, _ = answerer.columns(*answerer.columns_of(rows))
        rows, batches = model.predict_question(answerer, answerer.texts(*columns), **options)
        return rows.collect(batches)
    cls = answerers_of(model).get(method)
    return model.ask_rows(cls.method if cls else method, rows, **options)
