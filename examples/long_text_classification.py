r"""Classify documents that are longer than BERT can read: cut them, or read them in windows.

    python examples/long_text_classification.py --data_dir aclImdb_v1.tar.gz --strategy head_tail
    python examples/long_text_classification.py --data_dir aclImdb --batch_size 8 \
        --strategy head,tail,head_tail,mean,max,self_attention
    python examples/long_text_classification.py --train_file cases.csv --text_column text \
        --label_column outcome --strategy mean --num_windows 8

The strategies of Sun et al. (2019, https://arxiv.org/abs/1905.05583, section 5.3.1); several make a
table:

| strategy | what is read of a document |
|---|---|
| head, tail | the first, or the last, `--max_length` tokens |
| head_tail | the first and the last tokens |
| mean, max, self_attention | up to `--num_windows` windows of `--max_length` tokens, combined so |

`--data_dir` takes the IMDB reviews in their original layout, a folder or its archive. There a tenth
of the training reviews is held out to measure on, as of a `--train_file` without `--dev_file`; the
official test set is measured once, by the model that is saved. `--sample` shortens every part. With
several strategies the last line has each one's figures on dev, `head_accuracy` and so on, and the
test figures of the one that is best there.

Writes model.keras, of the strategy that is best on the dev set, metrics.json, and for `--test_file`
test_predictions.jsonl into `--output_dir`. KERAS_BACKEND chooses the backend.

Expected for all strategies with `--num_windows 3 --sample 300 --epochs 2 --learning_rate 1e-4
--dtype mixed_bfloat16`: accuracy on 250 dev reviews between 0.58 (head) and 0.66 (mean), the seeds
as far apart, in 7 minutes on one core. More: examples/README.md.
"""

import json
import os
import statistics

import keras
import recipe
import tables
from absl import flags

import bert_keras
from bert_keras import datasets
from bert_keras.cli import mistakes
from bert_keras.files import writing

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(recipe)  # for --help

CUTS = ("head", "tail", "head_tail")
COMBINATIONS = ("mean", "max", "self_attention")

flags.DEFINE_list("strategy", ["head_tail"], "One or more strategies, separated by commas.")
flags.register_validator(
    "strategy",
    lambda names: names and len(set(names)) == len(names) and {*names} <= {*CUTS, *COMBINATIONS},
    f"must be different ones of {', '.join((*CUTS, *COMBINATIONS))}",
)
flags.DEFINE_integer("num_windows", 4, "The most windows that are read of a document.", 1)
flags.DEFINE_integer("stride", None, "Tokens between windows' beginnings; else no overlap.", 1)
flags.DEFINE_enum("keep", "head", CUTS, "Which windows stay of a document that has more.")
flags.DEFINE_string(
    "pooling", None, "How a text or window becomes a vector; without it as the family has it."
)
flags.DEFINE_string("text_column", "text", "Name or number of the text's column in the files.")
flags.DEFINE_string("label_column", "label", "Name or number of the label's column.")


def main(argv):
    parts = load_data()
    train, dev, test = (part and recipe.sampled(part) for part in parts)
    if FLAGS.test_file:
        test = parts[2]  # Each of its texts has its line of predictions.
    for name, part, whole in zip(("dev", "test"), (dev, test), parts[1:], strict=True):
        if whole and len(part) < len(whole):
            print(f"--sample cut the {name} set from {len(whole)} to {len(part)} documents.")
    print(f"{len(train)} documents to train on, {len(dev)} to measure on.")

    def run(seed):
        results, best = {}, None
        for strategy in FLAGS.strategy:
            keras.utils.set_random_seed(seed)
            classifier = make_classifier(strategy, train)
            recipe.check_vocabulary(classifier, train.texts)
            classifier.compile(learning_rate=FLAGS.learning_rate)
            if FLAGS.epochs:
                history = classifier.fit(
                    train.texts,
                    train.labels,
                    batch_size=FLAGS.batch_size,
                    epochs=FLAGS.epochs,
                    sort_window=FLAGS.sort_window,
                    validation_data=(dev.texts, dev.labels),
                )
                recipe.plot_learning_curves(history, seed, f"learning_curves_{strategy}")
            found = scores(classifier, dev)
            print(f"{strategy}: {found}", flush=True)
            results |= {f"{strategy}_{name}": value for name, value in found.items()}
            if best is None or found["accuracy"] > best[0]["accuracy"]:
                best = found, strategy, classifier
        return best[1:], {"highest_accuracy": best[0]["accuracy"], **results}

    (strategy, classifier), rows = recipe.run_seeds(run)
    print_table(rows)
    reloaded = recipe.save_and_load(classifier)
    print(f"Loaded again, the {strategy} model answers:")
    few = dev.take(range(min(3, len(dev))))
    for text, answer in zip(few.texts, reloaded.classify(few.texts), strict=True):
        print(f"  {answer}  {text[:60]!r}, {len(text.split())} words")
    outputs = reloaded.predict(dev.texts, batch_size=FLAGS.batch_size, verbose=0)
    recipe.plot_confusion_matrix(dev.labels, outputs, train.label_names)
    results = recipe.over_seeds(rows)
    # The dev set chose it among several strategies, so it is no result; of one it is the same.
    results = {name: value for name, value in results.items() if "highest" not in name}
    if test:
        if FLAGS.test_file:
            write_predictions(reloaded, test)
        if test.labels is not None:
            print(f"{len(test)} documents to test on.")
            found = scores(reloaded, test)
            results |= {f"test_{name}": value for name, value in found.items()}
    recipe.finish({"strategy": strategy, **results})


def make_classifier(strategy, train):
    """Returns a classifier that reads documents by a strategy."""
    settings = {
        "num_classes": len(train.label_names),
        "label_names": train.label_names,
        **recipe.given("pooling"),
        "max_length": FLAGS.max_length,
        "dtype": FLAGS.dtype,
    }
    if strategy in CUTS:
        return bert_keras.TextClassifier.from_preset(FLAGS.preset, truncation=strategy, **settings)
    return bert_keras.LongTextClassifier.from_preset(
        FLAGS.preset,
        combine=strategy,
        num_windows=FLAGS.num_windows,
        stride=FLAGS.stride,
        truncation=FLAGS.keep,
        **settings,
    )


def scores(classifier, examples):
    """Returns accuracy and F1, of the second class where there are two."""
    outputs = classifier.predict(examples.texts, batch_size=FLAGS.batch_size, verbose=0)
    return recipe.accuracy_and_f1(examples.labels, outputs)


def print_table(rows):
    """Prints accuracy and F1 of each strategy, means over the seeds."""
    print(f"\n{'strategy':<16}{'accuracy':>10}{'F1':>10}{'spread':>10}   ({len(rows)} seeds)")
    for strategy in FLAGS.strategy:
        accuracies = [row[f"{strategy}_accuracy"] for row in rows]
        f1 = statistics.mean(row[f"{strategy}_f1"] for row in rows)
        spread = f"{statistics.stdev(accuracies):.4f}" if len(rows) > 1 else "-"
        print(f"{strategy:<16}{statistics.mean(accuracies):>10.4f}{f1:>10.4f}{spread:>10}")
    print()


def load_data():
    """Returns training, dev and test documents, the last `None` where there are none."""
    test = None
    if FLAGS.train_file:
        train = read_file(FLAGS.train_file)
        if FLAGS.dev_file:
            return train, read_file(FLAGS.dev_file, train.label_names), read_test(train)
    elif FLAGS.data_dir:
        train, test = (datasets.load_imdb(FLAGS.data_dir, part) for part in ("train", "test"))
    else:
        raise SystemExit("Pass --data_dir, the IMDB reviews, or --train_file.")
    print("A tenth of the training documents is held out to measure on.")
    test = read_test(train) or test
    train, dev = datasets.split_examples(train, test_size=max(1, len(train) // 10), seed=0)
    return train, dev, test


def read_test(train):
    """Returns the documents of `--test_file`, or `None`."""
    return read_file(FLAGS.test_file, train.label_names) if FLAGS.test_file else None


def read_file(path, label_names=None):
    """Reads the columns that the flags name; a file to predict may lack that of the labels."""
    return tables.read_texts(
        path,
        [FLAGS.text_column],
        FLAGS.label_column,
        label_names,
        may_lack_labels=path == FLAGS.test_file,
    )


def write_predictions(classifier, examples):
    """Writes the answers as JSON lines."""
    path = os.path.join(FLAGS.output_dir, "test_predictions.jsonl")
    with writing(path) as file:
        for answer in classifier.classify(examples.texts, batch_size=FLAGS.batch_size):
            file.write(json.dumps(answer, ensure_ascii=False) + "\n")
    print(f"Wrote {path}.")


if __name__ == "__main__":
    mistakes.run(main)
