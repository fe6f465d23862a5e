"""The rows of `tag`, `answer` and `choose` in files that `train` reads."""

from bert_keras import datasets
from bert_keras.cli.text_rows import Row
from bert_keras.datasets.table import read_records


def read_rows(command, path, kind, columns):
    """Returns the rows of a file of tagged words, questions or choices; `None` for another file.

    Args:
        command: str.
        path: str, or `None` or `"-"` for standard input.
        kind: a result of `text_rows.format_of`.
        columns: names of the fields that a table for the command has.
    """
    if command not in _READERS or path in (None, "-"):
        return None
    if kind == "text":
        is_training_file = command == "tag" and datasets.is_tagged(path)
    else:
        record = next(read_records(path, kind=kind), ("", {}))[1]
        is_training_file = bool(record) and not set(columns) <= set(record)
    return _READERS[command](path) if is_training_file else None


def _row(fields, **record):
    row = Row(fields)
    row.record = record
    return row


def _sentences(path):
    for words in datasets.read_conll(path, may_lack_tags=True).words:
        yield _row([words], text=" ".join(words))


def _questions(path):
    for example in datasets.read_squad(path).examples:
        fields = (example.question, example.context)
        yield _row(fields, id=example.id, question=example.question, context=example.context)


def _choices(path):
    examples = datasets.read_multiple_choice(path)
    for context, choices in zip(examples.contexts, examples.choices, strict=True):
        yield _row((context, *choices), context=context, choices=choices)


_READERS = {"tag": _sentences, "answer": _questions, "choose": _choices}
