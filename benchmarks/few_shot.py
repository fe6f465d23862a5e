"""`FewShotClassifier` beside the setfit package: the same texts, weights and seeds.

    KERAS_BACKEND=torch OMP_NUM_THREADS=1 python benchmarks/few_shot.py \
        --data_dir glue_data/SST-2 --per_label 8,16 --seeds 3 --output rows.jsonl

For each seed it draws some texts of each label, and trains on them: `head`, the regression alone on
the vectors as they are; `FewShotClassifier`; `TextClassifier`; and `setfit`. All have their
defaults and start from the same weights. Prints the accuracy on the first texts of the dev set, and
processor seconds of training and scoring. Rows in the output file are kept, so that a killed run
continues.
"""

import json
import pathlib
import tempfile
import time

import keras
import numpy as np
from absl import app, flags

import bert_keras
from bert_keras import datasets

DATA_DIR = flags.DEFINE_string("data_dir", None, "Folder of a GLUE task.", required=True)
TASK = flags.DEFINE_string("task", None, "Its name, where the folder does not tell.")
PRESET = flags.DEFINE_string("preset", "minilm_l6_en_uncased", "An embedder.")
PER_LABEL = flags.DEFINE_list("per_label", ["8"], "Texts of each label.")
SEEDS = flags.DEFINE_integer("seeds", 3, "Seeds 0, 1, ...")
NUM_DEV = flags.DEFINE_integer("num_dev", 300, "Texts to measure on.")
OUTPUT = flags.DEFINE_string("output", None, "A file for the rows.", required=True)


def sample(data, per_label, seed):
    """Returns texts and labels, `per_label` of each label."""
    rng, labels = np.random.default_rng(seed), np.asarray(data.labels)
    rows = [rng.permutation(np.flatnonzero(labels == n))[:per_label] for n in np.unique(labels)]
    rows = rng.permutation(np.concatenate(rows))
    return [data.texts[row] for row in rows], labels[rows]


def ours(task, texts, labels, dev, **options):
    classifier = task.from_preset(PRESET.value, **options)
    classifier.fit(texts, labels, verbose=0)
    return classifier.predict(dev, verbose=0).argmax(1)


def theirs(texts, labels, dev, seed):
    import datasets as tables
    import setfit

    with tempfile.TemporaryDirectory() as folder:
        embedder = bert_keras.TextEmbedder.from_preset(PRESET.value)
        embedder.export_to_huggingface(folder)
        model = setfit.SetFitModel.from_pretrained(folder, device="cpu")
        arguments = setfit.TrainingArguments(
            output_dir=f"{folder}/output",
            seed=seed,
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
    return {
        "head": lambda: ours(few_shot, *data, frozen="backbone", **options),
        "FewShotClassifier": lambda: ours(few_shot, *data, **options),
        "setfit": lambda: theirs(*data, seed),
        "TextClassifier": lambda: ours(bert_keras.TextClassifier, *data, **options),
    }


def main(argv):
    train, dev = (datasets.load_glue(TASK.value, DATA_DIR.value, x) for x in ("train", "dev"))
    dev_texts, expected = dev.texts[: NUM_DEV.value], np.asarray(dev.labels[: NUM_DEV.value])
    num_classes = len(set(train.labels))
    file = pathlib.Path(OUTPUT.value)
    lines = file.read_text().splitlines() if file.exists() else []
    done = {tuple(json.loads(line)[:3]) for line in lines}
    for per_label in map(int, PER_LABEL.value):
        for seed in range(SEEDS.value):
            texts, labels = sample(train, per_label, seed)
            for side, run in sides(texts, labels, dev_texts, num_classes, seed).items():
                if (side, per_label, seed) in done:
                    continue
                keras.utils.set_random_seed(seed)
                start = time.process_time()
                accuracy = float(np.mean(run() == expected))
                row = [side, per_label, seed, accuracy, time.process_time() - start]
                print(row, flush=True)
                with open(file, "a") as rows:
                    rows.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    app.run(main)
