"""Records of families, from which the formats read and write checkpoints.

A record holds what is special about one family in one format. No other code knows the names that
the format uses in configs, tensors and heads. "Ours" are names and values of this package, "theirs"
those of the format.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

_EMPTY = MappingProxyType({})
# Hugging Face's names -> ours. Where several mean one activation, exports use the first.
_ACTIVATIONS = {name: name for name in ("gelu", "relu", "silu", "tanh")} | {"swish": "silu"}
_ACTIVATIONS |= dict.fromkeys(("gelu_pytorch_tanh", "gelu_new", "gelu_fast"), "gelu_tanh")


class Field(NamedTuple):
    """An argument of a backbone that is computed from one or several keys of a config.

    Attributes:
        argument: str, of the backbone's constructor.
        read: function from their config, a dict, to the argument's value.
        write: function from our arguments, a dict, to a dict of their keys; empty by default, for
            arguments whose keys the config's other entries write.
    """

    argument: str
    read: Callable
    write: Callable = lambda arguments: {}


class Tables(NamedTuple):
    """How to join, split, add or remove a checkpoint's tensors so that the rows fit them.

    The tensors have the names in the rows, without the record's prefix.

    Attributes:
        read: function from the `Tensors` of a checkpoint's backbone, our backbone and their config
            to the `Tensors` that the rows fit.
        write: the inverse, from a dict of arrays and our backbone to a dict of arrays.
        joins: bool, whether one dense layer of ours is several in other libraries.
    """

    read: Callable
    write: Callable = lambda arrays, backbone: arrays
    joins: bool = False


# The heads that records name, and the task of each.
TASKS = {
    "choice": "MultipleChoice",
    "embedding": "TextEmbedder",
    "masked_tokens": "MaskedLM",
    "next_sentence": "NextSentencePrediction",
    "pretraining": "Pretraining",
    "replaced_token": "ReplacedTokenDetector",
    "sequence": "TextClassifier",
    "span": "QuestionAnswering",
    "token": "TokenClassifier",
    "token_vectors": "MultiVectorEmbedder",
}


def of_tasks(**heads):
    """Returns a dict, class name of a task -> `Head`, from heads by their names in `TASKS`."""
    return {TASKS[name]: head for name, head in heads.items()}


class Head(NamedTuple):
    """The head of one task.

    Attributes:
        rows: see `name_map`; our paths begin with `head/`.
        architecture: ending of the names of their model classes.
        options: arguments that give our task this head, see `families.head_options`.
        dropout: their key for the rate of the head's dropout; `None` if it is the backbone's.
        pooling: their key for the head's pooling, in families where it differs by checkpoint. Its
            values are named as ours; a config without the key means the pooling in `options`.
        tied: dict, name of a tensor -> name of the tensor that it is a copy of.
        parts: prefixes of our paths. A checkpoint may lack any part as a whole, with a warning.
        changes_the_encoder: bool, whether the encoder's outputs are of little use without this
            head, so that a warning is given if another task leaves it out.
    """

    rows: tuple = ()
    architecture: str = ""
    options: Mapping = _EMPTY
    dropout: str | None = None
    pooling: str | None = None
    tied: Mapping = _EMPTY
    parts: tuple[str, ...] = ("head/",)
    changes_the_encoder: bool = False


class Record(NamedTuple):
    """A family in one format.

    Records of several families may have the same class, with different values of `fixed`.

    Attributes:
        backbone: registered name of our class.
        names: dict, name of the family in a config -> prefix of the names of its classes. Exports
            use the first.
        config: dict, their key -> the argument of our constructor that has the same value.
        activation_key: their key for the activation, or `None`.
        activations: dict, its values -> ours. A config without the key means the first.
        fields: arguments that are computed from the config.
        fixed: dict, argument of ours for which they have no key -> the value that they always have.
        allowed: dict, their key -> tuple of the values that our backbone supports. A config without
            the key means the first.
        defaults: dict, their key -> the default of their config, where ours differs.
        rows: those of the backbone, see `name_map`.
        counts: dict, letter in the rows -> attribute of the backbone that counts its numbers.
        prefix: what the names of the backbone's tensors begin with in a checkpoint with a head.
        heads: dict, class name of our task -> `Head`, the more specific first; see `of_tasks`.
        tables: `Tables`, if some tensors do not correspond to one of ours each; or `None`.
        native: function from a config with any of the family's spellings to one with the keys that
            the other attributes name.
        spellings: dict, regular expression -> replacement, applied in order to the names of tensors
            to make them those of the rows.
        tokenizers: dict, value of `names` -> model type in the tokenizer.json of its tokenizers, if
            the format ties tokenizers to families.
    """

    backbone: str
    names: dict
    config: dict
    rows: tuple
    heads: dict
    activation_key: str | None = "hidden_act"
    activations: Mapping = MappingProxyType(_ACTIVATIONS)
    fields: tuple = ()
    fixed: Mapping = _EMPTY
    allowed: Mapping = _EMPTY
    defaults: Mapping = _EMPTY
    counts: Mapping = MappingProxyType({"i": "num_layers"})
    prefix: str = ""
    tables: Tables | None = None
    native: Callable = dict
    spellings: Mapping = _EMPTY
    tokenizers: Mapping = _EMPTY


def side_by_side(architecture="", **heads):
    """Returns a head made of several heads, any of which a checkpoint may lack.

    Args:
        architecture: see `Head`.
        **heads: `Head` by name; in our paths the name follows `head/`.
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
