"""The recipe of examples/text_classification.py as a plain loop on transformers, to compare with.

    python benchmarks/transformers_recipe.py --data_dir glue_data/MRPC --task MRPC --seeds 3

The same weights, files, metrics, rate, epochs and batch size: AdamW, 10 % warm-up, linear decay,
gradients clipped at 1, dropout as in the checkpoint, batches in random order padded to their
longest text. The last line is a JSON object of mean, lowest and highest over the seeds.
"""

import json
import statistics

import numpy as np
import torch
import transformers
from absl import app, flags

from bert_keras import datasets, metrics
from bert_keras.presets.resolve import resolve

FLAGS = flags.FLAGS
flags.DEFINE_string("preset", "minilm_l6_en_uncased", "Registered name or folder.")
flags.DEFINE_string("data_dir", None, "Folder with the dataset's original files.", required=True)
flags.DEFINE_string("task", None, "Name of the dataset, where --data_dir does not tell.")
flags.DEFINE_integer("epochs", 3, "Times to go through the training set.")
flags.DEFINE_integer("batch_size", 32, "Examples a step.")
flags.DEFINE_float("learning_rate", 5e-5, "Peak learning rate.")
flags.DEFINE_integer("max_length", 128, "Longest sequence in tokens.")
flags.DEFINE_integer("sample", None, "Train on this many examples, those of the recipe.")
flags.DEFINE_integer("seed", 0, "First seed.")
flags.DEFINE_integer("seeds", 1, "Runs.")


def main(argv):
    folder = resolve(FLAGS.preset)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    train = datasets.load_glue(FLAGS.task, FLAGS.data_dir, "train")
    dev = datasets.load_glue(FLAGS.task, FLAGS.data_dir, "dev")
    if FLAGS.sample and FLAGS.sample < len(train):
        order = np.random.default_rng(FLAGS.seed).permutation(len(train))
        train = train.take(order[: FLAGS.sample])
    rows = []
    for seed in range(FLAGS.seed, FLAGS.seed + FLAGS.seeds):
        torch.manual_seed(seed)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            folder, num_labels=len(train.label_names or [0]), dtype=torch.float32
        )
        fit(model, tokenizer, train, seed)
        rows.append(scores(dev.labels, predict(model, tokenizer, dev)))
        print(f"seed {seed}: {rows[-1]}", flush=True)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    summary = {
        name: [statistics.mean(values), min(values), max(values)]
        for name, values in columns.items()
    }
    print(json.dumps(summary), flush=True)


def encoded(tokenizer, examples, rows):
    columns = examples.texts if isinstance(examples.texts, tuple) else (examples.texts,)
    texts = [[column[row] for row in rows] for column in columns]
    return tokenizer(
        *texts, truncation=True, max_length=FLAGS.max_length, padding=True, return_tensors="pt"
    )


def fit(model, tokenizer, train, seed):
    num_batches = -(-len(train) // FLAGS.batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=FLAGS.learning_rate, weight_decay=0.01)
    num_steps = FLAGS.epochs * num_batches
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, num_steps // 10, num_steps)
    generator = np.random.default_rng(seed)
    dtype = torch.float32 if train.label_names is None else torch.int64
    model.train()
    for _ in range(FLAGS.epochs):
        for rows in np.array_split(generator.permutation(len(train)), num_batches):
            labels = torch.tensor(np.asarray(train.labels)[rows], dtype=dtype)
            loss = model(**encoded(tokenizer, train, rows), labels=labels).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()


def predict(model, tokenizer, examples):
    model.eval()
    with torch.no_grad():
        parts = [
            model(**encoded(tokenizer, examples, range(i, min(i + 64, len(examples))))).logits
            for i in range(0, len(examples), 64)
        ]
    return torch.cat(parts).numpy()


def scores(labels, outputs):
    if outputs.shape[1] == 1:
        return {
            "pearson": metrics.pearson(labels, outputs[:, 0]),
            "spearman": metrics.spearman(labels, outputs[:, 0]),
        }
    predicted = outputs.argmax(-1)
    average = "binary" if outputs.shape[1] == 2 else "macro"
    return {
        "accuracy": metrics.accuracy(labels, predicted),
        "f1": metrics.precision_recall_f1(labels, predicted, average=average)["f1"],
        "matthews_correlation": metrics.matthews_correlation(labels, predicted),
    }


if __name__ == "__main__":
    app.run(main)
