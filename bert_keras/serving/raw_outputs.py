"""What a model computes besides its answers: vectors of tokens, and changed settings."""

import contextlib

import keras
import numpy as np

from bert_keras.export import runtime
from bert_keras.inputs import PADDING_MASK
from bert_keras.serving.rows import check


def token_vectors(model, rows, prompt=None):
    """Returns for each text the vectors of its tokens, `(num_tokens, dim)`.

    Args:
        model: a `MultiVectorEmbedder`; or another task, whose encoder's vectors are returned.
        rows: list of tuples of one str.
        prompt: `"query"` or `"document"` for a `MultiVectorEmbedder`; the default is `"document"`.
    """
    if has_token_vectors(model):
        return model.ask_rows("embed", rows, kind=prompt or "document")
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
    return "query_marker" in model.answer_settings()


def packer_of(model):
    """Returns the `TextPacker` of a task or of an `ExportedTask`."""
    return model.packer if isinstance(model, runtime.ExportedTask) else model.preprocessor


RAW_OUTPUTS = {"token_vectors": token_vectors}


@contextlib.contextmanager
def changed(model, settings):
    """Changes settings of a model, such as `truncation`, for the duration of a `with` block.

    Args:
        model: a task or an `ExportedTask`, which no other thread asks meanwhile.
        settings: dict, name -> value.
    """
    is_program = isinstance(model, runtime.ExportedTask)
    before, packer = model.answer_settings(), packer_of(model)
    truncation = packer.truncation
    packer.truncation = settings.get("truncation", truncation)
    of_task = {name: value for name, value in settings.items() if name != "truncation"}

    def set_all(values):
        if is_program:
            model.config["settings"] = values
        else:
            for name in of_task:
                setattr(model, name, values[name])

    try:
        set_all({**before, **of_task})
        yield
    finally:
        set_all(before)
        packer.truncation = truncation
