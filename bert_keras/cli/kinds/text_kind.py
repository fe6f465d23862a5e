"""Texts, or pairs of texts, with classes, several labels, or scores."""

import dataclasses
import functools
import os

import keras
import numpy as np

import bert_keras
from bert_keras import datasets, metrics
from bert_keras.checks import raise_if_unused
from bert_keras.cli.baseline import Verdict
from bert_keras.cli.kinds.kind import BATCH_SIZE, POOLING, Kind, Splits, confusion_matrix, task_of
from bert_keras.cli.options import LAYOUT, Option, passed_flags
from bert_keras.datasets.reviews import SENTIMENT_SENTENCES_FILES

TEXT_COLUMNS = (
    "Name of the text's column in files, of two for pairs of texts; or their numbers from 0, if "
    "all columns are numbers and the first row is an example instead of a header."
)
LABEL_COLUMN = (
    "Name or number of the label's column; with multi_label also several columns of 0 and 1, "
    "separated by commas."
)
COLUMNS = (
    Option("dataset", str, None, "Name of the dataset, if it does not follow from --data_dir."),
    Option("columns", str, ["text"], TEXT_COLUMNS, many="list"),
    Option("label_column", str, "label", LABEL_COLUMN),
    *LAYOUT,
)
PROBLEM_TYPES = ("single_label", "multi_label", "regression")
LABELS = (
    Option("problem_type", PROBLEM_TYPES, "single_label", "The kind of labels in files."),
    Option("label_separator", str, ",", "With multi_label, what separates labels."),
)
NAMES = Option(
    "label_names", str, None, "Names of classes that are numbers, in order.", many="list"
)
TRUNCATIONS = ("head", "tail", "head_tail")
STRATEGY = "Keep head, tail or both of --max_length tokens, or combine windows in this way."


class TextKind(Kind):
    """Texts, or pairs of texts, with a class, several labels, or a score.

    Attributes:
        label_names: tuple of str, the names in files, which the training file decides.
        answer_thresholds: which labels are in the answers, if there are several.
        scoring_thresholds: which labels count for the scores.
    """

    name = "text_classification"
    model_class = task_of("sequence")
    data = (*COLUMNS, *LABELS, NAMES)
    model = (POOLING, Option("truncation", str, "longest_first", "How to shorten long texts."))
    training = (
        Option("label_smoothing", float, 0.0, "Probability to distribute over all classes."),
        Option("baselines", bool, False, "Also measure the majority and a frozen encoder."),
    )
    needs = ("sklearn", "scipy")
    max_columns = 2

    def __init__(self, flags):
        super().__init__(flags)
        if not 0 < len(flags.columns) <= self.max_columns:
            raise ValueError(
                f"--columns of {self.name} must name {self.max_columns} columns at most. "
                f"Received: {', '.join(flags.columns)}."
            )
        self.label_names, self.answer_thresholds, self.scoring_thresholds = None, 0.5, 0.5

    # Reading

    def read(self):
        flags, folder = self.flags, self.flags.data_dir
        if flags.dataset or folder:
            columns = passed_flags(flags, [x.name for x in self.data if x.name != "dataset"])
            advice = "Pass your own files by --train_file."
            raise_if_unused("Known data sets have known columns", columns, advice)
        if not folder:
            return super().read()
        if _is_sentiment(folder):
            splits = Splits(*datasets.load_sentiment_sentences(folder))
        elif not flags.dataset and _is_imdb(folder):
            train, test = (datasets.load_imdb(folder, part) for part in ("train", "test"))
            splits = Splits(*self.held_out(train, 0.1), test)
        else:
            splits = self._read_glue()
        self.label_names = splits.train.label_names
        test = self.read_file(flags.test_file, "test") if flags.test_file else splits.test
        return splits._replace(test=test)

    def read_file(self, path, part):
        """Reads a file of the named or detected dataset, or one whose columns the flags name."""
        return self.read_columns(path, may_lack_labels=part == "test")

    def read_columns(self, path, **options):
        """Returns the texts and labels of a file, whose first reading decides the label names."""
        flags = self.flags
        folder = flags.data_dir if "data_dir" in flags else None
        name = flags.dataset
        if name or (folder and not (_is_sentiment(folder) or _is_imdb(folder))):
            name = name or datasets.detect_glue_task(folder)
            return datasets.read_examples(path, datasets.get_glue_task(name))
        names = [option.name for option in (*LABELS, *LAYOUT) if option.name in flags]
        options = {name: flags[name].value for name in names} | options
        examples = datasets.read_texts(
            path, flags.columns, flags.label_column, self.label_names, **options
        )
        self.label_names = self.label_names or examples.label_names
        return self.renamed(examples)

    def renamed(self, examples):
        """Returns examples whose classes have the names in `--label_names` instead of numbers."""
        names, numbers = tuple(self.flags.label_names or ()), examples.label_names
        if not names:
            return examples
        if len({*names}) != len(numbers) or not all(x.lstrip("-").isdigit() for x in numbers):
            raise ValueError(
                "--label_names must be different names, one for each class of the files, which "
                f"must be numbers. Received: {list(names)} for the classes {list(numbers)}."
            )
        in_order = sorted(range(len(numbers)), key=lambda index: int(numbers[index]))
        renamed = dict(zip(in_order, names, strict=True))
        renamed = tuple(renamed[index] for index in range(len(numbers)))
        return dataclasses.replace(examples, label_names=renamed)

    def _read_glue(self):
        name = self.flags.dataset or datasets.detect_glue_task(self.flags.data_dir)
        splits = {}
        for part in ("train", "dev", "test", "dev_mismatched"):
            if part in datasets.get_glue_task(name).files:
                try:
                    splits[part] = datasets.load_glue(name, self.flags.data_dir, part)
                except FileNotFoundError:
                    if part == "dev":
                        raise
        more_sets = {"mismatched": splits["dev_mismatched"]} if "dev_mismatched" in splits else {}
        test = splits.get("test")
        test = None if test is None or test.labels is None else test
        if "train" in splits:
            return Splits(splits["train"], splits["dev"], test, more_sets)
        print("There is no training file: a fifth of the dev file is held out to measure on.")
        return Splits(*self.held_out(splits["dev"], 0.2), test, more_sets)

    def read_labelled(self, path, model):
        kind = model.problem_type
        # Names of labels that are numbers are those numbers.
        names = tuple(model.label_names or map(str, range(model.num_classes)))
        names = () if kind == "regression" else names
        self.label_names = None if self.flags.label_names else names
        examples = self.read_columns(path, problem_type=kind)
        if (examples.problem_type, tuple(examples.label_names)) != (kind, names):
            raise ValueError(
                f"{path} must have the labels of the model, {kind} {list(names)}. Received: "
                f"{examples.problem_type} {list(examples.label_names)}."
            )
        return examples

    # Training

    def settings(self, splits):
        train = splits.train
        return {
            "num_classes": max(1, len(train.label_names)),
            "label_names": train.label_names or None,
            "problem_type": train.problem_type,
        }

    def compile_options(self):
        return {"label_smoothing": self.flags.label_smoothing}

    def before(self, make, splits):
        """Returns the scores of a classifier on a frozen encoder, and of the commonest class.

        With two classes F1 is that of the second, which the majority may never predict.
        """
        if not self.flags.baselines:
            return {}
        train, dev = splits.train, splits.dev
        if train.problem_type != "single_label":
            rule = f"--baselines are for single-label problems, not for {train.problem_type!r}"
            raise_if_unused(rule, {"--baselines": True}, "Leave them out.")
        print("Baseline: a classifier on the frozen encoder.")
        keras.utils.set_random_seed(self.flags.seed)
        frozen = make(frozen="backbone", pooling="mean")
        frozen.compile(learning_rate=1e-2)
        frozen.fit(train.texts, train.labels, batch_size=BATCH_SIZE, epochs=3, verbose=2)
        majority = np.zeros((len(dev), max(2, len(train.label_names))))
        majority[:, np.bincount(train.labels).argmax()] = 1
        return {
            "frozen": text_scores(dev.labels, frozen.predict(dev.texts, verbose=0)),
            "majority": text_scores(dev.labels, majority),
        }

    def after(self, model, splits):
        """Returns thresholds tuned on dev, one per label, and the scores of other examples.

        The other examples, scored with 0.5 and with the thresholds, are the labelled test set, or
        without one half of the dev set.
        """
        dev, test, name = splits.dev, splits.test, "test"
        if dev.problem_type != "multi_label":
            return None, {}
        if test is None or test.labels is None:
            name = "dev_half"
            try:
                dev, test = datasets.split_examples(dev, test_size=len(dev) // 2, seed=0)
            except ValueError as error:
                print(f"No thresholds are tuned on half of the dev set: {error}")
                return None, {}
        thresholds = metrics.tune_thresholds(dev.labels, model.probabilities(dev.texts))
        found, scores = model.probabilities(test.texts), {}
        for prefix, least in ((name, 0.5), (f"{name}_tuned", thresholds)):
            measured = text_scores(test.labels, found - least)
            scores |= {f"{prefix}_{key}": value for key, value in measured.items()}
        print(f"Thresholds tuned on {len(dev)} examples, measured on {len(test)} others: {scores}")
        self.answer_thresholds = thresholds
        return dict(zip(splits.dev.label_names, thresholds.tolist(), strict=True)), scores

    # Measuring

    def evaluate(self, model, examples, tune=False):
        scores = {}
        if examples.labels is not None:
            scores = text_scores(examples.labels, self._outputs(model, examples))
        threshold = self.answer_thresholds
        answer = functools.partial(model.classify, examples.texts, BATCH_SIZE, threshold)
        return scores, lambda: {"predictions.jsonl": answer()}

    def _outputs(self, model, examples):
        """Returns scores, logits, or with several labels how far each is above its threshold."""
        if examples.problem_type == "multi_label":
            return model.probabilities(examples.texts, BATCH_SIZE) - self.scoring_thresholds
        return model.predict(examples.texts, batch_size=BATCH_SIZE, verbose=0)

    def by_class(self, model, examples):
        from sklearn.metrics import classification_report

        labels, names = examples.labels, examples.label_names
        if not names:
            return {}
        outputs = self._outputs(model, examples)
        predicted = (outputs >= 0).astype(int) if labels.ndim == 2 else outputs.argmax(-1)
        report = classification_report(
            labels,
            predicted,
            labels=range(len(names)),
            target_names=list(map(str, names)),
            output_dict=True,
            zero_division=0.0,
        )
        scores = {name: report[str(name)] for name in names}
        return {name: {**x, "f1": x.pop("f1-score")} for name, x in scores.items()}

    def answer_options(self, model):
        is_several = model.problem_type == "multi_label"
        return {"threshold": self.answer_thresholds} if is_several else {}

    def true_labels(self, examples):
        if examples.problem_type == "regression":
            return None
        return [label_in_words(label, examples.label_names) for label in examples.labels]

    def predicted_label(self, answer):
        return str(answer["label"]) if "label" in answer else ", ".join(answer["labels"]) or "none"

    def verdict(self, scores, examples):
        labels, names = np.asarray(examples.labels), examples.label_names
        if labels.dtype.kind == "f":
            baseline = "one score for all texts"
            return Verdict("Pearson", scores["pearson"], len(labels), "texts", 0.0, baseline, True)
        if labels.ndim == 2:
            counts = labels.sum(axis=0)
            f1 = 2 * counts / (len(labels) + counts.sum())
            baseline = f"{names[f1.argmax()]!r} for every text"
            score = "micro F1", scores["micro_f1"], int(counts.sum()), "labels"
            return Verdict(*score, float(f1.max()), baseline)
        shares = np.bincount(labels) / len(labels)
        commonest = int(shares.argmax())
        baseline = f"{names[commonest] if names else commonest!r} for every text"
        score = "Accuracy", scores["accuracy"], len(labels), "texts"
        return Verdict(*score, shares[commonest], baseline)

    # Pictures

    def draw(self, model, dev, folder):
        """Draws the confusion matrix of the classes."""
        if dev.problem_type == "single_label":
            predicted = model.predict(dev.texts, verbose=0).argmax(-1)
            confusion_matrix(dev.labels, predicted, dev.label_names, folder)


class LongTextKind(TextKind):
    """Documents longer than the model reads: they are shortened, or read in windows."""

    name = "long_text_classification"
    model_class = bert_keras.LongTextClassifier
    data = (*COLUMNS, NAMES)
    model = (
        POOLING,
        Option("num_windows", int, 4, "Most windows to read in a document.", 1),
        Option("stride", int, None, "Tokens between two windows; by default no overlap.", 1),
        Option("keep", TRUNCATIONS, "head", "Which windows to keep in longer documents."),
    )
    training = (
        Option(
            "strategy",
            (*TRUNCATIONS, "mean", "max", "self_attention"),
            ["head_tail"],
            STRATEGY,
            many="distinct",
        ),
    )
    cuts_all, max_columns = True, 1

    def make(self, setting, options):
        """Returns a classifier that reads documents with a strategy."""
        strategy = setting["strategy"]
        options.pop("problem_type")
        windows = {name: options.pop(name, None) for name in ("num_windows", "stride", "keep")}
        if strategy in TRUNCATIONS:
            cls, options = TextKind.model_class, {"truncation": strategy, **options}
        else:
            cls, windows["truncation"] = self.model_class, windows.pop("keep")
            options = {"combine": strategy, **windows, **options}
        return cls.from_preset(self.flags.preset, **options)

    def compile_options(self):
        return {}

    def before(self, make, splits):
        return {}


def text_scores(labels, outputs):
    """Returns the metrics for the kind of labels, from logits or scores.

    With two classes F1 is that of the second; `macro_f1` is the mean over more classes.
    """
    import scipy.stats
    from sklearn.metrics import f1_score, matthews_corrcoef

    if labels.dtype.kind == "f":
        return {
            "pearson": float(scipy.stats.pearsonr(labels, outputs[:, 0]).statistic),
            "spearman": float(scipy.stats.spearmanr(labels, outputs[:, 0]).statistic),
        }

    def f1(predicted, average):
        return float(f1_score(labels, predicted, average=average, zero_division=0.0))

    if labels.ndim == 2:
        predicted = (outputs >= 0).astype(int)
        return {f"{average}_f1": f1(predicted, average) for average in ("macro", "micro")}
    predicted, is_binary = outputs.argmax(-1), outputs.shape[1] == 2
    return {
        "accuracy": float((predicted == labels).mean()),
        **({"f1": f1(predicted, "binary")} if is_binary else {"macro_f1": f1(predicted, "macro")}),
        "matthews_correlation": float(matthews_corrcoef(labels, predicted)),
    }


def label_in_words(label, names):
    """Returns an example's true label in words: a name, several names, or a score."""
    if np.ndim(label):
        true = [name for name, is_true in zip(names, label, strict=True) if is_true]
        return ", ".join(true) or "none"
    return str(names[label]) if names else f"{float(label):.2f}"


def _is_sentiment(folder):
    return {*SENTIMENT_SENTENCES_FILES} <= {*_listed(folder)}


def _listed(path):
    return os.listdir(path) if os.path.isdir(path) else ()


def _is_imdb(folder):
    return bool({"aclImdb", "train"} & {*_listed(folder)})
