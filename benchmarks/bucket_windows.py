"""Scores, seconds and padding of `fit` by `bucket_window`: how many batches are sorted together.

    export KERAS_BACKEND=torch OMP_NUM_THREADS=1
    python benchmarks/bucket_windows.py --data_dir SST-2 --output windows.jsonl
    python benchmarks/bucket_windows.py --data_dir ChnSentiCorp --task chnsenticorp \\
        --preset modernbert_mini_zh_classics --learning_rate 2e-4 --output windows.jsonl

For each seed and window it trains a classifier for one epoch on the same texts and scores the dev
set: accuracy, or Pearson correlation for STS-B. Prints processor seconds of training, and tokens
computed per real token; at the end, for each window, the mean score and that of each seed. Rows in
the output file are kept, so that a killed run continues.
"""

import time

import keras
import numpy as np
from absl import app, flags
from kept_rows import add_row, read_rows

import bert_keras
from bert_keras import datasets
from bert_keras.preprocessing.batching import BucketedBatches

DATA_DIR = flags.DEFINE_string("data_dir", None, "Folder of a GLUE task.", required=True)
TASK = flags.DEFINE_string("task", None, "Its name, where the folder does not tell.")
PRESET = flags.DEFINE_string("preset", "minilm_l6_en_uncased", "A backbone.")
NUM_TEXTS = flags.DEFINE_integer("num_texts", 6400, "Training texts, a random sample.", 1)
MAX_LENGTH = flags.DEFINE_integer("max_length", 128, "Longest text in tokens.")
LEARNING_RATE = flags.DEFINE_float("learning_rate", 5e-5, "The peak rate.")
WINDOWS = flags.DEFINE_list("windows", ["4", "50"], "Batches that are sorted together.")
SEEDS = flags.DEFINE_list("seeds", ["0", "1", "2"], "Seeds.")
OUTPUT = flags.DEFINE_string("output", None, "A file for the rows.", required=True)


def take(texts, rows):
    """Returns some of the texts, or pairs of texts."""
    if isinstance(texts, tuple):
        return tuple(take(column, rows) for column in texts)
    return [texts[row] for row in rows]


def score(labels, outputs):
    """Returns Pearson correlation of scores, or accuracy of classes."""
    if labels.dtype.kind == "f":
        return float(np.corrcoef(labels.ravel(), outputs.ravel())[0, 1])
    return float(np.mean(labels == outputs.argmax(1)))


def train(task, window, seed):
    """Returns the score on the dev set, processor seconds, and tokens per real token."""
    train, dev = (datasets.load_glue(task, DATA_DIR.value, split) for split in ("train", "dev"))
    rows = np.random.default_rng(0).permutation(len(train.labels))[: NUM_TEXTS.value]
    texts, labels = take(train.texts, rows), np.asarray(train.labels)[rows]
    problem_type = datasets.get_glue_task(task).problem_type
    keras.utils.set_random_seed(seed)
    classifier = bert_keras.TextClassifier.from_preset(
        PRESET.value,
        problem_type=problem_type,
        num_classes=len(train.label_names) if problem_type != "regression" else 1,
        max_length=MAX_LENGTH.value,
    )
    classifier.compile(learning_rate=LEARNING_RATE.value)
    start = time.process_time()
    classifier.fit(texts, labels, epochs=1, bucket_window=window, verbose=0)
    seconds = time.process_time() - start
    batches = BucketedBatches(classifier.encode_texts(texts), window=window, seed=seed)
    padded = sum(len(rows) * length for rows, length in batches.batches)
    found = score(np.asarray(dev.labels), np.asarray(classifier.predict(dev.texts, verbose=0)))
    ratio = padded / int(batches.rows.lengths.sum())
    return found, round(seconds, 1), round(ratio, 3)


def main(argv):
    bert_keras.keep_freed_memory()
    task = TASK.value or datasets.detect_glue_task(DATA_DIR.value)
    done = [row[:4] for row in read_rows(OUTPUT.value)]
    for seed in map(int, SEEDS.value):
        for window in map(int, WINDOWS.value):
            key = [task, NUM_TEXTS.value, window, seed]
            if key not in done:
                add_row(OUTPUT.value, [*key, *train(task, window, seed)])
    for window in map(int, WINDOWS.value):
        found = [r for r in read_rows(OUTPUT.value) if r[:3] == [task, NUM_TEXTS.value, window]]
        scores, seconds, ratios = zip(*(row[4:] for row in found), strict=True)
        print(
            f"{task}, window {window}: {np.mean(scores):.4f} "
            f"({', '.join(f'{value:.4f}' for value in scores)}), "
            f"{np.mean(seconds):.0f} s, {np.mean(ratios):.2f} tokens per real token"
        )


if __name__ == "__main__":
    app.run(main)
