"""Queries and documents of a `MultiVectorEmbedder` as rows: markers, expansion, scored tokens."""

import numpy as np

from bert_keras.answers.prompts import split_marker
from bert_keras.inputs import PADDING_MASK, SCORING_MASK, TOKEN_IDS
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.tasks.encoded_examples import EncodedTexts
from bert_keras.tasks.groups import EncodedGroups


class _Marked:
    """Mixin that fills up queries with `[MASK]` and marks the tokens that count in scores.

    Args:
        task: a `MultiVectorEmbedder`.
        is_query: bool `(num_texts,)`, which texts are queries.
        *arguments: of `EncodedTexts` or `EncodedGroups`, beginning with the token ids.
    """

    def __init__(self, task, is_query, *arguments):
        super().__init__(task.preprocessor, *arguments)
        self.task, self.is_query, self.skipped_ids = task, is_query, task.skipped_ids
        if is_query.any() and task.query_expansion:
            # Each row of training has a query.
            self.lengths = np.maximum(self.lengths, task.query_expansion)

    def packed(self, indices, length):
        inputs, task = super().packed(indices, length), self.task
        is_query = self.is_query[indices][:, None]
        ids, mask = inputs[TOKEN_IDS], inputs[PADDING_MASK]
        is_scored = (mask == 1) & (is_query | ~np.isin(ids, self.skipped_ids))
        if task.query_expansion:
            is_expansion = is_query & (mask == 0) & (np.arange(length) < task.query_expansion)
            ids[is_expansion] = task.tokenizer.mask_token_id
            is_scored |= is_expansion
            if task.attend_to_expansion:
                mask[is_expansion] = 1
        return {**inputs, SCORING_MASK: is_scored.astype("int32")}


class MarkedTexts(_Marked, EncodedTexts):
    """Queries, or documents."""


class MarkedGroups(_Marked, EncodedGroups):
    """Rows of a query and its documents."""


def marked_ids(task, texts, is_query):
    """Returns the token ids of queries and documents with their markers, a `Ragged`.

    Args:
        task: a `MultiVectorEmbedder`.
        texts: list of str.
        is_query: bool `(num_texts,)`.
    """
    markers = {True: task.query_marker, False: task.document_marker}
    ids_by_token = {token: number for number, token in enumerate(task.tokenizer.vocabulary)}
    markers = {kind: split_marker(ids_by_token, text) for kind, text in markers.items()}
    lengths = {True: task.query_length, False: task.document_length}
    texts = [markers[bool(q)][1] + text for q, text in zip(is_query, texts, strict=True)]
    ids, _ = task.preprocessor.tokenize(texts)
    rows, special = [], task.tokenizer.layout.num_special(False)
    for kind, row in zip(map(bool, is_query), ids, strict=True):
        row = [*markers[kind][0], *row]
        rows.append(row[: (lengths[kind] or len(row) + special) - special])
    return Ragged.from_rows(rows)
