"""Multiple choice sets in their published layouts, each a record of field names."""

import dataclasses
import re
from typing import Any, NamedTuple

import numpy as np

from bert_keras.checks import check_choice, check_not_empty, is_int
from bert_keras.datasets.files import shorten
from bert_keras.datasets.labelled_texts import ExampleSet
from bert_keras.datasets.table import read_records, with_fields
from bert_keras.datasets.tag_records import as_list
from bert_keras.types import Path


@dataclasses.dataclass(frozen=True)
class MultipleChoiceExamples(ExampleSet):
    """Contexts with the choices that may follow, and the right one.

    Args:
        contexts: list of n str.
        choices: list of n lists of str; ARC has 3 to 5 in each.
        labels: int32 `(n,)`, the position of the right choice; `None` if the file has no labels.
    """

    contexts: list[str]
    choices: list[list[str]]
    labels: Any = None

    columns = ("contexts", "choices", "labels")

    @property
    def num_choices(self) -> int:
        """The largest number of choices of a context."""
        return max(map(len, self.choices))


class _Layout(NamedTuple):
    """The fields of a set's rows: the layout is known by those of the context and the choices.

    Args:
        context: str, the context, with names of fields in braces.
        choices: str, one field for each choice, or the field with all choices.
        label: str, the field with the right choice.
        before: str, the field with a text that each choice continues, or whose gap (`_`) it fills.
        relation: str, a field that is `"cause"` or `"effect"`.
    """

    context: str
    choices: str
    label: str = "label"
    before: str | None = None
    relation: str | None = None

    @property
    def in_context(self) -> list[str]:
        """List of str: the fields of the context."""
        return re.findall("{(.*?)}", self.context)

    @property
    def fields(self) -> list[str]:
        """List of str: the fields by which the layout is recognized."""
        return [*self.in_context, *filter(None, [self.before]), self.choices.split()[0]]


_LAYOUTS = (
    # SWAG, as its authors published it, and with the two sentences joined.
    _Layout("{sent1}", "ending0 ending1 ending2 ending3", before="sent2"),
    _Layout("{startphrase}", "choices", "answer"),
    # HellaSwag.
    _Layout("{ctx}", "endings"),
    # CosmosQA.
    _Layout("{context} {question}", "answer0 answer1 answer2 answer3"),
    # RACE.
    _Layout("{article}", "options", "answer", "question"),
    # e-CARE and COPA.
    _Layout("{premise} What is the {ask-for}?", "hypothesis1 hypothesis2", relation="ask-for"),
    _Layout("{premise} What is the {question}?", "choice1 choice2", relation="question"),
    # PIQA.
    _Layout("{goal}", "sol1 sol2"),
    # CommonsenseQA and ARC; OpenBookQA.
    _Layout("{question}", "choices", "answerKey"),
    _Layout("{question_stem}", "choices", "answerKey"),
    # Your own.
    _Layout("{context}", "choices"),
)


_FIELDS = tuple(
    (*layout.fields, *layout.choices.split(), label)
    for layout in _LAYOUTS
    for label in (layout.label, "label", "answer")
)


def read_multiple_choice(path: Path) -> MultipleChoiceExamples:
    """Reads a multiple choice set, whose layout follows from the fields of its rows.

    | set | file | context | choice |
    |---|---|---|---|
    | SWAG | CSV, JSON lines | first sentence | beginning of the second sentence, and an ending |
    | SWAG, joined; HellaSwag | JSON lines | both sentences | an ending |
    | CommonsenseQA, ARC, OpenBookQA | JSON lines | question | answer |
    | CosmosQA | CSV, JSON lines | text and question | answer |
    | RACE | JSON lines of `datasets` | article | question and answer, or filled gap |
    | e-CARE, COPA | JSON lines | premise and "What is the cause?" | hypothesis |
    | PIQA | JSON lines | goal | solution |
    | your own: `context`, `choices`, `label` | JSON lines | context | choice |

    The same fields are read from JSON, Parquet and CSV, and as `datasets` writes them (`choices`
    with lists of `label` and `text`). SWAG is read as in section 4.4 of the BERT paper. In e-CARE
    the context asks for the cause or the effect; in its authors' baseline the order of sentences
    tells which. A label is the own label of a choice, or else its position from 0 or its letter; an
    empty label or -1 is missing.

    Args:
        path: the file, see `read_records`.

    Returns:
        `MultipleChoiceExamples`.

    Raises:
        ValueError: the layout is none of these, a label is not one of the choices, or some rows
            have a label and others none. The message names the file and the line.

    Example:
        ```python
        examples = read_multiple_choice("swag/val.csv")
        examples.contexts[0], examples.choices[0][examples.labels[0]]
        ```
    """
    contexts, choices, labels = [], [], []
    for place, record in read_records(path):
        try:
            context, options, label = _read_row(with_fields(record, _FIELDS))
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


def _read_row(record):
    """Returns the context, the choices and the label of a row, which may be `None`."""
    question = record.get("question")
    if isinstance(question, dict):
        record = {**record, **question, "question": question["stem"]}
    layout = next((x for x in _LAYOUTS if {*x.fields} <= record.keys()), None)
    if layout is None:
        layouts = "; ".join(", ".join(layout.fields) for layout in _LAYOUTS)
        raise ValueError(
            f"a row must have the fields of one of these layouts: {layouts}. Received: "
            f"{list(record)}"
        )
    if layout.relation:
        check_choice(layout.relation, record[layout.relation], ("cause", "effect"))
    keys, fields = None, layout.choices.split()
    options = [record[field] for field in fields]
    if len(fields) == 1:
        options = as_list(fields[0], options[0])
    if isinstance(options, dict):
        options, keys = options["text"], options["label"]
    elif options and all(isinstance(option, dict) for option in options):
        options, keys = zip(*((row["text"], row["label"]) for row in options), strict=True)
    options = _check_texts(options)
    if layout.before:
        [text] = _check_texts([record[layout.before]])
        # A choice fills the gap of a text, or continues it.
        filled = [re.sub("_+", lambda gap, option=option: option, text) for option in options]
        options = filled if "_" in text else [f"{text} {option}".strip() for option in options]
    blank = [number for number, choice in enumerate(options) if not choice.strip()]
    if blank:
        raise ValueError(f"the choice {blank[0]}, counted from 0, is blank")
    names = layout.in_context
    texts = dict(zip(names, _check_texts([record[x] for x in names]), strict=True))
    label = record.get(layout.label, record.get("label", record.get("answer")))
    return layout.context.format_map(texts), options, _label(label, len(options), keys)


def _check_texts(values):
    is_list = isinstance(values, (list, tuple)) and values
    if not is_list or not all(isinstance(value, str) for value in values):
        raise ValueError(f"contexts and choices must be texts. Received: {shorten(values)}")
    return list(values)


def _label(value, num_choices, keys=None):
    """Returns the position of the right choice, `None` if the label is missing.

    Args:
        value: the label.
        num_choices: int.
        keys: the choices' own labels, such as A, B and C; `None` if they have none.
    """
    if isinstance(value, float) and value.is_integer():  # pandas
        value = int(value)
    if value is None or value in ("", "-1", -1) or value != value:
        return None
    keys = [*map(str, keys or ())]
    if str(value) in keys:
        return keys.index(str(value))
    if keys and (not is_int(value) or all(map(str.isdigit, keys))):
        check_choice("answerKey", value, keys)
    if isinstance(value, str) and re.fullmatch("[A-Z]", value):
        value = ord(value) - ord("A")
    if isinstance(value, (bool, float)) or str(value) not in map(str, range(num_choices)):
        raise ValueError(f"a label must be from 0 to {num_choices - 1}. Received: {value!r}")
    return int(value)
