"""Fine-tune BERT, or another encoder, to pick the right one of several endings, answers, causes.

    python examples/multiple_choice.py --data_dir swag --learning_rate 2e-5 --batch_size 16
    python examples/multiple_choice.py --data_dir commonsense_qa --batch_size 16
    python examples/multiple_choice.py --data_dir e_care --batch_size 16
    python examples/multiple_choice.py --train_file train.jsonl --dev_file dev.jsonl

`--data_dir` takes a folder of SWAG (CSV or JSON lines), CommonsenseQA or e-CARE in their original
layout; files are told by `train`, `dev` or `val`, and `test` in their names. Every choice is a
sequence of its own, so a batch of 16 with four choices costs as much as 64 sentences.

Writes into `--output_dir`: model.keras, metrics.json, and test_predictions.jsonl where there is a
test file. KERAS_BACKEND chooses the backend.

Expected for e-CARE with `--sample 2000 --epochs 2 --batch_size 16 --dtype mixed_bfloat16`: dev
accuracy 0.668, where guessing has 0.5, in 3 minutes on one core. More: examples/README.md.
"""

import json
import os
import re

import numpy as np
import recipe
from absl import flags

import bert_keras
from bert_keras import datasets
from bert_keras.cli import mistakes
from bert_keras.files import writing

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(recipe)  # for --help

flags.DEFINE_string(
    "pooling", None, "pooler, cls, mean or max; without it as the checkpoint's family has it."
)


def main(argv):
    train, dev, test = load_data()
    recipe.check_labelled(train=train, dev=dev)
    train = recipe.sampled(train)
    chance = np.mean([1 / len(choices) for choices in dev.choices])
    print(
        f"{len(train)} examples to train on, {len(dev)} to measure on. "
        f"Guessing would be right {chance:.1%} of the time."
    )

    def run(seed):
        model = bert_keras.MultipleChoice.from_preset(
            FLAGS.preset, **recipe.given("pooling", "max_length", "dtype")
        )
        recipe.check_vocabulary(model, train.contexts)
        model.compile(learning_rate=FLAGS.learning_rate)
        if FLAGS.epochs:
            history = model.fit(
                (train.contexts, train.choices),
                train.labels,
                batch_size=FLAGS.batch_size,
                epochs=FLAGS.epochs,
                sort_window=FLAGS.sort_window,
                validation_data=((dev.contexts, dev.choices), dev.labels),
            )
            recipe.plot_learning_curves(history, seed)
        return model, {"accuracy": accuracy(model, dev)}

    model, rows = recipe.run_seeds(run)
    reloaded = recipe.save_and_load(model)
    print("Loaded again, it answers:")
    few = dev.take(range(min(3, len(dev))))
    answers = reloaded.choose(few.contexts, few.choices)
    for context, answer in zip(few.contexts, answers, strict=True):
        probability = answer["probabilities"][answer["index"]]
        print(f"  {context}  ->  {answer['choice']} ({probability:.2f})")
    results = recipe.over_seeds(rows)
    if test:
        write_predictions(reloaded, test)
        if test.labels is not None:
            results["test_accuracy"] = accuracy(reloaded, test)
    recipe.finish(results)


def accuracy(model, examples):
    """Returns the share of examples whose right choice has the highest logit."""
    x = (examples.contexts, examples.choices)
    chosen = model.predict(x, batch_size=FLAGS.batch_size, verbose=0).argmax(axis=-1)
    return float((chosen == examples.labels).mean())


def load_data():
    """Returns training, dev and test examples, the last `None` where there are none."""
    files = recipe.data_files(find_files)
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
    return train, dev, test


def find_files(folder):
    """Returns the files of a folder by part: `train`, `dev`, `test`."""
    files = {}
    for name in sorted(os.listdir(folder)):
        for part, words in (("train", "train"), ("dev", "dev|val"), ("test", "test")):
            if re.search(rf"(?<![a-z])({words})(?![a-z])", name, re.IGNORECASE):
                files.setdefault(part, os.path.join(folder, name))
    if not {"train", "dev"} & set(files):
        raise SystemExit(
            f"{folder} must hold files with train, dev or val in their names. Found: "
            f"{sorted(os.listdir(folder))}."
        )
    return files


def write_predictions(model, examples):
    """Writes the answers as JSON lines."""
    path = os.path.join(FLAGS.output_dir, "test_predictions.jsonl")
    with writing(path) as file:
        for answer in model.choose(examples.contexts, examples.choices):
            file.write(json.dumps(answer, ensure_ascii=False) + "\n")
    print(f"Wrote {path}.")


if __name__ == "__main__":
    mistakes.run(main)
