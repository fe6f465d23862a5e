"""Hugging Face's inference API, for `huggingface_hub.InferenceClient(model=url)`."""

import asyncio
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from pydantic import Field

from bert_keras.serving.bodies import Body
from bert_keras.serving.rows import check
from bert_keras.serving.server import as_json


class Options(Body):
    """Accepted and ignored: models are always loaded, and answers never come from a cache."""

    use_cache: bool | None = None
    wait_for_model: bool | None = None


class Inference(Body):
    """Inputs and parameters of the model's task."""

    inputs: Any
    parameters: dict[str, Any] = Field({})
    options: Options = Options()
    normalize: bool | None = None
    truncate: bool | None = None


def router(server):
    """Returns the routes `/` and `/models/NAME`."""
    routes = APIRouter(tags=["Hugging Face inference"])

    @routes.post("/models/{name:path}", summary="The answer of a model's task")
    @routes.post("/", summary="The answer of the first model's task")
    async def infer(request: Request, body: Inference, name: str | None = None):
        served = server.find(name)
        answer = ANSWERS.get(served.method)
        check(
            answer is not None,
            f"Hugging Face's API has no task like {served.method!r} of {served.name!r}. Ask "
            f"/answers/{served.name}.",
        )
        is_empty = body.inputs is None or body.inputs in ("", [])
        check(not is_empty, "inputs: a text is needed. Received: nothing.")

        async def ask(method, rows, **options):
            return await server.ask(request, served, method, rows, **options)

        # Clients send these inside or outside the parameters.
        outside = {"normalize": body.normalize, "truncate": body.truncate}
        parameters = [*body.parameters.items(), *outside.items()]
        parameters = {key: value for key, value in parameters if value is not None}
        return await as_json(await answer(ask, body.inputs, parameters, served))

    return routes


def _check(parameters, *known):
    """Raises if a parameter is unknown."""
    unknown, has = ", ".join(sorted(set(parameters) - set(known))), ", ".join(known) or "none"
    check(not unknown, f"parameters: this task takes {has}. Received: {unknown}.")


def _flag(parameters, name, default):
    """Returns a parameter that must be true or false."""
    value = parameters.get(name, default)
    is_flag = isinstance(value, bool)
    check(is_flag, f"parameters.{name}: true or false is needed. Received: {value!r:.60}.")
    return value


def _texts(inputs, is_pair=False):
    """Returns rows of inputs, and whether they were a list."""
    is_list = isinstance(inputs, list)
    rows = inputs if is_list else [inputs]
    if is_pair:
        keys = ("text", "text_pair")
        rows = [[x[k] for k in keys if k in x] if isinstance(x, dict) else x for x in rows]
    rows = [tuple(x) if isinstance(x, (list, tuple)) else (x,) for x in rows]
    for place, row in enumerate(rows):
        wrong = next((type(text).__name__ for text in row if not isinstance(text, str)), None)
        where = f"inputs[{place}]" if is_list else "inputs"
        check(wrong is None, f"{where}: a text is needed. Received: {wrong}.")
    return rows, is_list


def labels_of(answer):
    """Returns a classifier's answer as a list of `{"label", "score"}`, likeliest first."""
    if "probabilities" not in answer:
        scores = answer.get("scores", [answer.get("score")])
        return [{"label": f"LABEL_{i}", "score": score} for i, score in enumerate(scores)]
    pairs = sorted(answer["probabilities"].items(), key=lambda pair: -pair[1])
    return [{"label": _name(label), "score": score} for label, score in pairs]


def _name(label):
    return label if isinstance(label, str) else f"LABEL_{label}"


async def _classify(ask, inputs, parameters, served):
    if "candidate_labels" in parameters:
        return await _zero_shot(ask, inputs, parameters)
    _check(parameters, "top_k", "truncate", "truncation")
    rows, _ = _texts(inputs, is_pair=True)
    top_k = parameters.get("top_k")
    is_valid = top_k is None or (type(top_k) is int and top_k >= 1)
    check(is_valid, f"parameters.top_k: an int from 1 is needed. Received: {top_k!r:.60}.")
    # A single text gives a list of lists too: clients take the first.
    truncate = _flag(parameters, "truncate", True) and _flag(parameters, "truncation", True)
    answers = await ask("classify", rows, truncate=truncate)
    return [labels_of(x)[:top_k] for x in answers]


async def _zero_shot(ask, inputs, parameters):
    """Answers zero-shot with a classifier of entailment that has the label "entailment"."""
    _check(parameters, "candidate_labels", "hypothesis_template", "multi_label")
    multi_label = _flag(parameters, "multi_label", False)
    template = parameters.get("hypothesis_template", "This example is {}.")
    names = parameters["candidate_labels"]
    names = names.split(",") if isinstance(names, str) else names
    are_names = isinstance(names, list) and names and all(isinstance(x, str) for x in names)
    is_template = isinstance(template, str) and "{}" in template
    message = "parameters: candidate_labels and a hypothesis_template with {} are needed."
    check(are_names and is_template, message)
    rows, _ = _texts(inputs)
    check(len(rows) == len(rows[0]) == 1, "inputs: zero-shot classification takes one text.")
    [(text,)] = rows
    answers = await ask("classify", [(text, template.replace("{}", name)) for name in names])
    key = {str(name).lower(): name for name in answers[0].get("probabilities", {})}
    known = ", ".join(key)
    check(
        "entailment" in key,
        f"Zero-shot classification needs a label `entailment`. The model has: {known}.",
    )
    scores = np.array([answer["probabilities"][key["entailment"]] for answer in answers])
    if not multi_label:
        odds = scores / np.maximum(1 - scores, 1e-9)
        scores = odds / odds.sum()
    order = np.argsort(-scores)
    return [{"label": names[i], "score": float(scores[i])} for i in order]


async def _tag(ask, inputs, parameters, served):
    _check(parameters, "aggregation_strategy")
    is_grouped = parameters.get("aggregation_strategy", "simple") != "none"
    check(is_grouped, "parameters: tags are grouped by words. Leave the strategy `none` out.")
    rows, is_list = _texts(inputs)
    found = [
        [
            {
                "entity_group": entity["type"],
                "word": entity["text"],
                "start": entity["start"],
                "end": entity["end"],
                "score": entity["score"],
            }
            for entity in answer["entities"]
        ]
        for answer in await ask("tag", rows)
    ]
    return found if is_list else found[0]


async def _fill_mask(ask, inputs, parameters, served):
    _check(parameters, "top_k")
    rows, is_list = _texts(inputs)
    answers = await ask("fill_mask", rows, top_k=parameters.get("top_k", 5))
    found = await asyncio.to_thread(_filled, rows, answers, served)
    return found if is_list else found[0]


def _filled(rows, answers, served):
    """Returns the candidates for the masks of texts, with their sentences."""
    mask, tokenizer, found = served.mask_token, served.model.tokenizer, []
    ids = {token: id for id, token in enumerate(tokenizer.vocabulary)}
    for (text,), masks in zip(rows, answers, strict=True):
        parts = text.split(mask)
        filled = [
            [
                {
                    "score": score,
                    "token": ids[token] if token in ids else tokenizer(f" {token}")[0],
                    "token_str": token,
                    "sequence": mask.join(parts[: i + 1]) + token + mask.join(parts[i + 1 :]),
                }
                for token, score in likeliest
            ]
            for i, likeliest in enumerate(masks)
        ]
        found.append(filled[0] if len(filled) == 1 else filled)
    return found


async def _answer(ask, inputs, parameters, served):
    _check(parameters, "top_k")
    is_question = isinstance(inputs, dict) and {"question", "context"} <= inputs.keys()
    check(is_question, "inputs: an object with `question` and `context` is needed.")
    rows, _ = _texts([[inputs["question"], inputs["context"]]])
    [found] = await ask("answer", rows, top_k=parameters.get("top_k", 1))
    found = found if isinstance(found, list) else [found]
    found = [
        {"answer": x["answer"], "start": x["start"], "end": x["end"], "score": x["probability"]}
        for x in found
    ]
    return found if "top_k" in parameters else found[0]


async def _embed(ask, inputs, parameters, served):
    _check(parameters, "normalize", "truncate", "prompt_name")
    normalize = _flag(parameters, "normalize", False)
    truncate = _flag(parameters, "truncate", True)
    if isinstance(inputs, dict):
        has_list = isinstance(inputs.get("sentences"), list)
        check(has_list, "inputs: `source_sentence` and a list `sentences` are needed.")
        rows, _ = _texts([inputs.get("source_sentence"), *inputs["sentences"]])
        vectors = unit(np.array(await ask("embed", rows, truncate=truncate)))
        return (vectors[1:] @ vectors[0]).tolist()
    rows, _ = _texts(inputs)
    prompt = parameters.get("prompt_name")
    vectors = np.array(await ask("embed", rows, truncate=truncate, prompt=prompt))
    return (unit(vectors) if normalize else vectors).tolist()


def unit(vectors):
    """Returns vectors `(n, dim)` of length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


ANSWERS = {
    "classify": _classify,
    "tag": _tag,
    "fill_mask": _fill_mask,
    "answer": _answer,
    "embed": _embed,
}
