"""Turns texts into a model's inputs inside a TensorFlow graph."""

from bert_keras.export.tokenizer_in_graph import GraphTokenizer
from bert_keras.inputs import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from bert_keras.preprocessing.collate import HEAD_LENGTH


class GraphPreprocessor:
    """Makes the inputs that a `TextPreprocessor` makes, with the operations of a graph.

    Args:
        preprocessor: a `TextPreprocessor` whose tokenizer fits in a graph, see `GraphTokenizer`.
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
            A dict of int32 tensors `(batch, length)`, see `collate.pack`.
        """
        import tensorflow as tf

        tokenizer, is_pair = self.preprocessor.tokenizer, pairs is not None
        layout, first = tokenizer.layout, self.tokenize(texts)
        first, second = self._cut_pair(first, self.tokenize(pairs)) if is_pair else self._cut(first)
        between = layout.between if is_pair else ()
        before, between, after = (
            tf.tile(tf.constant([ids], tf.int32, (1, len(ids))), [tf.shape(texts)[0], 1])
            for ids in (layout.before, between, layout.after)
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

    def _cut(self, tokens):
        """Returns truncated single texts, see `collate.truncate`, and empty second texts."""
        strategy, budget = self.preprocessor.truncation, self.preprocessor.room()
        head = {"tail": 0, "head_tail": min(HEAD_LENGTH, budget // 2)}.get(strategy, budget)
        return _ends(tokens, head, budget - head), _ends(tokens, 0, 0)

    def _cut_pair(self, first, second):
        """Returns both texts of pairs, truncated, see `collate.truncated_lengths`."""
        import tensorflow as tf

        strategy, budget = self.preprocessor.truncation, self.preprocessor.room(is_pair=True)
        lengths = first.row_lengths(), second.row_lengths()
        budget = tf.cast(budget, lengths[0].dtype)
        if strategy == "longest_first":
            half = (budget + tf.cast(lengths[0] > lengths[1], budget.dtype)) // 2
        else:
            half = 0 if strategy == "only_first" else budget
            message = f"`truncation={strategy!r}` needs the other text to fit in {budget} tokens."
            fixed = lengths[strategy == "only_first"]
            tf.debugging.assert_less_equal(fixed, budget, message)
        return (
            _ends(first, tf.maximum(half, budget - lengths[1]), 0),
            _ends(second, tf.maximum(budget - half, budget - lengths[0]), 0),
        )


def _ends(rows, head, tail):
    """Returns each row's first `head` and last `tail` tokens; both are ints, or one per row."""
    import tensorflow as tf

    lengths = rows.row_lengths()
    place, head = tf.ragged.range(lengths).values, head + tf.zeros_like(lengths)
    is_kept = place < tf.repeat(head, lengths)
    is_kept |= place >= tf.repeat(lengths - tail, lengths)
    return tf.ragged.boolean_mask(rows, rows.with_values(is_kept))
