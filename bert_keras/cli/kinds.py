"""The kinds of examples that `train` and `evaluate` know, one row of a table each.

What a task is called, how it answers and what its labels mean follow from the task's class. A row
adds what only files and runs need: how they are read, trained on and measured.
"""

from collections.abc import Callable
from typing import NamedTuple

import bert_keras
from bert_keras.cli import example_files, measures
from bert_keras.cli.options import LAYOUT, Option
from bert_keras.tasks.encoded_labels import PROBLEM_TYPES
from bert_keras.training import CosineRegression, MultipleNegativesRanking

TRUNCATIONS = ("head", "tail", "head_tail")
LOSSES = {"similarity": CosineRegression, "ranking": MultipleNegativesRanking}
POOLING = Option("pooling", str, None, "pooler, cls, mean or max; by default the checkpoint's own.")
_LENGTH = "Longest sequence in tokens; by default no more than the checkpoint has positions."
LENGTH = Option("max_length", int, 128, _LENGTH, 3)
COLUMNS = (
    Option("dataset", str, None, "Name of the known dataset that the files are of, such as MRPC."),
    Option(
        "columns",
        list,
        ["text"],
        "Name of the text's column in files, of two for pairs of texts; or their numbers from 0, "
        "if all columns are numbers and the first row is an example instead of a header.",
    ),
    Option(
        "label_column",
        str,
        "label",
        "Name or number of the label's column; with multi_label also several columns of 0 and 1, "
        "separated by commas.",
    ),
    *LAYOUT,
)
LABELS = (
    Option("problem_type", PROBLEM_TYPES, "single_label", "The kind of labels in files."),
    Option("label_separator", str, ",", "With multi_label, what separates labels."),
)
NAMES = Option("label_names", list, None, "Names of classes that are numbers, in order.")


class Kind(NamedTuple):
    """One kind of examples, as a run reads and measures them.

    Attributes:
        name: str, what `train` calls it.
        model_class: class of the model.
        read: function from the flags of `train` to `Splits`.
        read_labelled: function from the flags of `evaluate`, a path and a model to examples to
            measure it on, whose labels it knows, or which `measure` checks.
        measure: function from a model and examples to `Measured`, see `measure_texts`.
        verdict: function from scores and examples to a `Verdict`.
        data: `Option`s for its files, which `evaluate` takes too.
        model: `Option`s that `from_preset` takes as arguments of the same names, if passed; one
            of `train`'s own name replaces that one.
        training: further `Option`s of `train`.
        compile_options: function from flags to further arguments of `compile`.
        fit_options: function from flags and `Splits` to the examples as arguments of `fit`.
        cuts_all: bool, whether `--sample` also cuts the sets to measure on.
    """

    name: str
    model_class: type
    read: Callable
    read_labelled: Callable
    measure: Callable
    verdict: Callable
    data: tuple[Option, ...] = ()
    model: tuple[Option, ...] = (POOLING,)
    training: tuple[Option, ...] = ()
    compile_options: Callable = lambda flags: {}
    fit_options: Callable = example_files.fit_options
    cuts_all: bool = False

    def about(self):
        """Returns the first sentence of the task's documentation."""
        # `python -OO` removes docstrings.
        return (self.model_class.__doc__ or "").partition("\n")[0]


_TEXTS = Kind(
    "text_classification",
    bert_keras.TextClassifier,
    example_files.read_texts,
    example_files.read_labelled_texts,
    measures.measure_texts,
    measures.text_verdict,
)
KINDS = (
    _TEXTS._replace(
        data=(*COLUMNS, *LABELS, NAMES),
        model=(POOLING, Option("truncation", str, "longest_first", "How to shorten long texts.")),
        training=(
            Option("baselines", bool, False, "Also measure a classifier on the frozen encoder."),
        ),
    ),
    _TEXTS._replace(
        name="long_text_classification",
        model_class=bert_keras.LongTextClassifier,
        data=(*COLUMNS, NAMES),
        model=(
            POOLING,
            Option("num_windows", int, 4, "Most windows to read in a document.", 1),
            Option("stride", int, None, "Tokens between two windows; by default no overlap.", 1),
            Option("combine", ("mean", "max"), "mean", "How the vectors of windows are combined."),
            Option("truncation", TRUNCATIONS, "head", "Which windows to keep of long documents."),
        ),
        cuts_all=True,
    ),
    Kind(
        "token_classification",
        bert_keras.TokenClassifier,
        example_files.read_tags,
        example_files.read_tag_file,
        measures.measure_tags,
        measures.tag_verdict,
        data=(
            Option(
                "word_column", str, None, "Column of the words, from 0, or its name; else detected."
            ),
            Option(
                "tag_column", str, None, "Column of the tags, from 0 (-1 is the last), or its name."
            ),
            NAMES._replace(about="Names of tags that are numbers, in order."),
        ),
        model=(Option("crf", bool, False, "Score sequences of tags with a random field."),),
    ),
    Kind(
        "question_answering",
        bert_keras.QuestionAnswering,
        lambda flags: example_files.read_parts(flags, example_files.read_question_file),
        example_files.read_question_file,
        measures.measure_questions,
        measures.question_verdict,
        data=(
            Option(
                "metric",
                ("squad_v1", "squad_v2", "cmrc"),
                None,
                "Official score. By default, for the training file, squad_v2 if questions have no "
                "answer, cmrc if it is named cmrc or drcd, else squad_v1.",
            ),
        ),
        model=(
            Option("stride", int, 128, "Tokens between the beginnings of two windows.", 1),
            Option("max_question_length", int, 64, "Most tokens to keep of a question.", 1),
            LENGTH._replace(default=384),
            Option("max_answer_length", int, 30, "Most tokens in an answer.", 1),
        ),
        fit_options=lambda flags, splits: {"x": splits.train.examples},
        cuts_all=True,
    ),
    Kind(
        "multiple_choice",
        bert_keras.MultipleChoice,
        lambda flags: example_files.read_parts(flags, example_files.read_choice_file),
        example_files.read_choice_file,
        measures.measure_choices,
        measures.choice_verdict,
    ),
    Kind(
        "text_embedding",
        bert_keras.TextEmbedder,
        example_files.read_pairs,
        example_files.read_labelled_pairs,
        measures.measure_pairs,
        measures.pair_verdict,
        data=(
            *COLUMNS,
            Option("highest_score", float, 1.0, "The score of equal meaning in files.", 1e-6),
        ),
        model=(
            POOLING,
            LENGTH._replace(default=None),
            Option("objective", tuple(LOSSES), "similarity", "What to train for."),
        ),
        compile_options=lambda flags: {"loss": LOSSES[flags.objective]()},
        fit_options=example_files.fit_options_of_pairs,
    ),
)
TASKS = {kind.name: kind for kind in KINDS}
