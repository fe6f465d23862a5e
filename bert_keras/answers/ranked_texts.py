"""Scores of texts for a query as a ranking."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import as_column, as_texts
from .answerer import Answerer, Field, Option
from .classes import SCORES, ClassAnswerer
from .prompts import PROMPT, prompt_text


def ranked(scores: NDArray[Any], top_k: int | None = None) -> list[dict[str, Any]]:
    """Returns a dict `{"index", "score"}` for each of the best texts, the best first.

    Args:
        scores: float `(num_texts,)`.
        top_k: int, or `None` for all texts.
    """
    best = np.argsort(-scores, kind="stable")[:top_k]
    return [{"index": int(index), "score": float(scores[index])} for index in best]


class _Queries(Answerer):
    """Pairs whose first texts, the queries, begin with a prompt.

    Its settings are those of `Reranker`.
    """

    setting_names = ("prompts", "default_prompt", "activation")
    prompt = None

    def prompted(self, queries):
        """Returns queries after the prompt."""
        before = prompt_text(self.prompt, self.settings["prompts"], self.settings["default_prompt"])
        return [before + query for query in as_texts(queries, "queries")]

    def encode(self, texts):
        if isinstance(texts, tuple):
            texts = self.prompted(texts[0]), texts[1]
        return super().encode(texts)


class ScoreAnswerer(_Queries):
    """How well each text answers its query."""

    method = "score"
    fields = (Field("query"), Field("text"))
    options = (PROMPT,)

    def columns(self, *columns):
        """Returns queries, one for each text, and texts."""
        queries, texts = columns
        texts = as_column(texts, "texts")
        queries = [queries] * len(texts) if isinstance(queries, str) else queries
        return super().columns(queries, texts)

    def answers(self, arrays):
        return SCORES[self.settings["activation"]](arrays[:, 0])

    def no_answers(self, *columns):
        return np.zeros(0, "float32")


class PairClassAnswerer(_Queries, ClassAnswerer):
    """The score of each pair of a query and a text, as a classifier of pairs answers."""

    setting_names = (*ClassAnswerer.setting_names, *_Queries.setting_names)
    about = ""

    def answers(self, arrays):
        return super().answers(SCORES[self.settings["activation"]](arrays))


class RankAnswerer(_Queries):
    """The texts that answer a query best."""

    method = "rank"
    fields = (Field("query"), Field("texts", "texts"))
    options = (Option("top_k", int, None, "Number of texts.", 1), PROMPT)
    about = "Order texts by how well they answer a query, best first."
    example = '"Who eats?" --input documents.txt --top_k 3'
    tag, does = "text-ranking", "ranks texts"
    call = "rank('A query.', ['A text.'])"
    command = "rerank"

    def texts(self, *columns):
        queries, lists = columns
        lists = [as_column(x, "texts", " of str for each query (one is a str)") for x in lists]
        repeated = [query for query, texts in zip(queries, lists, strict=True) for _ in texts]
        return repeated, [text for texts in lists for text in texts]

    def answer(self, rows, batches, queries, lists):
        scores = SCORES[self.settings["activation"]](rows.collect(batches)[:, 0])
        ends = np.cumsum([len(texts) for texts in lists])[:-1]
        return [ranked(part, self.top_k) for part in np.split(scores, ends)]

    def no_answers(self, queries, lists):
        return [[] for _ in queries]
