"""Hugging Face's inference API, for `huggingface_hub.InferenceClient(model=url)`."""

import asyncio
import functools
from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field

from bert_keras.answers import entailment
from bert_keras.answers.classes import softmax
from bert_keras.serving import forms
from bert_keras.serving.rows import (
    Body,
    Direction,
    Parameters,
    check,
    check_num_rows,
    refusing,
    rows_of,
)
from bert_keras.serving.server import as_json

STRATEGIES = ("none", "simple", "first", "average", "max")


class Inference(Body):
    """Inputs and parameters of the model's task. Other keys are parameters too."""

    model_config = ConfigDict(extra="allow")
    inputs: Any
    parameters: dict[str, Any] | None = None
    # Accepted and ignored: models are always loaded, and answers never come from a cache.
    options: dict[Literal["use_cache", "wait_for_model"], bool | None] | None = None


class Classification(Parameters):
    """How labels are scored, and how many are returned."""

    top_k: int | None = Field(None, ge=1)
    function_to_apply: Literal["sigmoid", "softmax", "none"] | None = None
    truncate: bool = True
    truncation: bool = True


class ZeroShot(Parameters):
    """Any labels, see `bert_keras.ZeroShotClassifier`."""

    candidate_labels: str | list
    hypothesis_template: str = "This example is {}."
    multi_label: bool = False


class Tagging(Parameters):
    """How tokens become entities."""

    aggregation_strategy: Literal[STRATEGIES] | None = None
    ignore_labels: list[str] | None = None


class Filling(Parameters):
    """How many tokens are returned, or which."""

    top_k: int = 5
    targets: str | list[str] | None = None


class Answering(Parameters):
    """How many answers are returned, of how many tokens, and whether there may be none."""

    top_k: int | None = Field(None, ge=1)
    handle_impossible_answer: bool | None = None
    max_answer_len: int | None = Field(None, ge=1)


class Embedding(Parameters):
    """How texts are read, and the form of their vectors."""

    normalize: bool = False
    truncate: bool = True
    prompt_name: str | None = None
    truncation_direction: Direction | None = None
    dimensions: int | None = None
    encoding_format: str = "float"


def router(server):
    """Returns the routes `/` and `/models/NAME`."""
    routes = APIRouter(tags=["Hugging Face inference"])

    @routes.post("/models/{name:path}", summary="The answer of a model's task")
    @routes.post("/", summary="The answer of the first model with such a task")
    async def infer(request: Request, body: Inference, name: str | None = None):
        known = [x for x in server.models.values() if x.method in ANSWERS]
        served = known[0] if known and name is None else server.find(name)
        check(
            served.method in ANSWERS,
            f"Hugging Face's API has no task like {served.method!r} of {served.name!r}. Ask "
            f"/answers/{served.name}.",
        )
        check(body.inputs != [], "inputs: a text is needed. Received: nothing.")

        outside = {name: value for name, value in body.model_extra.items() if value is not None}
        parameters = {**(body.parameters or {}), **outside}
        is_zero_shot = served.method == "classify" and "candidate_labels" in parameters
        read, answer = ANSWERS["zero_shot" if is_zero_shot else served.method]
        ask = functools.partial(server.ask, request, served)
        return await as_json(await answer(ask, body.inputs, read(parameters), served))

    return routes


def _texts(inputs, is_pair=False):
    """Returns rows of inputs, and whether they were a list."""
    is_list = isinstance(inputs, list)
    rows = inputs if is_list else [inputs]
    rows = rows_of([_pair(x) if is_pair and isinstance(x, dict) else x for x in rows])
    for place, row in enumerate(rows):
        wrong = next((type(text).__name__ for text in row if not isinstance(text, str)), None)
        where = f"inputs[{place}]" if is_list else "inputs"
        check(wrong is None, f"{where}: a text is needed. Received: {wrong}.")
        check(len(row) == len(rows[0]), f"{where}: as many texts as in the first row are needed.")
    return rows, is_list


def _pair(fields):
    """Returns the texts of an object with `text` and, for a pair, `text_pair`."""
    keys = list(fields)
    is_known = set(keys) in ({"text"}, {"text", "text_pair"})
    check(is_known, f"inputs: `text` and perhaps `text_pair` are needed. Received: {keys!r:.60}.")
    return [fields[key] for key in ("text", "text_pair") if key in fields]


async def _classify(ask, inputs, parameters, served):
    rows, _ = _texts(inputs, is_pair=True)
    # Where transformers' pipeline returns the sigmoid of the one logit.
    own_function = "sigmoid" if getattr(served.model, "applies_sigmoid", False) else None
    function = parameters.function_to_apply or own_function
    truncate = parameters.truncate and parameters.truncation
    found = await forms.classified(ask, served, rows, function, truncate=truncate)
    # A single text gives a list of lists too: clients take the first.
    return [labels[: parameters.top_k] for labels in found]


async def _zero_shot(ask, inputs, parameters, served):
    names, template = parameters.candidate_labels, parameters.hypothesis_template
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",") if name.strip()]
    rows, _ = _texts(inputs)
    check(len(rows) == len(rows[0]) == 1, "inputs: zero-shot classification takes one text.")
    [(text,)] = rows
    check(names, "parameters: candidate_labels, a list of texts, are needed.")
    # Too many hypotheses, or one that is too long to be written.
    check_num_rows(names, served.settings)
    longest = max((len(name) for name in names if isinstance(name, str)), default=0)
    length, limit = len(template) + template.count("{}") * longest, served.settings.max_text
    message = f"parameters: hypotheses of at most {limit} characters. Received: {length}."
    check(length <= limit, message, 413)
    settings = {"label_names": served.setting("label_names")}
    options = {"labels": names, "hypothesis": template, "multi_label": parameters.multi_label}
    with refusing("parameters: candidate_labels, hypothesis_template: "):
        answerer = entailment.ZeroShotAnswerer(settings, None, **options)
    logits = await ask("logits", list(zip(*answerer.texts([text]), strict=True)))
    [answer] = answerer.answers(logits)
    return forms.labels_of(answer)


async def _tag(ask, inputs, parameters, served):
    strategy, ignored = parameters.aggregation_strategy, parameters.ignore_labels
    if strategy is None and ignored is not None:
        strategy = "simple"  # A task's own entities have no `O`.
    ignored = ["O"] if ignored is None else ignored
    rows, is_list = _texts(inputs)
    if strategy is None:
        names = {"type": "entity_group", "text": "word"}
        entities = [
            [{names.get(key, key): value for key, value in x.items()} for x in answer["entities"]]
            for answer in await ask("tag", rows)
        ]
    else:
        check(
            not (served.setting("crf") or False),
            "parameters.aggregation_strategy: this model has a CRF, which tags whole words. Leave "
            "it and `ignore_labels` out.",
        )
        pairs = zip(rows, await ask("piece_logits", rows), strict=True)

        def aggregated():
            return [pipeline_entities(served, *row, x, strategy, ignored) for row, x in pairs]

        entities = await asyncio.to_thread(aggregated)
    return entities if is_list else entities[0]


def pipeline_entities(served, text, logits, strategy, ignored):
    """Returns what a tagger says of each token, or of each run of tokens with the same type.

    `"none"` returns tokens as they are, and `"simple"` groups them. The others group words: a word
    has the tag of its `"first"` token, of the token with the highest probability (`"max"`), or of
    the mean of its tokens' probabilities (`"average"`). A tag `B-PER` starts a group; `I-PER`, or a
    tag without a prefix, continues one of its type.

    Args:
        served: `Served`, a tagger.
        text: str.
        logits: float `(num_tokens, num_tags)`, special tokens left out.
        strategy: one of `STRATEGIES`.
        ignored: list of str, the types, or for `"none"` the tags, to leave out.
    """
    tokenizer, scores = served.model.tokenizer, softmax(np.asarray(logits))
    names = served.setting("label_names") or [f"LABEL_{i}" for i in range(scores.shape[-1])]
    encoding = tokenizer.encode(text, special_tokens=False)
    continues, is_plain = tokenizer.continued_words(text, encoding), strategy == "none"
    # An encoding has the text of an unknown piece, and the spaces that a special token takes.
    pieces, units, groups = list(map(tokenizer.id_to_token, encoding.ids)), [], []
    for place, (start, end) in enumerate(encoding.offsets):
        if pieces[place] == tokenizer.unknown_token:
            pieces[place], continues[place] = text[start:end], False
        if units and continues[place] and strategy in ("first", "average", "max"):
            units[-1].append(place)
        else:
            units.append([place])
    for unit in units:
        rows = scores[unit]
        likeliest = rows.max(1).argmax() if strategy == "max" else 0
        best = rows.mean(0) if strategy == "average" else rows[likeliest]
        name = names[best.argmax()]
        kind = name.removeprefix("B-").removeprefix("I-")
        is_new = is_plain or not groups or groups[-1][1] != kind or name.startswith("B-")
        if is_new:
            groups.append((name, kind, [], []))
        groups[-1][2].append(float(best.max()))
        groups[-1][3].extend(unit)
    entities, first = [], len(tokenizer.layout.before)
    for name, _, probabilities, places in groups:
        if is_plain:
            entity = {"entity": name, "index": first + places[0], "word": pieces[places[0]]}
        else:
            name = name.split("-", 1)[-1]
            entity = {"entity_group": name, "word": tokenizer.join([pieces[x] for x in places])}
        start, end = encoding.offsets[places[0]][0], encoding.offsets[places[-1]][1]
        entity |= {"start": start, "end": end, "score": float(np.mean(probabilities))}
        entities += [] if name in ignored else [entity]
    return entities


async def _fill_mask(ask, inputs, parameters, served):
    rows, is_list = _texts(inputs)
    options, targets = {"top_k": parameters.top_k}, parameters.targets
    if targets is not None:
        options["targets"] = (targets,) if isinstance(targets, str) else tuple(targets)
    answers = await ask("mask_ids", rows, **options)
    filled = await asyncio.to_thread(_filled, rows, answers, served)
    return filled if is_list else filled[0]


def _filled(rows, answers, served):
    """Returns the candidates for the masks of texts, with their sentences."""
    tokenizer, results = served.model.tokenizer, []
    mask = tokenizer.mask_token
    for (text,), masks in zip(rows, answers, strict=True):
        parts = text.split(mask)
        filled = [
            [
                {
                    "score": score,
                    "token": id,
                    "token_str": (token := tokenizer.readable(id)),
                    "sequence": mask.join(parts[: i + 1]) + token + mask.join(parts[i + 1 :]),
                }
                for id, score in likeliest
            ]
            for i, likeliest in enumerate(masks)
        ]
        results.append(filled[0] if len(filled) == 1 else filled)
    return results


async def _answer(ask, inputs, parameters, served):
    is_question = isinstance(inputs, dict) and inputs.keys() == {"question", "context"}
    check(is_question, "inputs: an object with `question` and `context` alone is needed.")
    rows, _ = _texts([[inputs["question"], inputs["context"]]])
    may_lack, top_k = parameters.handle_impossible_answer, parameters.top_k or 1
    options = {"no_answer": may_lack, "max_answer_length": parameters.max_answer_len}
    [spans] = await ask("answer", rows, top_k=top_k + bool(may_lack), **options)
    spans = [
        {
            "answer": x["answer"],
            "start": x["start"] or 0,
            "end": x["end"] or 0,
            "score": x["probability"],
        }
        for x in (spans if isinstance(spans, list) else [spans])
    ]
    if may_lack:
        spans = sorted(spans, key=lambda x: -x["score"])[:top_k]
    return spans[0] if parameters.top_k is None else spans


async def _embed(ask, inputs, parameters, served):
    is_float = parameters.encoding_format == "float"
    check(is_float, "parameters.encoding_format: `float`; /v1/embeddings has base64 too.")
    options = {"truncate": parameters.truncate, "prompt": parameters.prompt_name}
    is_comparison = isinstance(inputs, dict)
    if is_comparison:
        has_list = inputs.keys() == {"source_sentence", "sentences"}
        has_list = has_list and isinstance(inputs["sentences"], list)
        check(has_list, "inputs: `source_sentence` and a list `sentences` are needed.")
        inputs = [inputs["source_sentence"], *inputs["sentences"]]
    rows, _ = _texts(inputs)
    vectors = await ask("embed", rows, **options)
    vectors = forms.shortened(vectors, parameters.normalize, parameters.dimensions)
    return forms.similarities(served, vectors) if is_comparison else vectors.tolist()


# Method -> how its parameters are read, and what answers.
ANSWERS = {
    "classify": (Classification.read, _classify),
    "zero_shot": (ZeroShot.read, _zero_shot),
    "tag": (Tagging.read, _tag),
    "fill_mask": (Filling.read, _fill_mask),
    "answer": (Answering.read, _answer),
    "embed": (Embedding.read, _embed),
}
