"""Train the same weights on the same batches here and by transformers, and compare each step.

    KERAS_BACKEND=torch python benchmarks/training_parity.py --data_dir glue_data/RTE --task RTE

The recipe of `bert-keras train text_classification` beside that of transformers_step.py. Both have
the same checkpoint, first weights of the head, random batches, rate, warm-up and clipping, and no
dropout, whose random numbers differ between the libraries. AdamW's epsilon is 1e-8 in both. One
difference stays: transformers also decays biases and norms. Prints the losses every few steps, and
at the end a JSON object with the largest difference of a step's losses and both results on the dev
set. `--steps` stops earlier in the same schedule.
"""

import json

import keras
import numpy as np
import torch
import transformers
from absl import app, flags
from transformers_step import make_step

import bert_keras
from bert_keras import datasets
from bert_keras.inputs import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from bert_keras.layers.dropout import Dropout
from bert_keras.presets.resolve import resolve

FLAGS = flags.FLAGS
flags.DEFINE_string("preset", "minilm_l6_en_uncased", "Registered name or folder.")
flags.DEFINE_string("data_dir", None, "Folder of a GLUE task.", required=True)
flags.DEFINE_string("task", None, "Name of the dataset, where --data_dir does not tell.")
flags.DEFINE_integer("epochs", 3, "Times to go through the training set.", 1)
flags.DEFINE_integer("steps", None, "Steps to make; by default all of the epochs.", 1)
flags.DEFINE_integer("batch_size", 32, "Examples a step.", 1)
flags.DEFINE_float("learning_rate", 5e-5, "Peak learning rate.")
flags.DEFINE_integer("max_length", 128, "Longest sequence in tokens.", 3)

EPSILON = 1e-8
SHOWN_EVERY = 13


def main(argv):
    folder = resolve(FLAGS.preset)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    train, dev = (datasets.load_glue(FLAGS.task, FLAGS.data_dir, part) for part in ("train", "dev"))
    num_batches = -(-len(train) // FLAGS.batch_size)
    generator = np.random.default_rng(0)
    batches = [
        rows
        for _ in range(FLAGS.epochs)
        for rows in np.array_split(generator.permutation(len(train)), num_batches)
    ]
    num_labels = len(train.label_names)
    sides = [side(folder, num_labels, len(batches)) for side in (by_bert_keras, by_transformers)]
    steps, largest = batches[: FLAGS.steps], 0.0
    for number, rows in enumerate(steps, 1):
        inputs = encoded(tokenizer, train, rows)
        labels = np.asarray(train.labels)[rows]
        losses = [train_step(inputs, labels) for train_step, _ in sides]
        largest = max(largest, abs(losses[0] - losses[1]))
        if number % SHOWN_EVERY == 0 or number == len(steps):
            print(
                f"{number}/{len(batches)}: {losses[0]:.6f} here, {losses[1]:.6f} there", flush=True
            )
    results = {"steps": len(steps), "largest_difference_of_losses": largest}
    for name, (_, predict) in zip(("here", "there"), sides, strict=True):
        results[name] = on_dev(predict, tokenizer, dev)
    print(json.dumps(results), flush=True)


def first_head(num_labels, width):
    return np.random.default_rng(1).normal(0, 0.02, (width, num_labels)).astype("float32")


def by_bert_keras(folder, num_labels, num_steps):
    """Returns a function that makes a step and returns its loss, and one for the logits."""
    model = bert_keras.TextClassifier.from_preset(
        folder, num_classes=num_labels, max_length=FLAGS.max_length, pooling="pooler"
    )
    for layer in model._flatten_layers():
        if isinstance(layer, Dropout):
            layer.rate = 0.0
    kernel = first_head(num_labels, model.backbone.hidden_dim)
    model.head.dense.set_weights([kernel, np.zeros(num_labels, "float32")])
    schedule = bert_keras.WarmupDecay(FLAGS.learning_rate, total_steps=num_steps)
    model.compile(bert_keras.AdamW(schedule, epsilon=EPSILON))

    def ours(inputs):
        names = {
            TOKEN_IDS: "input_ids",
            SEGMENT_IDS: "token_type_ids",
            PADDING_MASK: "attention_mask",
        }
        return {name: inputs[theirs].numpy().astype("int32") for name, theirs in names.items()}

    def train_step(inputs, labels):
        model.reset_metrics()
        return float(model.train_on_batch(ours(inputs), labels, return_dict=True)["loss"])

    return train_step, lambda inputs: keras.ops.convert_to_numpy(model(ours(inputs)))


def by_transformers(folder, num_labels, num_steps):
    """Returns the same two functions for the model of transformers."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder,
        num_labels=num_labels,
        dtype=torch.float32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with torch.no_grad():
        kernel = first_head(num_labels, model.config.hidden_size)
        model.classifier.weight.copy_(torch.tensor(kernel.T))
        model.classifier.bias.zero_()
    step = make_step(model, FLAGS.learning_rate, num_steps, EPSILON)

    def train_step(inputs, labels):
        return step(**inputs, labels=torch.tensor(labels, dtype=torch.int64))

    def predict(inputs):
        with torch.no_grad():
            return model(**inputs).logits.numpy()

    return train_step, predict


def encoded(tokenizer, examples, rows):
    columns = examples.texts if isinstance(examples.texts, tuple) else (examples.texts,)
    return tokenizer(
        *([column[row] for row in rows] for column in columns),
        truncation=True,
        max_length=FLAGS.max_length,
        padding=True,
        return_tensors="pt",
    )


def on_dev(predict, tokenizer, dev):
    """Returns accuracy and mean loss on the dev set."""
    places = range(len(dev))
    logits = np.concatenate(
        [predict(encoded(tokenizer, dev, places[i : i + 64])) for i in range(0, len(dev), 64)]
    )
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    right = shares[np.arange(len(dev)), dev.labels] / shares.sum(-1)
    accuracy = np.mean(logits.argmax(-1) == dev.labels)
    return {"accuracy": float(accuracy), "loss": float(-np.log(right).mean())}


if __name__ == "__main__":
    app.run(main)
