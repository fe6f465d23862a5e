"""`FewShotClassifier` beside the setfit package: the same texts, weights and seeds.

    export KERAS_BACKEND=torch OMP_NUM_THREADS=1
    python benchmarks/few_shot.py --data_dir SST-2 --task sst2 --output sst2.jsonl
    python benchmarks/few_shot.py --data_dir goemotions --task goemotions --output emotions.jsonl \\
        --labels admiration,approval,gratitude
    python benchmarks/few_shot.py --data_dir ChnSentiCorp --task chnsenticorp --output zh.jsonl \\
        --preset modernbert_mini_zh_classics

For each seed it draws some texts of each label, and trains on them: `head`, the regression alone on
the vectors as they are; `FewShotClassifier`; `setfit`; and `TextClassifier`, or only those of
`--sides`. All start from the same weights and have their defaults, unless `--pairs` and
`--learning_rate` (of `FewShotClassifier`) or `--num_iterations` (of `setfit`) change them. Prints
the accuracy on the first texts of the dev set, and processor seconds of training and scoring; at
the end the mean over seeds and the accuracy of each seed. With `--labels`, texts count that have
exactly one label, one of these. Rows in the output file are kept, so that a killed run continues:
give each setting a file of its own.
"""

import math
import tempfile
import time

import keras
import numpy as np
from absl import app, flags
from kept_rows import add_row, read_rows

import bert_keras
from bert_keras import datasets

DATA_DIR = flags.DEFINE_string("data_dir", None, "Folder of a GLUE task.", required=True)
TASK = flags.DEFINE_string("task", None, "Its name, where the folder does not tell.")
PRESET = flags.DEFINE_string("preset", "minilm_l6_en_uncased", "An embedder.")
PER_LABEL = flags.DEFINE_list("per_label", ["8", "16"], "Texts of each label.")
SEEDS = flags.DEFINE_integer("seeds", 3, "Seeds 0, 1, ...")
NUM_DEV = flags.DEFINE_integer("num_dev", 500, "Texts to measure on.")
LABELS = flags.DEFINE_list("labels", None, "Labels to choose from; all by default.")
MAX_LENGTH = flags.DEFINE_integer("max_length", 64, "Longest text in tokens.")
SIDES = flags.DEFINE_list("sides", None, "What to measure; all by default.")
PAIRS = flags.DEFINE_integer("pairs", None, "About how many pairs FewShotClassifier makes.", 1)
LEARNING_RATE = flags.DEFINE_float("learning_rate", None, "The rate of FewShotClassifier.", 1e-9)
NUM_ITERATIONS = flags.DEFINE_integer(
    "num_iterations", None, "setfit makes twice as many pairs of each text; by default, all pairs."
)
OUTPUT = flags.DEFINE_string(
    "output", None, "A file for the rows, another one for each setting.", required=True
)
NAMES = ("head", "FewShotClassifier", "setfit", "TextClassifier")
flags.register_validator("sides", lambda names: {*(names or ())} <= {*NAMES}, f"must be of {NAMES}")


def read(split):
    """Returns the texts of a split with their numbers of labels."""
    data = datasets.load_glue(TASK.value, DATA_DIR.value, split)
    if LABELS.value:
        columns = [data.label_names.index(name) for name in LABELS.value]
        has_one = (data.labels.sum(axis=1) == 1) & data.labels[:, columns].any(axis=1)
        data = data.take(np.flatnonzero(has_one))
        numbers = data.labels[:, columns].argmax(axis=1)
        return datasets.LabelledTexts(data.texts, numbers, tuple(LABELS.value))
    return data


def sample(data, per_label, seed):
    """Returns texts and labels, `per_label` of each label."""
    rng, labels = np.random.default_rng(seed), np.asarray(data.labels)
    rows = [rng.permutation(np.flatnonzero(labels == n))[:per_label] for n in np.unique(labels)]
    rows = rng.permutation(np.concatenate(rows))
    return [data.texts[row] for row in rows], labels[rows]


def ours(task, texts, labels, dev, **options):
    classifier = task.from_preset(PRESET.value, max_length=MAX_LENGTH.value, **options)
    fit_options = {}
    if task is bert_keras.FewShotClassifier:
        if LEARNING_RATE.value:
            classifier.compile(learning_rate=LEARNING_RATE.value)
        if PAIRS.value:
            fit_options["num_pairs"] = math.ceil(PAIRS.value / len(texts))
    classifier.fit(texts, labels, verbose=0, **fit_options)
    return classifier.predict(dev, verbose=0).argmax(1)


def theirs(texts, labels, dev, seed):
    import datasets as tables
    import setfit

    with tempfile.TemporaryDirectory() as folder:
        embedder = bert_keras.TextEmbedder.from_preset(PRESET.value, max_length=MAX_LENGTH.value)
        embedder.export_to_huggingface(folder)
        model = setfit.SetFitModel.from_pretrained(folder, device="cpu")
        arguments = setfit.TrainingArguments(
            output_dir=f"{folder}/output",
            seed=seed,
            max_length=MAX_LENGTH.value,
            num_iterations=NUM_ITERATIONS.value,
            report_to="none",
            save_strategy="no",
            show_progress_bar=False,
        )
        table = tables.Dataset.from_dict({"text": texts, "label": labels.tolist()})
        setfit.Trainer(model, arguments, train_dataset=table).train()
        return np.asarray(model.predict(dev))


def sides(texts, labels, dev, num_classes, seed):
    """Returns name -> a function that trains and returns the labels of the dev set."""
    few_shot, options = bert_keras.FewShotClassifier, {"num_classes": num_classes}
    data = (texts, labels, dev)
    functions = (
        lambda: ours(few_shot, *data, frozen="backbone", **options),
        lambda: ours(few_shot, *data, **options),
        lambda: theirs(*data, seed),
        lambda: ours(bert_keras.TextClassifier, *data, **options),
    )
    return dict(zip(NAMES, functions, strict=True))


def main(argv):
    train, dev = read("train"), read("dev")
    dev_texts, expected = dev.texts[: NUM_DEV.value], np.asarray(dev.labels[: NUM_DEV.value])
    num_classes = len(train.label_names)
    print(f"most frequent label: {np.bincount(expected).max() / len(expected):.3f}", flush=True)
    done = {tuple(row[:3]) for row in read_rows(OUTPUT.value)}
    for per_label in map(int, PER_LABEL.value):
        for seed in range(SEEDS.value):
            texts, labels = sample(train, per_label, seed)
            for side, run in sides(texts, labels, dev_texts, num_classes, seed).items():
                if (side, per_label, seed) in done or side not in (SIDES.value or [side]):
                    continue
                keras.utils.set_random_seed(seed)
                start = time.process_time()
                accuracy = float(np.mean(run() == expected))
                seconds = time.process_time() - start
                add_row(OUTPUT.value, [side, per_label, seed, accuracy, seconds])
    summarize(read_rows(OUTPUT.value))


def summarize(rows):
    """Prints the mean accuracy of each side, that of each seed, and the mean seconds."""
    found = {}
    for side, per_label, _, accuracy, seconds in rows:
        found.setdefault((per_label, side), []).append((accuracy, seconds))
    for (per_label, side), values in found.items():
        accuracies, seconds = zip(*values, strict=True)
        runs = ", ".join(f"{accuracy:.3f}" for accuracy in accuracies)
        print(
            f"{per_label} a label, {side}: {np.mean(accuracies):.3f} ({runs}), "
            f"{np.mean(seconds):.0f} s"
        )


if __name__ == "__main__":
    app.run(main)
