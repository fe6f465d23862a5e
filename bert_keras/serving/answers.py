"""The routes with complete answers of the tasks, which the server's page uses."""

import asyncio

import numpy as np
from fastapi import APIRouter, Request
from pydantic import Field

from bert_keras.serving import bodies
from bert_keras.serving.inside import instruments_of
from bert_keras.serving.rows import METHODS, Refusal, check_number
from bert_keras.serving.server import as_json


class Question(bodies.Body):
    """Rows of fields, a row a list of texts, in the order that the model's method takes them."""

    rows: bodies.Rows
    top_k: int | None = None


class Texts(bodies.Body):
    """Texts to cut into tokens."""

    inputs: str | bodies.Texts


class Saliency(bodies.Body):
    """A text or a pair, and the label to explain; by default the most probable one."""

    row: bodies.Texts
    target: str | None = None


class Attention(bodies.Body):
    """A text or a pair, and a layer and a head, counted from 0; by default the mean over heads."""

    row: bodies.Texts
    layer: int = Field(0, ge=0)
    head: int | None = Field(None, ge=0)


def router(server):
    """Returns the routes `/answers`, `/answers/NAME`, `/tokens/NAME`, and those of instruments."""
    routes = APIRouter(tags=["bert_keras"])

    @routes.get("/answers", summary="The models, how each answers, and the fields that it takes")
    async def models():
        return [_described(x) for x in server.models.values()]

    @routes.post("/answers/{name:path}", summary="What the task's own method returns")
    async def answer(request: Request, name: str, body: Question):
        served = server.find(name)
        takes_top_k = served.method in ("fill_mask", "answer")
        if body.top_k is not None and not takes_top_k:
            raise Refusal(422, f"top_k: {served.method} gives one answer.")
        options = {} if body.top_k is None else {"top_k": body.top_k}
        found = await server.ask(
            request, served, served.method, [tuple(row) for row in body.rows], **options
        )
        return await as_json([x.tolist() if isinstance(x, np.ndarray) else x for x in found])

    @routes.post("/saliency/{name:path}", summary="What each word adds to the logit of a label")
    async def saliency(request: Request, name: str, body: Saliency):
        served, has = _that_shows(server, name, "saliency")
        if body.target is not None and body.target not in has["labels"]:
            raise Refusal(422, f"target: one of {', '.join(has['labels'])} is needed.")
        asked = server.ask(request, served, "saliency", [tuple(body.row)], target=body.target)
        return await as_json((await asked)[0])

    @routes.post("/attention/{name:path}", summary="How much each token looks at the others")
    async def attention(request: Request, name: str, body: Attention):
        served, has = _that_shows(server, name, "attention")
        if body.layer >= has["layers"] or (body.head or 0) >= has["heads"]:
            raise Refusal(422, f"layer, head: below {has['layers']} and {has['heads']} are needed.")
        options = {"layer": body.layer, "head": body.head}
        asked = server.ask(request, served, "attention", [tuple(body.row)], **options)
        return await as_json((await asked)[0])

    @routes.post("/tokens/{name:path}", summary="The tokens of texts, and their ids")
    async def tokens(name: str, body: Texts):
        texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
        check_number(texts, server.settings)
        length = sum(map(len, texts))
        if length > server.settings.max_text:
            most = server.settings.max_text
            raise Refusal(413, f"inputs: at most {most} characters. Received: {length}.")
        return await as_json(await asyncio.to_thread(_tokens, server.find(name), texts))

    return routes


def _that_shows(server, name, instrument):
    """Returns the model of a name, and what `instruments_of` says of one of its instruments."""
    served = server.find(name)
    found = instruments_of(served.model)
    if instrument not in found:
        raise Refusal(
            422, f"{name!r} has no {instrument} to show. It has: {', '.join(found) or 'neither'}."
        )
    return served, found[instrument]


def _tokens(served, texts):
    tokenizer = served.model.tokenizer
    special = set(tokenizer.special_token_ids)
    return [
        [
            {"id": id, "text": piece, "special": id in special, "start": start, "stop": end}
            for id, piece, (start, end) in zip(
                encoded.ids, encoded.pieces, encoded.offsets, strict=True
            )
        ]
        for encoded in tokenizer.encode(texts)
    ]


def _described(served):
    return {
        "name": served.name,
        "method": served.method,
        "fields": METHODS[served.method],
        "mask": served.mask_token if served.method == "fill_mask" else None,
        "instruments": instruments_of(served.model),
    }
