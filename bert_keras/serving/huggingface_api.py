"""Hugging Face's inference API, for `huggingface_hub.InferenceClient(model=url)`."""

import asyncio
from typing import Any

import numpy as np
from fastapi import APIRouter, Request

from bert_keras.answers.aggregated_entities import STRATEGIES
from bert_keras.answers.entailment import (
    check_hypotheses,
    entailment_answers,
    entailment_columns,
)
from bert_keras.serving.bodies import Body
from bert_keras.serving.label_scores import FUNCTIONS, labels_of, scores_of
from bert_keras.serving.rows import Refusal, check, check_num_rows
from bert_keras.serving.server import as_json
from bert_keras.serving.tagged_pieces import entities_of_pieces, own_entities
from bert_keras.serving.vectors import direction_options, shortened, similarities


class Options(Body):
    """Accepted and ignored: models are always loaded, and answers never come from a cache."""

    use_cache: bool | None = None
    wait_for_model: bool | None = None


class Inference(Body):
    """Inputs and parameters of the model's task."""

    inputs: Any
    parameters: dict[str, Any] | None = None
    options: Options | None = None
    normalize: bool | None = None
    truncate: bool | None = None
    truncation_direction: str | None = None
    prompt_name: str | None = None
    dimensions: int | None = None
    encoding_format: str | None = None


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
        check(body.inputs not in (None, []), "inputs: a text is needed. Received: nothing.")

        async def ask(method, rows, **options):
            return await server.ask(request, served, method, rows, **options)

        # Clients send these inside or outside the parameters.
        outside = body.model_dump(exclude={"inputs", "parameters", "options"})
        parameters = [*(body.parameters or {}).items(), *outside.items()]
        parameters = {key: value for key, value in parameters if value is not None}
        return await as_json(await answer(ask, body.inputs, parameters, served))

    return routes


def _check(parameters, *names):
    """Raises if a parameter is unknown."""
    unknown, has = ", ".join(sorted(set(parameters) - set(names))), ", ".join(names) or "none"
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
        rows = [_pair(x) if isinstance(x, dict) else x for x in rows]
    rows = [tuple(x) if isinstance(x, (list, tuple)) else (x,) for x in rows]
    for place, row in enumerate(rows):
        wrong = next((type(text).__name__ for text in row if not isinstance(text, str)), None)
        where = f"inputs[{place}]" if is_list else "inputs"
        check(wrong is None, f"{where}: a text is needed. Received: {wrong}.")
    return rows, is_list


def _pair(fields):
    """Returns the texts of an object with `text` and, for a pair, `text_pair`."""
    keys = list(fields)
    is_known = set(keys) in ({"text"}, {"text", "text_pair"})
    check(is_known, f"inputs: `text` and perhaps `text_pair` are needed. Received: {keys!r:.60}.")
    return [fields[key] for key in ("text", "text_pair") if key in fields]


async def _classify(ask, inputs, parameters, served):
    if "candidate_labels" in parameters:
        return await _zero_shot(ask, inputs, parameters, served)
    _check(parameters, "top_k", "function_to_apply", "truncate", "truncation")
    rows, _ = _texts(inputs, is_pair=True)
    top_k = parameters.get("top_k")
    is_valid = top_k is None or (type(top_k) is int and top_k >= 1)
    check(is_valid, f"parameters.top_k: an int from 1 is needed. Received: {top_k!r:.60}.")
    function = parameters.get("function_to_apply")
    is_known = function in (None, *FUNCTIONS)
    names = ", ".join(FUNCTIONS)
    check(is_known, f"parameters.function_to_apply: one of {names}. Received: {function!r:.60}.")
    # A single text gives a list of lists too: clients take the first.
    truncate = _flag(parameters, "truncate", True) and _flag(parameters, "truncation", True)
    if function is None and served.applies_sigmoid:
        function = "sigmoid"
    if function is None:
        answers = await ask("classify", rows, truncate=truncate)
        scores = [labels_of(x) for x in answers]
    else:
        logits = np.array(await ask("logits", rows, truncate=truncate))
        scores = scores_of(served, FUNCTIONS[function](logits))
    return [x[:top_k] for x in scores]


async def _zero_shot(ask, inputs, parameters, served):
    """Answers with a classifier of entailment, see `bert_keras.ZeroShotClassifier`."""
    _check(parameters, "candidate_labels", "hypothesis_template", "multi_label")
    multi_label = _flag(parameters, "multi_label", False)
    template = parameters.get("hypothesis_template", "This example is {}.")
    names = parameters["candidate_labels"]
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",") if name.strip()]
    rows, _ = _texts(inputs)
    check(len(rows) == len(rows[0]) == 1, "inputs: zero-shot classification takes one text.")
    [(text,)] = rows
    try:
        has_names = isinstance(names, list) and names
        check(has_names, "parameters: candidate_labels, a list of texts, are needed.")
        _check_size(names, template, served.settings)
        entailment_columns(served.setting("label_names"))
        hypotheses = check_hypotheses(names, template)
    except (TypeError, ValueError) as error:
        raise Refusal(422, f"parameters: candidate_labels, hypothesis_template: {error}") from error
    logits = await ask("logits", [(text, hypothesis) for hypothesis in hypotheses])
    columns = served.setting("label_names"), names, multi_label
    [answer] = entailment_answers(logits, *columns)
    return labels_of(answer)


def _check_size(names, template, settings):
    """Raises if there are too many hypotheses, or if one is too long to be written."""
    check_num_rows(names, settings)
    if isinstance(template, str):
        longest = max((len(name) for name in names if isinstance(name, str)), default=0)
        length, limit = len(template) + template.count("{}") * longest, settings.max_text
        message = f"parameters: hypotheses of at most {limit} characters. Received: {length}."
        check(length <= limit, message, 413)


async def _tag(ask, inputs, parameters, served):
    _check(parameters, "aggregation_strategy", "ignore_labels")
    strategy = parameters.get("aggregation_strategy")
    names = ", ".join(STRATEGIES)
    message = f"parameters.aggregation_strategy: one of {names}. Received: {strategy!r:.60}."
    check(strategy in (None, *STRATEGIES), message)
    ignored = parameters.get("ignore_labels", ["O"])
    are_names = isinstance(ignored, list) and all(isinstance(x, str) for x in ignored)
    check(are_names, "parameters.ignore_labels: a list of texts is needed.")
    if strategy is None and "ignore_labels" in parameters:
        strategy = "simple"  # A task's own entities have no `O`.
    rows, is_list = _texts(inputs)
    if strategy is None:
        entities = [own_entities(answer) for answer in await ask("tag", rows)]
    else:
        check(
            not (served.setting("crf") or False),
            "parameters.aggregation_strategy: this model has a CRF, which tags whole words. Leave "
            "it and `ignore_labels` out.",
        )
        logits = await ask("piece_logits", rows)
        arguments = rows, logits, strategy, ignored, served
        entities = await asyncio.to_thread(entities_of_pieces, *arguments)
    return entities if is_list else entities[0]


async def _fill_mask(ask, inputs, parameters, served):
    _check(parameters, "top_k", "targets")
    rows, is_list = _texts(inputs)
    options, targets = {"top_k": parameters.get("top_k", 5)}, parameters.get("targets")
    if targets is not None:
        targets = [targets] if isinstance(targets, str) else targets
        are_texts = isinstance(targets, list) and all(isinstance(x, str) for x in targets)
        check(are_texts, "parameters.targets: a list of tokens is needed.")
        options["targets"] = tuple(targets)
    answers = await ask("fill_mask", rows, **options)
    filled = await asyncio.to_thread(_filled, rows, answers, served)
    return filled if is_list else filled[0]


def _filled(rows, answers, served):
    """Returns the candidates for the masks of texts, with their sentences."""
    mask, tokenizer, results = served.mask_token, served.model.tokenizer, []
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
        results.append(filled[0] if len(filled) == 1 else filled)
    return results


async def _answer(ask, inputs, parameters, served):
    _check(parameters, "top_k", "handle_impossible_answer", "max_answer_len")
    is_question = isinstance(inputs, dict) and inputs.keys() == {"question", "context"}
    check(is_question, "inputs: an object with `question` and `context` alone is needed.")
    rows, _ = _texts([[inputs["question"], inputs["context"]]])
    settings, top_k, may_lack = {}, parameters.get("top_k", 1), False
    if "max_answer_len" in parameters:
        longest = settings["max_answer_length"] = parameters["max_answer_len"]
        is_length = type(longest) is int and longest >= 1
        check(is_length, "parameters.max_answer_len: an int from 1 is needed.")
    if "handle_impossible_answer" in parameters:
        may_lack = _flag(parameters, "handle_impossible_answer", False)
        # "No answer" is always the first, or never one of them.
        settings["no_answer_threshold"] = -np.inf if may_lack else None
    num_answers = top_k + may_lack if type(top_k) is int else top_k
    options = {"changes": tuple(sorted(settings.items()))} if settings else {}
    [spans] = await ask("answer", rows, top_k=num_answers, **options)
    spans = spans if isinstance(spans, list) else [spans]
    spans = [
        {
            "answer": x["answer"],
            "start": x["start"] or 0,
            "end": x["end"] or 0,
            "score": x["probability"],
        }
        for x in spans
    ]
    if may_lack:
        spans = sorted(spans, key=lambda x: -x["score"])[:top_k]
    return spans if "top_k" in parameters else spans[0]


async def _embed(ask, inputs, parameters, served):
    names = "normalize", "truncate", "prompt_name", "truncation_direction", "dimensions"
    _check(parameters, *names, "encoding_format")
    is_float = parameters.get("encoding_format", "float") == "float"
    check(is_float, "parameters.encoding_format: `float`; /v1/embeddings has base64 too.")
    normalize = _flag(parameters, "normalize", False)
    options = {"truncate": _flag(parameters, "truncate", True)}
    options |= direction_options(parameters.get("truncation_direction"))
    is_comparison = isinstance(inputs, dict)
    if is_comparison:
        has_list = inputs.keys() == {"source_sentence", "sentences"}
        has_list = has_list and isinstance(inputs["sentences"], list)
        check(has_list, "inputs: `source_sentence` and a list `sentences` are needed.")
        inputs = [inputs["source_sentence"], *inputs["sentences"]]
    rows, _ = _texts(inputs)
    vectors = await ask("embed", rows, prompt=parameters.get("prompt_name"), **options)
    vectors = shortened(vectors, normalize, parameters.get("dimensions"))
    return similarities(served, vectors) if is_comparison else vectors.tolist()


ANSWERS = {
    "classify": _classify,
    "tag": _tag,
    "fill_mask": _fill_mask,
    "answer": _answer,
    "embed": _embed,
}
