"""Measure a trained model on a labelled file.

    bert-keras evaluate MODEL FILE
    bert-keras evaluate output/sentiment reviews.csv --columns review --label_column stars
    bert-keras evaluate output/entities test.conll --output scores.json

MODEL is the folder of a run of `train`, a `.keras` file, a folder or a hub address. FILE is read as
`train` reads it, with the same flags. Prints the score in words, then all scores as JSON.
"""

import json

from bert_keras.checks import check_exists
from bert_keras.cli import sources
from bert_keras.cli.baseline import defined
from bert_keras.cli.example_files import check_labelled, find_dataset
from bert_keras.cli.kinds import TASKS
from bert_keras.cli.options import TRACEBACK, Option, parse
from bert_keras.cli.train import check_can_measure, show_classes
from bert_keras.engine.atomic_files import write_json
from bert_keras.tasks.reranker import Reranker


def groups(*kinds):
    """Returns the options for files of some kinds of examples, by title."""
    # What the labels mean, the model knows.
    data = {x.name: x for kind in kinds for x in kind.data if x.name != "problem_type"}
    output = Option("output", str, None, "File of the scores, JSON."), TRACEBACK
    return {"Data": tuple(data.values()), "Output": output}


GROUPS = groups(*TASKS.values())


def main(arguments):
    """Runs the command with the arguments after `evaluate`."""
    _, (source, path) = parse("evaluate", __doc__, GROUPS, arguments, "MODEL FILE")
    check_exists(path, "FILE must be a file of labelled examples")
    model, _ = sources.load(source, command="evaluate")
    kind = _kind_of(source, model)
    # The flags of other kinds are unknown now.
    flags, _ = parse("evaluate", __doc__, groups(kind), arguments, "MODEL FILE")
    check_can_measure()
    find_dataset(kind, flags)
    settings = sources.read_from_run(source, "results.json").get("settings", {})
    known = {"classes": settings["classes"]} if settings.get("classes") else {}
    examples = kind.read_labelled(flags, path, model, **known)
    check_labelled(path, examples)
    options = {}
    if thresholds := sources.read_from_run(source, "thresholds.json"):
        print(f"The thresholds are those of {source}.")
        options = {"thresholds": thresholds}
    measured = kind.measure(model, examples, **options)
    scores = defined(measured.scores)
    kind.verdict(scores, examples).report()
    show_classes(measured)
    if flags.output:
        write_json(flags.output, {"model": source, "file": path, "scores": scores})
    print(json.dumps(scores, allow_nan=False))


def _kind_of(source, model):
    """Returns the kind of examples that measures a model."""
    kinds = [kind for kind in TASKS.values() if isinstance(model, kind.model_class)]
    # A reranker is a classifier too, but its scores order the texts of a query.
    if not kinds or isinstance(model, Reranker):
        names = ", ".join(kind.model_class.__name__ for kind in TASKS.values())
        raise ValueError(
            f"`evaluate` measures a {names}, in Keras and not as an exported program. Received: "
            f"{source}, a {type(model).__name__}."
        )
    # A `LongTextClassifier` is a `TextClassifier` too.
    return max(kinds, key=lambda kind: len(kind.model_class.__mro__))
