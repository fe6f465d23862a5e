"""Checks that a task's backbone, head, preprocessor and tokenizer fit together."""

from bert_keras.checks import check_choice, check_int, check_type
from bert_keras.heads.embedding import EmbeddingHead
from bert_keras.heads.sequence import SequenceHead
from bert_keras.layers.pooler import FIRST_TOKEN_POOLINGS
from bert_keras.models.model import layer_for
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.presets import families


def head_for(task, head_class, *shared, name="head", **options):
    """Returns a head as wide as the task's backbone, see `layer_for`, in the task's dtype."""
    return layer_for(task.backbone, head_class, name, *shared, dtype=task.dtype_policy, **options)


def reads_first_token_only(task):
    """Whether a task needs no token's vector but the first.

    A user's own head, or a subclass's own `head_outputs`, may read others.
    """
    if overrides(task, "head_outputs"):
        return False
    head = getattr(task, "head", None)
    return type(head) in (SequenceHead, EmbeddingHead) and head.pooling in FIRST_TOKEN_POOLINGS


def overrides(task, *names):
    """Whether a user's subclass defines one of these methods of a task itself."""
    for name in names:
        module = getattr(getattr(type(task), name, None), "__module__", "keras.")
        if not module.startswith(("bert_keras.", "keras.")):
            return True
    return False


def head_settings(task, pooling=None, head_options=None, dropout=None):
    """Returns the pooling, the other settings and the dropout of a head, by default the family's.

    Args:
        task: a `Task` with its backbone.
        pooling: str, or `None` for the family's whole head.
        head_options: dict, or `None`.
        dropout: float, the rate before the last layer, or `None`. A family without one has the
            backbone's.
    """
    options = families.head_options(task.backbone, task)
    usual_dropout = options.pop("dropout", task.backbone.dropout)
    dropout = usual_dropout if dropout is None else dropout
    head_options = check_head_options(head_options, ("hidden_activation", "dropout_first", "norm"))
    options = {} if pooling else options
    of_family = options.pop("pooling", "pooler")
    has_it = task.backbone.pooler is not None or of_family != "pooler"
    pooling = pooling or (of_family if has_it else "cls")
    return pooling, options if head_options is None else head_options, dropout


def check_head_options(options, names):
    """Returns options of a head as a dict, or `None`; raises `ValueError` for another name."""
    for name in options or ():
        check_choice("head_options", name, names)
    return options and dict(options)


def preprocessor_of(backbone, preprocessor, required_special_tokens=()):
    """Returns a preprocessor that makes the backbone's inputs; `None` for `None`.

    Raises:
        TypeError: it is not a `TextPreprocessor`.
        ValueError: its sequences or its vocabulary do not fit the backbone's tables.
    """
    if preprocessor is None:
        return None
    rule = "a bert_keras `TextPreprocessor`"
    check_type("preprocessor", preprocessor, TextPreprocessor, rule)
    advice = "The backbone has no positions for longer sequences."
    check_int("max_length", preprocessor.max_length, 1, backbone.max_sequence_length, advice)
    check_tokenizer(preprocessor.tokenizer, backbone, required_special_tokens)
    return preprocessor.for_inputs(backbone.input_names)


def check_tokenizer(tokenizer, backbone, required_special_tokens=()):
    """Raises `ValueError` if a tokenizer belongs to another checkpoint.

    It also raises if the tokenizer lacks a role that the task needs, such as `"mask_token"`. A
    tokenizer without a vocabulary, which `load_assets` will fill, is accepted.
    """
    if not tokenizer.has_vocabulary:
        return
    for role in required_special_tokens:
        getattr(tokenizer, f"{role}_id")
    if tokenizer.vocabulary_size > backbone.vocabulary_size:
        raise ValueError(
            f"The tokenizer's vocabulary has {tokenizer.vocabulary_size} tokens, the backbone "
            f"only {backbone.vocabulary_size} embeddings. Use the tokenizer of the same "
            "checkpoint."
        )
    if backbone.padding_id not in (None, tokenizer.pad_token_id):
        raise ValueError(
            f"The backbone skips the padding id {backbone.padding_id} when it counts positions. "
            f"Received: a tokenizer whose {tokenizer.pad_token!r} has the id "
            f"{tokenizer.pad_token_id}. Use the tokenizer of the same checkpoint."
        )
