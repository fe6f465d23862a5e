"""Records of families, from which the formats read and write checkpoints.

A record is the data of one family in one format. No other code knows the names of the format's
configs, tensors and heads. "Ours" are names and values of this package, "theirs" those of the
format.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

_NOTHING = MappingProxyType({})


class Field(NamedTuple):
    """An argument of a backbone that is computed from one or several keys of a config.

    Attributes:
        argument: str, of the backbone's constructor.
        read: function from their config, a dict, to the argument's value.
        write: function from our arguments, a dict, to a dict of their keys.
    """

    argument: str
    read: Callable
    write: Callable


class Tables(NamedTuple):
    """Changes to a checkpoint's tensors that the rows need: joining, splitting, adding, removing.

    Their names are those of the rows, without the record's prefix.

    Attributes:
        read: function from the `Tensors` of a checkpoint's backbone, our backbone and the config to
            `Tensors` that the rows fit.
        write: the inverse, from a dict of arrays and our backbone to a dict of arrays.
        joins: bool, whether a dense layer of ours is several in other libraries.
    """

    read: Callable
    write: Callable = lambda arrays, backbone: arrays
    joins: bool = False


class Head(NamedTuple):
    """The head of one task.

    Attributes:
        rows: see `name_map`; our paths begin with `head/`.
        architecture: ending of the names of their model classes; of several, exports use the
            first.
        options: arguments that make our head this one, see `families.head_options`.
        inferred: names of our task's arguments that follow from the config or from shapes:
            `"num_classes"`, `"label_names"`, `"problem_type"`, `"dropout"`, `"pooling"`,
            `"activation"` of a `Reranker`, and others of one format.
        dropout: key of the config with the rate of the head's dropout.
        pooling: key of the config with the head's pooling, in families that leave it to each
            checkpoint. The names are ours; configs without the key have that of `options`.
        tied: dict, tensor -> the tensor that it is a copy of.
        parts: prefixes of our paths. A checkpoint may lack any part as a whole, with a warning.
        changes_the_encoder: bool, whether the encoder's outputs are of little use without this
            head, so that other tasks warn that they leave it out.
    """

    rows: tuple = ()
    architecture: str | tuple[str, ...] = ""
    options: Mapping = _NOTHING
    inferred: tuple[str, ...] = ()
    dropout: str | None = None
    pooling: str | None = None
    tied: Mapping = _NOTHING
    parts: tuple[str, ...] = ("head/",)
    changes_the_encoder: bool = False


class Record(NamedTuple):
    """A family in one format.

    Several records may have one class, with different values of `fixed`.

    Attributes:
        backbone: registered name of our class.
        names: dict, name of the family in a config -> beginning of the names of its classes.
            Exports use the first.
        config: dict, their key -> the argument of our constructor with the same value.
        activation: their key of the activation, and a dict, their value -> ours.
        fields: arguments that are computed from the config.
        fixed: dict, our arguments without a key there -> their only value.
        allowed: dict, their key -> tuple of the values that our backbone supports. Configs without
            the key have the first.
        defaults: dict, their key -> the default of their config, if it is not ours.
        rows: those of the backbone, see `name_map`.
        counts: dict, letter in the rows -> attribute of the backbone.
        optional: prefixes of our paths that a checkpoint may lack, with a warning.
        prefix: beginning of the names of the backbone's tensors in a checkpoint with a head.
        heads: dict, class name of our task -> `Head`, the more specific first.
        tables: tensors that do not correspond to one of ours each, or `None`.
        native: function from a config in any of the family's spellings to the spelling that the
            other attributes read.
        spellings: dict, regular expression -> replacement, applied in order to the names of tensors
            in other spellings.
        tokenizers: dict, value of `names` -> model type in the tokenizer.json of its tokenizers, if
            the format ties tokenizers to families.
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
    native: Callable = dict
    spellings: Mapping = _NOTHING
    tokenizers: Mapping = _NOTHING


def side_by_side(architecture="", **heads):
    """Returns a head made of several heads, any of which a checkpoint may lack.

    Args:
        architecture: see `Head`.
        **heads: `Head`, whose names follow `head/` in our paths.
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
