"""What a model computes besides its answers: logits, and vectors of tokens."""

import contextlib

import keras
import numpy as np

from bert_keras.export import runtime
from bert_keras.inputs import PADDING_MASK
from bert_keras.serving.rows import check
from bert_keras.tasks.zero_shot_classifier import class_logits


def logits(model, rows):
    """Returns the logits of texts or pairs, float32 `(num_rows, num_classes)`."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    return class_logits(model, tuple(columns) if len(columns) == 2 else columns[0])


def piece_logits(model, rows):
    """Returns for each text the logits of its tokens, float32 `(num_tokens, num_tags)`."""
    return model.piece_logits([text for (text,) in rows])


def token_vectors(model, rows, prompt=None):
    """Returns for each text the vectors of its tokens, `(num_tokens, dim)`.

    Args:
        model: a `MultiVectorEmbedder`; or another task, whose encoder's vectors are returned.
        rows: list of tuples of one str.
        prompt: `"query"` or `"document"` for a `MultiVectorEmbedder`; the default is `"document"`.
    """
    if has_token_vectors(model):
        return model.embed([text for (text,) in rows], prompt or "document")
    check(
        not isinstance(model, runtime.ExportedTask),
        "This program returns vectors of whole texts only. Serve the model that it was made from.",
    )
    inputs = model.preprocessor([text for (text,) in rows])
    outputs = model.backbone.predict_on_batch(inputs)["sequence_output"]
    mask = keras.ops.convert_to_numpy(inputs[PADDING_MASK]).astype(bool)
    return [np.asarray(x, "float32")[is_token] for x, is_token in zip(outputs, mask, strict=True)]


def has_token_vectors(model):
    """Whether a task or an `ExportedTask` embeds each token: a `MultiVectorEmbedder`."""
    config = model.config if isinstance(model, runtime.ExportedTask) else {}
    return "query_marker" in config or hasattr(model, "query_marker")


RAW_OUTPUTS = {"logits": logits, "piece_logits": piece_logits, "token_vectors": token_vectors}


@contextlib.contextmanager
def changed(model, settings):
    """Changes settings of a model, such as `truncation`, for the duration of a `with` block.

    Args:
        model: a task or an `ExportedTask`, which no other thread asks meanwhile.
        settings: dict, name -> value.
    """
    if isinstance(model, runtime.ExportedTask):
        before = model.config
        model.config = {**before, **settings}
        try:
            yield
        finally:
            model.config = before
        return
    holders = {x: model.preprocessor if x == "truncation" else model for x in settings}
    before = {name: getattr(holder, name) for name, holder in holders.items()}
    try:
        for name, holder in holders.items():
            setattr(holder, name, settings[name])
        yield
    finally:
        for name, holder in holders.items():
            setattr(holder, name, before[name])
