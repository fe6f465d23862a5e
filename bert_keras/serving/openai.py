"""OpenAI's embeddings API, for its client and compatible ones."""

import asyncio
import base64

import numpy as np
from fastapi import APIRouter, Request

from bert_keras.serving.bodies import Body, Ids, ManyIds, Texts
from bert_keras.serving.huggingface_api import unit
from bert_keras.serving.rows import check, check_number
from bert_keras.serving.server import as_json


class Embeddings(Body):
    """Texts, or ids of the model's own tokenizer without special tokens.

    `prompt_name`, which OpenAI's models do not have, is text-embeddings-inference's.
    """

    input: str | Texts | Ids | ManyIds
    model: str
    encoding_format: str = "float"
    dimensions: int | None = None
    user: str | None = None
    prompt_name: str | None = None


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
        tokenizer, inputs = served.model.tokenizer, body.input
        is_known = body.encoding_format in ("float", "base64")
        check(is_known, "encoding_format: `float` or `base64` is needed.")
        is_one = isinstance(inputs, str) or (inputs and isinstance(inputs[0], int))
        inputs = [inputs] if is_one else inputs
        check_number(inputs, server.settings)
        texts, used = await asyncio.to_thread(_texts_of, tokenizer, inputs)
        rows, prompt = [(x,) for x in texts], body.prompt_name
        vectors = np.array(await server.ask(request, served, "embed", rows, prompt=prompt))
        if body.dimensions is not None:
            most = vectors.shape[1]
            check(1 <= body.dimensions <= most, f"dimensions: an int from 1 to {most} is needed.")
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


def _texts_of(tokenizer, inputs):
    """Returns texts and the total number of their tokens."""
    texts = [x if isinstance(x, str) else _text_of(tokenizer, x) for x in inputs]
    return texts, sum(len(ids) for ids in tokenizer(texts))


def _text_of(tokenizer, ids):
    """Returns the text of ids, which must be tokenized to the same ids again."""
    size = tokenizer.vocabulary_size
    are_ids = all(0 <= id < size for id in ids)
    check(are_ids, f"input: ids of the model's own tokenizer are needed, 0 to {size - 1}.")
    text = tokenizer.detokenize(ids)
    message = "input: the model's own tokenizer gives these ids for no text. Send the text."
    check(list(tokenizer(text)) == list(ids), message)
    return text
