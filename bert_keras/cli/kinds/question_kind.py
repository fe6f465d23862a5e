"""Questions on contexts, with answers that are spans of the context, or one of several choices."""

import os
import re

import numpy as np

from bert_keras import datasets, metrics
from bert_keras.cli.baseline import Verdict
from bert_keras.cli.kinds.kind import (
    BATCH_SIZE,
    POOLING,
    Kind,
    task_of,
)
from bert_keras.cli.options import Option

METRIC = (
    "Official score. By default cmrc for files named cmrc or drcd, squad_v2 if questions have no "
    "answer, else squad_v1."
)


class QuestionKind(Kind):
    """Questions on contexts.

    Attributes:
        metric: str, the official score.
    """

    name = "question_answering"
    model_class = task_of("span")
    data = (
        Option("metric", ("squad_v1", "squad_v2", "cmrc"), None, METRIC),
        Option("n_best", int, 20, "Answers to a question in nbest_predictions.json.", 1),
    )
    model = (
        Option("stride", int, 128, "Tokens between the beginnings of two windows.", 1),
        Option("max_question_length", int, 64, "Most tokens to keep of a question.", 1),
        Option("max_answer_length", int, 30, "Most tokens in an answer.", 1),
        Option(
            "normalization",
            ("document", "per_window"),
            "document",
            "What probabilities sum to 1 over.",
        ),
    )
    defaults = {"max_length": 384}  # noqa: RUF012
    cuts_all = keeps_answers = True

    def read(self):
        splits = super().read()
        train, dev, test = splits[:3]
        self.choose_metric(dev, *self.files().values())
        if answered(self.metric, train) and not any(e.spans or e.is_impossible for e in train):
            raise ValueError(
                f"None of the {len(train)} answers to train on is in its context at "
                "'answer_start'. Correct 'answer_start', which counts characters from 0."
            )
        self.print_unmeasured(dev, "dev questions")
        self.print_unmeasured(test or [], "test questions")
        return splits

    def read_file(self, path, part):
        """Reads a file; prints what it leaves out, and how many answers cannot be trained on."""
        examples, mismatches = datasets.read_squad(path)
        usable = [example for example in examples if example.question.strip()]
        if len(usable) < len(examples):
            print(f"{path}: left out {len(examples) - len(usable)} blank questions.")
        if mismatches:
            print(f"{path}: {len(mismatches)} answers are not in the context at 'answer_start'.")
        return usable

    def read_labelled(self, path, model):
        examples = self.read_file(path, "dev")
        self.choose_metric(examples, path)
        self.print_unmeasured(examples, "questions")
        return examples

    def choose_metric(self, examples, *paths):
        """Chooses the official score for questions, and prints which it is.

        Files of CMRC and DRCD have their own, by their names. The language does not decide: XQuAD's
        Chinese part is scored like SQuAD.
        """
        names = " ".join(map(os.path.basename, filter(None, paths)))
        by_name = "cmrc" if re.search("cmrc|drcd", names, re.IGNORECASE) else "squad_v1"
        if any(example.is_impossible for example in examples):
            by_name = "squad_v2"
        self.metric = self.flags.metric or by_name
        print(f"Scored as {self.metric}; --metric chooses another of the official scores.")

    def print_unmeasured(self, examples, noun):
        """Prints how many questions the metric cannot measure."""
        count = len(examples) - len(answered(self.metric, examples))
        if count:
            print(
                f"{count} of {len(examples)} {noun} have no answer that {self.metric} can "
                "measure: they are left out of the scores."
            )

    def held_out(self, examples, share):
        contexts = {example.context for example in examples}
        if len(contexts) < 2:
            raise ValueError(
                "A file must hold questions on at least two contexts to be split. Received: "
                f"{len(examples)} questions on {len(contexts)}. Pass another file by --dev_file."
            )
        return super().held_out(examples, share)

    def are_labelled(self, examples):
        return bool(answered(self.metric, examples))

    def check(self, model, splits):
        for examples in filter(None, (splits.dev, splits.test)):
            model.cut(examples)  # If a question has no token this raises now, not after hours.

    def fit_options(self, splits):
        return {"x": splits.train}

    def evaluate(self, model, examples, tune=False):
        """Returns the official scores, F1 first, and the files of the official scripts.

        Only questions with answers are scored. For SQuAD 2.0 the threshold is tuned on the dev
        set, if it has both kinds of questions.
        """
        n_best = model.n_best(examples, self.flags.n_best, verbose=0)
        scores = question_scores(model, self.metric, examples, n_best, tune)
        return scores, lambda: question_files(model, self.metric, examples, n_best)

    def verdict(self, scores, examples):
        examples = answered(self.metric, examples)
        impossible = sum(not example.answers for example in examples) / max(1, len(examples))
        f1, count = scores["f1"] / 100, len(examples)
        return Verdict("F1", f1, count, "questions", impossible, "never answering")


class ChoiceKind(Kind):
    """Contexts with their choices."""

    name = "multiple_choice"
    model_class = task_of("choice")
    model = (POOLING,)

    def read_file(self, path, part):
        return datasets.read_multiple_choice(path)

    def evaluate(self, model, examples, tune=False):
        """Returns the share of examples for which the model chooses the right choice."""
        answers = model.choose(examples.contexts, examples.choices, BATCH_SIZE)
        scores = {}
        if examples.labels is not None:
            predicted = np.array([answer["index"] for answer in answers])
            scores["accuracy"] = float((predicted == examples.labels).mean())
        return scores, lambda: {"predictions.jsonl": answers}

    def true_labels(self, examples):
        choices = zip(examples.choices, examples.labels, strict=True)
        return [choices[label] for choices, label in choices]

    def predicted_label(self, answer):
        return answer["choice"]

    def verdict(self, scores, examples):
        chance = float(np.mean([1 / len(choices) for choices in examples.choices]))
        count = len(examples)
        return Verdict("Accuracy", scores["accuracy"], count, "questions", chance, "guessing")

    def rows(self, examples):
        pairs = zip(examples.contexts, examples.choices, strict=True)
        return [(context, *choices) for context, choices in pairs]


def answered(metric, examples):
    """Returns the examples that `metric` can measure; only SQuAD 2.0's knows "no answer"."""
    return [e for e in examples if e.answers or (metric == "squad_v2" and e.is_impossible)]


def question_scores(qa, metric, examples, n_best, tune=False):
    """Returns the scores of the answers in `n_best`, see `QuestionKind.evaluate`."""
    best_of = {e.id: best for e, best in zip(examples, n_best, strict=True)}
    examples = answered(metric, examples)
    if not examples:
        return {}
    answers = {e.id: [answer.text for answer in e.answers] for e in examples}
    texts = {name: best_of[name].spans[0].text for name in answers}
    if metric != "squad_v2":
        function = metrics.cmrc_scores if metric == "cmrc" else metrics.squad_v1_scores
        scores = function(answers, texts)
        return {"f1": scores["f1"], "exact_match": scores["exact_match"]}
    if tune and any(answers.values()) and not all(answers.values()):
        qa.tune_no_answer_threshold(examples, found=[best_of[name] for name in answers])
    elif tune:
        kind = "with" if any(answers.values()) else "without"
        print(f"Only questions {kind} an answer to measure on: no threshold is tuned.")
    options = {}
    if qa.no_answer_threshold is not None:
        null_odds = {name: best_of[name].no_answer_score for name in answers}
        options = {"no_answer_scores": null_odds, "threshold": qa.no_answer_threshold}
    scores = metrics.squad_v2_scores(answers, texts, **options)
    names = ("f1", "exact", "HasAns_f1", "HasAns_exact", "NoAns_exact")
    selected = {name: scores[name] for name in names if name in scores}
    return {**selected, "no_answer_threshold": qa.no_answer_threshold} if options else selected


def question_files(qa, metric, examples, n_best):
    """Returns the files of the official scripts: texts, n-best lists, and SQuAD 2.0's null odds."""
    texts, lists, null_odds = {}, {}, {}
    for example, best in zip(examples, n_best, strict=True):
        spans = best.spans
        if metric == "squad_v2":
            spans = sorted([*spans, best.no_answer], key=lambda span: -span.probability)
        texts[example.id] = "" if qa.has_no_answer(best) else best.spans[0].text
        names = ("text", "probability", "start_logit", "end_logit")
        lists[example.id] = [{name: getattr(span, name) for name in names} for span in spans]
        null_odds[example.id] = best.no_answer_score
    files = {"predictions.json": texts, "nbest_predictions.json": lists}
    return {**files, "null_odds.json": null_odds} if metric == "squad_v2" else files
