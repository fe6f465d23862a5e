"""Multiple choice sets in their published layouts, each a record of field names."""

import dataclasses
import re
import string
from typing import Any, NamedTuple

import numpy as np

from bert_keras.checks import check_not_empty
from bert_keras.datasets.files import check_at
from bert_keras.datasets.labelled_texts import ExampleSet
from bert_keras.datasets.table import as_list, read_records, with_known_names
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
        before: str, the field with a text that each choice continues, or whose gap (`_`) it fills.
    """

    context: str
    choices: str
    before: str | None = None

    @property
    def texts(self) -> list[str]:
        """List of str: the fields of the context, and the one before the choices."""
        return [*re.findall("{(.*?)}", self.context), *filter(None, [self.before])]

    @property
    def fields(self) -> list[str]:
        """List of str: the fields by which the layout is recognized."""
        return [*self.texts, *self.choices.split()]


_LAYOUTS = (
    # SWAG, as its authors published it, and with the two sentences joined.
    _Layout("{sent1}", "ending0 ending1 ending2 ending3", before="sent2"),
    _Layout("{startphrase}", "choices"),
    # HellaSwag.
    _Layout("{ctx}", "endings"),
    # CosmosQA.
    _Layout("{context} {question}", "answer0 answer1 answer2 answer3"),
    # RACE.
    _Layout("{article}", "options", "question"),
    # e-CARE and COPA.
    _Layout("{premise} What is the {ask-for}?", "hypothesis1 hypothesis2"),
    _Layout("{premise} What is the {question}?", "choice1 choice2"),
    # PIQA.
    _Layout("{goal}", "sol1 sol2"),
    # CommonsenseQA and ARC; OpenBookQA.
    _Layout("{question}", "choices"),
    _Layout("{question_stem}", "choices"),
    # Your own.
    _Layout("{context}", "choices"),
)


_RULE = "a row must have the fields of one of these layouts: "
_RULE += "; ".join(", ".join(layout.fields) for layout in _LAYOUTS)
# The names of the field with the right choice.
_LABELS = ("answerKey", "label", "answer")


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
    rows = []
    for place, record in read_records(path):
        place = f"{path}, {place}"
        rows.append(_read_row(place, record))
        label, fits = rows[-1][2], (rows[-1][2] is None) == (rows[0][2] is None)
        check_at(place, fits, "either all rows have a label or none has one", label)
    check_not_empty(rows, f"{path} must hold examples")
    contexts, choices, labels = map(list, zip(*rows, strict=True))
    labels = None if labels[0] is None else np.array(labels, "int32")
    return MultipleChoiceExamples(contexts, choices, labels)


def _read_row(place, record):
    """Returns the context, the choices and the label of a row, which may be `None`."""
    question = record.get("question")
    if isinstance(question, dict):
        record = {**record, **question, "question": question.get("stem")}
    # Exact names first.
    names, record = record.keys(), with_known_names(record)
    fitting = (x for keys in (names, record.keys()) for x in _LAYOUTS if {*x.fields} <= keys)
    layout = next(fitting, None)
    check_at(place, layout, _RULE, [*names])
    keys, fields = None, layout.choices.split()
    options = [record[field] for field in fields]
    if len(fields) == 1:
        options = as_list(options[0])
    if isinstance(options, dict):
        options, keys = options.get("text"), options.get("label")
    elif isinstance(options, list) and all(isinstance(option, dict) for option in options):
        options, keys = ([row.get(name) for row in options] for name in ("text", "label"))
    texts = {name: record[name] for name in layout.texts}
    are_texts = isinstance(options, list) and options
    are_texts = are_texts and all(isinstance(x, str) for x in (*texts.values(), *options))
    check_at(place, are_texts, "contexts and choices must be texts", (*texts.values(), options))
    fits = "premise" not in texts or [*texts.values()][1] in ("cause", "effect")
    check_at(place, fits, "the question on a premise must be 'cause' or 'effect'", texts)
    if before := texts.get(layout.before):
        # A choice fills the gap of a text, or continues it.
        filled = [re.sub("_+", lambda gap, option=option: option, before) for option in options]
        options = filled if "_" in before else [f"{before} {option}".strip() for option in options]
    check_at(place, all(map(str.strip, options)), "a choice must not be blank", options)
    label = next((record[name] for name in _LABELS if name in record), None)
    return layout.context.format_map(texts), options, _label(place, label, len(options), keys)


def _label(place, value, num_choices, keys):
    """Returns the position of the right choice, `None` if the label is missing.

    Args:
        place: str, where the row is, for the message.
        value: the label.
        num_choices: int.
        keys: the choices' own labels, such as A, B and C; `None` if they have none.
    """
    if isinstance(value, float) and value.is_integer():  # pandas
        value = int(value)
    if value is None or value in ("", "-1", -1) or value != value:
        return None
    keys = keys if isinstance(keys, list) else range(num_choices)
    known = [[*map(str, keys)], [*string.ascii_uppercase[:num_choices]]]
    if not any(map(str.isdigit, known[0])):
        known.append([*map(str, range(num_choices))])
    found = next((names.index(str(value)) for names in known if str(value) in names), None)
    check_at(place, found is not None, f"a label must be one of {known[0]}", value)
    return found
