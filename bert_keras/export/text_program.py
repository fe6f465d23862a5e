"""A program that takes texts and returns answers: a SavedModel with the tokenizer inside."""

from collections.abc import Callable
from typing import Any

import keras

from bert_keras.export.inputs_in_graph import GraphPreprocessor
from bert_keras.export.tokenizer_in_graph import check_can_be_in_graph
from bert_keras.layers.activations import get_activation
from bert_keras.preprocessing.collate import PAIR_STRATEGIES, SINGLE_STRATEGIES
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor

_ADVICE = "Export it without `text=True`, for token ids, or use the task itself, with `predict`."


def check(model: keras.Model, format: str, input_signature: Any, options: dict[str, Any]) -> None:
    """Raises `ValueError` if a model cannot be a program that takes texts.

    See `ExportMixin.export`.
    """
    if (format, input_signature, options) != ("tf_saved_model", None, {}):
        raise ValueError(
            "A program that takes texts is a SavedModel without further arguments; others take "
            f"token ids, with the tokenizer before them. Received: text=True and {format=}, "
            f"{input_signature=}, {options}. Leave out one or the other."
        )
    if not _says_answer(type(model)):
        raise ValueError(
            "A program takes texts if each text, or pair, is one row and has one answer: classes, "
            "scores, vectors. Other tasks cut texts into windows, read words, or fill gaps, which "
            f"happens outside the graph. Received: {type(model).__name__}. {_ADVICE}"
        )
    if type(model.preprocessor) is not TextPreprocessor:
        raise ValueError(
            "A program that takes texts needs a `TextPreprocessor`, not one of a subclass. "
            f"Received: a {type(model.preprocessor).__name__}. {_ADVICE}"
        )
    if not _endpoints(model):
        raise ValueError(
            "The preprocessor must be able to truncate what a program takes, texts or pairs. "
            f"Received: {type(model).__name__} with truncation={model.preprocessor.truncation!r} "
            f"and max_length={model.preprocessor.max_length}. Use 'longest_first'."
        )
    check_can_be_in_graph(model.preprocessor.tokenizer)


def _says_answer(cls):
    """Whether the last class that changes how texts become examples also states its answer."""
    names = {"text_answer", "encode_texts", "answerers"}
    parts = [part for part in cls.__mro__ if names & vars(part).keys()]
    return bool(parts) and "text_answer" in vars(parts[0])


def _endpoints(model):
    """Returns name -> number of texts, for the numbers that the preprocessor can truncate."""
    strategies, preprocessor = {1: SINGLE_STRATEGIES, 2: PAIR_STRATEGIES}, model.preprocessor
    served = [
        number
        for number in model.text_answer.num_texts
        if preprocessor.truncation in strategies[number] and preprocessor.room(number == 2) >= 0
    ]
    return dict(zip(("serve", "serve_pairs"), served, strict=False))


def write(model: keras.Model, path: str, verbose: bool | None = None) -> None:
    """Writes a model as a SavedModel that takes texts, see `ExportMixin.export`.

    Its endpoints are `serve(texts)` and `serve_pairs(texts, pairs)`, or `serve(texts, pairs)` for a
    task that only takes pairs. An endpoint is left out if the truncation does not fit it.
    """
    import tensorflow as tf

    archive, serve = keras.export.ExportArchive(), program_of(model)
    specs = [tf.TensorSpec((None,), tf.string, name=name) for name in ("texts", "pairs")]
    for name, number in _endpoints(model).items():
        archive.add_endpoint(name, serve, specs[:number])
    archive.write_out(path, verbose=bool(verbose))


def program_of(model: keras.Model) -> Callable[..., dict[str, Any]]:
    """Returns a function from string tensors `(batch,)`, texts and pairs, to a dict of answers."""
    preprocess = GraphPreprocessor(model.preprocessor)
    return lambda *texts: _answers(model, model(preprocess(*texts), training=False))


def _answers(model, outputs):
    """Returns a program's outputs by name; for classes also probabilities and labels."""
    import tensorflow as tf

    output, labels, _ = model.text_answer
    if labels is None:
        return {output: get_activation(getattr(model, "activation", "linear"))(outputs)}
    names = tf.constant(list(map(str, labels)))
    if model.has_classes:
        probabilities = tf.nn.softmax(outputs)
        predicted = tf.gather(names, tf.argmax(outputs, axis=-1))
    else:
        probabilities = tf.sigmoid(outputs)
        predicted = tf.where(probabilities >= 0.5, names, "")
    return {output: outputs, "probabilities": probabilities, "labels": predicted}
