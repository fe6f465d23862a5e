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
from bert_keras.cli.kinds.kind import BATCH_SIZE, POOLING, Kind, Splits, task_of
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
# The known sets besides those of GLUE, by their files.
SENTIMENT, IMDB = "sentiment_sentences", "imdb"
TRUNCATIONS = ("head", "tail", "head_tail")
STRATEGY = "Keep head, tail or both of --max_length tokens, or combine windows in this way."


class TextFiles(Kind):
    """Files of texts, or of pairs of texts, the user's own or those of a known data set.

    Attributes:
        num_columns: pair of ints, how many columns of texts a file of the user's own has.
        label_names: tuple of str, the names in files, which the training file decides.
    """

    data = COLUMNS
    needs = ("sklearn", "scipy")
    num_columns = 1, 2

    def __init__(self, flags):
        super().__init__(flags)
        self.label_names = None
        self.folder = flags.data_dir if "data_dir" in flags else None
        least, most = self.num_columns
        if not (flags.dataset or self.folder or least <= len(flags.columns) <= most):
            raise ValueError(
                f"--columns of {self.name} must name {' or '.join(map(str, {least, most}))} "
                f"columns, or --dataset a known set. Received: {', '.join(flags.columns)}."
            )

    @functools.cached_property
    def known_set(self):
        """The name of the known data set that the flags or the folder name, else `None`."""
        if self.flags.dataset or not self.folder:
            return self.flags.dataset
        names = {*os.listdir(self.folder)} if os.path.isdir(self.folder) else set()
        if names.issuperset(SENTIMENT_SENTENCES_FILES):
            return SENTIMENT
        is_imdb = not names.isdisjoint(("aclImdb", "train"))
        return IMDB if is_imdb else datasets.detect_glue_task(self.folder)

    def read(self):
        flags, known_set = self.flags, self.known_set
        if known_set:
            columns = passed_flags(flags, [x.name for x in self.data if x.name != "dataset"])
            advice = "Pass your own files by --train_file."
            raise_if_unused("Known data sets have known columns", columns, advice)
        if not self.folder:
            return super().read()
        if known_set == SENTIMENT:
            splits = Splits(*datasets.load_sentiment_sentences(self.folder))
        elif known_set == IMDB:
            train, test = (datasets.load_imdb(self.folder, part) for part in ("train", "test"))
            splits = Splits(*self.held_out(train, 0.1), test)
        else:
            splits = self._read_glue()
        self.label_names = splits.train.label_names
        test = self.read_file(flags.test_file, "test") if flags.test_file else splits.test
        return splits._replace(test=test)

    def read_file(self, path, part):
        """Reads a file of the known data set, or one whose columns the flags name."""
        return self.read_columns(path, may_lack_labels=part == "test")

    def read_columns(self, path, **options):
        """Returns the texts and labels of a file, whose first reading decides the label names."""
        flags = self.flags
        if self.known_set not in (None, SENTIMENT, IMDB):
            return datasets.read_examples(path, datasets.get_glue_task(self.known_set))
        names = [option.name for option in (*LABELS, *LAYOUT) if option.name in flags]
        options = {name: flags[name].value for name in names} | options
        examples = datasets.read_texts(
            path, flags.columns, flags.label_column, self.label_names, **options
        )
        self.label_names = self.label_names or examples.label_names
        return examples

    def _read_glue(self):
        splits, task = {}, datasets.get_glue_task(self.known_set)
        for part in ("train", "dev", "test_labelled", "test", "dev_mismatched"):
            if part in task.files:
                try:
                    splits[part] = datasets.load_glue(self.known_set, self.folder, part)
                except FileNotFoundError:
                    if part == "dev":
                        raise
        more_sets = {"mismatched": splits["dev_mismatched"]} if "dev_mismatched" in splits else {}
        test = splits.get("test_labelled", splits.get("test"))
        test = None if test is None or test.labels is None else test
        if "train" in splits:
            return Splits(splits["train"], splits["dev"], test, more_sets)
        print("There is no training file: a fifth of the dev file is held out to measure on.")
        return Splits(*self.held_out(splits["dev"], 0.2), test, more_sets)


class TextKind(TextFiles):
    """Texts, or pairs of texts, with a class, several labels, or a score.

    Attributes:
        answer_thresholds: which labels are in the answers, if there are several.
        scoring_thresholds: which labels count for the scores.
    """

    name = "text_classification"
    model_class = task_of("sequence")
    data = (*COLUMNS, *LABELS, NAMES)
    model = (POOLING, Option("truncation", str, "longest_first", "How to shorten long texts."))
    training = (
        Option("label_smoothing", float, 0.0, "Probability to distribute over all classes."),
        Option("baselines", bool, False, "Also measure a classifier on the frozen encoder."),
    )
    answer_thresholds = scoring_thresholds = 0.5

    # Reading

    def read_columns(self, path, **options):
        return self.renamed(super().read_columns(path, **options))

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
        name_of = dict(zip(sorted(numbers, key=int), names, strict=True))
        return dataclasses.replace(examples, label_names=tuple(name_of[x] for x in numbers))

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

    def before(self, make, splits):
        """Returns the scores of a classifier on a frozen encoder."""
        if "baselines" not in self.flags or not self.flags.baselines:
            return {}
        print("Baseline: a classifier on the frozen encoder.")
        keras.utils.set_random_seed(self.flags.seed)
        frozen, train, dev = make(frozen="backbone", pooling="mean"), splits.train, splits.dev
        frozen.compile(learning_rate=1e-2)
        frozen.fit(train.texts, train.labels, batch_size=BATCH_SIZE, epochs=3, verbose=2)
        return {"frozen": text_scores(dev.labels, frozen.predict(dev.texts, verbose=0))}

    def compile_options(self):
        return {"label_smoothing": self.flags.label_smoothing}

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
        return scores, lambda: {"predictions.jsonl": self.answers(model, examples)[1]}

    def _outputs(self, model, examples):
        """Returns scores, logits, or with several labels how far each is above its threshold."""
        if examples.problem_type == "multi_label":
            return model.probabilities(examples.texts, BATCH_SIZE) - self.scoring_thresholds
        return model.predict(examples.texts, batch_size=BATCH_SIZE, verbose=0)

    def by_class(self, model, examples):
        from sklearn.metrics import precision_recall_fscore_support

        labels, names = examples.labels, examples.label_names
        if not names:
            return {}
        outputs = self._outputs(model, examples)
        predicted = (outputs >= 0).astype(int) if labels.ndim == 2 else outputs.argmax(-1)
        options = {"labels": range(len(names)), "zero_division": 0.0}
        columns = precision_recall_fscore_support(labels, predicted, **options)
        rows = np.transpose(columns).tolist()
        measures = ("precision", "recall", "f1", "support")
        return {
            x: dict(zip(measures, row, strict=True)) for x, row in zip(names, rows, strict=True)
        }

    def answer_options(self, model):
        is_several = model.problem_type == "multi_label"
        return {"threshold": self.answer_thresholds} if is_several else {}

    def true_labels(self, examples):
        if examples.problem_type == "regression":
            return None
        labels, names = examples.labels, np.array(examples.label_names, object)
        several = labels if labels.ndim == 2 else labels[:, None] == range(len(names))
        return [", ".join(map(str, names[row > 0])) or "none" for row in several]

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

    def confusion(self, model, examples):
        if examples.problem_type != "single_label":
            return None
        predicted = model.predict(examples.texts, batch_size=BATCH_SIZE, verbose=0).argmax(-1)
        return examples.labels, predicted, examples.label_names


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
    cuts_all, num_columns = True, (1, 1)

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
