"""A program that takes texts and returns answers: a SavedModel with the tokenizer inside."""

from collections.abc import Callable
from typing import Any

import keras

from bert_keras.checks import check_choice, check_int
from bert_keras.export.tokenizer_in_graph import GraphTokenizer, check_can_be_in_graph
from bert_keras.inputs import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from bert_keras.layers.activations import get_activation
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor

_ADVICE = "Export it without `text=True`, for token ids, or use the task itself, with `predict`."


def check(model: keras.Model, format: str) -> None:
    """Raises `ValueError` if a model cannot be a program that takes texts.

    See `ExportMixin.export`.
    """
    advice = "Other programs take token ids, with the tokenizer before them."
    check_choice("format` with `text=True", format, ("tf_saved_model",), advice)
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
    advice = "A program that takes texts truncates in no other way."
    preprocessor = model.preprocessor
    check_choice("truncation", preprocessor.truncation, ("longest_first",), advice)
    least = preprocessor.tokenizer.layout.num_special(2 in model.serving_signature.num_texts)
    check_int("max_length", preprocessor.max_length, least)
    check_can_be_in_graph(preprocessor.tokenizer)


def _says_answer(cls):
    """Whether the last class that changes how texts become examples also states its answer."""
    names = {"serving_signature", "encode_texts", "answerers"}
    parts = [part for part in cls.__mro__ if names & vars(part).keys()]
    return bool(parts) and "serving_signature" in vars(parts[0])


def write(model: keras.Model, path: str, verbose: bool | None = None) -> None:
    """Writes a model as a SavedModel that takes texts, see `ExportMixin.export`.

    Its endpoints are `serve(texts)` and `serve_pairs(texts, pairs)`, or `serve(texts, pairs)` for a
    task that only takes pairs.
    """
    import tensorflow as tf

    archive, serve = keras.export.ExportArchive(), program_of(model)
    specs = [tf.TensorSpec((None,), tf.string, name=name) for name in ("texts", "pairs")]
    for name, number in zip(
        ("serve", "serve_pairs"), model.serving_signature.num_texts, strict=False
    ):
        # Keras traces an endpoint twice; this one calls a graph, which is traced once.
        graph = tf.function(serve, specs[:number], autograph=False).get_concrete_function()
        archive.add_endpoint(name, graph.__call__, specs[:number])
    archive.write_out(path, verbose=bool(verbose))


def program_of(model: keras.Model) -> Callable[..., dict[str, Any]]:
    """Returns a function from string tensors `(batch,)`, texts and pairs, to a dict of answers."""
    import tensorflow as tf

    preprocess = GraphPreprocessor(model.preprocessor)
    # As `predict` does, a reranker puts its prompt before queries.
    prompted = getattr(model.answerer(), "prompted", None)
    [before] = prompted([""]) if prompted else [""]

    def program(texts, *pairs):
        inputs = preprocess(tf.strings.join([before, texts]), *pairs)
        return _answers(model, model(inputs, training=False))

    return program


def _answers(model, outputs):
    """Returns a program's outputs by name; for classes also probabilities and labels."""
    import tensorflow as tf

    output, labels, _ = model.serving_signature
    if labels is None:
        return {output: get_activation(getattr(model, "activation", "linear"))(outputs)}
    names = tf.constant(list(map(str, labels)))
    logits = outputs / getattr(model, "temperature", 1.0)
    if model.has_classes:
        probabilities = tf.nn.softmax(logits)
        predicted = tf.gather(names, tf.argmax(outputs, axis=-1))
    else:
        probabilities = tf.sigmoid(logits)
        predicted = tf.where(probabilities >= 0.5, names, "")
    return {output: outputs, "probabilities": probabilities, "labels": predicted}


class GraphPreprocessor:
    """Makes the inputs that a `TextPreprocessor` makes, with the operations of a graph.

    Args:
        preprocessor: a `TextPreprocessor` that truncates the longest text first, and whose
            tokenizer fits in a graph, see `GraphTokenizer`.
    """

    def __init__(self, preprocessor):
        self.preprocessor = preprocessor
        self.tokenize = GraphTokenizer(preprocessor.tokenizer)

    def __call__(self, texts, pairs=None):
        """Tokenizes, truncates, packs and pads to the longest row.

        Args:
            texts: string tensor `(batch,)`.
            pairs: string tensor `(batch,)`, the second texts, or `None`.

        Returns:
            A dict of int32 tensors `(batch, length)`, see `TextPacker.pack`.
        """
        import tensorflow as tf

        tokenizer, is_pair = self.preprocessor.tokenizer, pairs is not None
        layout, first = tokenizer.layout, self.tokenize(texts)
        second = self.tokenize(pairs) if is_pair else first[:, :0]
        first, second = _truncated(first, second, self.preprocessor.room(is_pair))
        before, between, after = (
            tf.tile(tf.constant([ids], tf.int32, (1, len(ids))), [tf.shape(texts)[0], 1])
            for ids in (layout.before, layout.between if is_pair else (), layout.after)
        )
        rows = tf.concat([before, first, between, second, after], axis=1)
        lengths = rows.row_lengths()
        # Without texts there is one column, since models read the first token.
        longest = tf.reduce_max(tf.concat([lengths, [1]], axis=0))
        token_ids = rows.to_tensor(tokenizer.pad_token_id, shape=tf.stack([-1, longest]))
        ends = lengths, lengths - second.row_lengths() - len(layout.after)
        mask, is_first = (tf.sequence_mask(end, longest, tf.int32) for end in ends)
        segments = (mask - is_first) * (layout.second_segment if is_pair else 0)
        inputs = {TOKEN_IDS: token_ids, SEGMENT_IDS: segments, PADDING_MASK: mask}
        return {name: inputs[name] for name in inputs if name in self.preprocessor.input_names}


def _truncated(first, second, budget):
    """Returns both texts of rows, the longest truncated first, see `collate.truncated_lengths`."""
    import tensorflow as tf

    lengths = [rows.row_lengths() for rows in (first, second)]
    budget = tf.cast(budget, lengths[0].dtype)
    half = (budget + tf.cast(lengths[0] > lengths[1], budget.dtype)) // 2
    kept = tf.maximum(half, budget - lengths[1]), tf.maximum(budget - half, budget - lengths[0])
    return [
        tf.ragged.boolean_mask(
            rows,
            rows.with_values(tf.ragged.range(row_lengths).values < tf.repeat(most, row_lengths)),
        )
        for rows, row_lengths, most in zip((first, second), lengths, kept, strict=True)
    ]
