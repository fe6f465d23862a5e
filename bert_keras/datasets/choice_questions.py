"""Multiple choice sets: SWAG, CommonsenseQA, e-CARE and CosmosQA, in their published layouts."""

import dataclasses
from typing import Any

import numpy as np

from bert_keras.checks import check_choice, check_not_empty
from bert_keras.datasets.labelled_texts import ExampleSet
from bert_keras.datasets.table import read_records, shorten
from bert_keras.types import Path


@dataclasses.dataclass(frozen=True)
class MultipleChoiceExamples(ExampleSet):
    """Contexts with the choices that may follow, and the right one.

    Args:
        contexts: list of n str.
        choices: list of n lists of str, all of the same length.
        labels: int32 `(n,)`, the position of the right choice; `None` if the file has no labels.
    """

    contexts: list[str]
    choices: list[list[str]]
    labels: Any = None

    columns = ("contexts", "choices", "labels")

    @property
    def num_choices(self) -> int:
        """Number of choices of each context."""
        return len(self.choices[0])


def read_multiple_choice(path: Path) -> MultipleChoiceExamples:
    """Reads a multiple choice set, whose layout follows from the fields of its rows.

    - SWAG (CSV with a header, or JSON lines): the context is the first sentence, and a choice is
      the beginning of the second sentence with one of four endings, as in section 4.4 of the BERT
      paper. In JSON lines with `startphrase` and `choices` the two sentences are joined: the
      context is that phrase and a choice is an ending alone.
    - CommonsenseQA (JSON lines; 3 choices in version 1.0, 5 in 1.11): question and answers.
    - e-CARE (JSON lines): the premise followed by the question "What is the cause?" or "What is the
      effect?", and two hypotheses. The authors' baseline distinguishes the two by the order of the
      sentences instead.
    - CosmosQA (CSV or JSON lines): the context followed by the question, and four answers.

    Args:
        path: the file, see `read_rows`.

    Returns:
        `MultipleChoiceExamples`.

    Raises:
        ValueError: the layout is none of these, a label is not one of the choices, or rows differ
            in their number of choices. The message names the file and the line.

    Example:
        ```python
        examples = read_multiple_choice("swag/val.csv")
        examples.contexts[0], examples.choices[0][examples.labels[0]]
        ```
    """
    contexts, choices, labels = [], [], []
    for place, record in read_records(path):
        try:
            context, options, label = _layout_of(record)(record)
            _check_texts([context])
            label = None if label in (None, "") else _label(label, len(options))
            blank = [number for number, choice in enumerate(options) if not choice.strip()]
            if blank:
                raise ValueError(f"the choice {blank[0]}, counted from 0, is blank")
            if choices and len(options) != len(choices[0]):
                raise ValueError(
                    "every row must have as many choices as the first, "
                    f"{len(choices[0])}. Received {len(options)}"
                )
            if labels and (label is None) != (labels[0] is None):
                raise ValueError("either all rows have a label or none has one")
        except (KeyError, TypeError, ValueError) as error:
            fault = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            raise ValueError(f"{path}, {place}: not a row of this set ({fault}).") from error
        contexts.append(context)
        choices.append(options)
        labels.append(label)
    check_not_empty(contexts, f"{path} must hold examples")
    labels = None if labels[0] is None else np.array(labels, "int32")
    return MultipleChoiceExamples(contexts, choices, labels)


def _swag(record):
    endings = _check_texts([record[f"ending{number}"] for number in range(4)])
    _check_texts([record["sent2"]])
    choices = [f"{record['sent2']} {ending}".strip() for ending in endings]
    return record["sent1"], choices, record.get("label")


def _swag_joined(record):
    return record["startphrase"], _check_texts(record["choices"]), record.get("answer")


def _commonsense_qa(record):
    question = record["question"]
    letters = [choice["label"] for choice in question["choices"]]
    key = record.get("answerKey")
    key = check_choice("answerKey", key, letters) if key else None
    choices = _check_texts([choice["text"] for choice in question["choices"]])
    return question["stem"], choices, letters.index(key) if key else None


def _e_care(record):
    wanted = check_choice("ask-for", record["ask-for"], ("cause", "effect"))
    _check_texts([record["premise"]])
    context = f"{record['premise']} What is the {wanted}?"
    return (
        context,
        _check_texts([record["hypothesis1"], record["hypothesis2"]]),
        record.get("label"),
    )


def _cosmos_qa(record):
    answers = _check_texts([record[f"answer{number}"] for number in range(4)])
    return f"{record['context']} {record['question']}", answers, record.get("label")


# The fields by which a layout is recognized, and its reader.
_LAYOUTS = (
    (("sent1", "sent2", "ending0"), _swag),
    (("startphrase", "choices"), _swag_joined),
    (("context", "question", "answer0"), _cosmos_qa),
    (("question",), _commonsense_qa),
    (("premise", "ask-for", "hypothesis1"), _e_care),
)


def _layout_of(record):
    """Returns the reader of a row's layout."""
    for fields, read in _LAYOUTS:
        if all(field in record for field in fields):
            return read
    layouts = "; ".join(", ".join(fields) for fields, _ in _LAYOUTS)
    raise ValueError(
        f"a row must have the fields of one of these layouts: {layouts}. Received: {list(record)}"
    )


def _check_texts(values):
    if not values or not all(isinstance(value, str) for value in values):
        raise ValueError(f"contexts and choices must be texts. Received: {shorten(values)}")
    return list(values)


def _label(value, num_choices):
    if isinstance(value, (bool, float)) or str(value) not in map(str, range(num_choices)):
        raise ValueError(f"a label must be from 0 to {num_choices - 1}. Received: {value!r}")
    return int(value)
