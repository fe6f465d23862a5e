"""How close the defaults of `fit` come to the best of a grid of epochs and rates.

    KERAS_BACKEND=torch python benchmarks/defaults.py --data FOLDER --set sst2 --rows 200 --seed 0

Trains with the defaults and with each setting of the grid. The setting with the best score on one
part of the held-out rows is the grid's, and both are scored on another part. Prints a JSON line for
each run, and at the end which share of the grid's gain over the simplest answer the defaults have.
FOLDER holds the sets' folders, see `SETS`. The table is in docs/en/guides/few_examples.md.
"""

import argparse
import itertools
import json
import pathlib
from typing import NamedTuple

import keras
import numpy as np

import bert_keras
from bert_keras import datasets, metrics

MINILM, CHINESE = "minilm_l6_en_uncased", "modernbert_mini_zh_classics"
SETS = {
    "sst2": (MINILM, 64, "train.tsv", "dev.tsv"),
    "chnsenticorp": (CHINESE, 64, "train.tsv", "dev.tsv"),
    "goemotions": (MINILM, 48, "train.tsv", "dev.tsv"),
    "wnut17": (MINILM, 64, "wnut17train.conll", "emerging.dev.conll"),
    # Contexts of at most 450 characters, one window each.
    "squad_v1": (MINILM, 128, "train-v1.1.part.json.gz", "dev-v1.1.json"),
}
EPOCHS = {50: (10, 30, 60), 200: (3, 10, 30), 1000: (3, 6, 10), 5000: (3, 5)}
RATES = (5e-5, 1e-4, 2e-4, 5e-4)
TEXTS = {"sst2": "sst-2", "goemotions": "goemotions"}


class Rows(NamedTuple):
    """Examples as the task's `fit` takes them, and the number or names of their labels."""

    x: object
    y: object
    names: object = None


def read(name, path):
    """Returns the examples of a file."""
    if name == "squad_v1":
        examples = datasets.read_squad(path).examples
        return Rows([example for example in examples if len(example.context) <= 450], None)
    if name == "wnut17":
        found = datasets.read_conll(path)
        return Rows(found.words, found.tags)
    if name == "chnsenticorp":
        found = datasets.read_texts(path, ["text_a"], "label")
    else:
        found = datasets.read_examples(path, datasets.get_glue_task(TEXTS[name]))
    return Rows(found.texts, found.labels, found.label_names)


def drawn(rows, seed, start=0, stop=None):
    """Returns some rows in the order of a seed."""
    order = np.random.default_rng(seed).permutation(len(rows.x))[start:stop]
    y = rows.y if rows.y is None else [rows.y[i] for i in order]
    return Rows([rows.x[i] for i in order], y, rows.names)


def make(name, preset, train, tags):
    """Returns a new task for a set."""
    options = {"max_length": SETS[name][1]}
    if name == "squad_v1":
        return bert_keras.QuestionAnswering.from_preset(preset, stride=64, **options)
    if name == "wnut17":
        options |= {"num_classes": len(tags), "label_names": tags}
        return bert_keras.TokenClassifier.from_preset(preset, **options)
    if name == "goemotions":
        options["problem_type"] = "multi_label"
    return bert_keras.TextClassifier.from_preset(preset, num_classes=len(train.names), **options)


def score(name, task, train, held_out):
    """Returns a task's score on rows, and that of the simplest answer."""
    if name == "squad_v1":
        answers = {e.id: [answer.text for answer in e.answers] for e in held_out.x}
        best = task.n_best(held_out.x, 1, verbose=0)
        texts = {e.id: found.spans[0].text for e, found in zip(held_out.x, best, strict=True)}
        return metrics.squad_v1_scores(answers, texts)["f1"] / 100, 0.0
    if name == "wnut17":
        return task.evaluate_tags(held_out.x, held_out.y)["f1"], 0.0
    logits, labels = task.predict(held_out.x, verbose=0), np.asarray(held_out.y)
    if name != "goemotions":
        most = np.bincount(train.y).argmax()
        return float((logits.argmax(-1) == labels).mean()), float((labels == most).mean())
    most = np.zeros_like(labels, bool)
    most[:, np.sum(train.y, axis=0).argmax()] = True
    return micro_f1(logits >= 0, labels), micro_f1(most, labels)


def micro_f1(chosen, labels):
    """Returns micro F1 of bool `(num_texts, num_labels)` against 0 and 1."""
    return float(2 * (chosen & (labels == 1)).sum() / max(1, chosen.sum() + labels.sum()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--set", required=True, choices=SETS)
    parser.add_argument("--preset", help="by default MiniLM, for Chinese the shipped preset")
    parser.add_argument("--rows", type=int, default=200, choices=EPOCHS)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    name, (preset, _, *files) = given.set, SETS[given.set]
    every, dev = (read(name, given.data / name / file) for file in files)
    train = drawn(every, 100 + given.seed, stop=given.rows)
    size = 200 if name == "squad_v1" else 500
    parts = drawn(dev, 7, stop=size), drawn(dev, 7, size, 2 * size)
    tags = name == "wnut17" and sorted({tag for row in [*every.y, *dev.y] for tag in row})
    runs = {}
    for setting in [(None, None), *itertools.product(EPOCHS[given.rows], RATES)]:
        epochs, rate = setting
        keras.utils.set_random_seed(given.seed)
        task = make(name, given.preset or preset, train, tags)
        task.compile(learning_rate=rate)
        y = train.y if name != "goemotions" else np.asarray(train.y)
        history = task.fit(train.x, y, batch_size=32, epochs=epochs, verbose=0)
        (reported, simplest), (chosen, _) = (score(name, task, train, part) for part in parts)
        runs[setting] = reported, chosen
        found = {"epochs": len(history.epoch), "rate": rate, "score": reported, "chosen": chosen}
        print(json.dumps(found), flush=True)
    default, _ = runs.pop((None, None))
    best = max(runs, key=lambda setting: runs[setting][1])
    share = (default - simplest) / (runs[best][0] - simplest)
    print(
        f"defaults {default:.3f}, best of the grid {runs[best][0]:.3f} with {best[0]} epochs at "
        f"{best[1]:g}, simplest answer {simplest:.3f}: {share:.2f} of the gain"
    )


if __name__ == "__main__":
    main()
