"""Fine-tune taggers here and with transformers, from the same heads and on the same batches.

    KERAS_BACKEND=torch python benchmarks/tagging_parity.py --data_dir wnut17 --output taggers.jsonl

After a few hundred steps at a small rate the F1 of entities depends on the random first weights of
the head, so means over a few seeds say little. Here transformers draws one head for each seed, and
both sides start from it. Both train on the batches of `fit`, with the checkpoint's dropout and the
rates, warm-up and clipping of `bert-keras train token_classification`. Each seed adds a JSON line
with both scores on the dev set to `--output`; seeds that are already there are not run again.
"""

import json
import os
import statistics
import tempfile
from pathlib import Path

import keras
import numpy as np
import torch
import transformers
from absl import app, flags
from transformers_step import make_step

import bert_keras
from bert_keras import datasets
from bert_keras.presets.resolve import resolve

FLAGS = flags.FLAGS
flags.DEFINE_string("preset", "minilm_l6_en_uncased", "Registered name or folder.")
flags.DEFINE_string("data_dir", None, "Folder with one file *train*, one *dev*.", required=True)
flags.DEFINE_string("output", None, "File of results, which is continued.", required=True)
flags.DEFINE_integer("seeds", 10, "How many heads.", 1)
flags.DEFINE_integer("sample", 2000, "Sentences to train on.", 1)
flags.DEFINE_integer("epochs", 3, "Times to go through them.", 1)
flags.DEFINE_float("learning_rate", 5e-5, "Peak learning rate.")


def main(argv):
    path = Path(FLAGS.output)
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for seed in range(len(found), FLAGS.seeds):
        found.append(run(seed))
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found[-1]) + "\n")
        print(found[-1], flush=True)
    differences = [row["ours"] - row["theirs"] for row in found]
    for side in ("theirs", "ours"):
        print(side, *summary([row[side] for row in found]))
    print("difference", *summary(differences))


def summary(values):
    return [f"{name(values):.3f}" for name in (statistics.mean, statistics.stdev, min, max)]


def run(seed):
    """Returns the F1 of both sides for one head, and the mean loss of each one's last epoch."""
    train, dev = map(read, ("train", "dev"))
    names = list(datasets.tag_names(train, dev))
    keras.utils.set_random_seed(seed)
    train = train.take(np.random.default_rng(seed).permutation(len(train))[: FLAGS.sample])
    theirs = transformers.AutoModelForTokenClassification.from_pretrained(
        resolve(FLAGS.preset), num_labels=len(names), dtype=torch.float32
    )
    options = {"label_names": names, "max_length": 128}
    ours = bert_keras.TokenClassifier.from_preset(FLAGS.preset, num_classes=len(names), **options)
    head = theirs.classifier.weight.detach().numpy().T
    ours.head.set_weights([head, np.zeros(len(names))])
    theirs.classifier.bias.data.zero_()

    batches = ours.data.batches(ours.data.encode(train.words, train.tags), shuffle=True)
    steps = FLAGS.epochs * len(batches)
    schedule = bert_keras.WarmupDecay(FLAGS.learning_rate, total_steps=steps, warmup=0.1)
    ours.compile(bert_keras.AdamW(schedule))
    step = make_step(theirs, FLAGS.learning_rate, steps)
    for _ in range(FLAGS.epochs):
        losses = []
        batches.on_epoch_begin()
        for inputs, labels, weights in (batches[i] for i in range(len(batches))):
            ours.reset_metrics()
            found = ours.train_on_batch(inputs, labels, weights, return_dict=True)
            losses.append((step(**tensors(inputs, labels, weights)), found["loss"]))
        batches.on_epoch_end()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        tokenizer = bert_keras.Tokenizer.from_preset(FLAGS.preset)
        copy = bert_keras.TokenClassifier.from_preset(
            folder, **options, preprocessor=bert_keras.TextPreprocessor(tokenizer, max_length=128)
        )
    scores = [each.evaluate_tags(dev.words, dev.tags)["f1"] for each in (copy, ours)]
    means = np.mean(losses, axis=0).tolist()
    return dict(zip(("theirs", "ours", "their_loss", "our_loss"), (*scores, *means), strict=True))


def read(part):
    (name,) = (name for name in os.listdir(FLAGS.data_dir) if part in name)
    return datasets.read_conll(os.path.join(FLAGS.data_dir, name))


def tensors(inputs, labels, weights):
    """Returns a batch as transformers' model takes it."""
    return {
        "input_ids": torch.tensor(inputs["token_ids"]),
        "attention_mask": torch.tensor(inputs["padding_mask"]),
        "labels": torch.tensor(np.where(weights > 0, labels, -100), dtype=torch.int64),
    }


if __name__ == "__main__":
    app.run(main)
