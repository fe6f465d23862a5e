"""The routes of text-embeddings-inference: vectors, classes, and rankings for a query."""

import numpy as np
from fastapi import APIRouter, Request

from bert_keras.serving.bodies import Body, Rows, Texts
from bert_keras.serving.huggingface_api import labels_of, unit
from bert_keras.serving.rows import check
from bert_keras.serving.server import as_json
from bert_keras.version import __version__


class Embed(Body):
    """Texts to embed. Without `truncate`, texts of too many tokens are refused."""

    inputs: str | Texts
    normalize: bool = True
    truncate: bool = True
    prompt_name: str | None = None


class Predict(Body):
    """A text, or a list of texts or of pairs, to classify."""

    inputs: str | Texts | Rows
    truncate: bool = True


class Rerank(Body):
    """A query, and texts to rank."""

    query: str
    texts: Texts
    return_text: bool = False
    truncate: bool = True


def router(server):
    """Returns the routes `/embed`, `/predict`, `/rerank`, `/info`, `/health`."""
    routes = APIRouter(tags=["text-embeddings-inference"])

    @routes.post("/embed", summary="A vector of each text")
    async def embed(request: Request, body: Embed):
        texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
        served = server.find(None, "embed")
        rows = [(x,) for x in texts]
        asked = server.ask(request, served, "embed", rows, body.truncate, prompt=body.prompt_name)
        vectors = np.array(await asked)
        return await as_json((unit(vectors) if body.normalize else vectors).tolist())

    @routes.post("/predict", summary="The labels of each text, with their probabilities")
    async def predict(request: Request, body: Predict):
        served, inputs = server.find(None, "classify"), body.inputs
        is_one = isinstance(inputs, str)
        rows = [(inputs,)] if is_one else [(x,) if isinstance(x, str) else tuple(x) for x in inputs]
        answers = await server.ask(request, served, "classify", rows, body.truncate)
        found = [labels_of(x) for x in answers]
        return found[0] if is_one else found

    @routes.post("/rerank", summary="Texts ranked for a query, by a classifier of pairs or vectors")
    async def rerank(request: Request, body: Rerank):
        scores = await _scores(server, request, body)
        order = sorted(range(len(scores)), key=lambda place: -scores[place])
        ranked = [{"index": i, "score": scores[i]} for i in order]
        if body.return_text:
            ranked = [{**x, "text": body.texts[x["index"]]} for x in ranked]
        return ranked

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


async def _scores(server, request, body):
    """Returns how well each text of a `Rerank` fits its query, a list of float."""
    served = server.find(None, "classify", "embed")
    if not served.has("classify"):
        rows = [(body.query,), *((text,) for text in body.texts)]
        vectors = unit(np.array(await server.ask(request, served, "embed", rows, body.truncate)))
        return (vectors[1:] @ vectors[0]).tolist()
    has_scores = served.setting("problem_type") == "regression"
    check(
        not has_scores or served.setting("num_classes") == 1,
        f"Ranking needs one score per text; {served.name!r} gives {served.setting('num_classes')}. "
        "Serve a model with one score, a classifier whose last label means yes, or a "
        "`TextEmbedder` before it.",
    )
    rows = [(body.query, text) for text in body.texts]
    answers = await server.ask(request, served, "classify", rows, body.truncate)
    # The last of several labels means yes.
    return [
        list(x["probabilities"].values())[-1] if "probabilities" in x else x["score"]
        for x in answers
    ]
