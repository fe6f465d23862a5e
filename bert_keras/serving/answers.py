"""Routes that return the tasks' own answers in full. The page uses them."""

import asyncio

import numpy as np
from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field

from bert_keras.serving.explain import instruments_of
from bert_keras.serving.rows import Body, Sequences, Texts, check, check_num_rows, refusing, rows_of
from bert_keras.serving.server import as_json


class Question(Body):
    """Rows of texts, in the order in which the model's method takes its fields.

    A row of a single text may be that text, and so may be a list of one row. Other keys are options
    of the answer, such as `top_k`, `threshold` or `prompt`.
    """

    model_config = ConfigDict(extra="allow")
    rows: str | Sequences


class Tokenized(Body):
    """Texts to tokenize."""

    inputs: str | Texts


class Saliency(Body):
    """A text or a pair, and the label to explain. The default is the likeliest label."""

    row: Texts
    target: str | None = None


class Attention(Body):
    """A text or a pair, a layer, and a head. The default is the mean over the heads."""

    row: Texts
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
        options = _checked_options(served, body)
        rows = rows_of(body.rows)
        answers = await server.ask(request, served, served.method, rows, **options)
        return await as_json([x.tolist() if isinstance(x, np.ndarray) else x for x in answers])

    @routes.post("/saliency/{name:path}", summary="What each word adds to the logit of a label")
    async def saliency(request: Request, name: str, body: Saliency):
        served, shown = _with_instrument(server, name, "saliency")
        labels = ", ".join(shown["labels"])
        is_label = body.target is None or body.target in shown["labels"]
        check(is_label, f"target: one of {labels} is needed. Received: {body.target!r:.60}.")
        answers = await server.ask(request, served, "saliency", [(*body.row,)], target=body.target)
        return await as_json(answers[0])

    @routes.post("/attention/{name:path}", summary="How much each token attends to the others")
    async def attention(request: Request, name: str, body: Attention):
        served, shown = _with_instrument(server, name, "attention")
        check(
            body.layer < shown["layers"] and (body.head or 0) < shown["heads"],
            f"layer, head: numbers below {shown['layers']} and {shown['heads']} are needed.",
        )
        options = {"layer": body.layer, "head": body.head}
        answers = await server.ask(request, served, "attention", [tuple(body.row)], **options)
        return await as_json(answers[0])

    @routes.post("/tokens/{name:path}", summary="The tokens of texts, and their ids")
    async def tokens(name: str, body: Tokenized):
        texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
        check_num_rows(texts, server.settings)
        length, most = sum(map(len, texts)), server.settings.max_text
        check(length <= most, f"inputs: at most {most} characters. Received: {length}.", 413)
        tokenizer = server.find(name).model.tokenizer
        special = {*tokenizer.special_token_ids}
        encodings = await asyncio.to_thread(tokenizer.encode, texts)
        rows = (zip(x.ids, x.pieces, x.offsets, strict=True) for x in encodings)
        return await as_json(
            [
                [
                    {"id": id, "text": piece, "special": id in special, "start": start, "stop": end}
                    for id, piece, (start, end) in row
                ]
                for row in rows
            ]
        )

    return routes


def _checked_options(served, body):
    """Returns the options of a body; raises `HTTPException`, 422, for one that does not fit."""
    cls = served.answerers[served.method]
    defaults = {option.name: option.default for option in cls.options}
    options = {}
    for name, value in (body.model_extra or {}).items():
        check(not isinstance(value, dict), f"{name}: a text, a number or a list is needed.")
        value = defaults.get(name) if value is None else value
        options[name] = tuple(value) if isinstance(value, list) else value
    if options:
        with refusing():
            served.model.answerer(cls.method, **options)
    return options


def _with_instrument(server, name, instrument):
    """Returns the model of a name, and what `instruments_of` says about one of its instruments."""
    served = server.find(name)
    instruments = instruments_of(served.model)
    advice = "An exported folder computes neither: serve its `.keras` file."
    advice = f"It computes {', '.join(instruments)}." if instruments else advice
    check(instrument in instruments, f"{name!r} does not compute {instrument}. {advice}")
    return served, instruments[instrument]


def _described(served):
    return {
        "name": served.name,
        "method": served.method,
        "fields": [x.name for x in served.fields(served.method) if x.kind != "optional"],
        "options": [option.name for option in served.answerers[served.method].options],
        "mask": served.model.tokenizer.mask_token if served.method == "fill_mask" else None,
        "similarity": served.setting("similarity"),
        "instruments": instruments_of(served.model),
    }
