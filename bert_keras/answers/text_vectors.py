"""Vectors of texts as answers: dense, sparse, or one for each token."""

from __future__ import annotations

import numpy as np

from ..checks import as_texts, check_int
from ..inputs import PADDING_MASK, SCORING_MASK, TOKEN_IDS
from ..preprocessing.collate import GroupRows, TextRows
from ..preprocessing.ragged import Ragged
from .answerer import Answerer, Option
from .prompts import PROMPT, USUAL, prompt_text, split_marker
from .similarity import l2_normalize

KINDS = ("query", "document")


class _PromptedTexts(Answerer):
    """Texts after a prompt, which a subclass has as `before`."""

    about = "Turn each text into a vector, into weights of tokens, or into a vector for each token."
    example = "--input texts.csv --columns body --output vectors.npy"

    def texts(self, *columns):
        return [self.before + text for text in as_texts(columns[0])]


class EmbedAnswerer(_PromptedTexts):
    """A vector for each text, after a prompt.

    Its settings are those of `TextEmbedder`.
    """

    method = "embed"
    setting_names = ("prompts", "default_prompt", "dim", "normalize", "similarity")
    options = (
        PROMPT,
        Option("dim", int, None, "How many values of each vector to keep.", is_checked=False),
    )
    tag, does = "sentence-similarity", "maps texts to vectors"
    call = "embed(['A text.'])"

    def __init__(self, settings, packer, **options):
        super().__init__(settings, packer, **options)
        if self.dim is not None:
            check_int("dim", self.dim, most=settings["dim"], advice="No vector has more values.")
        prompts = settings["prompts"] or USUAL
        self.before = prompt_text(self.prompt, prompts, settings["default_prompt"])

    def answers(self, arrays):
        if self.dim is None:
            return arrays
        vectors = arrays[:, : self.dim]
        return l2_normalize(vectors) if self.settings["normalize"] else vectors

    def no_answers(self, *columns):
        return np.zeros((0, self.dim or self.settings["dim"]), "float32")


class SparseAnswerer(_PromptedTexts):
    """The tokens that each text has weights for, the heaviest first.

    Its settings are those of `SparseTextEmbedder`.
    """

    method = "token_weights"
    setting_names = ("prompts", "default_prompt", "query_weights")
    options = (Option("top_k", int, None, "Number of tokens of a sparse vector.", 1), PROMPT)
    tag, does = "feature-extraction", "maps texts to sparse vectors"
    call = "token_weights('A text.', top_k=5)"
    command = "embed"

    def __init__(self, settings, packer, **options):
        super().__init__(settings, packer, **options)
        self.is_static = self.prompt == "query" and settings["query_weights"] is not None
        prompts = settings["prompts"] or USUAL
        prompt = prompts.get("query", "") if self.is_static else self.prompt
        self.before = prompt_text(prompt, prompts, settings["default_prompt"])

    @property
    def values_per_token(self):
        """The size of the vocabulary: each token has a logit for each."""
        return self.tokenizer.vocabulary_size

    def answer(self, rows, batches, texts):
        return rows.each(batches, lambda row, weights: self._heaviest(weights))

    def _heaviest(self, weights):
        (ids,) = np.nonzero(weights)
        ids = ids[np.argsort(-weights[ids], kind="stable")][: self.top_k]
        tokens = map(self.tokenizer.id_to_token, ids.tolist())
        return list(zip(tokens, weights[ids].tolist(), strict=True))

    def ask(self, read, *columns):
        """Returns the weights; those of static queries need no model."""
        if not self.is_static:
            return super().ask(read, *columns)
        (texts,), is_one = self.columns(*columns)
        ids, _ = self.packer.tokenize(self.texts(texts)) if texts else ([], None)
        answers = [self._of_query(row[: self.packer.max_length]) for row in ids]
        return answers[0] if is_one else answers

    def _of_query(self, ids):
        table = self.settings["query_weights"]
        tokens = map(self.tokenizer.id_to_token, np.unique(ids).tolist())
        found = [(token, table[token]) for token in tokens if table.get(token)]
        return sorted(found, key=lambda pair: -pair[1])[: self.top_k]


class TokenVectorsAnswerer(_PromptedTexts):
    """A vector for each token that counts, of queries or of documents.

    Its settings are those of `MultiVectorEmbedder`.
    """

    method = "embed"
    setting_names = (
        *("query_marker", "document_marker", "query_length", "document_length"),
        *("query_expansion", "attend_to_expansion", "skipped_tokens"),
    )
    route = "token_vectors"
    options = (Option("kind", KINDS, "document", "Whether the texts are queries or documents."),)
    tag, does = "sentence-similarity", "maps the tokens of texts to vectors"
    call = "score('A query.', ['A text.'])"

    before = ""  # A marker is a part of each row.

    def encode(self, texts):
        is_query = np.full(len(texts), self.kind == "query")
        ids = marked_ids(self.settings, self.packer, texts, is_query)
        return MarkedRows(self.settings, is_query, self.packer, ids)


class _Marked:
    """Mixin that fills up queries with `[MASK]` and marks the tokens that count in scores.

    Args:
        settings: dict, see `bert_keras.answers.text_vectors.TokenVectorsAnswerer`.
        is_query: bool `(num_texts,)`, which texts are queries.
        *arguments: of `TextRows` or `GroupRows`.
    """

    def __init__(self, settings, is_query, *arguments):
        super().__init__(*arguments)
        self.settings, self.is_query = settings, is_query
        tokenizer = self.packer.tokenizer
        self.skipped_ids = tokenizer.ids_of(settings["skipped_tokens"])
        if is_query.any() and settings["query_expansion"]:
            # Each row of training has a query.
            self.lengths = np.maximum(self.lengths, settings["query_expansion"])

    def packed(self, indices, length):
        inputs, expansion = super().packed(indices, length), self.settings["query_expansion"]
        is_query = self.is_query[indices][:, None]
        ids, mask = inputs[TOKEN_IDS], inputs[PADDING_MASK]
        is_scored = (mask == 1) & (is_query | ~np.isin(ids, self.skipped_ids))
        if expansion:
            is_expansion = is_query & (mask == 0) & (np.arange(length) < expansion)
            ids[is_expansion] = self.packer.tokenizer.mask_token_id
            is_scored |= is_expansion
            if self.settings["attend_to_expansion"]:
                mask[is_expansion] = 1
        return {**inputs, SCORING_MASK: is_scored.astype("int32")}


class MarkedRows(_Marked, TextRows):
    """Queries, or documents, each token of which has a vector."""

    inputs = _Marked.packed

    def collect(self, batches):
        """Returns for each text the vectors of the tokens that count, `(num_tokens, dim)`."""
        found = [None] * len(self)
        for indices, vectors in batches:
            masks = self.inputs(indices, vectors.shape[1])[SCORING_MASK]
            for row, mask, of_text in zip(indices, masks, vectors, strict=True):
                found[row] = of_text[mask == 1]
        return found


class MarkedGroupRows(_Marked, GroupRows):
    """Rows of a query and its documents."""


def marked_ids(settings, packer, texts, is_query):
    """Returns the token ids of queries and documents with their markers, a `Ragged`.

    Args:
        settings: see `TokenVectorsAnswerer`.
        packer: a `TextPacker`.
        texts: list of str.
        is_query: bool `(num_texts,)`.
    """
    kinds = [KINDS[0] if query else KINDS[1] for query in is_query]
    markers = {kind: split_marker(packer.tokenizer, settings[f"{kind}_marker"]) for kind in KINDS}
    ids, _ = packer.tokenize(
        [markers[kind][1] + text for kind, text in zip(kinds, texts, strict=True)]
    )
    rows, special = [], packer.tokenizer.layout.num_special(False)
    for kind, row in zip(kinds, ids, strict=True):
        row = [*markers[kind][0], *row]
        rows.append(row[: (settings[f"{kind}_length"] or len(row) + special) - special])
    return Ragged.from_rows(rows)
