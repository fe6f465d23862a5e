"""The arguments of backbones and their checks."""

from typing import Any

from bert_keras.checks import check_bool, check_int, check_number, check_rates
from bert_keras.other_names import renamed_argument

# Limits above all published encoders, so that a config from an untrusted file cannot exhaust a
# machine.
_SIZES = {
    "vocabulary_size": (1, 2**24),
    "num_layers": (1, 1024),
    "num_heads": (1, 1024),
    "hidden_dim": (1, 2**16),
    "embedding_dim": (1, 2**16),
    "intermediate_dim": (1, 2**18),
    "max_sequence_length": (1, 2**20),
    "num_segments": (0, 1024),
}
_MOST_PARAMETERS = 2**33


def own_arguments(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a constructor from its `locals()`, including those in `kwargs`."""
    arguments = {k: v for k, v in settings.items() if k not in ("self", "kwargs", "__class__")}
    for name in settings["kwargs"]:
        if name not in ("name", "dtype", "trainable"):
            raise TypeError(
                f"{type(settings['self']).__name__} has no argument {name!r}."
                f"{renamed_argument(name)} It takes {[*arguments, 'name', 'dtype', 'trainable']}."
            )
    return {**arguments, **settings["kwargs"]}


def checked_argument(name, value):
    """Returns the value of an argument; raises `ValueError` if the argument cannot have it."""
    if name in _SIZES:
        return check_int(name, value, *_SIZES[name])
    if name in ("dropout", "attention_dropout", "embedding_dropout"):
        check_rates(**{name: value})
    elif name in ("layer_norm_epsilon", "initializer_range"):
        check_number(name, value)
    elif name in ("causal", "remat", "has_biases", "is_gated", "has_pooler"):
        check_bool(name, value)
    elif name == "activation" and not (isinstance(value, str) or callable(value)):
        raise ValueError(f"`activation` must be a name or a function. Received: {value!r}.")
    return value


def check_number_of_parameters(backbone):
    """Raises `ValueError` if a backbone of these sizes needs more memory than any machine has."""
    blocks = backbone.num_layers * (4 * backbone.hidden_dim + 2 * backbone.intermediate_dim)
    rows = backbone.vocabulary_size + (backbone.max_sequence_length or 0) + blocks
    if backbone.hidden_dim * rows > _MOST_PARAMETERS:
        sizes = {name: getattr(backbone, name, None) for name in _SIZES}
        raise ValueError(
            f"The sizes {sizes} make about {backbone.hidden_dim * rows:.1e} parameters; at most "
            f"{_MOST_PARAMETERS:.1e} are allowed. Is the config damaged?"
        )
