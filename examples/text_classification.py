r"""Fine-tune BERT to classify texts or pairs of texts, or to score them.

    python examples/text_classification.py
    python examples/text_classification.py --data_dir glue_data/SST-2 --epochs 1
    python examples/text_classification.py --train_file reviews.csv --text_column review \
        --label_column stars

Without data flags it trains on the 2,400 sentences of examples/data/sentiment_labelled_sentences
and measures on 600 others. `--data_dir` takes a GLUE folder (SST-2, CoLA, MRPC, RTE, QNLI, MNLI,
STS-B, QQP, WNLI), ChnSentiCorp, AFQMC or GoEmotions in their original layout; `--train_file` any
TSV or CSV file with named or numbered columns. KERAS_BACKEND chooses the backend.

With several labels (GoEmotions) each label's threshold is tuned for its F1 on the dev set. The
scores that this gives are those on the labelled test set, or where there is none on the half of the
dev set that was not tuned on; thresholds.json holds what `classify(texts, threshold=...)` takes.

With `--plot_dir` it draws learning curves, the confusion matrix, and for some dev examples what the
model looks at: attention, the tokens that speak for the class, the texts layer by layer.

Results with their settings and spread over seeds: examples/README.md.
"""

import json
import os

import keras
import numpy as np
import pictures
import recipe
from absl import app, flags

import bert_keras
from bert_keras import datasets, metrics

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(recipe)  # for --help
SENTENCES = os.path.join(os.path.dirname(__file__), "data", "sentiment_labelled_sentences")

flags.DEFINE_string("task", None, "Name of the dataset, where --data_dir does not tell.")
flags.DEFINE_string("text_column", "text", "Name or number of the text's column in --train_file.")
flags.DEFINE_string("pair_column", None, "Name or number of the second text's column.")
flags.DEFINE_string("label_column", "label", "Name or number of the label's column.")
flags.DEFINE_enum("problem_type", "single_label", ["single_label", "regression"], "For files.")
flags.DEFINE_string("pooling", "pooler", "pooler, cls, mean or max.")
flags.DEFINE_string("truncation", "longest_first", "How long texts are cut; see TextPreprocessor.")
flags.DEFINE_float("label_smoothing", 0.0, "Share of the probability given to all classes alike.")
flags.DEFINE_bool("baselines", False, "Also measure the majority class and a frozen encoder.")


def main(argv):
    train, dev = load_data()
    recipe.check_labelled(train=train, dev=dev)
    if FLAGS.baselines and train.problem_type != "single_label":
        raise app.UsageError("--baselines are for single-label problems.")
    test = read_test_file(train) if FLAGS.test_file else None
    train = recipe.sampled(train)
    print(f"{len(train)} examples to train on, {len(dev)} to measure on.")
    results = baselines(train, dev) if FLAGS.baselines else {}

    def run(seed):
        print(f"Fine-tuning with the seed {seed}.")
        classifier = make_classifier(train)
        classifier.compile(learning_rate=FLAGS.learning_rate, label_smoothing=FLAGS.label_smoothing)
        history = classifier.fit(
            train.texts,
            train.labels,
            batch_size=FLAGS.batch_size,
            epochs=FLAGS.epochs,
            validation_data=(dev.texts, dev.labels),
        )
        recipe.plot_learning_curves(history)
        return classifier, scores(dev.labels, classifier.predict(dev.texts, verbose=0))

    classifier, rows = recipe.run_seeds(run)
    reloaded = recipe.save_and_load(classifier)
    outputs = reloaded.predict(dev.texts, verbose=0)
    show_answers(reloaded, dev)
    if train.problem_type == "single_label":
        confusion = metrics.confusion_matrix(
            dev.labels, outputs.argmax(-1), num_classes=outputs.shape[1]
        )
        recipe.plot_confusion_matrix(confusion, train.label_names)
    recipe.save_pictures(lambda: pictures.of_classifier(reloaded, dev))
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    if FLAGS.baselines:
        show_table({"fine-tuned": means, **results})
        results = {f"{name}_{key}": v for name, row in results.items() for key, v in row.items()}
    threshold = 0.5
    if train.problem_type == "multi_label":
        threshold, tuned = tune_thresholds(reloaded, dev, test or labelled_test_set())
        results |= tuned
    if test is not None:
        predict_test_file(reloaded, test, threshold)
    recipe.finish({**means, **results})


def make_classifier(train, **overrides):
    settings = {
        "num_classes": max(1, len(train.label_names)),
        "label_names": train.label_names or None,
        "problem_type": train.problem_type,
        "pooling": FLAGS.pooling,
        "max_length": FLAGS.max_length,
        "truncation": FLAGS.truncation,
        "dtype": FLAGS.dtype,
    }
    return bert_keras.TextClassifier.from_preset(FLAGS.preset, **{**settings, **overrides})


def scores(labels, outputs):
    """Returns the metrics that the kind of labels calls for, the main one first."""
    if labels.dtype.kind == "f":
        outputs = outputs[:, 0]
        return {
            "pearson": metrics.pearson(labels, outputs),
            "spearman": metrics.spearman(labels, outputs),
        }
    if labels.ndim == 2:
        chosen = (outputs >= 0).astype(int)
        return {
            f"{average}_f1": metrics.precision_recall_f1(labels, chosen, average=average)["f1"]
            for average in ("macro", "micro")
        }
    chosen = outputs.argmax(-1)
    average = "binary" if outputs.shape[1] == 2 else "macro"
    return {
        "accuracy": metrics.accuracy(labels, chosen),
        "f1": metrics.precision_recall_f1(labels, chosen, average=average)["f1"],
        "matthews_correlation": metrics.matthews_correlation(labels, chosen),
    }


def tune_thresholds(classifier, dev, test):
    """Returns thresholds tuned on dev, and scores of other examples without and with them.

    The thresholds are probabilities, `(num_labels,)`; they go into thresholds.json too.
    """
    name = "test"
    if test is None or test.labels is None:
        name = "dev_half"
        dev, test = datasets.split_examples(dev, test_size=len(dev) // 2, seed=0)
    probabilities = classifier.probabilities(dev.texts)
    thresholds = metrics.tune_thresholds(dev.labels, probabilities)
    named = dict(zip(dev.label_names, thresholds.tolist(), strict=True))
    with open(os.path.join(FLAGS.output_dir, "thresholds.json"), "w", encoding="utf-8") as file:
        json.dump(named, file, ensure_ascii=False, indent=1)
    probabilities = classifier.probabilities(test.texts)
    found = {f"{name}_{key}": v for key, v in scores(test.labels, probabilities - 0.5).items()}
    tuned = scores(test.labels, probabilities - thresholds)
    found |= {f"{name}_tuned_{key}": v for key, v in tuned.items()}
    print(f"Thresholds tuned on {len(dev)} examples, measured on {len(test)} others: {found}")
    return thresholds, found


def labelled_test_set():
    """Returns the test set of `--data_dir`, `None` where there is none."""
    try:
        return datasets.load_glue(FLAGS.task, FLAGS.data_dir, "test") if FLAGS.data_dir else None
    except FileNotFoundError:
        return None


def baselines(train, dev):
    """Returns the scores of a classifier on a frozen encoder, and of the most frequent class.

    The F1 of two classes is that of the second, which the majority's answer may never give.
    """
    print("Baseline: a classifier on the frozen encoder.")
    keras.utils.set_random_seed(FLAGS.seed)
    frozen = make_classifier(train, frozen="backbone", pooling="mean")
    frozen.compile(learning_rate=1e-2)
    frozen.fit(
        train.texts, train.labels, batch_size=FLAGS.batch_size, epochs=3, cache_features=True
    )
    majority = np.zeros((len(dev), max(2, len(train.label_names))))
    majority[:, np.bincount(train.labels).argmax()] = 1
    return {
        "frozen": scores(dev.labels, frozen.predict(dev.texts, verbose=0)),
        "majority": scores(dev.labels, majority),
    }


def show_table(rows):
    """Prints one row of scores for each way to train."""
    names = list(next(iter(rows.values())))
    print(" " * 12 + "".join(f"{name:>22}" for name in names))
    for title, row in rows.items():
        print(f"{title:12}" + "".join(f"{row[name]:22.4f}" for name in names))


def show_answers(classifier, examples, count=4):
    """Prints what the classifier says of some examples, and what is right."""
    examples = examples.take(np.random.default_rng(0).permutation(len(examples))[:count])
    is_pair = isinstance(examples.texts, tuple)
    texts = zip(*examples.texts, strict=True) if is_pair else examples.texts
    print("It answers, and right is:")
    for text, answer, label in zip(
        texts, classifier.classify(examples.texts), examples.labels, strict=True
    ):
        print(f"  {told(answer)}  ({right(label, examples.label_names)})  {text}")


def told(answer):
    """Returns an answer of `classify` as a short line."""
    if "label" in answer:
        return f"{answer['label']} {answer['probabilities'][answer['label']]:.3f}"
    return ", ".join(answer["labels"]) or "none" if "labels" in answer else f"{answer['score']:.2f}"


def right(label, names):
    """Returns a label as people write it."""
    if np.ndim(label):
        return ", ".join(name for name, is_true in zip(names, label, strict=True) if is_true)
    return names[label] if names else f"{label:.2f}"


def load_data():
    """Returns training and dev examples, from whichever flags were given."""
    if FLAGS.train_file:
        train = read_file(FLAGS.train_file)
        if FLAGS.dev_file:
            return train, read_file(FLAGS.dev_file, train.label_names)
        return datasets.split_examples(train, test_size=max(1, len(train) // 10), seed=FLAGS.seed)
    if FLAGS.data_dir:
        return tuple(datasets.load_glue(FLAGS.task, FLAGS.data_dir, s) for s in ("train", "dev"))
    return datasets.load_sentiment_sentences(SENTENCES)


def read_file(path, label_names=None):
    """Reads a file of a known dataset (`--task`), or one with the columns that the flags name."""
    if FLAGS.task:
        return datasets.read_examples(path, datasets.get_glue_task(FLAGS.task))
    columns = [name for name in (FLAGS.text_column, FLAGS.pair_column) if name is not None]
    columns = [int(name) if name.isdigit() else name for name in columns]
    label = int(FLAGS.label_column) if FLAGS.label_column.isdigit() else FLAGS.label_column
    rows = datasets.read_table(path, [*columns, label])
    texts = tuple(rows[name] for name in columns)
    texts = texts[0] if len(texts) == 1 else texts
    if FLAGS.problem_type == "regression":
        return datasets.Examples(texts, scores_of(path, rows[label]), (), "regression")
    labels, label_names = recipe.label_numbers(path, rows[label], label_names)
    return datasets.Examples(texts, labels, label_names)


def scores_of(path, values):
    """Returns the scores of a file as float32; one that is no number is an error."""
    scores = []
    for row, value in enumerate(values, start=1):
        try:
            scores.append(float(value))
        except ValueError:
            raise ValueError(
                f"{path}, row {row} after the header: a score must be a number. Received: {value!r}"
            ) from None
    return np.array(scores, "float32")


def read_test_file(train):
    """Reads `--test_file`, whose labels may be missing."""
    if FLAGS.task or FLAGS.label_column in column_names(FLAGS.test_file):
        return read_file(FLAGS.test_file, train.label_names)
    names = [name for name in (FLAGS.text_column, FLAGS.pair_column) if name is not None]
    rows = datasets.read_table(FLAGS.test_file, names)
    texts = tuple(rows[name] for name in names)
    return datasets.Examples(texts[0] if len(texts) == 1 else texts, None, train.label_names)


def column_names(path):
    """Returns the names in a file's header, and `--label_column` where that is a number."""
    if FLAGS.label_column.isdigit():
        return [FLAGS.label_column]
    return list(datasets.read_table(path))


def predict_test_file(classifier, test, threshold=0.5):
    """Writes the answers for `--test_file` as JSON lines; prints scores where it has labels."""
    path = os.path.join(FLAGS.output_dir, "test_predictions.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for answer in classifier.classify(test.texts, threshold=threshold):
            file.write(json.dumps(answer, ensure_ascii=False) + "\n")
    print(f"Wrote {path}.")
    if test.labels is not None:
        print("Test:", scores(test.labels, classifier.predict(test.texts, verbose=0)))


if __name__ == "__main__":
    app.run(main)
