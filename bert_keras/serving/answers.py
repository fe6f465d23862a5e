"""The tasks' own answers, for the page and for whoever wants them whole."""

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict

from bert_keras.serving.served import METHODS
from bert_keras.serving.server import Refusal


class Question(BaseModel):
    """Rows of fields, a row a list of texts, in the order that the model's method takes them."""

    model_config = ConfigDict(extra="forbid")
    rows: list[list[str]]
    top_k: int | None = None


class Texts(BaseModel):
    """Texts to cut into tokens."""

    model_config = ConfigDict(extra="forbid")
    inputs: str | list[str]


def router(server):
    """Returns the routes `/answers`, `/answers/NAME` and `/tokens/NAME`."""
    routes = APIRouter(tags=["bert_keras"])

    @routes.get("/answers", summary="The models, how each answers, and the fields that it takes")
    async def models():
        return [_described(x) for x in server.models.values()]

    @routes.post("/answers/{name:path}", summary="What the task's own method returns")
    async def answer(request: Request, name: str, body: Question):
        served = server.find(name)
        fields = METHODS[served.method]
        most = 2 if served.method == "classify" else len(fields)
        for place, row in enumerate(body.rows):
            is_longer = len(row) > most and served.method != "choose"
            if len(row) < len(fields) or is_longer or len(row) != len(body.rows[0]):
                wanted = ", ".join(fields)
                raise Refusal(
                    422,
                    f"rows[{place}]: {served.method} takes {wanted}. Received: {len(row)} texts.",
                )
        takes_top_k = served.method in ("fill_mask", "answer")
        if body.top_k is not None and not takes_top_k:
            raise Refusal(422, f"top_k: {served.method} gives one answer.")
        options = {} if body.top_k is None else {"top_k": body.top_k}
        found = await server.ask(
            request, served, served.method, [tuple(row) for row in body.rows], **options
        )
        return [x.tolist() if isinstance(x, np.ndarray) else x for x in found]

    @routes.post("/tokens/{name:path}", summary="The tokens of texts, and their ids")
    async def tokens(name: str, body: Texts):
        tokenizer = server.find(name).model.tokenizer
        special = set(tokenizer.special_token_ids)
        return [
            [
                {"id": id, "text": piece, "special": id in special, "start": start, "stop": end}
                for id, piece, (start, end) in zip(
                    encoded.ids, encoded.pieces, encoded.offsets, strict=True
                )
            ]
            for encoded in tokenizer.encode(_as_list(body.inputs))
        ]

    return routes


def _as_list(texts):
    return [texts] if isinstance(texts, str) else texts


def _described(served):
    tokenizer = served.model.tokenizer
    has_mask = served.method == "fill_mask"
    return {
        "name": served.name,
        "method": served.method,
        "fields": METHODS[served.method],
        "mask": tokenizer.mask_token if has_mask else None,
    }
