"""The flags of a command as rows: it takes its own, and refuses those of others."""

import sys
from typing import NamedTuple

from absl import flags


class Option(NamedTuple):
    """A flag.

    Args:
        name: str.
        kind: `str`, `int`, `float`, `bool`, or a tuple of the values there may be.
        default: its value where it is not given; of several values a list.
        help: str, a sentence.
        least: the smallest number that is allowed.
        is_list: bool, whether it takes several values, separated by commas.
    """

    name: str
    kind: type | tuple
    default: object
    help: str
    least: float | None = None
    is_list: bool = False


class _Several(flags.ArgumentParser):
    """Values separated by commas, each as another parser has it, all different."""

    def __init__(self, one):
        self.one = one
        self.syntactic_help = f"several: {one.syntactic_help}".rstrip(": ")

    def parse(self, argument):
        if isinstance(argument, list):
            return argument  # A default.
        values = [self.one.parse(part.strip()) for part in argument.split(",")]
        if len({*values}) < len(values):
            raise ValueError("must be different values, separated by commas")
        return values


def parse(command, about, groups, arguments):
    """Returns the flags of a command: each is an attribute, and an item that knows if it is given.

    Args:
        command: str, for messages.
        about: str, what `-h` prints above the flags.
        groups: dict from a title to a sequence of `Option`.
        arguments: list of str.

    Raises:
        absl.flags.Error: there is no such flag, or a value is none of its kind.
    """
    given = flags.FlagValues()
    for title, options in groups.items():
        for option in options:
            _define(given, title, option)
    read(given, command, about, arguments)
    return given


def read(given, command, about, arguments):
    """Reads a command's arguments into its flags, or prints what `-h` asks for; see `parse`."""
    given.set_gnu_getopt(True)
    for name in given:
        given[name].unparse()
    if {"-h", "--help", "-help", "-?"} & {*arguments}:
        print(about, given.get_help(include_special_flags=False), sep="\n")
        sys.exit(0)
    rest = given([command, *map(str, arguments)])[1:]
    if rest:
        raise ValueError(
            f"`{command}` takes flags alone after its name. Received: {' '.join(rest)}."
        )


def _define(given, title, option):
    name, kind, default, said, least, is_list = option
    if kind is bool:
        flag = flags.BooleanFlag(name, default, said)
    else:
        numbers = {int: flags.IntegerParser, float: flags.FloatParser}
        if kind in numbers:
            parser = numbers[kind](lower_bound=least)
        else:
            parser = flags.ArgumentParser() if kind is str else flags.EnumParser(list(kind))
        serializer = flags.ArgumentSerializer()
        if is_list:
            parser, serializer = _Several(parser), flags.ListSerializer(",")
        flag = flags.Flag(parser, serializer, name, default, said)
    flags.DEFINE_flag(flag, given, module_name=title)
