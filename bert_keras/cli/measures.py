"""How well a model answers examples: one function for each kind of labels, and its baseline."""

import itertools
import json
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

import keras
import numpy as np

from bert_keras import metrics, plots
from bert_keras.answers.classes import check_threshold
from bert_keras.answers.entity_tags import extract_entities
from bert_keras.cli.baseline import Verdict
from bert_keras.cli.text_rows import as_json
from bert_keras.datasets import GLUE_TASKS

# For prediction. Answers do not depend on it.
BATCH_SIZE = 32
# From this share of the highest score, a pair counts as having the same meaning.
TRUE_PAIR = 0.8
COLA = GLUE_TASKS["cola"].label_names


class Measured(NamedTuple):
    """What a model answered, and how right that is.

    Attributes:
        scores: dict of floats by name, the main one first; empty without labels.
        files: the files of answers, a dict from a name to the text.
        labels: for each example a pair of its label and the model's, in words; or `None`.
        answers: list of dicts, one for each example, of a model that has probabilities.
        by_class: dict from a class to its precision, recall, f1 and support.
        picture: the name of a picture, a function of `plots` and its first arguments; or `None`.
    """

    scores: Mapping[str, float]
    files: Mapping[str, object]
    labels: list | None = None
    answers: list | tuple = ()
    by_class: Mapping[str, Mapping[str, float]] = {}
    picture: tuple[str, Callable, tuple] | None = None


def _json_lines(answers):
    return "".join(f"{as_json(answer)}\n" for answer in answers)


def measure_texts(model, examples, tune=False, thresholds=None, answers=None):
    """Measures classes, several labels, or scores of texts.

    With two classes F1 is that of the second; `macro_f1` is the mean over more classes.

    Args:
        model: the trained task.
        examples: `ExampleSet`.
        tune: bool, whether thresholds of the model may be tuned on these examples.
        thresholds: dict by label, for several labels, or `None` for 0.5.
        answers: those of the model, with any thresholds, or `None` to ask it.

    Returns:
        `Measured`.
    """
    import scipy.stats
    from sklearn import metrics as sklearn_metrics

    is_several = model.problem_type == "multi_label"
    true, names = examples.labels, examples.label_names
    if answers is None:
        answers = model.classify(examples.texts, batch_size=BATCH_SIZE)
    if thresholds is not None:
        least = dict(zip(names, check_threshold(thresholds, names), strict=True))
        answers = [
            answer | {"labels": [x for x, p in answer["probabilities"].items() if p >= least[x]]}
            for answer in answers
        ]

    files = {"predictions.jsonl": _json_lines(answers)}
    if true is None:
        return Measured({}, files, answers=answers)
    if model.problem_type == "regression":
        found = np.array([np.ravel([*x.values()])[0] for x in answers], "float32")
        functions = {"pearson": scipy.stats.pearsonr, "spearman": scipy.stats.spearmanr}
        return Measured({x: float(f(true, found).statistic) for x, f in functions.items()}, files)

    predicted = [{*map(str, x["labels"] if is_several else [x["label"]])} for x in answers]
    chosen = np.array([[name in row for name in names] for row in predicted], int)
    true_rows = true if is_several else np.eye(len(names), dtype=int)[true]
    found = chosen if is_several else chosen.argmax(axis=1)

    def f1(average):
        return float(sklearn_metrics.f1_score(true, found, average=average, zero_division=0.0))

    if is_several:
        scores = {f"{average}_f1": f1(average) for average in ("macro", "micro")}
    else:
        name, average = ("f1", "binary") if len(names) == 2 else ("macro_f1", "macro")
        # The verdict says that there is one class only; the correlation is then 0.
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            correlation = float(sklearn_metrics.matthews_corrcoef(true, found))
        scores = {
            "accuracy": float((found == true).mean()),
            name: f1(average),
            "matthews_correlation": correlation,
        }
        if tuple(names) == COLA:  # The main score is GLUE's.
            scores = {"matthews_correlation": correlation} | scores
    options = {"labels": range(len(names)), "zero_division": 0.0}
    columns = sklearn_metrics.precision_recall_fscore_support(true, found, **options)
    rows = np.transpose(columns).tolist()
    measures = ("precision", "recall", "f1", "support")
    by_class = {n: dict(zip(measures, x, strict=True)) for n, x in zip(names, rows, strict=True)}
    in_words = [
        [", ".join(itertools.compress(names, row)) or "none" for row in rows]
        for rows in (true_rows, chosen)
    ]
    picture = None
    if not is_several:
        picture = "confusion_matrix", plots.confusion_matrix, (*in_words, names)
    return Measured(scores, files, list(zip(*in_words, strict=True)), answers, by_class, picture)


def frozen_scores(flags, splits, make):
    """Returns the scores of a classifier on the frozen encoder, the baseline of `--baselines`.

    Args:
        flags: those of `train`.
        splits: the `Splits` of texts.
        make: function of constructor arguments that returns a new `TextClassifier`.
    """
    print("Baseline: a classifier on the frozen encoder.")
    keras.utils.set_random_seed(flags.seed)
    frozen, train = make(frozen="backbone", pooling="mean"), splits.train
    frozen.compile(learning_rate=1e-2)
    frozen.fit(train.texts, train.labels, batch_size=BATCH_SIZE, epochs=3, verbose=2)
    scores = measure_texts(frozen, splits.dev).scores
    return {f"frozen_{name}": score for name, score in scores.items()}


def text_verdict(scores, examples):
    """Returns the `Verdict` on texts: the commonest class or label, or one score, for all."""
    labels, names = np.asarray(examples.labels), examples.label_names
    if labels.dtype.kind == "f":
        baseline = "one score for all texts"
        return Verdict("Pearson", scores["pearson"], len(labels), "texts", 0.0, baseline, True)
    if labels.ndim == 2:
        counts = labels.sum(axis=0)
        shares, count, counted = 2 * counts / (len(labels) + counts.sum()), counts.sum(), "labels"
        score = "micro F1", scores["micro_f1"]
    else:
        shares, count, counted = np.bincount(labels) / len(labels), len(labels), "texts"
        score = "Accuracy", scores["accuracy"]
    best = int(shares.argmax())
    baseline = f"{names[best] if names else best!r} for every text"
    return Verdict(*score, int(count), counted, float(shares[best]), baseline)


def measure_pairs(model, examples, tune=False):
    """Measures correlations of similarity and label, and how true pairs are retrieved."""
    import scipy.stats

    first, second = (model.embed(column, batch_size=BATCH_SIZE) for column in examples.texts)
    found = model.similarities_of_pairs(first, second)

    files = {"predictions.jsonl": _json_lines({"score": score} for score in found.tolist())}
    if examples.labels is None:
        return Measured({}, files)
    functions = {"spearman": scipy.stats.spearmanr, "pearson": scipy.stats.pearsonr}
    scores = {name: float(f(examples.labels, found).statistic) for name, f in functions.items()}
    alike = examples.labels >= TRUE_PAIR
    if alike.any():
        # A repeated document counts once.
        _, rows, document_of = np.unique(examples.texts[1], return_index=True, return_inverse=True)
        similarities = model.similarities(first[alike], second[rows])
        # Ties count against the model.
        right = np.take_along_axis(similarities, document_of[alike][:, None], axis=1)
        ranks = (similarities >= right).sum(axis=1)
        scores["mrr"] = float((1 / ranks).mean())
        scores |= {f"recall_at_{k}": float((ranks <= k).mean()) for k in (1, 5)}
    picture = "similarities", plots.similarities, (found, alike)
    return Measured(scores, files, picture=picture)


def pair_verdict(scores, examples):
    """Returns the `Verdict` on similarities: one score for all."""
    baseline, count = "one score for all pairs", len(examples.labels)
    return Verdict("Spearman", scores["spearman"], count, "pairs", 0.0, baseline, True)


def measure_tags(model, examples, tune=False):
    """Measures entity F1, precision and recall if tags mark entities, and accuracy."""
    words, found = examples.words, model.predict_tags(examples.words)
    sentences = (zip(*row, strict=True) for row in zip(words, found, strict=True))
    rows = ["".join(f"{word}\t{tag}\n" for word, tag in row) for row in sentences]
    files = {"predictions.tsv": "".join(f"{row}\n" for row in rows)}
    if not examples.tags:
        return Measured({}, files)
    scores = model.evaluate_tags(words, examples.tags, predicted=found)
    names = ("f1", "precision", "recall", "accuracy")
    columns = examples.tags, found
    labels = [tuple(map(" ".join, pair)) for pair in zip(*columns, strict=True)]
    flat = (list(itertools.chain.from_iterable(column)) for column in columns)
    return Measured(
        {name: scores[name] for name in names if name in scores},
        files,
        labels,
        by_class=scores.get("types", {}),
        picture=("confusion_matrix", plots.confusion_matrix, (*flat, model.label_names)),
    )


def tag_verdict(scores, examples):
    """Returns the `Verdict` on tags: no entity, or the commonest tag for every word."""
    if "f1" in scores:
        count = sum(len(extract_entities(row)) for row in examples.tags)
        return Verdict("Entity F1", scores["f1"], count, "entities", 0.0, "finding none")
    counts = Counter(tag for row in examples.tags for tag in row)
    (tag, most), count = counts.most_common(1)[0], counts.total()
    baseline = f"{tag!r} for every word"
    return Verdict("Accuracy", scores["accuracy"], count, "words", most / count, baseline)


def measure_choices(model, examples, tune=False):
    """Measures the share of contexts for which the model chooses the right choice."""
    answers = model.choose(examples.contexts, examples.choices, batch_size=BATCH_SIZE)
    files = {"predictions.jsonl": _json_lines(answers)}
    if examples.labels is None:
        return Measured({}, files)
    right = zip(examples.choices, examples.labels, answers, strict=True)
    labels = [(choices[label], answer["choice"]) for choices, label, answer in right]
    found = [answer["index"] for answer in answers]
    return Measured({"accuracy": float((examples.labels == found).mean())}, files, labels)


def choice_verdict(scores, examples):
    """Returns the `Verdict` on choices: one at random."""
    chance, count = float(np.mean([1 / len(x) for x in examples.choices])), len(examples)
    return Verdict("Accuracy", scores["accuracy"], count, "questions", chance, "guessing")


def measure_questions(model, examples, tune=False):
    """Measures the official scores of questions, F1 first, with the official scripts' file.

    Only questions with answers are scored. For SQuAD 2.0 the threshold is tuned if `tune`, and if
    there are both kinds of questions.
    """
    n_best = model.n_best(examples.examples, verbose=0)
    scores = question_scores(model, examples, n_best, tune)
    pairs = zip(examples.examples, n_best, strict=True)
    texts = {x.id: "" if model.has_no_answer(y) else y.spans[0].text for x, y in pairs}
    file = json.dumps(texts, ensure_ascii=False, indent=1)
    return Measured(scores, {"predictions.json": file})


def question_verdict(scores, examples):
    """Returns the `Verdict` on questions: never answering."""
    examples = measurable(examples)
    impossible = sum(not example.answers for example in examples) / max(1, len(examples))
    f1, count = scores["f1"] / 100, len(examples)
    return Verdict("F1", f1, count, "questions", impossible, "never answering")


def measurable(examples):
    """Returns the `QuestionExample`s that the metric of `Questions` can measure."""
    return list(itertools.compress(examples.examples, examples.labels or ()))


def question_scores(model, examples, n_best, tune=False):
    """Returns the scores of the answers in `n_best`, see `measure_questions`."""
    best_of = {e.id: best for e, best in zip(examples.examples, n_best, strict=True)}
    metric, examples = examples.metric, measurable(examples)
    if not examples:
        return {}
    answers = {e.id: [answer.text for answer in e.answers] for e in examples}
    texts = {name: best_of[name].spans[0].text for name in answers}
    if metric != "squad_v2":
        function = metrics.cmrc_scores if metric == "cmrc" else metrics.squad_v1_scores
        scores = function(answers, texts)
        return {"f1": scores["f1"], "exact_match": scores["exact_match"]}
    if tune and any(answers.values()) and not all(answers.values()):
        model.tune_no_answer_threshold(examples, found=[best_of[name] for name in answers])
    options = {}
    if model.no_answer_threshold is not None:
        null_odds = {name: best_of[name].no_answer_score for name in answers}
        options = {"no_answer_scores": null_odds, "threshold": model.no_answer_threshold}
    scores = metrics.squad_v2_scores(answers, texts, **options)
    names = ("f1", "exact", "HasAns_f1", "HasAns_exact", "NoAns_exact")
    selected = {name: scores[name] for name in names if name in scores}
    return selected | ({"no_answer_threshold": model.no_answer_threshold} if options else {})
