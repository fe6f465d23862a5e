"""The routes of text-embeddings-inference: vectors, classes, rankings and tokens."""

import functools

import numpy as np
from fastapi import APIRouter, Request

from bert_keras.answers.classes import sigmoid
from bert_keras.answers.ranked_texts import ranked
from bert_keras.serving.forms import classified, shortened, similarities
from bert_keras.serving.rows import (
    Body,
    Direction,
    Sequences,
    Texts,
    check,
    check_num_rows,
    rows_of,
)
from bert_keras.serving.server import as_json
from bert_keras.version import __version__


class Input(Body):
    """How texts are read. With `truncate` false, texts of too many tokens are refused."""

    truncate: bool | None = None
    truncation_direction: Direction | None = None

    def options(self):
        """Returns the options of `Server.ask`."""
        return {"truncate": self.truncate is not False}


class Prompted(Input):
    """How texts are read, and the name of what goes before them."""

    prompt_name: str | None = None

    def options(self):
        """Returns the options of `Server.ask`."""
        return {**super().options(), "prompt": self.prompt_name}


class EmbedTokens(Prompted):
    """Texts, whose tokens get a vector or a weight each."""

    inputs: str | Texts


class Embed(EmbedTokens):
    """Texts to embed."""

    normalize: bool = True
    dimensions: int | None = None


class Sentences(Body):
    """A text, and others to compare with it."""

    source_sentence: str
    sentences: Texts


class Similarity(Body):
    """A text, and others to compare with it."""

    inputs: Sentences
    parameters: Prompted | None = None


class Predict(Input):
    """A text, a pair `["a", "b"]`, or a batch `[["a"], ["a", "b"]]`, to classify."""

    inputs: str | Sequences
    raw_scores: bool = False


class Rerank(Input):
    """A query, and texts to rank."""

    query: str
    texts: Texts
    return_text: bool = False
    raw_scores: bool = False


def router(server):
    """Returns the routes `/embed`, `/embed_sparse`, `/similarity`, `/predict`, and more."""
    routes = APIRouter(tags=["text-embeddings-inference"])
    _add_vectors(routes, server)
    _add_scores(routes, server)

    @routes.get("/info", summary="The models and the limits")
    async def info():
        first = next(iter(server.models.values()))
        settings = server.settings
        return {
            "model_id": first.name,
            "models": {name: x.method for name, x in server.models.items()},
            "max_batch_requests": settings.max_batch,
            "max_client_batch_size": settings.max_waiting,
            "max_input_length": first.max_length,
            "version": __version__,
        }

    @routes.get("/health", summary="Whether the models are loaded")
    async def health():
        return {}

    return routes


def _add_vectors(routes, server):
    @routes.post("/embed", summary="A vector of each text")
    async def embed(request: Request, body: Embed):
        served, rows = server.find(None, "embed"), rows_of(body.inputs)
        vectors = await server.ask(request, served, "embed", rows, **body.options())
        return await as_json(shortened(vectors, body.normalize, body.dimensions).tolist())

    @routes.post("/embed_all", summary="A vector of each token of each text")
    async def embed_all(request: Request, body: EmbedTokens):
        served, options = server.find(None, "token_vectors"), body.options()
        kind = options.pop("prompt") or "document"
        is_kind = kind in ("query", "document")
        check(is_kind, f"prompt_name: query or document is needed. Received: {kind!r:.60}.")
        rows = rows_of(body.inputs)
        vectors = await server.ask(request, served, "token_vectors", rows, kind=kind, **options)
        return await as_json([x.tolist() for x in vectors])

    @routes.post("/embed_sparse", summary="The weights of the tokens that each text is about")
    async def embed_sparse(request: Request, body: EmbedTokens):
        served, rows = server.find(None, "token_weights"), rows_of(body.inputs)
        found = await server.ask(request, served, "token_weights", rows, **body.options())
        to_id = served.model.tokenizer.token_to_id
        # By rising ids.
        found = [sorted((to_id(token), weight) for token, weight in row) for row in found]
        return await as_json([[{"index": id, "value": x} for id, x in row] for row in found])

    @routes.post("/similarity", summary="The similarity of a text with each of others")
    async def similarity(request: Request, body: Similarity):
        rows = rows_of([body.inputs.source_sentence, *body.inputs.sentences])
        check_num_rows(body.inputs.sentences, server.settings)
        served, options = server.find(None, "embed"), (body.parameters or Prompted()).options()
        return await as_json(
            similarities(served, await server.ask(request, served, "embed", rows, **options))
        )


def _add_scores(routes, server):
    @routes.post("/predict", summary="The labels of each text or pair, with their probabilities")
    async def predict(request: Request, body: Predict):
        served = server.find(None, "classify")
        rows, is_one = _sequences(body.inputs)
        ask = functools.partial(server.ask, request, served)
        function = "sigmoid" if served.setting("num_classes") == 1 else None
        function = "none" if body.raw_scores else function
        labels = await classified(ask, served, rows, function, **body.options())
        return labels[0] if is_one else labels

    @routes.post("/rerank", summary="Texts ranked for a query")
    async def rerank(request: Request, body: Rerank):
        rows = [(body.query, text) for text in body.texts]
        served, options = _reranker(server.models.values()), body.options()
        logits = np.array(await server.ask(request, served, "logits", rows, **options))[:, 0]
        ranking = ranked(logits if body.raw_scores else sigmoid(logits))
        if body.return_text:
            ranking = [{**x, "text": body.texts[x["index"]]} for x in ranking]
        return ranking


def _sequences(inputs):
    """Returns the rows of a `/predict`, and whether they are one text or one pair."""
    if isinstance(inputs, str):
        return [(inputs,)], True
    are_texts = [isinstance(x, str) for x in inputs]
    rule = 'inputs: a text, a pair ["a", "b"], or a batch [["a"], ["b", "c"]] is needed.'
    check(inputs and len(set(are_texts)) == 1, f"{rule} Received: texts beside lists, or nothing.")
    rows = rows_of([inputs] if are_texts[0] else inputs)
    for place, row in enumerate(rows):
        count = f"{len(row)} texts in row {place}"
        check(len(row) in (1, 2), f"{rule} Received: {count}. A batch of texts is a list of lists.")
    return rows, are_texts[0]


def _reranker(models):
    """Returns the first model that ranks, or else the first classifier with a single score."""
    scorers = [x for x in models if "classify" in x.answerers and x.setting("num_classes") == 1]
    rerankers = [*(x for x in models if "rank" in x.answerers), *scorers]
    message = "Ranking needs a `Reranker`, or a classifier of pairs with a single score. There are:"
    check(rerankers, f"{message} {', '.join(f'{x.name} ({x.method})' for x in models)}.")
    return rerankers[0]
