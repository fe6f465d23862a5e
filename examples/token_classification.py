"""Fine-tune BERT to tag words: named entities, or parts of speech.

    python examples/token_classification.py --data_dir wnut17 --learning_rate 1e-4 --epochs 5
    python examples/token_classification.py --data_dir ud_english_ewt --epochs 2
    python examples/token_classification.py --data_dir msra_ner --preset bert_base_zh --crf
    python examples/token_classification.py --train_file train.conll --dev_file dev.conll

`--data_dir` takes a folder of column files in their original layout (CoNLL-2003, WNUT-17, the Broad
Twitter Corpus, Wikigold, Weibo, People's Daily, MSRA) or of CoNLL-U; files are told by `train`,
`dev` and `test` in their names. Tags that mark entities, in any scheme, are scored by entity
precision, recall and F1 as conlleval does, all others by accuracy. `--crf` puts a conditional
random field on top.

Writes into `--output_dir`: model.keras, metrics.json, and test_predictions.tsv where there is a
test file: word and tag a line. KERAS_BACKEND chooses the backend.

Results with their settings and spread over seeds: examples/README.md.
"""

import os
import re

import numpy as np
import recipe
from absl import app, flags

import bert_keras
from bert_keras import datasets

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(recipe)  # for --help

flags.DEFINE_bool("crf", False, "Score whole sequences of tags by a conditional random field.")
flags.DEFINE_string("scheme", None, "IOB1, IOB2, IOBES, BMES ...: count only what it allows.")
flags.DEFINE_integer("word_column", None, "Column of the words, from 0; by default as usual.")
flags.DEFINE_integer("tag_column", None, "Column of the tags, from 0; -1 is the last.")

SCORES = ("f1", "precision", "recall", "accuracy")


def main(argv):
    train, dev, test = load_data()
    label_names = datasets.tag_names(*(part for part in (train, dev, test) if part))
    train = recipe.sampled(train)
    print(f"{len(train)} sentences to train on, {len(dev)} to measure on; tags: {label_names}")

    def run(seed):
        tagger = bert_keras.TokenClassifier.from_preset(
            FLAGS.preset,
            num_classes=len(label_names),
            label_names=label_names,
            crf=FLAGS.crf,
            max_length=FLAGS.max_length,
            dtype=FLAGS.dtype,
        )
        tagger.compile(learning_rate=FLAGS.learning_rate)
        if FLAGS.epochs:
            history = tagger.fit(
                train.words,
                train.tags,
                batch_size=FLAGS.batch_size,
                epochs=FLAGS.epochs,
                validation_data=(dev.words, dev.tags),
            )
            recipe.plot_learning_curves(history)
        return tagger, scores(tagger, dev)

    tagger, rows = recipe.run_seeds(run)
    reloaded = recipe.save_and_load(tagger)
    print("Loaded again, it answers:")
    for answer in reloaded.tag(dev.words[:3]):
        print(f"  {answer['text']}  ->  {readable(answer)}")
    results = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    if test:
        write_predictions(reloaded, test)
        results |= {f"test_{name}": value for name, value in scores(reloaded, test).items()}
    recipe.finish(results)


def scores(tagger, sentences):
    """Returns entity F1, precision and recall where tags mark entities, and accuracy."""
    found = tagger.evaluate_tags(sentences.words, sentences.tags, scheme=FLAGS.scheme)
    return {name: found[name] for name in SCORES if name in found}


def readable(answer):
    """Returns the entities of an answer of `tag` in a line; the tags where there are none."""
    entities = [f"{e['text']} ({e['type']} {e['score']:.2f})" for e in answer["entities"]]
    return ", ".join(entities) or " ".join(f"{word}/{tag}" for word, tag in answer["words"])


def load_data():
    """Returns training, dev and test sentences, the last `None` where there are none."""
    if FLAGS.train_file:
        files = {"train": FLAGS.train_file, "dev": FLAGS.dev_file, "test": FLAGS.test_file}
    elif FLAGS.data_dir:
        files = find_files(FLAGS.data_dir)
    else:
        raise app.UsageError("Pass --data_dir, or --train_file and --dev_file.")
    if not files.get("train"):
        # Of People's Daily and MSRA often only dev and test are at hand.
        print(f"There is no training file: trains on {files['dev']}, measures on {files['test']}.")
        files = {"train": files["dev"], "dev": files["test"]}
    parts = [read(files.get(name)) for name in ("train", "dev", "test")]
    if parts[1] is None:
        print(f"There is no dev file: a tenth of {files['train']} is held out.")
        order = np.random.default_rng(0).permutation(len(parts[0]))
        tenth = max(1, len(order) // 10)
        parts[:2] = parts[0].take(order[tenth:]), parts[0].take(order[:tenth])
    return parts


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
        raise app.UsageError(
            f"{folder} must hold one file, or files with train, dev and test in their names. "
            f"Found: {names}."
        )
    return files


def read(path):
    """Returns the tagged sentences of a column file, `None` for no file."""
    if path is None:
        return None
    return datasets.read_conll(path, word_column=FLAGS.word_column, tag_column=FLAGS.tag_column)


def write_predictions(tagger, sentences):
    """Writes each word with its predicted tag into a column file."""
    path = os.path.join(FLAGS.output_dir, "test_predictions.tsv")
    with open(path, "w", encoding="utf-8") as file:
        predicted = tagger.predict_tags(sentences.words)
        for words, tags in zip(sentences.words, predicted, strict=True):
            file.writelines(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True))
            file.write("\n")
    print(f"Wrote {path}.")


if __name__ == "__main__":
    app.run(main)
