"""Multiple choice sets: SWAG, CommonsenseQA and e-CARE, each in its published layouts."""

import dataclasses
from typing import Any

import numpy as np

from bert_keras.datasets.any_table import read_objects
from bert_keras.datasets.examples import Rows
from bert_keras.types import Path


@dataclasses.dataclass(frozen=True)
class MultipleChoiceExamples(Rows):
    """Contexts with the choices that may follow, and the right one.

    Args:
        contexts: list of n str.
        choices: list of n lists of str, all of one length.
        labels: int32 `(n,)`, the position of the right choice; None where the file has none.
    """

    contexts: list[str]
    choices: list[list[str]]
    labels: Any = None

    columns = ("contexts", "choices", "labels")

    @property
    def num_choices(self) -> int:
        """How many choices each context has."""
        return len(self.choices[0])


def read_multiple_choice(path: Path) -> MultipleChoiceExamples:
    """Reads a multiple choice set; the first row's fields tell which.

    - SWAG (CSV with a header, or JSON lines): the context is the first sentence, and a choice is
      the beginning of the second with one of four endings, as in section 4.4 of the BERT paper.
      JSON lines with `startphrase` and `choices` have both sentences joined: there the context is
      that phrase and a choice is an ending alone.
    - CommonsenseQA (JSON lines; 3 choices in version 1.0, 5 in 1.11): question and answers.
    - e-CARE (JSON lines): the premise with the question "What is the cause?" or "What is the
      effect?" put after it, and two hypotheses. The authors' baseline tells the two apart by the
      order of the sentences instead.

    - CosmosQA (CSV or JSON lines): the context with the question put after it, and four answers.

    Args:
        path: the file, see `read_any_rows`.

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
    for place, record in read_objects(path):
        read = _find_layout(path, place, record)
        try:
            context, options, label = read(record)
            _texts([context])
            _check_not_blank(options)
            label = None if label in (None, "") else _label(label, len(options))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path}, {place}: not a row of this layout ({type(error).__name__}: {error})."
            ) from error
        if choices and len(options) != len(choices[0]):
            raise ValueError(
                f"{path}, {place}: every row must have as many choices as the first, "
                f"{len(choices[0])}. Received {len(options)}."
            )
        if labels and (label is None) != (labels[0] is None):
            raise ValueError(f"{path}, {place}: either all rows have a label or none has.")
        contexts.append(context)
        choices.append(options)
        labels.append(label)
    if not contexts:
        raise ValueError(f"{path} holds no examples.")
    labels = None if labels[0] is None else np.array(labels, "int32")
    return MultipleChoiceExamples(contexts, choices, labels)


def _swag(record):
    endings = _texts([record[f"ending{number}"] for number in range(4)])
    _texts([record["sent2"]])
    choices = [f"{record['sent2']} {ending}".strip() for ending in endings]
    return record["sent1"], choices, record.get("label")


def _swag_joined(record):
    return record["startphrase"], _texts(record["choices"]), record.get("answer")


def _commonsense_qa(record):
    question = record["question"]
    letters = [choice["label"] for choice in question["choices"]]
    key = record.get("answerKey")
    if key and key not in letters:
        raise ValueError(f"the answer must be one of {letters}. Received: {key!r}")
    choices = _texts([choice["text"] for choice in question["choices"]])
    return question["stem"], choices, letters.index(key) if key else None


def _e_care(record):
    wanted = record["ask-for"]
    if wanted not in ("cause", "effect"):
        raise ValueError(f"'ask-for' must be 'cause' or 'effect'. Received: {wanted!r}")
    _texts([record["premise"]])
    context = f"{record['premise']} What is the {wanted}?"
    return context, _texts([record["hypothesis1"], record["hypothesis2"]]), record.get("label")


def _cosmos_qa(record):
    answers = _texts([record[f"answer{number}"] for number in range(4)])
    return f"{record['context']} {record['question']}", answers, record.get("label")


# Fields that tell a layout, and its reader.
_LAYOUTS = (
    (("sent1", "sent2", "ending0"), _swag),
    (("startphrase", "choices"), _swag_joined),
    (("context", "question", "answer0"), _cosmos_qa),
    (("question",), _commonsense_qa),
    (("premise", "ask-for", "hypothesis1"), _e_care),
)


def _find_layout(path, place, record):
    for fields, read in _LAYOUTS:
        if all(field in record for field in fields):
            return read
    known = "; ".join(", ".join(fields) for fields, _ in _LAYOUTS)
    raise ValueError(
        f"{path}, {place}: a row must have the fields of one of these layouts: {known}. "
        f"Received: {list(record)}"
    )


def _texts(values):
    if not values or not all(isinstance(value, str) for value in values):
        raise TypeError(f"contexts and choices must be texts. Received: {repr(values)[:200]}")
    return list(values)


def _check_not_blank(choices):
    for number, choice in enumerate(choices):
        if not choice.strip():
            raise ValueError(f"the choice {number}, counted from 0, is blank")


def _label(value, num_choices):
    if isinstance(value, (bool, float)) or str(value) not in map(str, range(num_choices)):
        raise ValueError(f"a label must be from 0 to {num_choices - 1}. Received: {value!r}")
    return int(value)
