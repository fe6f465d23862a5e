"""Measure a trained model on a labelled file.

    bert-keras evaluate MODEL FILE
    bert-keras evaluate output/sentiment reviews.csv --columns review --label_column stars
    bert-keras evaluate output/entities test.conll --output scores.json

MODEL is the folder of a run of `train`, a `.keras` file, a folder or a hub address. FILE is read as
`train` reads it, with the same flags. Prints the score in words, then all scores as JSON.
"""

import json

from bert_keras.cli import sources
from bert_keras.cli.baseline import defined
from bert_keras.cli.example_files import are_labelled, check_columns
from bert_keras.cli.kinds import TASKS
from bert_keras.cli.options import TRACEBACK, Option, parse_all, passed_flags
from bert_keras.cli.train import check_can_measure, show_classes
from bert_keras.engine.atomic_files import write_json
from bert_keras.tasks.reranker import Reranker

# The kind of labels is the model's.
DATA = {x.name: x for kind in TASKS.values() for x in kind.data if x.name != "problem_type"}
GROUPS = {
    "Data": tuple(DATA.values()),
    "Output": (Option("output", str, None, "File of the scores, JSON."), TRACEBACK),
}


def main(arguments):
    """Runs the command with the arguments after `evaluate`."""
    flags, words = parse_all("evaluate", __doc__, GROUPS, arguments)
    if len(words) != 2:
        raise ValueError(f"Write `evaluate MODEL FILE`. Received: {' '.join(words) or 'nothing'}.")
    source, path = words
    model, warned = sources.load(source)
    kind = _kind_of(source, model, warned)
    _check_flags(flags, kind)
    check_can_measure()
    check_columns(kind, flags)
    examples = kind.read_labelled(flags, path, model)
    if not are_labelled(examples):
        raise ValueError(f"{path} must have labels to measure by. Received: none.")
    options = {}
    if (thresholds := sources.thresholds_of(source)) is not None:
        print(f"The thresholds are those of {source}.")
        options = {"thresholds": thresholds}
    measured = kind.measure(flags, model, examples, **options)
    scores = defined(measured.scores)
    verdict = kind.verdict(scores, examples)
    if verdict.count and verdict.value is not None:
        print(verdict.in_words())
    show_classes(measured)
    if flags.output:
        write_json(flags.output, {"model": source, "file": path, "scores": scores})
    print(json.dumps(scores, allow_nan=False))


def _kind_of(source, model, warned):
    """Returns the kind of examples that measures a model."""
    sources.refuse_untrained(source, "evaluate", warned)
    kinds = [kind for kind in TASKS.values() if isinstance(model, kind.model_class)]
    # A reranker is a classifier too, but its scores order the texts of a query.
    if not kinds or isinstance(model, Reranker):
        names = ", ".join(kind.model_class.__name__ for kind in TASKS.values())
        raise ValueError(
            f"`evaluate` measures a {names}. Received: {source}, a {type(model).__name__}."
        )
    # A `LongTextClassifier` is a `TextClassifier` too.
    return max(kinds, key=lambda kind: len(kind.model_class.__mro__))


def _check_flags(flags, kind):
    """Refuses flags of other kinds of examples."""
    names = [option.name for option in kind.data if option.name in DATA]
    if wrong := passed_flags(flags, [name for name in DATA if name not in names]):
        raise ValueError(
            f"For a {kind.model_class.__name__} `evaluate` takes "
            f"{', '.join(f'--{x}' for x in names) or 'no flags for the file'}. Received: "
            f"{', '.join(wrong)}."
        )
