"""OpenAI's embeddings API, for its client and compatible ones."""

import asyncio
import base64

from fastapi import APIRouter, Request

from bert_keras.serving.forms import shortened
from bert_keras.serving.rows import Body, Ids, ManyIds, Texts, check, check_num_rows
from bert_keras.serving.server import as_json


class Embeddings(Body):
    """Texts, or ids of the model's own tokenizer, with or without special tokens around them.

    Without `model` the first that embeds answers. `prompt_name`, which OpenAI's models do not have,
    is text-embeddings-inference's.
    """

    input: str | Texts | Ids | ManyIds
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
        tokenizer, inputs = served.model.tokenizer, body.input
        is_known = body.encoding_format in ("float", "base64")
        check(is_known, "encoding_format: `float` or `base64` is needed.")
        is_one = isinstance(inputs, str) or (inputs and isinstance(inputs[0], int))
        inputs = [inputs] if is_one else inputs
        check_num_rows(inputs, server.settings)
        before = served.prompt(body.prompt_name)
        limit = served.max_length
        texts, num_tokens = await asyncio.to_thread(_texts_of, tokenizer, inputs, before, limit)
        rows, prompt = [(x,) for x in texts], body.prompt_name
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


def _texts_of(tokenizer, inputs, prompt, limit):
    """Returns texts and the number of tokens that are read, prompts and special ones included."""
    texts = [x if isinstance(x, str) else _text_of(tokenizer, x) for x in inputs]
    rows, num_special = tokenizer([prompt + text for text in texts]), tokenizer.layout.num_special()
    return texts, sum(min(limit, len(ids) + num_special) for ids in rows)


def _text_of(tokenizer, ids):
    """Returns the text of ids, which must be tokenized to the same ids again."""
    size = tokenizer.vocabulary_size
    are_ids = all(0 <= id < size for id in ids)
    check(are_ids, f"input: ids of the model's own tokenizer are needed, 0 to {size - 1}.")
    before, after = map(list, (tokenizer.layout.before, tokenizer.layout.after))
    end = len(ids) - len(after)
    if end >= len(before) and ids[: len(before)] == before and ids[end:] == after:
        ids = ids[len(before) : end]
    text = tokenizer.detokenize(ids)
    message = "input: the model's own tokenizer gives these ids for no text. Send the text."
    check(list(tokenizer(text)) == list(ids), message)
    return text
