"""OpenAI's embeddings API, for its client and compatible ones."""

import asyncio
import base64

from fastapi import APIRouter, Request

from bert_keras.serving.forms import shortened
from bert_keras.serving.rows import Body, Texts, check, check_num_rows, rows_of
from bert_keras.serving.server import as_json


class Embeddings(Body):
    """Texts. Ids of tokens are refused, since most clients send those of another tokenizer.

    Without `model` the first that embeds answers. `prompt_name`, which OpenAI's models do not have,
    is text-embeddings-inference's.
    """

    input: str | Texts
    model: str | None = None
    encoding_format: str = "float"
    dimensions: int | None = None
    user: str | None = None
    prompt_name: str | None = None


def router(server):
    """Returns the routes `/v1/embeddings`, `/v1/models` and `/v1/models/NAME`."""
    routes = APIRouter(prefix="/v1", tags=["OpenAI"])

    @routes.get("/models", summary="Names of the models")
    async def models():
        return {"object": "list", "data": [_described(name) for name in server.models]}

    @routes.get("/models/{name:path}", summary="A model")
    async def model(name: str):
        return _described(server.find(name).name)

    @routes.post("/embeddings", summary="A vector of each text, of length 1")
    async def embeddings(request: Request, body: Embeddings):
        served = server.find(body.model, "embed")
        rows, prompt = rows_of(body.input), body.prompt_name
        is_known = body.encoding_format in ("float", "base64")
        check(is_known, "encoding_format: `float` or `base64` is needed.")
        check_num_rows(rows, server.settings)
        num_tokens = await asyncio.to_thread(served.num_tokens, rows, prompt)
        vectors = await server.ask(request, served, "embed", rows, prompt=prompt)
        vectors = shortened(vectors, True, body.dimensions).astype("<f4")
        is_plain = body.encoding_format == "float"
        data = [
            {
                "object": "embedding",
                "index": place,
                "embedding": x.tolist() if is_plain else base64.b64encode(x.tobytes()).decode(),
            }
            for place, x in enumerate(vectors)
        ]
        usage = {"prompt_tokens": num_tokens, "total_tokens": num_tokens}
        content = {"object": "list", "data": data, "model": served.name, "usage": usage}
        return await as_json(content)

    return routes


def _described(name):
    # The client's class needs the time at which a model was made, which is unknown.
    return {"id": name, "object": "model", "created": 0, "owned_by": "bert_keras"}
