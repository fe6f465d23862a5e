"""Files of tagged words: flags and reading that the recipes of words share."""

import os
import re

import numpy as np
import recipe
from absl import flags

from bert_keras import datasets, metrics
from bert_keras.files import writing

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(recipe)  # for --help

flags.DEFINE_enum(
    "scheme",
    None,
    metrics.entities.SCHEMES,
    "Count only the entities that this scheme allows; by default what conlleval counts.",
)
flags.DEFINE_integer("word_column", None, "Column of the words, from 0; by default as usual.")
flags.DEFINE_integer("tag_column", None, "Column of the tags, from 0; -1 is the last.")


def load_data():
    """Returns training, dev and test sentences, the last `None` where there are none, and the tags.

    Of the test sentences `tags` may be `None`.

    Raises:
        SystemExit: no files are named, or a folder holds none.
        ValueError: a tag is not of `--scheme`, or marks no entity though most do. The message
            names the file and the line.
    """
    files = recipe.data_files(find_files)
    if not files.get("train"):
        # Of People's Daily and MSRA often only dev and test are at hand.
        print(f"There is no training file: trains on {files['dev']}, measures on {files['test']}.")
        files = {"train": files["dev"], "dev": files["test"]}
    if FLAGS.test_file:
        files["test"] = FLAGS.test_file
    parts = [read(name, files.get(name)) for name in ("train", "dev", "test")]
    tags = datasets.tag_names(*(part for part in parts if part))
    check_number_of_tags(tags, parts[0], files["train"])
    check_tags(tags, filter(None, files.values()))
    tell_new_tags(tags, parts[0], [files.get(name) for name in ("dev", "test")])
    if parts[1] is None:
        print(f"There is no dev file: a tenth of {files['train']} is held out.")
        order = np.random.default_rng(0).permutation(len(parts[0]))
        tenth = max(1, len(order) // 10)
        parts[:2] = parts[0].take(order[tenth:]), parts[0].take(order[:tenth])
    return *parts, tags


def find_files(folder):
    """Returns the files of a folder by part: `train`, `dev`, `test`; a single file is `train`."""
    names = [name for name in sorted(os.listdir(folder)) if not re.match("LICENSE|README", name)]
    files = {}
    for part in ("train", "dev", "test"):
        for name in names:
            if re.search(rf"(?<![a-z]){part}(?![a-z])", name, re.IGNORECASE):
                files.setdefault(part, os.path.join(folder, name))
    if not files and len(names) == 1:
        return {"train": os.path.join(folder, names[0])}
    if not ("train" in files or {"dev", "test"} <= set(files)):
        raise SystemExit(
            f"{folder} must hold one file, or files with train, dev and test in their names. "
            f"Found: {names}."
        )
    return files


def read(part, path):
    """Returns the sentences of a column file, `None` for no file; test files may lack tags."""
    if path is None:
        return None
    columns = {"word_column": FLAGS.word_column, "tag_column": FLAGS.tag_column}
    return datasets.read_conll(path, **columns, may_lack_tags=part == "test")


def check_number_of_tags(tags, sentences, path):
    """Raises `ValueError` where nearly every word has a tag of its own, as texts have."""
    num_words = sum(map(len, sentences.words))
    if len(tags) > max(50, num_words // 10):
        raise ValueError(
            f"{path} must hold words with their tags in columns. Received: {len(tags)} different "
            f"tags, such as {tags[-1][:60]!r}, of {num_words} words. Name the columns by "
            "--word_column and --tag_column, or pass a folder of such files."
        )


def check_tags(tags, paths):
    """Raises `ValueError` on a tag that can only be a typing error, or is not of `--scheme`."""
    odd = metrics.find_odd_tags(tags, FLAGS.scheme)
    for path in paths if odd else ():
        line = datasets.find_tag(path, odd[0], FLAGS.word_column, FLAGS.tag_column)
        if line is not None:
            scheme = f"of the scheme {FLAGS.scheme}" if FLAGS.scheme else "of a scheme of entities"
            raise ValueError(
                f"{path}, line {line}: each tag must be {scheme}: O, or a prefix and a type, such "
                f"as B-PER. Received: {odd[0]!r}. Correct the file, --scheme or --tag_column."
            )


def tell_new_tags(tags, train, paths):
    """Prints of each tag that the training set has not where it stands: it is never learned."""
    known = set(datasets.tag_names(train))
    for tag in tags:
        for path in filter(None, paths if tag not in known else ()):
            line = datasets.find_tag(path, tag, FLAGS.word_column, FLAGS.tag_column)
            if line is not None:
                print(f"{path}, line {line}: no sentence to train on has the tag {tag!r}.")


def write_predictions(words, tags):
    """Writes each word with its predicted tag into a column file."""
    path = os.path.join(FLAGS.output_dir, "test_predictions.tsv")
    with writing(path) as file:
        for sentence, predicted in zip(words, tags, strict=True):
            file.writelines(
                f"{word}\t{tag}\n" for word, tag in zip(sentence, predicted, strict=True)
            )
            file.write("\n")
    print(f"Wrote {path}.")
