"""The output that is a task's answer in an exported program that takes texts."""

from typing import NamedTuple


class TextAnswer(NamedTuple):
    """A task's answer to a text in a program; a task class sets its own as `text_answer`.

    Fields:
        output: str, the name of the model's output.
        labels: tuple of str, the names of its columns, or `None` if they are not classes.
        num_texts: tuple of ints: 1 if single texts have an answer, 2 if pairs do.
    """

    output: str
    labels: tuple | None
    num_texts: tuple
