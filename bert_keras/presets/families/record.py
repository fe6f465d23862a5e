"""What the record of a family says; the formats read and write checkpoints by it.

A record is data of one family in one format. Nothing else knows what a config, a tensor or a head
is called there.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

_NOTHING = MappingProxyType({})


class Field(NamedTuple):
    """An argument of a backbone that follows from several keys of a config, or from one recomputed.

    Attributes:
        argument: str, of the backbone's constructor.
        read: function from their config, a dict, to the argument's value.
        write: function from our arguments, a dict, to a dict of their keys.
    """

    argument: str
    read: Callable
    write: Callable


class Tables(NamedTuple):
    """Tensors of theirs that are joined, split, added or left out before the rows fit them.

    Their names are those of the rows, without the record's prefix.

    Attributes:
        read: function from the `Tensors` of a checkpoint's backbone and our backbone to `Tensors`
            that the rows fit.
        write: the inverse, from a dict of arrays and our backbone to a dict of arrays.
    """

    read: Callable
    write: Callable


class Head(NamedTuple):
    """The head of one task.

    Attributes:
        rows: see `name_map`; our paths begin with `head/`.
        architecture: what the names of the model's classes there end with; of several, what we
            write has the first.
        options: arguments of our head that make it this one, see `families.head_options`.
        says: arguments of our task that the config or the shapes tell: `"num_classes"`,
            `"label_names"`, `"problem_type"`, `"dropout"`, `"pooling"`, and others of one format.
        dropout: key of the config with the rate of the head's dropout.
        pooling: key of the config with the head's pooling, where the family leaves it to each
            checkpoint; the names are ours, and configs without the key have that of `options`.
        tied: dict, tensor -> the tensor that it is one with.
        parts: prefixes of our paths; a checkpoint may lack each part as a whole, with a warning.
    """

    rows: tuple = ()
    architecture: str | tuple[str, ...] = ""
    options: Mapping = _NOTHING
    says: tuple[str, ...] = ()
    dropout: str | None = None
    pooling: str | None = None
    tied: Mapping = _NOTHING
    parts: tuple[str, ...] = ("head/",)


class Record(NamedTuple):
    """A family in one format.

    Attributes:
        backbone: registered name of our class.
        names: dict, what a config calls the family -> what the names of its classes begin with.
            What we write has the first.
        config: dict, their key -> our constructor's argument, the same value for both.
        activation: their key of the activation, and a dict, their value -> ours.
        fields: what else the config says.
        fixed: dict, our arguments that have this value there and no key.
        allowed: dict, their key -> tuple of the values that our backbone can have, the first for
            configs without the key.
        defaults: dict, their key -> its value where a config leaves it out, if it is not ours.
        rows: of the backbone, see `name_map`.
        counts: dict, letter in the rows -> attribute of the backbone.
        optional: prefixes of our paths that a checkpoint may lack, with a warning.
        prefix: of the backbone's tensors in a checkpoint that holds a head too.
        heads: dict, class name of our task -> `Head`; the more particular first.
        tables: which tensors are not one of ours each, or `None`.
        tokenizers: dict, value of `names` -> type of the model in the tokenizer.json of the
            tokenizers that it has there, where the format ties the two.
    """

    backbone: str
    names: dict
    config: dict
    activation: tuple
    rows: tuple
    heads: dict
    fields: tuple = ()
    fixed: Mapping = _NOTHING
    allowed: Mapping = _NOTHING
    defaults: Mapping = _NOTHING
    counts: Mapping = MappingProxyType({"i": "num_layers"})
    optional: tuple[str, ...] = ("pooler/",)
    prefix: str = ""
    tables: Tables | None = None
    tokenizers: Mapping = _NOTHING


def side_by_side(architecture="", **heads):
    """Returns the head of several heads, each of which a checkpoint may lack.

    Args:
        architecture: see `Head`.
        **heads: `Head`; our paths have their names after `head/`.
    """
    return Head(
        tuple(
            (ours.replace("head", f"head/{name}", 1), *row)
            for name, head in heads.items()
            for ours, *row in head.rows
        ),
        architecture,
        tied={tied: original for head in heads.values() for tied, original in head.tied.items()},
        parts=tuple(f"head/{name}/" for name in heads),
    )
