"""The examples of a training run: which files, and which reader reads them."""

import os
import re
import warnings
from typing import NamedTuple

import numpy as np

from bert_keras import datasets, metrics
from bert_keras.checks import check_exists, refuse_unused
from bert_keras.cli.options import given
from bert_keras.datasets.sentiment import SENTIMENT_SENTENCES_FILES

COLUMN_FLAGS = (
    *("text_column", "pair_column", "label_column"),
    *("problem_type", "label_separator", "separator", "quoting", "encoding", "highest_score"),
)


class Parts(NamedTuple):
    """The examples of a training run; `further` is what else a task needs to know."""

    train: object
    dev: object
    test: object = None
    further: dict = {}  # noqa: RUF012
    dev_sets: dict = {}  # noqa: RUF012


def check_paths(flags):
    """Refuses paths that do not exist, or would not be read."""
    paths = {
        name: flags[name].value for name in ("data_dir", "train_file", "dev_file", "test_file")
    }
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


def find_files(flags, find):
    """Returns the files of the flags: a dict from `train`, `dev` and `test` to a path or `None`.

    Args:
        flags: the flags.
        find: function that returns such a dict for a folder.
    """
    if flags.train_file:
        return {"train": flags.train_file, "dev": flags.dev_file, "test": flags.test_file}
    if not os.path.isdir(flags.data_dir):
        raise ValueError(
            f"--data_dir must be a folder. Received: {flags.data_dir!r}. Pass a file by "
            "--train_file."
        )
    files = find(flags.data_dir)
    return {**files, "test": flags.test_file or files.get("test")}


def files_by_name(folder):
    """Returns the files of a folder by part; a single file is `train`.

    If a part has several files, only the first is read; a printed line names the others.
    """
    names = sorted(os.listdir(folder))
    names = [name for name in names if not re.match(r"\.|LICENSE|README", name)]
    names = [name for name in names if not name.endswith("-labels.lst")]
    files, unread = {}, []
    words_of = {"train": "train", "dev": "dev|val|valid|validation", "test": "test"}
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


# Texts


def read_texts(flags):
    """Returns labelled texts, or pairs of texts, from a known folder or from files with columns."""
    dataset = flags.dataset
    if dataset or flags.data_dir:
        columns = given(flags, [name for name in COLUMN_FLAGS if name in flags])
        advice = "Pass your own files by --train_file."
        refuse_unused("Known data sets have known columns", columns, advice)
    folder = flags.data_dir
    if not folder:
        return read_named_files(flags, read_text_file)
    if _is_sentiment(folder):
        parts = Parts(*datasets.load_sentiment_sentences(folder))
    elif not dataset and _is_imdb(folder):
        train, test = (datasets.load_imdb(folder, part) for part in ("train", "test"))
        parts = Parts(*_held_out(train), test)
    else:
        parts = _read_glue(flags)
    if not flags.test_file:
        return parts
    return parts._replace(
        test=read_text_file(flags, flags.test_file, parts.train.label_names, True)
    )


def read_named_files(flags, read):
    """Returns the parts in `--train_file`, `--dev_file` and `--test_file`.

    Args:
        flags: the flags.
        read: function of the flags, a path, the names of the labels, and whether a file may lack
            labels.
    """
    train = read(flags, flags.train_file)
    test = read(flags, flags.test_file, train.label_names, True) if flags.test_file else None
    if flags.dev_file:
        return Parts(train, read(flags, flags.dev_file, train.label_names), test)
    print(f"There is no dev file: a tenth of {flags.train_file} is held out.")
    return Parts(*_held_out(train), test)


def _is_sentiment(folder):
    return {*SENTIMENT_SENTENCES_FILES} <= {*_listed(folder)}


def _listed(path):
    return os.listdir(path) if os.path.isdir(path) else ()


def _is_imdb(path):
    names = {"aclImdb", "train"} & {*_listed(path)}
    is_archive = os.path.basename(path).startswith("aclImdb") and os.path.isfile(path)
    return bool(names) or is_archive or any(n.startswith("aclImdb") for n in _listed(path))


def _held_out(examples):
    size = min(max(2, len(examples) // 10), len(examples) // 2)
    return datasets.split_examples(examples, test_size=size, seed=0)


def read_text_file(flags, path, label_names=None, may_lack_labels=False, **options):
    """Reads a file of the named or detected dataset, or one whose columns the flags name."""
    name, folder = flags.dataset, flags["data_dir"].value if "data_dir" in flags else None
    if name or (folder and not (_is_sentiment(folder) or _is_imdb(folder))):
        name = name or datasets.detect_glue_task(folder)
        return datasets.read_examples(path, datasets.get_glue_task(name))
    names = ("problem_type", "label_separator", "separator", "quoting", "encoding")
    options = {name: flags[name].value for name in names if name in flags} | options
    columns = [flags.text_column, *([flags.pair_column] if "pair_column" in flags else [])]
    return datasets.read_texts(
        path, columns, flags.label_column, label_names, may_lack_labels=may_lack_labels, **options
    )


def _read_glue(flags):
    name = flags.dataset or datasets.detect_glue_task(flags.data_dir)
    parts = {}
    for part in ("train", "dev", "test", "dev_mismatched"):
        if part in datasets.get_glue_task(name).files:
            try:
                parts[part] = datasets.load_glue(name, flags.data_dir, part)
            except FileNotFoundError:
                if part == "dev":
                    raise
    more_sets = {"mismatched": parts["dev_mismatched"]} if "dev_mismatched" in parts else {}
    test = parts.get("test")
    test = None if test is None or test.labels is None else test
    if "train" in parts:
        return Parts(parts["train"], parts["dev"], test, {}, more_sets)
    print("There is no training file: a fifth of the dev file is held out to measure on.")
    return Parts(*datasets.split_examples(parts["dev"], 0.2, seed=0), test, {}, more_sets)


# Choices


def read_choices(flags):
    """Returns contexts with their choices."""
    files = find_files(flags, files_by_name)
    if not files.get("train"):
        print("There is no training file.")
        files = {**files, "train": files["dev"], "dev": None}
    train, dev, test = (
        datasets.read_multiple_choice(files[part]) if files.get(part) else None
        for part in ("train", "dev", "test")
    )
    if dev is None:
        print(f"A fifth of {files['train']} is held out to measure on.")
        train_indices, held_out = datasets.split_indices(train.contexts, 0.2, seed=0)
        train, dev = train.take(train_indices), train.take(held_out)
    chance = np.mean([1 / len(choices) for choices in dev.choices])
    print(f"Guessing would be right {chance:.1%} of the time.")
    return Parts(train, dev, test)


def with_printed_warnings(read, path, **options):
    """Returns what a reader returns, and prints what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = read(path, **options)
    for warning in caught:
        print(warning.message)
    return result


# Tagged words


def read_tags(flags):
    """Returns sentences of tagged words.

    Raises:
        ValueError: a tag is not in `--scheme`, or marks no entity though most do, or the tags are
            texts. The message names the file.
    """
    files = find_files(flags, files_by_name)
    if not files.get("train"):
        # For People's Daily and MSRA often only dev and test are available.
        if not files.get("test"):
            raise ValueError(
                f"{flags.data_dir} must hold a training file or a test file. Received: neither."
            )
        print(f"There is no training file: train on {files['dev']}, measure on {files['test']}.")
        files = {"train": files["dev"], "dev": files["test"], "test": flags.test_file}
    columns = tag_columns(flags)
    print(f"{files['train']}: {datasets.tag_layout(files['train'], **columns)}.")
    columns["label_names"] = flags.label_names
    train, dev, test = (
        with_printed_warnings(
            datasets.read_conll, files[part], **columns, may_lack_tags=part == "test"
        )
        if files.get(part)
        else None
        for part in ("train", "dev", "test")
    )
    tags = datasets.tag_names(*filter(None, (train, dev, test)))
    _check_tags(flags, tags, train, files, columns)
    if dev is None:
        print(f"There is no dev file: a tenth of {files['train']} is held out.")
        order = np.random.default_rng(0).permutation(len(train))
        tenth = max(1, len(order) // 10)
        train, dev = train.take(order[tenth:]), train.take(order[:tenth])
    return Parts(train, dev, test, {"tags": tags})


def tag_columns(flags):
    """Returns the columns of words and tags by the flags: numbers, names or `None`."""
    columns = {name: flags[name].value for name in ("word_column", "tag_column")}
    return {
        name: int(text) if text and re.fullmatch(r"-?\d+", text) else text
        for name, text in columns.items()
    }


def _check_tags(flags, tags, train, files, columns):
    """Refuses tags that are texts or typing errors; prints those that no example teaches."""
    num_words = sum(map(len, train.words))
    if len(tags) > max(50, num_words // 10):
        raise ValueError(
            f"{files['train']} must hold words with their tags in columns. Received: {len(tags)} "
            f"different tags, such as {tags[-1][:60]!r}, of {num_words} words. Name the columns by "
            "--word_column and --tag_column, or pass a folder of such files."
        )
    odd, tag_names = metrics.find_odd_tags(tags, flags.scheme), {*datasets.tag_names(train)}
    for path in filter(None, files.values()):
        place = datasets.find_tag(path, odd[0], **columns) if odd else None
        if place is not None:
            scheme = f"of the scheme {flags.scheme}" if flags.scheme else "of a scheme of entities"
            raise ValueError(
                f"{path}, {place}: each tag must be {scheme}: O, or a prefix and a type, such "
                f"as B-PER. Received: {odd[0]!r}. Correct the file, --scheme or --tag_column."
            )
        for tag in tags:
            place = None if tag in tag_names else datasets.find_tag(path, tag, **columns)
            if place is not None:
                print(f"{path}, {place}: no training sentence has the tag {tag!r}.")


# Questions

QUESTION_FILES = {
    "train": (
        *("train-v1.1.json", "train-v1.1.part.json.gz", "train-v2.0.json"),
        *("cmrc2018_train.json", "cmrc2018_trial.json", "DRCD_training.json"),
    ),
    "dev": ("dev-v1.1.json", "dev-v2.0.json", "cmrc2018_dev.json", "DRCD_dev.json"),
}


def read_questions(flags):
    """Returns questions on contexts."""

    def find(folder):
        found = {}
        for part, names in QUESTION_FILES.items():
            paths = [os.path.join(folder, name) for name in names]
            found[part] = next(filter(os.path.exists, paths), None)
        if not any(found.values()):
            names = sum(QUESTION_FILES.values(), ())
            raise ValueError(f"{folder} must hold a file of questions, one of {names}.")
        return found

    files = find_files(flags, find)
    test = read_question_file(files["test"]) if files["test"] else None
    if files["train"] and files["dev"]:
        train, dev = (read_question_file(files[part]) for part in ("train", "dev"))
    else:
        train, dev = _split_by_contexts(files["train"] or files["dev"])
    metric = metric_of(flags, dev, *filter(None, files.values()))
    if answered(metric, train) and not any(e.spans or e.is_impossible for e in train):
        raise ValueError(
            f"None of the {len(train)} answers to train on is in its context at 'answer_start'. "
            "Correct 'answer_start', which counts characters from 0."
        )
    print_unmeasured(metric, dev, "dev questions")
    print_unmeasured(metric, test or [], "test questions")
    return Parts(train, dev, test, {"metric": metric})


def metric_of(flags, examples, *paths):
    """Returns the official score for questions, and prints which it is.

    Files of CMRC and DRCD have their own, by their names. The language does not decide: XQuAD's
    Chinese part is scored like SQuAD.
    """
    names = " ".join(map(os.path.basename, paths))
    by_name = "cmrc" if re.search("cmrc|drcd", names, re.IGNORECASE) else "squad_v1"
    if any(example.is_impossible for example in examples):
        by_name = "squad_v2"
    metric = flags.metric or by_name
    print(f"Scored as {metric}; --metric chooses another of the official scores.")
    return metric


def print_unmeasured(metric, examples, noun="questions"):
    """Prints how many questions `metric` cannot measure."""
    count = len(examples) - len(answered(metric, examples))
    if count:
        print(
            f"{count} of {len(examples)} {noun} have no answer that {metric} can measure: they "
            "are left out of the scores."
        )


def read_question_file(path):
    """Reads a file; prints what it leaves out, and how many answers cannot be trained on."""
    examples, mismatches = with_printed_warnings(datasets.read_squad, path)
    usable = [example for example in examples if example.question.strip()]
    if len(usable) < len(examples):
        print(f"{path}: left out {len(examples) - len(usable)} blank questions.")
    if mismatches:
        print(f"{path}: {len(mismatches)} answers are not in the context at 'answer_start'.")
    return usable


def _split_by_contexts(path):
    print(f"{path} is the only file: a fifth of its contexts is held out to measure on.")
    examples = read_question_file(path)
    contexts = sorted({example.context for example in examples})
    if len(contexts) < 2:
        raise ValueError(
            f"{path} must hold questions on at least two contexts to be split. Received: "
            f"{len(examples)} questions on {len(contexts)}. Pass another file by --dev_file."
        )
    order = np.random.default_rng(0).permutation(len(contexts))
    for_dev = {contexts[index] for index in order[: max(1, len(order) // 5)]}
    train = [example for example in examples if example.context not in for_dev]
    return train, [example for example in examples if example.context in for_dev]


def answered(metric, examples):
    """Returns the examples that `metric` can measure; only SQuAD 2.0's knows "no answer"."""
    return [e for e in examples if e.answers or (metric == "squad_v2" and e.is_impossible)]


def are_labelled(examples, further):
    """Whether there are labels to train on or to measure by."""
    if isinstance(examples, list):
        return bool(answered(further["metric"], examples))
    return len(examples) > 0 and getattr(examples, examples.columns[-1]) is not None


# Samples


def sampled(examples, size, seed):
    """Returns `examples`, or `size` of them after a shuffle by `seed`.

    Questions with and without an answer keep their shares. If there are both, a sample of two or
    more has at least one of each.
    """
    if size is None or size >= len(examples):
        return examples
    order = np.random.default_rng(seed).permutation(len(examples))
    if not isinstance(examples, list):
        return examples.take(order[:size])
    impossible = np.array([examples[index].is_impossible for index in order])
    num_impossible = round(size * impossible.mean())
    if size > 1 and impossible.any() and not impossible.all():
        num_impossible = min(max(num_impossible, 1), size - 1)
    # Take as many of each kind as it gets, in the shuffled order.
    ranks = np.where(impossible, np.cumsum(impossible), np.cumsum(~impossible))
    is_chosen = ranks <= np.where(impossible, num_impossible, size - num_impossible)
    return [examples[index] for index in order[is_chosen]]
