"""Whether a task's backbone, preprocessor and tokenizer belong together, and what a call needs."""

import numpy as np

from bert_keras.checks import check_int
from bert_keras.inputs import TOKEN_IDS
from bert_keras.models.backbone import Backbone
from bert_keras.models.model import layer_for
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor


def head_for(task, head_class, name="head", **options):
    """Returns a head as wide as the task's backbone, see `layer_for`, in the task's dtype."""
    return layer_for(task.backbone, head_class, name, dtype=task.dtype_policy, **options)


def check_backbone(backbone, task_name):
    """Raises `TypeError` unless a task was given one of this package's backbones."""
    if isinstance(backbone, Backbone):
        return
    raise TypeError(
        "`backbone` must be a bert_keras backbone, such as `BertBackbone`. Received: "
        f"{type(backbone).__module__}.{type(backbone).__name__}. Presets, KerasHub's too, load by "
        f"`{task_name}.from_preset`."
    )


def check_has_pooler(task):
    """Raises `ValueError` for a task that reads a pooled output which its backbone has not."""
    if task.backbone.pooler is None:
        asked = "pooling='pooler'" if hasattr(task, "pooling") else "the next sentence"
        advice = "pooling='cls' or 'mean'" if hasattr(task, "pooling") else "MaskedLM"
        raise ValueError(
            f"A {type(task).__name__} needs a backbone with a pooler for {asked}. Received: "
            f"{type(task.backbone).__name__}, which has none. Use {advice}."
        )


def fitting(preprocessor, backbone, needed_roles=()):
    """Returns a preprocessor that makes the backbone's inputs, `None` for `None`.

    Raises:
        TypeError, ValueError: it is none, or what it makes does not fit the backbone's tables.
    """
    if preprocessor is None:
        return None
    if not isinstance(preprocessor, TextPreprocessor):
        raise TypeError(
            "`preprocessor` must be a bert_keras `TextPreprocessor`. Received: "
            f"{type(preprocessor).__name__}."
        )
    longest = backbone.max_sequence_length
    if longest is not None and preprocessor.max_length > longest:
        raise ValueError(
            f"The preprocessor's `max_length` must be at most {longest}, the positions that the "
            f"backbone knows. Received: {preprocessor.max_length}."
        )
    check_tokenizer(preprocessor.tokenizer, backbone, needed_roles)
    return preprocessor.for_inputs(backbone.input_names)


def check_tokenizer(tokenizer, backbone, needed_roles=()):
    """Raises `ValueError` where a tokenizer that has its vocabulary is another checkpoint's.

    Or where it lacks one of the roles that the task needs, such as `"mask_token"`.
    """
    if not tokenizer.has_vocabulary:
        return
    for role in needed_roles:
        getattr(tokenizer, f"{role}_id")
    if tokenizer.vocabulary_size > backbone.vocabulary_size:
        raise ValueError(
            f"The tokenizer's vocabulary has {tokenizer.vocabulary_size} tokens, the backbone "
            f"only {backbone.vocabulary_size} embeddings. Use the tokenizer of the same "
            "checkpoint."
        )
    if backbone.padding_id not in (None, tokenizer.pad_token_id):
        raise ValueError(
            f"The backbone counts positions by the padding id {backbone.padding_id}. Received: a "
            f"tokenizer whose {tokenizer.pad_token!r} has the id {tokenizer.pad_token_id}. Use the "
            "tokenizer of the same checkpoint."
        )


def check_length(backbone, inputs):
    """Raises `ValueError` for tensors of more tokens a row than positions: on JAX a row of NaN."""
    shape, longest = getattr(inputs[TOKEN_IDS], "shape", None), backbone.max_sequence_length
    if longest and shape and isinstance(shape[-1], int) and shape[-1] > longest:
        # As of arrays, which are told so before they become tensors.
        backbone.check_arrays({TOKEN_IDS: np.zeros((1, shape[-1]), "int32")})


def check_has_preprocessor(task):
    """Raises `ValueError` when raw examples came and there is nothing to tokenize them."""
    if task.preprocessor is None:
        raise ValueError(
            f"This {type(task).__name__} has no preprocessor, so it cannot take text. Pass a "
            "`TextPreprocessor` to its constructor, or the dict of arrays of bert_keras.inputs."
        )


def check_all_fit(preprocessor, ids, pair_ids=None):
    """Raises `ValueError` where a text would be cut, see `TextPreprocessor.tokenize`."""
    room = preprocessor.room(is_pair=pair_ids is not None)
    lengths = ids.lengths if pair_ids is None else ids.lengths + pair_ids.lengths
    if (lengths > room).any():
        row = int((lengths > room).argmax())
        raise ValueError(
            f"Texts to score must fit whole: at most {room} tokens. Received: "
            f"{lengths[row]} tokens at the index {row}. Split the text into sentences."
        )


def check_has_classes(task):
    """Raises `ValueError` for a task whose examples have not one class each."""
    if not task.has_classes:
        raise ValueError(
            "`class_weight` is for examples that have one class each, which those of this "
            f"{type(task).__name__} have not. Pass `sample_weight`, one for each example."
        )


def check_sort_window(task, sort_window, x, shuffle):
    """Raises `ValueError` where `fit(sort_window=...)` would not count."""
    if sort_window is None:
        return
    check_int("sort_window", sort_window)
    if not shuffle or isinstance(x, dict) or not task.is_raw(x):
        raise ValueError(
            "`sort_window` is for texts that are shuffled; ready inputs are not sorted. "
            f"Received: sort_window={sort_window} with shuffle={shuffle} and x a "
            f"{type(x).__name__}."
        )


def is_unpadded(task):
    """Whether the encoder is to compute texts without padding, see `TextPreprocessor`."""
    return getattr(task.preprocessor, "unpadded", False)
