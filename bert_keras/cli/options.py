"""The flags of a command, declared as rows of `Option`, the same as those of answers.

The type of a flag may also be `list`, for strings separated by commas, or a list of one type, for
values of that type separated by commas.
"""

import re
import sys

from absl import flags

from bert_keras.answers.answerer import Option
from bert_keras.cli.bootstrap import wants_help

# The default of a flag that must be given.
REQUIRED = object()

LAYOUT = (
    Option("separator", str, None, "What separates columns; by default it is detected."),
    Option("quoting", bool, None, 'Whether " quotes fields; by default it is detected.'),
    Option("encoding", str, None, "Encoding of text, such as cp1252 or gb18030, if not UTF-8."),
)
TRACEBACK = Option("traceback", bool, False, "Show where in the code a mistake was found.")


class _Several(flags.ArgumentParser):
    """Values separated by commas, each parsed by the same parser."""

    def __init__(self, parser):
        self.parser = parser
        self.syntactic_help = f"several: {parser.syntactic_help}".rstrip(": ")

    def parse(self, argument):
        if isinstance(argument, list):
            return argument  # The default.
        return [self.parser.parse(part.strip()) for part in argument.split(",")]


def parse(command, about, groups, arguments):
    """Returns the flags of a command that takes flags only; see `parse_all`.

    Raises:
        ValueError: there are arguments that are not flags.
    """
    values, words = parse_all(command, about, groups, arguments)
    if words:
        raise ValueError(f"`{command}` takes only flags. Received: {' '.join(words)}.")
    return values


def passed_flags(values, names):
    """Returns the values of those of the named flags that are set: a dict by `--name`."""
    return {f"--{name}": values[name].value for name in names if values[name].present}


def parse_all(command, about, groups, arguments):
    """Returns the flags of a command and its other arguments, or prints its help and exits.

    Args:
        command: str, for messages.
        about: str, the text that `-h` prints above the flags.
        groups: dict from a title to a sequence of `Option`.
        arguments: list of str. Those after `--` are not flags.

    Returns:
        An `absl.flags.FlagValues`, with the value of each flag as an attribute, and the flag
        itself, which knows whether it is `present`, as an item; and a list of str.

    Raises:
        absl.flags.Error: a flag is unknown or missing, or its value is not allowed.
    """
    arguments = [str(argument) for argument in arguments]
    values = flags.FlagValues()
    values.set_gnu_getopt(True)
    for title, options in groups.items():
        for option in options:
            _define(values, title, option)
    if wants_help(arguments):
        values.unparse_flags()
        values.mark_as_parsed()
        print(about, values.get_help(include_special_flags=False), sep="\n")
        sys.exit(0)
    return values, values([command, *arguments])[1:]


def wants_traceback(arguments):
    """Whether `--traceback` is among the arguments, also where they cannot be parsed."""
    return any(re.fullmatch("--?traceback(=true)?", argument) for argument in arguments)


def _define(values, title, option):
    name, kind, default, about, least, most, _ = option
    value = None if default is REQUIRED else default
    is_several = isinstance(kind, list)
    kind = kind[0] if is_several else kind
    parser, serializer = flags.ArgumentParser(), flags.ArgumentSerializer()
    if kind in (int, float):
        number = flags.IntegerParser if kind is int else flags.FloatParser
        parser = number(lower_bound=least, upper_bound=most)
    elif isinstance(kind, tuple):
        parser, about = flags.EnumParser(list(kind)), f"<{'|'.join(kind)}>: {about}"
    elif kind is list:
        parser, serializer = flags.ListParser(), flags.ListSerializer(",")
    if is_several:
        parser, serializer = _Several(parser), flags.ListSerializer(",")
    if kind is bool:
        flag = flags.BooleanFlag(name, value, about)
    else:
        flag = flags.Flag(parser, serializer, name, value, about)
    flags.DEFINE_flag(flag, values, module_name=title, required=default is REQUIRED)
