"""`bert-keras evaluate MODEL FILE`: the scores of a trained model on a labelled file."""

import json

from bert_keras.answers.classes import check_threshold
from bert_keras.checks import check_exists
from bert_keras.cli import sources
from bert_keras.cli.options import TRACEBACK, Option, parse_all
from bert_keras.cli.tasks import TASKS
from bert_keras.cli.train import check_can_measure
from bert_keras.cli.training_files import Parts, are_labelled
from bert_keras.cli.verdict import defined
from bert_keras.engine.atomic_files import write_json
from bert_keras.tasks.reranker import Reranker

ABOUT = """Measure a trained model on a labelled file.

    bert-keras evaluate MODEL FILE
    bert-keras evaluate output/sentiment reviews.csv --text_column review --label_column stars
    bert-keras evaluate output/entities test.conll --output scores.json

MODEL is the folder of a run of `train`, a `.keras` file, a folder or a hub address. FILE is read as
`train` reads it, with the same flags. Prints the score in words, then all scores as JSON.
"""
# The kind of labels is the model's.
DATA = {x.name: x for task in TASKS.values() for x in task.data if x.name != "problem_type"}
GROUPS = {
    "Data": tuple(DATA.values()),
    "Output": (Option("output", str, None, "File of the scores, JSON."), TRACEBACK),
}


def main(arguments):
    """Runs the command with the arguments after `evaluate`."""
    flags, words = parse_all("evaluate", ABOUT, GROUPS, arguments)
    if len(words) != 2:
        raise ValueError(f"Write `evaluate MODEL FILE`. Received: {' '.join(words) or 'nothing'}.")
    source, path = words
    check_exists(path, "FILE must exist")
    model, warned = sources.load(source)
    task = _task_of(source, model, warned)
    _check_flags(flags, task)
    check_can_measure(task)
    examples, further = task.read_labelled(flags, path, model)
    if not are_labelled(examples, further):
        raise ValueError(f"{path} must have labels to measure by. Received: none.")
    if (thresholds := sources.thresholds_of(source)) is not None:
        print(f"The thresholds are those of {source}.")
        further["scoring_thresholds"] = check_threshold(thresholds, model.label_names)
    scores, _ = task.evaluate(flags, model, examples, further)
    scores = defined(scores)
    verdict = task.verdict(scores, Parts(None, examples, None, further))
    if verdict.count and verdict.value is not None:
        print(verdict.in_words())
    if flags.output:
        write_json(flags.output, {"model": source, "file": path, "scores": scores})
    print(json.dumps(scores, allow_nan=False))


def _task_of(source, model, warned):
    """Returns the row of `TASKS` for a model."""
    sources.refuse_untrained(source, "evaluate", warned)
    tasks = [task for task in TASKS.values() if isinstance(model, task.model_class)]
    # A reranker is a classifier too, but its scores order the texts of a query.
    if not tasks or isinstance(model, Reranker):
        names = ", ".join(task.model_class.__name__ for task in TASKS.values())
        raise ValueError(
            f"`evaluate` measures a {names}. Received: {source}, a {type(model).__name__}."
        )
    # A `LongTextClassifier` is a `TextClassifier` too.
    return max(tasks, key=lambda task: len(task.model_class.__mro__))


def _check_flags(flags, task):
    """Refuses flags of other tasks."""
    names = [option.name for option in task.data if option.name in DATA]
    wrong = [x for x in flags if x in DATA and x not in names and flags[x].present]
    if wrong:
        raise ValueError(
            f"For a {task.model_class.__name__} `evaluate` takes "
            f"{', '.join(f'--{x}' for x in names) or 'no flags for the file'}. Received: "
            f"--{', --'.join(wrong)}."
        )
