"""OpenAI's embeddings, as its client and those made for it speak them."""

import asyncio
import base64

import numpy as np
from fastapi import APIRouter, Request

from bert_keras.serving.bodies import Body, Ids, ManyIds, Texts
from bert_keras.serving.huggingface_api import unit
from bert_keras.serving.rows import Refusal, check_number
from bert_keras.serving.server import as_json


class Embeddings(Body):
    """Texts, or ids of the model's own tokenizer without special tokens."""

    input: str | Texts | Ids | ManyIds
    model: str
    encoding_format: str = "float"
    dimensions: int | None = None
    user: str | None = None


def router(server):
    """Returns the routes `/v1/embeddings` and `/v1/models`."""
    routes = APIRouter(prefix="/v1", tags=["OpenAI"])

    @routes.get("/models", summary="Names of the models")
    async def models():
        found = [{"id": x, "object": "model", "owned_by": "bert_keras"} for x in server.models]
        return {"object": "list", "data": found}

    @routes.post("/embeddings", summary="A vector of each text, of length 1")
    async def embeddings(request: Request, body: Embeddings):
        served = server.find(body.model, "embed")
        tokenizer, given = served.model.tokenizer, body.input
        if body.encoding_format not in ("float", "base64"):
            raise Refusal(422, "encoding_format: `float` or `base64` is needed.")
        given = (
            [given] if isinstance(given, str) or (given and isinstance(given[0], int)) else given
        )
        check_number(given, server.settings)
        texts, used = await asyncio.to_thread(_texts_of, tokenizer, given)
        vectors = np.array(await server.ask(request, served, "embed", [(x,) for x in texts]))
        if body.dimensions is not None:
            if not 1 <= body.dimensions <= vectors.shape[1]:
                raise Refusal(422, f"dimensions: 1 to {vectors.shape[1]} are needed.")
            vectors = vectors[:, : body.dimensions]
        vectors = unit(vectors).astype("<f4")
        is_plain = body.encoding_format == "float"
        data = [
            {
                "object": "embedding",
                "index": place,
                "embedding": x.tolist() if is_plain else base64.b64encode(x.tobytes()).decode(),
            }
            for place, x in enumerate(vectors)
        ]
        usage = {"prompt_tokens": used, "total_tokens": used}
        content = {"object": "list", "data": data, "model": body.model, "usage": usage}
        return await as_json(content)

    return routes


def _texts_of(tokenizer, given):
    """Returns texts, and the number of their tokens."""
    texts = [x if isinstance(x, str) else _text_of(tokenizer, x) for x in given]
    return texts, sum(len(ids) for ids in tokenizer(texts))


def _text_of(tokenizer, ids):
    """Returns the text of ids, which must be read as just these ids again."""
    if any(not 0 <= id < tokenizer.vocabulary_size for id in ids):
        most = tokenizer.vocabulary_size - 1
        raise Refusal(422, f"input: ids of the model's own tokenizer are needed, 0 to {most}.")
    text = tokenizer.detokenize(ids)
    if list(tokenizer(text)) != list(ids):
        raise Refusal(
            422, "input: these ids are no text's in the model's own tokenizer. Send text."
        )
    return text
