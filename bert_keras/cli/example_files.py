"""Which files hold the examples of a run, and how each kind of examples is read."""

import contextlib
import dataclasses
import functools
import os
import re
from typing import NamedTuple

import numpy as np

from bert_keras import datasets, metrics
from bert_keras.checks import check_exists, check_not_empty, refuse_options
from bert_keras.cli.measures import TRUE_PAIR
from bert_keras.cli.options import LAYOUT, passed_flags
from bert_keras.datasets.labelled_texts import ExampleSet
from bert_keras.datasets.reviews import SENTIMENT_SENTENCES_FILES
from bert_keras.datasets.table import is_number

# The known set besides those of GLUE, by its files.
SENTIMENT = "sentiment_sentences"
# Flags of files with texts that decide how `datasets.read_texts` reads them.
TEXT_FLAGS = ("problem_type", "label_separator", *(option.name for option in LAYOUT))


class Splits(NamedTuple):
    """The examples of a training run, each an `ExampleSet` whose last column is the labels.

    Attributes:
        train, dev, test: the examples, `None` where there are none.
        settings: dict of the arguments of `from_preset` that follow from the labels.
        classes: the classes as the files have them, in the order of the model's label names.
    """

    train: ExampleSet
    dev: ExampleSet
    test: ExampleSet | None = None
    settings: dict = {}  # noqa: RUF012
    classes: tuple = ()


@dataclasses.dataclass(frozen=True)
class Questions(ExampleSet):
    """Questions on contexts.

    Args:
        contexts: list of str.
        examples: list of `QuestionExample`.
        labels: list of bool, whether the metric can measure each; `None` if it can measure none.
        metric: str, the official score.
    """

    contexts: list
    examples: list
    labels: list | None = None
    metric: str | None = None

    columns = ("contexts", "examples", "labels")


def labels_of(examples):
    """Returns the labels of examples, `None` if they have none."""
    return getattr(examples, examples.columns[-1])


def check_labelled(name, examples):
    """Raises `ValueError` if there are no labels; `name` begins the message."""
    if not len(examples) or labels_of(examples) is None:
        raise ValueError(
            f"{name} must have labels. Received: {len(examples)} examples without any, as in "
            "GLUE's test sets. `train` takes such a file by --test_file."
        )


def columns_of(examples):
    """Returns what a model reads of examples: a column, or a tuple of columns."""
    fields = tuple(getattr(examples, name) for name in examples.columns[:-1])
    return fields if len(fields) > 1 else fields[0]


def texts_of(examples):
    """Returns a text of each example, or columns of pairs."""
    column = getattr(examples, examples.columns[0])
    if isinstance(column, tuple):
        return column
    return [text if isinstance(text, str) else " ".join(text) for text in column]


# Arguments of `fit`


def fit_options(flags, splits):
    """Returns the examples to train on, and those whose loss `fit` computes too."""
    train, dev = splits.train, splits.dev
    return {
        "x": columns_of(train),
        "y": labels_of(train),
        "validation_data": (columns_of(dev), labels_of(dev)),
    }


def fit_options_of_pairs(flags, splits):
    """Returns pairs with their similarities, or for ranking those that mean the same."""
    train = splits.train
    if flags.objective != "ranking":
        return {"x": train.texts, "y": train.labels}
    first, second = train.take(np.flatnonzero(train.labels >= TRUE_PAIR)).texts
    check_not_empty(first, "--objective ranking needs pairs with the same meaning")
    return {"x": (first, second), "y": groups_of(first, second)}


def groups_of(first, second):
    """Returns a number for each pair, the same for pairs that are connected by equal texts.

    Pairs (a, b), (c, b) and (c, d) are one group: as negatives of one another they would teach that
    a and d differ, although both mean the same as b and c.

    Args:
        first: list of str.
        second: list of str.

    Returns:
        int32 `(num_pairs,)`, the connected components of the graph of texts with pairs as edges.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    texts, ids = np.unique([*first, *second], return_inverse=True)
    first_ids, second_ids = np.split(ids, 2)
    shape = (len(texts), len(texts))
    graph = coo_array((np.ones(len(first_ids)), (first_ids, second_ids)), shape)
    return connected_components(graph, directed=False)[1][first_ids].astype("int32")


# Files by part


def find_dataset(kind, flags):
    """Sets `--dataset` to the known set in the folder, and refuses columns of a known set."""
    if "dataset" not in flags:
        return
    folder, was_named = "data_dir" in flags and flags.data_dir, flags.dataset
    if folder and not was_named:
        names = {*os.listdir(folder)} if os.path.isdir(folder) else set()
        is_sentiment = names.issuperset(SENTIMENT_SENTENCES_FILES)
        flags.dataset = SENTIMENT if is_sentiment else datasets.detect_glue_task(folder)
    if flags.dataset:
        names = [x.name for x in kind.data if x.name in flags and x.name != "dataset"]
        advice = "Leave out --dataset" if was_named else "Pass your own files by --train_file"
        refuse_options(
            "Known data sets have known columns", passed_flags(flags, names), f"{advice}."
        )


def check_paths(flags):
    """Refuses files that would not be read, or do not exist."""
    passed = passed_flags(flags, ("data_dir", "train_file", "dev_file", "test_file"))
    has_files = "--train_file" in passed or "--dev_file" in passed
    if ("--data_dir" in passed and has_files) or not {"--data_dir", "--train_file"} & {*passed}:
        raise ValueError(
            "Pass --data_dir, whose files are found by their names, or --train_file, with or "
            f"without --dev_file. Received: {', '.join(passed) or 'none of these'}."
        )
    for flag, path in passed.items():
        check_exists(path, f"{flag} must be a path that exists")


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


def read_parts(flags, read_file):
    """Returns the `Splits` of the flags' files; a missing one is held out from another.

    Args:
        flags: values of the flags of `train`.
        read_file: function from the flags, a path, the training examples, `None` for themselves,
            and a part's name to examples, which may lack labels if the part is `"test"`.
    """
    found = {} if flags.train_file else files_by_name(flags.data_dir)
    files = {x: flags[f"{x}_file"].value or found.get(x) for x in ("train", "dev", "test")}
    source = files["train"] or files["dev"]
    train = read_file(flags, source, None, "train")
    dev = read_file(flags, files["dev"], train, "dev") if files["train"] and files["dev"] else None
    test = read_file(flags, files["test"], train, "test") if files["test"] else None
    if dev is None:
        train, dev = hold_out(train, source, "dev" if files["train"] else "training")
    return Splits(train, dev, test)


def hold_out(examples, source, missing):
    """Returns examples in two parts: a text of the second is not in the first.

    With one class per example, each class has the same share in both.

    Args:
        examples: `ExampleSet`.
        source: str, the file of the examples, which a printed line names.
        missing: `"dev"` for a tenth, or `"training"` for a fifth, in the second part.
    """
    share, part = (0.1, "tenth") if missing == "dev" else (0.2, "fifth")
    print(f"There is no {missing} file: a {part} of {source} is held out to measure on.")
    size = min(max(2, int(len(examples) * share)), len(examples) // 2)
    is_single = getattr(examples, "problem_type", None) == "single_label"
    strata = np.asarray(examples.labels).tolist() if is_single else None
    splits = datasets.split_indices(texts_of(examples), size, 0, strata)
    return tuple(map(examples.take, splits))


# Texts, or pairs of texts, in files of the user's own or of a known set


def _read_text_file(flags, path, known=None, part="dev", **options):
    """Returns the texts of a file of the known set, or of one whose columns the flags name.

    Args:
        flags: values of the command's flags.
        path: str.
        known: the examples to train on, whose labels the file must have; `None` for themselves.
        part: `"test"` for a file that may lack labels.
        **options: arguments of `datasets.read_texts` in place of those that follow.
    """
    if flags.dataset not in (None, SENTIMENT):
        return datasets.read_examples(path, datasets.get_glue_task(flags.dataset))
    values = {name: flags[name].value for name in TEXT_FLAGS if name in flags}
    values |= {"may_lack_labels": part == "test", "label_names": known and known.label_names}
    return datasets.read_texts(path, flags.columns, flags.label_column, **values | options)


def _read_texts(flags, **options):
    """Returns the `Splits` of texts, whose training file decides the names of the labels."""
    read_file = functools.partial(_read_text_file, **options)
    if not flags.data_dir:
        return read_parts(flags, read_file)
    splits = _read_known(flags.dataset, flags.data_dir)
    if not flags.test_file:
        return splits
    return splits._replace(test=read_file(flags, flags.test_file, splits.train, "test"))


def _read_known(known, folder):
    """Returns the `Splits` of a known set in a folder with its original files."""
    if known == SENTIMENT:
        return Splits(*datasets.load_sentiment_sentences(folder))

    def load(part):
        with contextlib.suppress(FileNotFoundError):
            return datasets.load_glue(known, folder, part)

    files = datasets.get_glue_task(known).files
    train, dev = load("train"), datasets.load_glue(known, folder, "dev")
    test = load("test_labelled" if "test_labelled" in files else "test")
    if train is None:
        train, dev = hold_out(dev, "the dev file", "training")
    return Splits(train, dev, None if test is None or labels_of(test) is None else test)


def read_texts(flags):
    """Returns the `Splits` of texts with classes, several labels, or scores."""
    splits = _read_texts(flags)
    sets = [examples and _renamed(flags, examples) for examples in splits[:3]]
    train, classes = sets[0], splits.train.label_names
    settings = {
        "num_classes": max(1, len(train.label_names)),
        "label_names": train.label_names or None,
        "problem_type": train.problem_type,
    }
    return Splits(*sets, settings, classes)


def _renamed(flags, examples):
    """Returns examples whose classes have the names in `--label_names` instead of numbers."""
    names, numbers = tuple(flags.label_names or ()), examples.label_names
    if not names:
        return examples
    if len({*names}) != len(numbers) or not all(x.lstrip("-").isdigit() for x in numbers):
        raise ValueError(
            "--label_names must be different names, one for each class of the files, which must be "
            f"numbers. Received: {list(names)} for the classes {list(numbers)}."
        )
    name_of = dict(zip(sorted(numbers, key=int), names, strict=True))
    return dataclasses.replace(examples, label_names=tuple(name_of[x] for x in numbers))


def read_labelled_texts(flags, path, model, classes=()):
    """Returns texts with the labels that a classifier knows.

    Args:
        flags: values of the flags of `evaluate`.
        path: str.
        model: `TextClassifier`.
        classes: the names of the model's classes in files like those it was trained on, if known.
    """
    kind = model.problem_type
    # Names of labels that are numbers are those numbers.
    names = tuple(model.label_names or map(str, range(model.num_classes)))
    names = () if kind == "regression" else names
    known = tuple(classes) or (None if flags.label_names else names)
    options = {"label_names": known, "problem_type": kind}
    examples = _renamed(flags, _read_text_file(flags, path, **options))
    if not flags.label_names and examples.label_names == tuple(classes):
        examples = dataclasses.replace(examples, label_names=names)
    if (examples.problem_type, tuple(examples.label_names)) != (kind, names):
        raise ValueError(
            f"{path} must have the labels of the model, {kind} {list(names)}. Received: "
            f"{examples.problem_type} {list(examples.label_names)}."
        )
    return examples


def read_pairs(flags):
    """Returns the `Splits` of pairs of texts, whose labels are similarities from 0 to 1."""
    splits = _read_texts(flags, **_similarity_options(flags))
    return Splits(*(pairs and _similarities(flags, pairs) for pairs in splits[:3]))


def read_labelled_pairs(flags, path, model):
    """Returns pairs of texts with their similarities."""
    return _similarities(flags, _read_text_file(flags, path, **_similarity_options(flags)))


def _similarity_options(flags):
    return {"problem_type": "regression", "score_range": (0.0, flags.highest_score)}


def _similarities(flags, pairs):
    """Returns pairs with labels from 0, different, to 1, the same."""
    if not isinstance(pairs.texts, tuple) or len(pairs.label_names) > 2:
        raise ValueError(
            "Examples must be pairs that are similar or not: --columns must name their two texts, "
            f"or --dataset stsb, mrpc or qqp. Received: {flags.dataset or flags.columns}."
        )
    if pairs.labels is None:
        return pairs
    labels, highest = np.asarray(pairs.labels, "float32"), flags.highest_score
    if flags.dataset:
        task = datasets.get_glue_task(flags.dataset)
        highest = task.score_range[1] if task.problem_type == "regression" else 1.0
    if pairs.label_names[:1] == ("entailment",):
        labels = 1 - labels
    return dataclasses.replace(pairs, labels=labels / highest)


# Sentences of tagged words


def read_tags(flags):
    """Returns the `Splits` of sentences of tagged words.

    Raises:
        ValueError: a tag marks no entity though most do.
    """
    splits = read_parts(flags, read_tag_file)
    tags = datasets.tag_names(*filter(None, splits[:3]))
    if odd := metrics.find_odd_tags(tags):
        raise ValueError(
            "Each tag must be of a scheme of entities: O, or a prefix and a type, such as B-PER. "
            f"Received: {odd[0]!r} among {tags}. Correct the files or --tag_column."
        )
    return splits._replace(settings={"num_classes": len(tags), "label_names": tags})


def read_tag_file(flags, path, known, part="dev"):
    """Returns the tagged sentences of a file; prints where its words and tags are."""
    columns = {name: flags[name].value for name in ("word_column", "tag_column")}
    columns = {n: int(x) if x and is_number(x) else x for n, x in columns.items()}
    if part != "test":
        print(f"{path}: {datasets.tag_layout(path, **columns)}.")
    options = {"may_lack_tags": part == "test", "label_names": flags.label_names}
    return datasets.read_conll(path, **columns, **options)


# Questions on contexts, and contexts with choices


def read_question_file(flags, path, known=None, part="dev"):
    """Returns the questions of a file; prints what it leaves out, and how they are scored.

    The training file decides the official score, in `evaluate` the file itself. Files of CMRC and
    DRCD have their own, by their names. The language does not decide: XQuAD's Chinese part is
    scored like SQuAD. Only the metric of SQuAD 2.0 knows questions without an answer.
    """
    examples, mismatches = datasets.read_squad(path)
    usable = [example for example in examples if example.question.strip()]
    if len(usable) < len(examples):
        print(f"{path}: blank questions left out: {len(examples) - len(usable)}.")
    if mismatches:
        print(f"{path}: answers not in the context at 'answer_start': {len(mismatches)}.")
    is_cmrc = re.search("cmrc|drcd", os.path.basename(path), re.IGNORECASE)
    own = "squad_v2" if any(x.is_impossible for x in usable) else "cmrc" if is_cmrc else "squad_v1"
    metric = flags.metric or getattr(known, "metric", own)
    labels = [bool(x.answers) or (metric == "squad_v2" and x.is_impossible) for x in usable]
    print(
        f"{path}: {labels.count(True)} of {len(labels)} questions have an answer that {metric} can "
        "measure; --metric chooses another of the official scores."
    )
    contexts = [example.context for example in usable]
    return Questions(contexts, usable, labels if any(labels) else None, metric)


def read_choice_file(flags, path, known, part="dev"):
    """Returns contexts with their choices and the right one."""
    return datasets.read_multiple_choice(path)
