r"""Fine-tune BERT, or another encoder, to classify texts or pairs of texts, or to score them.

    python examples/text_classification.py
    python examples/text_classification.py --data_dir glue_data/SST-2 --epochs 1
    python examples/text_classification.py --train_file reviews.csv --text_column review \
        --label_column stars

Without data flags it trains on the 2,400 sentences of examples/data/sentiment_labelled_sentences
and measures on 600 others. `--data_dir` takes a GLUE folder (SST-2, CoLA, MRPC, RTE, QNLI, MNLI,
STS-B, QQP, WNLI), ChnSentiCorp, AFQMC or GoEmotions in their original layout; `--train_file` any
TSV or CSV file with named or numbered columns. Where a folder has no training file, its dev file
is split. MNLI's dev_mismatched.tsv is measured besides dev_matched.tsv; a dev.csv holds both dev
sets, with nothing to tell them apart, and is measured as one. KERAS_BACKEND chooses the backend.

With several labels (GoEmotions, or a file whose fields hold `joy,pride` and `--problem_type
multi_label`) each label's threshold is tuned for its F1 on the dev set. The
scores that this gives are those on the labelled test set, or where there is none on the half of the
dev set that was not tuned on; thresholds.json holds what `classify(texts, threshold=...)` takes.

With `--plot_dir` it draws learning curves, the confusion matrix, and for some dev examples what the
model looks at: attention, the tokens that speak for the class, the texts layer by layer.

Expected with the default checkpoint and `--dtype mixed_bfloat16`, over 3 seeds on PyTorch: MRPC
accuracy 0.780 ± 0.009 (7 minutes on one core), STS-B Spearman 0.850 ± 0.004, CoLA Matthews
correlation 0.273 ± 0.023, RTE accuracy 0.566 ± 0.027, SST-2 with `--sample 10000 --epochs 1`
accuracy 0.843 ± 0.010. More, beside transformers: examples/README.md.
"""

import json
import os

import keras
import numpy as np
import pictures
import recipe
import scipy.stats
import sklearn.metrics
import tables
from absl import flags

import bert_keras
from bert_keras import datasets, metrics
from bert_keras.cli import mistakes
from bert_keras.files import writing

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(recipe)  # for --help
SENTENCES = os.path.join(os.path.dirname(__file__), "data", "sentiment_labelled_sentences")

flags.DEFINE_string("task", None, "Name of the dataset, where --data_dir does not tell.")
flags.DEFINE_string(
    "text_column",
    "text",
    "Name of the text's column in files; or its number from 0, where all columns are numbers and "
    "the first row is an example, no header.",
)
flags.DEFINE_string("pair_column", None, "Name or number of the second text's column.")
flags.DEFINE_string("label_column", "label", "Name or number of the label's column.")
flags.DEFINE_enum(
    "problem_type", "single_label", ["single_label", "multi_label", "regression"], "For files."
)
flags.DEFINE_string("label_separator", ",", "With multi_label: what stands between labels.")
flags.register_validator("label_separator", bool, "must be at least one character.")
FILE_FLAGS = ("text_column", "pair_column", "label_column", "problem_type", "label_separator")
flags.DEFINE_string(
    "pooling", None, "pooler, cls, mean or max; without it as the checkpoint's family has it."
)
flags.DEFINE_string("truncation", "longest_first", "How long texts are cut; see TextPreprocessor.")
flags.DEFINE_float("label_smoothing", 0.0, "Share of the probability given to all classes alike.")
flags.DEFINE_bool("baselines", False, "Also measure the majority class and a frozen encoder.")


def main(argv):
    train, dev = load_data()
    recipe.check_labelled(train=train, dev=dev)
    if FLAGS.baselines and train.problem_type != "single_label":
        raise SystemExit("--baselines are for single-label problems.")
    recipe.make_folders()
    test = read_file(FLAGS.test_file, train.label_names, True) if FLAGS.test_file else None
    mismatched = mismatched_dev_set()
    train = recipe.sampled(train)
    labels = f"; labels: {train.label_names}" if train.label_names else ""
    print(f"{len(train)} examples to train on, {len(dev)} to measure on{labels}.")
    results = baselines(train, dev) if FLAGS.baselines else {}

    def run(seed):
        print(f"Fine-tuning with the seed {seed}.")
        classifier = make_classifier(train)
        recipe.check_vocabulary(classifier, train.texts)
        classifier.compile(learning_rate=FLAGS.learning_rate, label_smoothing=FLAGS.label_smoothing)
        if FLAGS.epochs:
            history = classifier.fit(
                train.texts,
                train.labels,
                batch_size=FLAGS.batch_size,
                epochs=FLAGS.epochs,
                sort_window=FLAGS.sort_window,
                validation_data=(dev.texts, dev.labels),
            )
            recipe.plot_learning_curves(history, seed)
        found = scores_of(classifier, dev)
        if mismatched:
            others = scores_of(classifier, mismatched)
            found |= {f"mismatched_{name}": value for name, value in others.items()}
        return classifier, found

    classifier, rows = recipe.run_seeds(run)
    reloaded = recipe.save_and_load(classifier)
    outputs = reloaded.predict(dev.texts, verbose=0)
    show_answers(reloaded, dev)
    if train.problem_type == "single_label":
        recipe.plot_confusion_matrix(dev.labels, outputs, train.label_names)
    recipe.save_pictures(lambda: pictures.of_classifier(reloaded, dev))
    means = recipe.over_seeds(rows)
    if FLAGS.baselines:
        show_table({"fine-tuned": means, **results})
        results = {f"{name}_{key}": v for name, row in results.items() for key, v in row.items()}
    threshold = 0.5
    if train.problem_type == "multi_label":
        threshold, tuned = tune_thresholds(reloaded, dev, test or labelled_test_set())
        results |= tuned
    if test is not None:
        write_predictions(reloaded, test, threshold)
        if test.labels is not None:
            found = scores_of(reloaded, test)
            results |= {f"test_{name}": value for name, value in found.items()}
    recipe.finish({**means, **results})


def make_classifier(train, **overrides):
    settings = {
        "num_classes": max(1, len(train.label_names)),
        "label_names": train.label_names or None,
        "problem_type": train.problem_type,
        **recipe.given("pooling"),
        "max_length": FLAGS.max_length,
        "truncation": FLAGS.truncation,
        "dtype": FLAGS.dtype,
    }
    return bert_keras.TextClassifier.from_preset(FLAGS.preset, **{**settings, **overrides})


def scores_of(classifier, examples):
    """Returns how well labelled examples are classified, see `scores`."""
    return scores(examples.labels, classifier.predict(examples.texts, verbose=0))


def scores(labels, outputs):
    """Returns the metrics that the kind of labels calls for, the main one first."""
    if labels.dtype.kind == "f":
        outputs = outputs[:, 0]
        return {
            "pearson": float(scipy.stats.pearsonr(labels, outputs).statistic),
            "spearman": float(scipy.stats.spearmanr(labels, outputs).statistic),
        }
    if labels.ndim == 2:
        chosen = (outputs >= 0).astype(int)
        return {
            f"{average}_f1": recipe.f1(labels, chosen, average) for average in ("macro", "micro")
        }
    chosen = outputs.argmax(-1)
    return {
        **recipe.accuracy_and_f1(labels, outputs),
        "matthews_correlation": float(sklearn.metrics.matthews_corrcoef(labels, chosen)),
    }


def tune_thresholds(classifier, dev, test):
    """Returns thresholds tuned on dev, and scores of other examples without and with them.

    The thresholds are probabilities, `(num_labels,)`; they go into thresholds.json too.
    """
    name = "test"
    if test is None or test.labels is None:
        name = "dev_half"
        try:
            dev, test = datasets.split_examples(dev, test_size=len(dev) // 2, seed=0)
        except ValueError as error:
            print(f"No thresholds are tuned on a half of the dev set: {error}")
            return 0.5, {}
    probabilities = classifier.probabilities(dev.texts)
    thresholds = metrics.tune_thresholds(dev.labels, probabilities)
    named = dict(zip(dev.label_names, thresholds.tolist(), strict=True))
    with writing(os.path.join(FLAGS.output_dir, "thresholds.json")) as file:
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
    vectors = bert_keras.encode_features(frozen, train.texts, train.labels)
    frozen.fit(vectors, batch_size=FLAGS.batch_size, epochs=3)
    majority = np.zeros((len(dev), max(2, len(train.label_names))))
    majority[:, np.bincount(train.labels).argmax()] = 1
    return {
        "frozen": scores_of(frozen, dev),
        "majority": scores(dev.labels, majority),
    }


def show_table(rows):
    """Prints one row of scores for each way to train."""
    names = [name for name in rows["fine-tuned"] if all(name in row for row in rows.values())]
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
    is_known = FLAGS.task or FLAGS.data_dir
    for name in FILE_FLAGS:
        if FLAGS[name].present and (is_known or not (FLAGS.train_file or FLAGS.test_file)):
            raise SystemExit(
                f"--{name} is for files of your own, by --train_file and without --task."
            )
    if FLAGS.train_file:
        train = read_file(FLAGS.train_file)
        if FLAGS.dev_file:
            return train, read_file(FLAGS.dev_file, train.label_names)
        return datasets.split_examples(train, test_size=max(2, len(train) // 10), seed=FLAGS.seed)
    if FLAGS.data_dir:
        return load_folder()
    print("No data is named: trains on the sentences of reviews beside this script.")
    return datasets.load_sentiment_sentences(SENTENCES)


def load_folder():
    """Returns training and dev examples of `--data_dir`, of its dev file alone where need be."""
    dev = datasets.load_glue(FLAGS.task, FLAGS.data_dir, "dev")
    try:
        return datasets.load_glue(FLAGS.task, FLAGS.data_dir, "train"), dev
    except FileNotFoundError:
        print("There is no training file: a fifth of the dev file is held out to measure on.")
        return datasets.split_examples(dev, test_size=0.2, seed=0)


def mismatched_dev_set():
    """Returns MNLI's second dev set, of genres that the training set lacks; `None` elsewhere."""
    if FLAGS.train_file or not FLAGS.data_dir:
        return None
    task = datasets.get_glue_task(FLAGS.task or datasets.detect_glue_task(FLAGS.data_dir))
    if "dev_mismatched" not in task.files:
        return None
    try:
        return datasets.load_glue(FLAGS.task, FLAGS.data_dir, "dev_mismatched")
    except FileNotFoundError:
        return None


def read_file(path, label_names=None, may_lack_labels=False):
    """Reads a file of the dataset that was named or found, or one with columns as flags tell."""
    if FLAGS.task or FLAGS.data_dir:
        task = FLAGS.task or datasets.detect_glue_task(FLAGS.data_dir)
        return datasets.read_examples(path, datasets.get_glue_task(task))
    return tables.read_texts(
        path,
        [FLAGS.text_column, FLAGS.pair_column],
        FLAGS.label_column,
        label_names,
        FLAGS.problem_type,
        may_lack_labels=may_lack_labels,
        separator=FLAGS.label_separator,
    )


def write_predictions(classifier, test, threshold=0.5):
    """Writes the answers for `--test_file` as JSON lines."""
    path = os.path.join(FLAGS.output_dir, "test_predictions.jsonl")
    with writing(path) as file:
        for answer in classifier.classify(test.texts, threshold=threshold):
            file.write(json.dumps(answer, ensure_ascii=False) + "\n")
    print(f"Wrote {path}.")


if __name__ == "__main__":
    mistakes.run(main)
