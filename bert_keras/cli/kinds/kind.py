"""The base of all kinds of examples: which files hold them, and what a run does with them."""

import inspect
import os
import re
from typing import NamedTuple

import numpy as np

import bert_keras
from bert_keras import datasets, plots
from bert_keras.checks import check_exists
from bert_keras.cli.options import Option
from bert_keras.presets.families.record import TASKS

POOLING = Option("pooling", str, None, "pooler, cls, mean or max; by default the checkpoint's own.")
# For prediction. Answers do not depend on it.
BATCH_SIZE = 32


def task_of(head):
    """Returns the class of the task of a head, one of `families.record.TASKS`."""
    return getattr(bert_keras, TASKS[head])


class Splits(NamedTuple):
    """The examples of a training run; `dev_sets` are further ones to measure on, by name."""

    train: object
    dev: object
    test: object = None
    dev_sets: dict = {}  # noqa: RUF012


class Kind:
    """One kind of examples, as a training run reads, measures and shows them.

    A subclass sets what is data, and overrides what differs. Examples are an
    `datasets.labelled_texts.ExampleSet`, whose last column is the labels, or a list of questions.

    Args:
        flags: values of the options of a command.

    Attributes:
        name: str, what `train` calls it.
        model_class: class of the model.
        data: `Option`s for its files, which `evaluate` takes too.
        model: `Option`s that `from_preset` takes as arguments of the same names, if given.
        training: further `Option`s of `train`.
        defaults: dict of flags with another default.
        needs: names of the packages that measuring needs.
        cuts_all: bool, whether `--sample` also cuts the sets to measure on.
        keeps_answers: bool, whether the answers on the dev set are written too.
    """

    name = model_class = None
    data = model = training = needs = ()
    defaults = {}  # noqa: RUF012
    cuts_all = keeps_answers = False

    def __init__(self, flags):
        self.flags = flags

    @classmethod
    def about(cls):
        """Returns the first sentence of the task's documentation."""
        return inspect.getdoc(cls.model_class).partition("\n")[0]

    # Reading

    def read(self):
        """Returns the `Splits` of the flags' files; a missing one is held out from another."""
        files = self.files()
        source = files["train"] or files["dev"]
        train = self.read_file(source, "train")
        dev = files["dev"] if files["train"] else None
        dev, test = (
            self.read_file(path, part) if path else None
            for part, path in (("dev", dev), ("test", files["test"]))
        )
        if dev is None:
            share, missing = (0.1, "dev") if files["train"] else (0.2, "training")
            part = "tenth" if files["train"] else "fifth"
            print(f"There is no {missing} file: a {part} of {source} is held out to measure on.")
            train, dev = self.held_out(train, share)
        return Splits(train, dev, test)

    def read_file(self, path, part):
        """Returns the examples of a file, which may lack labels if its part is `"test"`."""
        raise NotImplementedError(f"{type(self).__name__} must define `read_file`.")

    def read_labelled(self, path, model):
        """Returns examples to measure a trained model on, whose labels the model must know."""
        return self.read_file(path, "dev")

    def files(self):
        """Returns the files of the flags: a dict from train, dev and test to a path or `None`."""
        flags, found = self.flags, {}
        if not flags.train_file:
            if not os.path.isdir(flags.data_dir):
                raise ValueError(
                    f"--data_dir must be a folder. Received: {flags.data_dir!r}. Pass a file by "
                    "--train_file."
                )
            found = files_by_name(flags.data_dir)
        return {x: flags[f"{x}_file"].value or found.get(x) for x in ("train", "dev", "test")}

    def held_out(self, examples, share):
        """Returns examples in two parts: the second has a share of them, and no text of the first.

        With one class per example, each class has the same share in both.
        """
        size = min(max(2, int(len(examples) * share)), len(examples) // 2)
        is_single = getattr(examples, "problem_type", None) == "single_label"
        strata = np.asarray(examples.labels).tolist() if is_single else None
        splits = datasets.split_indices(texts_of(examples), size, 0, strata)
        return tuple(take(examples, part) for part in splits)

    def are_labelled(self, examples):
        """Whether there are labels to train on or to measure by."""
        return len(examples) > 0 and labels_of(examples) is not None

    # Training

    def settings(self, splits):
        """Returns further arguments of `from_preset`."""
        return {}

    def make(self, setting, options):
        """Returns a new model for a setting, one combination of values of the flags."""
        return self.model_class.from_preset(self.flags.preset, **options)

    def check(self, model, splits):
        """Raises an error if measuring the model would fail later."""

    def compile_options(self):
        """Returns further arguments of `compile`."""
        return {}

    def fit_options(self, splits):
        """Returns the examples as arguments of `fit`."""
        train, dev = (
            (self.columns(examples), labels_of(examples)) for examples in (splits.train, splits.dev)
        )
        return {"x": train[0], "y": train[1], "validation_data": dev}

    def columns(self, examples):
        """Returns what a model of this kind reads of examples."""
        fields = tuple(getattr(examples, name) for name in examples.columns[:-1])
        return fields if len(fields) > 1 else fields[0]

    def before(self, make, splits):
        """Returns scores to compare with, by name.

        Args:
            make: function that returns a new model; its arguments replace those of the flags.
            splits: `Splits`.
        """
        return {}

    def after(self, model, splits):
        """Returns thresholds by label, or `None`, and further scores of the best model."""
        return None, {}

    # Measuring

    def evaluate(self, model, examples, tune=False):
        """Returns scores, the main one first, none without labels; and a function of no arguments.

        The function returns the answers, by the name of the file to write.

        Args:
            model: the trained task.
            examples: see the class.
            tune: bool, whether thresholds of the model may be tuned on these examples.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `evaluate`.")

    def verdict(self, scores, examples):
        """Returns the `Verdict` on scores."""
        raise NotImplementedError(f"{type(self).__name__} must define `verdict`.")

    def by_class(self, model, examples):
        """Returns precision, recall, f1 and support of each class, a dict of dicts by class."""
        return {}

    def true_labels(self, examples):
        """Returns the label of each example, as `predicted_label` writes it, or `None`."""
        return None

    def predicted_label(self, answer):
        """Returns an answer as `true_labels` writes a label."""
        return answer["label"]

    def answers(self, model, examples):
        """Returns the texts of each example, a dict by field, and what the model answers."""
        answerer, rows = model.answerers[0], self.rows(examples)
        names = [field.name for field in answerer.fields]
        if answerer.fields[-1].kind == "texts":
            fields = ((*row[: len(names) - 1], list(row[len(names) - 1 :])) for row in rows)
        else:
            fields = rows
        named = [dict(zip(names, row, strict=False)) for row in fields]
        options = self.answer_options(model)
        return named, model.ask_rows(answerer.method, rows, batch_size=BATCH_SIZE, **options)

    def answer_options(self, model):
        """Returns the options of the model's answers."""
        return {}

    def rows(self, examples):
        """Returns examples as rows of texts, as commands ask them."""
        columns = self.columns(examples)
        return list(zip(*(columns if isinstance(columns, tuple) else (columns,)), strict=True))

    def confusion(self, model, examples):
        """Returns true and predicted classes and the classes' names, or `None`."""
        return None

    def draw(self, model, dev, folder):
        """Draws pictures of the model's answers."""
        if (found := self.confusion(model, dev)) is not None:
            plots.confusion_matrix(*found, path=folder / "confusion_matrix.png")


def check_paths(flags):
    """Refuses paths that do not exist, or would not be read."""
    names = ("data_dir", "train_file", "dev_file", "test_file")
    paths = {name: flags[name].value for name in names}
    for name, path in paths.items():
        if path is not None:
            check_exists(path, f"--{name} must exist")
    has_files = paths["train_file"] or paths["dev_file"]
    if (paths["data_dir"] and has_files) or not (paths["data_dir"] or paths["train_file"]):
        received = ", ".join(f"--{name}" for name, path in paths.items() if path) or "none of these"
        raise ValueError(
            "Pass --data_dir, whose files are found by their names, or --train_file and "
            f"--dev_file. Received: {received}."
        )


def files_by_name(folder):
    """Returns the files of a folder by part; a single file is `train`.

    If a part has several files, only the first is read; a printed line names the others.
    """
    names = sorted(os.listdir(folder))
    names = [name for name in names if not re.match(r"\.|LICENSE|README", name)]
    files, unread = {}, []
    words_of = {"train": "train|training|trial", "dev": "dev|val|valid|validation", "test": "test"}
    for name in names:
        for part, words in words_of.items():
            if re.search(rf"(?<![a-z])({words})(?![a-z])", name, re.IGNORECASE):
                unread += [name] if part in files else []
                files.setdefault(part, os.path.join(folder, name))
    if unread:
        print(f"{folder}: one file of each part is read. Not read: {', '.join(unread[:20])}.")
    if not files and len(names) == 1:
        return {"train": os.path.join(folder, names[0])}
    if not ("train" in files or "dev" in files):
        raise ValueError(
            f"{folder} must hold one file, or files with train, dev or validation, and test in "
            f"their names. Found: {names[:20]}."
        )
    return files


def texts_of(examples):
    """Returns a text of each example, or columns of pairs."""
    if isinstance(examples, list):
        return [example.context for example in examples]
    column = getattr(examples, examples.columns[0])
    if isinstance(column, tuple):
        return column
    return [text if isinstance(text, str) else " ".join(text) for text in column]


def labels_of(examples):
    """Returns the labels of examples, `None` if they have none."""
    return getattr(examples, examples.columns[-1])


def take(examples, indices):
    """Returns the examples at some positions."""
    if isinstance(examples, list):
        return [examples[index] for index in indices]
    return examples.take(indices)
