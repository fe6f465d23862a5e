"""The flags of a command, declared as rows of `Option`, the same as those of answers.

The type of a flag may also be `list`, for strings separated by commas, or a list of one type, for
values of that type separated by commas.
"""

import re
import sys

from absl import flags

from bert_keras.answers.answerer import Option
from bert_keras.engine.atomic_files import make_folder_of

# The default of a flag that must be given.
REQUIRED = object()

LAYOUT = (
    Option("separator", str, None, "What separates columns; by default it is detected."),
    Option("quoting", bool, None, 'Whether " quotes fields; by default it is detected.'),
    Option("encoding", str, None, "Encoding of text, such as cp1252 or gb18030, if not UTF-8."),
)
TRACEBACK = Option("traceback", bool, False, "Show where in the code a mistake was found.")


# absl's own functions and parsers for the types of options.
_DEFINE = {bool: flags.DEFINE_boolean, str: flags.DEFINE_string, list: flags.DEFINE_list}
_PARSERS = {int: flags.IntegerParser, float: flags.FloatParser}
# What is written like a flag; a text such as "-5 degrees" is not.
_FLAG = re.compile(r"--?[A-Za-z][\w-]*(=|$)")


class _Several(flags.ArgumentParser):
    """Values separated by commas, each parsed by the same parser."""

    def __init__(self, parser):
        self.parser = parser
        self.syntactic_help = f"several: {parser.syntactic_help}".rstrip(": ")

    def parse(self, argument):
        values = argument if isinstance(argument, list) else argument.split(",")
        return [self.parser.parse(value) for value in values]


def passed_flags(values, names):
    """Returns the values of those of the named flags that are set: a dict by `--name`."""
    return {f"--{name}": values[name].value for name in names if values[name].present}


def wants_help(arguments):
    """Whether the help is among the arguments before `--`."""
    return not {"-h", "--help", "-help", "-?"}.isdisjoint(arguments[: _end_of_flags(arguments)])


def _end_of_flags(arguments):
    return [*arguments, "--"].index("--")


def parse(command, about, groups, arguments, usage=""):
    """Returns the flags of a command and its other arguments, or prints its help and exits.

    The folder of `--output` is made if it is missing.

    Args:
        command: str, for messages.
        about: str, the text that `-h` prints above the flags.
        groups: dict from a title to a sequence of `Option`.
        arguments: list of str. Those after `--` are not flags, nor texts such as "-5 degrees".
        usage: str, names of the arguments that are not flags; `...` stands for any number more.

    Returns:
        An `absl.flags.FlagValues`, with the value of each flag as an attribute, and the flag
        itself, which knows whether it is `present`, as an item; and a list of str.

    Raises:
        absl.flags.Error: a flag is unknown or missing, or its value is not allowed.
        OSError: the folder of `--output` cannot be made.
        ValueError: there are more or fewer other arguments.
    """
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
    end = _end_of_flags(arguments)
    words = values([command, *arguments[:end]], known_only=True)[1:]
    if any(map(_FLAG.match, words)):
        values([command, *words])  # Raises: the flag is unknown.
    words += arguments[end + 1 :]
    needed = usage.removesuffix("...").split()
    if len(words) < len(needed) or (len(words) > len(needed) and not usage.endswith("...")):
        raise ValueError(
            f"Write `{f'{command} {usage}'.strip()}`; `{command} --help` lists flags. Received: "
            f"{' '.join(words) or 'nothing'}."
        )
    # The folder is made now, since a command may compute for hours.
    make_folder_of(getattr(values, "output", None) or "")
    return values, words


def _define(values, title, option):
    name, kind, default, about, least, most, _ = option
    options = {"flag_values": values, "module_name": title, "name": name, "help": about}
    options["default"] = None if default is REQUIRED else default
    if isinstance(kind, tuple):
        flags.DEFINE_enum(enum_values=kind, **options)
    elif isinstance(kind, list):
        parser = _Several(_PARSERS[kind[0]](least, most))
        flags.DEFINE(parser, serializer=flags.ListSerializer(","), **options)
    elif kind in _PARSERS:
        flags.DEFINE(_PARSERS[kind](least, most), **options)
    else:
        _DEFINE[kind](**options)
    if default is REQUIRED:
        flags.register_validator(name, lambda x: x is not None, f"Pass it. {about}", values)
