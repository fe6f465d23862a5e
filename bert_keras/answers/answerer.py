"""The one path from texts to answers: texts → rows → arrays → answers. No Keras.

A task, an exported folder and a server share it. Only what computes the arrays differs: Keras's
`predict`, ONNX Runtime, or a server's batches. An exported folder has a copy of this package and of
the modules that it imports, so imports of this package are relative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..checks import (
    as_column,
    as_str,
    check_bool,
    check_choice,
    check_int,
    check_number,
    check_same_length,
    check_type,
)
from ..preprocessing.collate import SINGLE_STRATEGIES, Batch, Rows, TextPacker, TextRows

# All subclasses of `Answerer` in this process, by their modules and names.
KNOWN: dict[str, type[Answerer]] = {}
# Encodes what an answerer's `texts` returned, and computes the outputs of the rows.
Read = Callable[["Answerer", Any], tuple[Rows, Iterable[Batch]]]


class Field(NamedTuple):
    """A field of a row of texts.

    Attributes:
        name: str.
        kind: `"text"`; `"texts"` for a list of them, in the last field; or `"optional"`.
    """

    name: str
    kind: str = "text"


class Option(NamedTuple):
    """An option of an answer, with its bounds: Python, server and command line check the same.

    Attributes:
        name: str.
        type: `int`, `float`, `bool` or `str`; or a tuple of choices.
        default: its value when left out.
        about: str, what it does, for the command's help.
        least, most: limits of a number.
        is_checked: bool, whether `checked` applies these rules. Otherwise the answerer checks the
            value, since what it must be depends on other settings.
    """

    name: str
    type: Any
    default: Any
    about: str
    least: float | None = None
    most: float | None = None
    is_checked: bool = True

    def checked(self, value: Any) -> Any:
        """Returns the value; raises `TypeError` or `ValueError` if it does not fit."""
        if not self.is_checked or (value is None and self.default is None):
            return value
        if isinstance(self.type, tuple):
            return check_choice(self.name, value, self.type)
        if self.type is int:
            return check_int(self.name, value, self.least, self.most)
        if self.type is float:
            least, most = (-np.inf if self.least is None else self.least), self.most
            return check_number(self.name, value, least, most=np.inf if most is None else most)
        if self.type is bool:
            return check_bool(self.name, value)
        return check_type(self.name, value, self.type, f"a {self.type.__name__}")


class Answerer:
    """How one kind of question about texts is read and answered.

    An answerer belongs to one question: it knows the task's settings and the question's options. A
    subclass names the method, its fields and options, and turns arrays into answers. One whose
    texts are not one row each also overrides `encode`.

    Args:
        settings: mapping, the settings of the task that the answer depends on; plain data.
        packer: a `TextPacker`.
        **options: values of `options`.

    Attributes:
        method: str, the name of the task's method.
        fields: tuple of `Field`, what a row has.
        options: tuple of `Option`.
        about, example: str, for the help of the command: what it does, and arguments of it. An
            answerer without them is a step of others: it has no command and no route.
        command: str, the name of the command; by default the method's.
        route: str, the name that a server has for the answer; by default the method's.
        setting_names: tuple of str, the task's attributes that make its settings, see
            `Task.answer_settings`.
        tag, does, call: str, for the model card: the pipeline tag of the Hugging Face Hub, what
            the task does, and an example of a call, in which `{mask}` is the mask token.
    """

    method: ClassVar[str]
    fields: ClassVar[tuple[Field, ...]] = (Field("text"),)
    options: ClassVar[tuple[Option, ...]] = ()
    setting_names: ClassVar[tuple[str, ...]] = ()
    about: ClassVar[str] = ""
    example: ClassVar[str] = ""
    command: ClassVar[str | None] = None
    route: ClassVar[str | None] = None
    tag: ClassVar[str] = "feature-extraction"
    does: ClassVar[str] = ""
    call: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        KNOWN[f"{cls.__module__}.{cls.__qualname__}"] = cls

    def __init__(self, settings: Mapping[str, Any], packer: TextPacker, **options: Any) -> None:
        self.settings, self.packer = settings, packer
        for option in self.options:
            setattr(self, option.name, option.checked(options.pop(option.name, option.default)))
        if options:
            names = ", ".join([*(option.name for option in self.options), "batch_size (in Python)"])
            received = ", ".join(f"{name}={options[name]!r:.60}" for name in sorted(options))
            raise ValueError(f"`{self.method}` takes {names}. Received: {received}.")

    @property
    def tokenizer(self) -> Any:
        """The `TextEncoder` of the packer."""
        return self.packer.tokenizer

    @property
    def values_per_token(self) -> int:
        """How many numbers a program computes for each token of a row, where they are many."""
        return 1

    def columns(self, *columns: Any) -> tuple[tuple[list[Any], ...], bool]:
        """Returns columns as lists, and whether they are one example, whose first field is a str.

        Args:
            *columns: for each field a str, or a column of str.
        """
        if is_one := isinstance(columns[0], str):
            columns = tuple([column] for column in columns)
        names, _ = zip(*self.fields, strict=True)
        if len(columns) > len(names):
            raise ValueError(
                f"`{self.method}` takes {', '.join(names)}. Received: {len(columns)} columns of "
                "texts. Join the texts of a row."
            )
        named = dict(zip(names, map(as_column, columns, names), strict=False))
        if len(named) > 1:
            check_same_length(f"{' and '.join(named)} must be equally many", **named)
        return tuple(named.values()), is_one

    @classmethod
    def sample(cls, packer: TextPacker, text: str) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Returns a row with a text in each field, and options: a question to compile with."""
        takes_pairs_only = packer.truncation not in SINGLE_STRATEGIES
        fields = [x for x in cls.fields if x.kind != "optional" or takes_pairs_only]
        return (text,) * len(fields), {}

    @classmethod
    def columns_of(cls, rows: Sequence[Sequence[str]]) -> tuple[list[Any], ...]:
        """Returns rows of texts as columns, a list of texts for a field that holds several."""
        if cls.fields[-1].kind != "texts":
            return tuple(map(list, zip(*rows, strict=True)))
        count = len(cls.fields) - 1
        first = zip(*(row[:count] for row in rows), strict=True)
        return *map(list, first), [list(row[count:]) for row in rows]

    def texts(self, *columns: list[Any]) -> Any:
        """Returns what the model reads: a column of texts, or a tuple of columns of pairs."""
        return columns[0] if len(columns) == 1 else columns

    def encode(self, texts: Any) -> Rows:
        """Returns what `texts` returned as rows of token ids."""
        return TextRows(self.packer, *self.packer.tokenize(texts))

    def answer(self, rows: Rows, batches: Iterable[Batch], *columns: list[Any]) -> Any:
        """Returns the answers, one for each example.

        Args:
            rows: what `encode` returned.
            batches: yields the indices of rows and their outputs, until each row has come.
            *columns: what `columns` returned.
        """
        return self.answers(rows.collect(batches))

    def answers(self, arrays: Any) -> Any:
        """Returns the answers for what `Rows.collect` returned, by default that itself."""
        return arrays

    def no_answers(self, *columns: list[Any]) -> Any:
        """Returns the answers for no texts."""
        return []

    def ask(self, read: Read, *columns: Any) -> Any:
        """Returns the answer to one example, or to columns of examples.

        Args:
            read: see `Read`.
            *columns: see `columns`.
        """
        columns, is_one = self.columns(*map(as_str, columns))
        texts = self.texts(*columns)
        if len(texts[0] if isinstance(texts, tuple) else texts):
            answers = self.answer(*read(self, texts), *columns)
        else:
            answers = self.no_answers(*columns)
        return answers[0] if is_one else answers
