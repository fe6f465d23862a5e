"""The examples that a training reads: which files, and by which reader."""

import os
import re
from typing import NamedTuple

import numpy as np

from bert_keras import datasets, metrics
from bert_keras.datasets.sentiment import SENTIMENT_SENTENCES_FILES

COLUMN_FLAGS = (
    *("text_column", "pair_column", "label_column"),
    *("problem_type", "label_separator", "separator", "highest_score"),
)


class Parts(NamedTuple):
    """What a training reads; `further` is what else a task wants to know."""

    train: object
    dev: object
    test: object = None
    further: dict = {}  # noqa: RUF012
    dev_sets: dict = {}  # noqa: RUF012


def check_paths(given):
    """Raises `ValueError` on paths that are not there, or would not be read."""
    named = {
        name: given[name].value for name in ("data_dir", "train_file", "dev_file", "test_file")
    }
    for name, path in named.items():
        if path is not None and not os.path.exists(path):
            raise ValueError(f"--{name} names {path!r}, which is not there.")
    if named["data_dir"]:
        for name in ("train_file", "dev_file"):
            if named[name]:
                raise ValueError(
                    f"--data_dir finds its files by their names, so --{name} would not be read. "
                    "Pass --data_dir, or --train_file and --dev_file."
                )
    elif not named["train_file"]:
        raise ValueError("Pass --data_dir, or --train_file and --dev_file.")


def find_files(given, find):
    """Returns the files that the flags name: a dict from `train`, `dev`, `test` to path or None.

    Args:
        given: the flags.
        find: function of a folder that returns such a dict.
    """
    if given.train_file:
        return {"train": given.train_file, "dev": given.dev_file, "test": given.test_file}
    if not os.path.isdir(given.data_dir):
        raise ValueError(
            f"--data_dir is a folder, and {given.data_dir!r} is none. Pass a file by --train_file."
        )
    files = find(given.data_dir)
    return {**files, "test": given.test_file or files.get("test")}


def files_by_name(folder):
    """Returns the files of a folder by part; a single file is `train`."""
    names = [name for name in sorted(os.listdir(folder)) if not re.match("LICENSE|README", name)]
    files = {}
    for name in names:
        for part, words in (("train", "train"), ("dev", "dev|val"), ("test", "test")):
            if re.search(rf"(?<![a-z])({words})(?![a-z])", name, re.IGNORECASE):
                files.setdefault(part, os.path.join(folder, name))
    if not files and len(names) == 1:
        return {"train": os.path.join(folder, names[0])}
    if not ("train" in files or "dev" in files):
        raise ValueError(
            f"{folder} must hold one file, or files with train, dev or val, and test in their "
            f"names. Found: {names[:20]}."
        )
    return files


# Texts


def read_texts(given):
    """Returns labelled texts, or pairs of such, of a known folder or of files with columns."""
    dataset = given.dataset
    for name in COLUMN_FLAGS:
        if name in given and given[name].present and (dataset or given.data_dir):
            raise ValueError(f"--{name} is for files of your own, by --train_file.")
    folder = given.data_dir
    if folder and _is_sentiment(folder):
        return with_test_file(given, Parts(*datasets.load_sentiment_sentences(folder)))
    if folder and not dataset and _is_imdb(folder):
        train, test = (datasets.load_imdb(folder, part) for part in ("train", "test"))
        return with_test_file(given, Parts(*_held_out(train), test))
    if folder:
        return with_test_file(given, _read_glue(given))
    train = read_text_file(given, given.train_file)
    if given.dev_file:
        dev = read_text_file(given, given.dev_file, train.label_names)
        return with_test_file(given, Parts(train, dev))
    print(f"There is no dev file: a tenth of {given.train_file} is held out.")
    return with_test_file(given, Parts(*_held_out(train)))


def _has_own_reader(folder):
    return _is_sentiment(folder) or _is_imdb(folder)


def _is_sentiment(folder):
    return {*SENTIMENT_SENTENCES_FILES} <= {*_listed(folder)}


def _listed(path):
    return os.listdir(path) if os.path.isdir(path) else ()


def _is_imdb(path):
    names = {"aclImdb", "train"} & {*_listed(path)}
    is_archive = os.path.basename(path).startswith("aclImdb") and os.path.isfile(path)
    return bool(names) or is_archive or any(n.startswith("aclImdb") for n in _listed(path))


def _held_out(examples):
    return datasets.split_examples(examples, test_size=max(2, len(examples) // 10), seed=0)


def with_test_file(given, parts):
    """Returns the parts with `--test_file`, where there is one, as the test set."""
    if not given.test_file:
        return parts
    return parts._replace(
        test=read_text_file(given, given.test_file, parts.train.label_names, True)
    )


def read_text_file(given, path, label_names=None, may_lack_labels=False):
    """Reads a file of the dataset that was named or found, or one with columns as flags tell."""
    if given.dataset or (given.data_dir and not _has_own_reader(given.data_dir)):
        name = given.dataset or datasets.detect_glue_task(given.data_dir)
        return datasets.read_examples(path, datasets.get_glue_task(name))
    asked = {"pair_column": None, "problem_type": "single_label", "label_separator": ","}
    asked |= {name: given[name].value for name in asked if name in given}
    return datasets.read_texts(
        path,
        [given.text_column, asked.pop("pair_column")],
        given.label_column,
        label_names,
        may_lack_labels=may_lack_labels,
        separator=given.separator,
        **asked,
    )


def _read_glue(given):
    name = given.dataset or datasets.detect_glue_task(given.data_dir)
    parts = {}
    for part in ("train", "dev", "test", "dev_mismatched"):
        if part in datasets.get_glue_task(name).files:
            try:
                parts[part] = datasets.load_glue(name, given.data_dir, part)
            except FileNotFoundError:
                if part == "dev":
                    raise
    others = {"mismatched": parts["dev_mismatched"]} if "dev_mismatched" in parts else {}
    test = parts.get("test")
    test = None if test is None or test.labels is None else test
    if "train" in parts:
        return Parts(parts["train"], parts["dev"], test, {}, others)
    print("There is no training file: a fifth of the dev file is held out to measure on.")
    return Parts(*datasets.split_examples(parts["dev"], 0.2, seed=0), test, {}, others)


# Choices


def read_choices(given):
    """Returns contexts with their choices."""
    files = find_files(given, files_by_name)
    if not files.get("train"):
        print("There is no training file.")
        files = {**files, "train": files["dev"], "dev": None}
    train, dev, test = (
        datasets.read_multiple_choice(files[part]) if files.get(part) else None
        for part in ("train", "dev", "test")
    )
    if dev is None:
        print(f"A fifth of {files['train']} is held out to measure on.")
        kept, held_out = datasets.split_indices(train.contexts, 0.2, seed=0)
        train, dev = train.take(kept), train.take(held_out)
    chance = np.mean([1 / len(choices) for choices in dev.choices])
    print(f"Guessing would be right {chance:.1%} of the time.")
    return Parts(train, dev, test)


# Tagged words


def read_tags(given):
    """Returns sentences of tagged words.

    Raises:
        ValueError: a tag is not of `--scheme`, or marks no entity though most do, or what should be
            tags are texts. The message names the file.
    """
    files = find_files(given, files_by_name)
    if not files.get("train"):
        # Of People's Daily and MSRA often only dev and test are at hand.
        if not files.get("test"):
            raise ValueError(f"{given.data_dir} has neither a training file nor a test file.")
        print(f"There is no training file: trains on {files['dev']}, measures on {files['test']}.")
        files = {"train": files["dev"], "dev": files["test"], "test": given.test_file}
    columns = {"word_column": given.word_column, "tag_column": given.tag_column}
    train, dev, test = (
        datasets.read_conll(files[part], **columns, may_lack_tags=part == "test")
        if files.get(part)
        else None
        for part in ("train", "dev", "test")
    )
    tags = datasets.tag_names(*filter(None, (train, dev, test)))
    _check_tags(given, tags, train, files, columns)
    if dev is None:
        print(f"There is no dev file: a tenth of {files['train']} is held out.")
        order = np.random.default_rng(0).permutation(len(train))
        tenth = max(1, len(order) // 10)
        train, dev = train.take(order[tenth:]), train.take(order[:tenth])
    return Parts(train, dev, test, {"tags": tags})


def _check_tags(given, tags, train, files, columns):
    """Refuses tags that are texts or typing errors; prints those that are never learned."""
    num_words = sum(map(len, train.words))
    if len(tags) > max(50, num_words // 10):
        raise ValueError(
            f"{files['train']} must hold words with their tags in columns. Received: {len(tags)} "
            f"different tags, such as {tags[-1][:60]!r}, of {num_words} words. Name the columns by "
            "--word_column and --tag_column, or pass a folder of such files."
        )
    odd, known = metrics.find_odd_tags(tags, given.scheme), {*datasets.tag_names(train)}
    for path in filter(None, files.values()):
        line = datasets.find_tag(path, odd[0], **columns) if odd else None
        if line is not None:
            scheme = f"of the scheme {given.scheme}" if given.scheme else "of a scheme of entities"
            raise ValueError(
                f"{path}, line {line}: each tag must be {scheme}: O, or a prefix and a type, such "
                f"as B-PER. Received: {odd[0]!r}. Correct the file, --scheme or --tag_column."
            )
        for tag in tags:
            line = None if tag in known else datasets.find_tag(path, tag, **columns)
            if line is not None:
                print(f"{path}, line {line}: no sentence to train on has the tag {tag!r}.")


# Questions

QUESTION_FILES = {
    "train": (
        *("train-v1.1.json", "train-v1.1.part.json.gz", "train-v2.0.json"),
        *("cmrc2018_train.json", "cmrc2018_trial.json", "DRCD_training.json"),
    ),
    "dev": ("dev-v1.1.json", "dev-v2.0.json", "cmrc2018_dev.json", "DRCD_dev.json"),
}


def read_questions(given):
    """Returns questions on contexts."""

    def find(folder):
        found = {}
        for part, names in QUESTION_FILES.items():
            paths = [os.path.join(folder, name) for name in names]
            found[part] = next(filter(os.path.exists, paths), None)
        if not any(found.values()):
            raise ValueError(f"{folder} has none of {sum(QUESTION_FILES.values(), ())}.")
        return found

    files = find_files(given, find)
    test = _without_blanks(files["test"]) if files["test"] else None
    metric = given.metric or _metric_of(files)
    if files["train"] and files["dev"]:
        train, dev = (_without_blanks(files[part]) for part in ("train", "dev"))
    else:
        train, dev = _split_by_contexts(files["train"] or files["dev"])
    if given.metric is None and any(e.is_impossible for e in dev):
        metric = "squad_v2"
    print(f"Scored as {metric}; --metric chooses another of the official scores.")
    check_answered(metric, train=train, dev=dev)
    if not any(example.spans or example.is_impossible for example in train):
        raise ValueError(
            f"None of the {len(train)} answers to train on stands in its context where it says. "
            "Correct 'answer_start', which counts characters from 0."
        )
    for name, part in (("dev", dev), ("test", test or [])):
        count = len(part) - len(answered(metric, part))
        if count:
            print(
                f"{count} of {len(part)} {name} questions have no answer that {metric} can "
                "measure: they are left out of the scores."
            )
    return Parts(train, dev, test, {"metric": metric})


def _metric_of(files):
    """Returns the official score of files by their names: CMRC's and DRCD's have one of their own.

    The language does not tell: XQuAD's Chinese part is scored as SQuAD is.
    """
    names = " ".join(os.path.basename(path) for path in files.values() if path)
    return "cmrc" if re.search("cmrc|drcd", names, re.IGNORECASE) else "squad_v1"


def _without_blanks(path):
    """Reads a file; says what it left out, and which answers it cannot train on."""
    examples, mismatches = datasets.read_squad(path)
    kept = [example for example in examples if example.question.strip()]
    if len(kept) < len(examples):
        print(f"{path}: left out {len(examples) - len(kept)} blank questions.")
    if mismatches:
        print(f"{path}: {len(mismatches)} answers do not stand in the context where they say.")
    return kept


def _split_by_contexts(path):
    print(f"Only {path} is there: it is split by contexts, a fifth of them to measure on.")
    examples = _without_blanks(path)
    contexts = sorted({example.context for example in examples})
    if len(contexts) < 2:
        raise ValueError(
            f"{path} must hold questions on two contexts or more to be split. Received: "
            f"{len(examples)} questions on {len(contexts)}. Pass another file by --dev_file."
        )
    order = np.random.default_rng(0).permutation(len(contexts))
    for_dev = {contexts[index] for index in order[: max(1, len(order) // 5)]}
    train = [example for example in examples if example.context not in for_dev]
    return train, [example for example in examples if example.context in for_dev]


def answered(metric, examples):
    """Returns the examples that `metric` can measure: only SQuAD 2.0's has "no answer"."""
    return [e for e in examples if e.answers or (metric == "squad_v2" and e.is_impossible)]


def check_answered(metric, **parts):
    """Raises `ValueError` unless each part has questions whose answers are known."""
    for name, examples in parts.items():
        if not answered(metric, examples):
            raise ValueError(
                f"The {name} examples must have answers. Received: {len(examples)} questions "
                f"without any that {metric} knows. Pass a file without answers by --test_file."
            )


# Samples


def sampled(examples, size, seed):
    """Returns `examples`, or `size` of them after a shuffle by `seed`.

    Questions with and without an answer keep their shares, and where there are both, there is at
    least one of each in a sample of two or more.
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
    # The first of each kind.
    ranks = np.where(impossible, np.cumsum(impossible), np.cumsum(~impossible))
    chosen = ranks <= np.where(impossible, num_impossible, size - num_impossible)
    return [examples[index] for index in order[chosen]]
