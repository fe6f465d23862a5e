"""The Open Inference Protocol, version 2, as tritonclient speaks it, in JSON and in binary."""

import json
import struct

import numpy as np
from fastapi import APIRouter, Request, Response

from bert_keras.serving.served import METHODS
from bert_keras.serving.server import Refusal
from bert_keras.version import __version__

_LENGTH = "inference-header-content-length"


def router(server):
    """Returns the routes below `/v2`.

    A model takes its fields as tensors BYTES `(n,)`: `text`, `question` and `context`; a classifier
    of pairs `text` and `pair`. It returns `answer`, BYTES `(n,)` of JSON, and vectors of texts as
    FP32 `(n, dim)`.
    """
    routes = APIRouter(prefix="/v2", tags=["Open Inference Protocol"])

    @routes.get("", summary="The server")
    async def metadata():
        return {"name": "bert_keras", "version": __version__, "extensions": ["binary_tensor_data"]}

    @routes.get("/health/live", summary="Whether it runs")
    async def live():
        return {"live": True}

    @routes.get("/health/ready", summary="Whether the models are loaded")
    async def ready():
        return {"ready": True}

    @routes.get("/models/{name}/ready", summary="Whether a model is loaded")
    async def model_ready(name: str):
        return {"name": server.find(name).name, "ready": True}

    @routes.get("/models/{name}", summary="What a model takes and returns")
    async def model_metadata(name: str):
        served = server.find(name)
        output = ("FP32", [-1, -1]) if served.method == "embed" else ("BYTES", [-1])
        return {
            "name": name,
            "platform": "bert_keras",
            "inputs": [
                {"name": x, "datatype": "BYTES", "shape": [-1]} for x in METHODS[served.method]
            ],
            "outputs": [{"name": "answer", "datatype": output[0], "shape": output[1]}],
        }

    @routes.post("/models/{name}/infer", summary="Answers")
    async def infer(request: Request, name: str):
        served = server.find(name)
        question, rest = _parsed(await request.body(), request.headers.get(_LENGTH))
        fields, columns = METHODS[served.method], {}
        if served.method == "classify":
            fields = ("text", "pair")
        for tensor in question.get("inputs", []):
            columns[tensor.get("name")], rest = _strings(tensor, rest)
        if fields[0] not in columns or not columns.keys() <= set(fields):
            raise Refusal(
                422, f"inputs: {', '.join(fields)} are needed. Received: {', '.join(columns)}."
            )
        if len({len(column) for column in columns.values()}) != 1:
            raise Refusal(422, "inputs: all need the same number of rows.")
        rows = list(zip(*(columns[name] for name in fields if name in columns), strict=True))
        answers = await server.ask(request, served, served.method, rows)
        wanted = question.get("outputs") or [{"name": "answer"}]
        is_binary = question.get("parameters", {}).get("binary_data_output", False)
        is_binary = wanted[0].get("parameters", {}).get("binary_data", is_binary)
        tensor, raw = _output(answers, served.method, is_binary)
        reply = {"model_name": name, "outputs": [tensor], **_id_of(question)}
        if not is_binary:
            return reply
        head = json.dumps(reply).encode()
        headers = {_LENGTH: str(len(head))}
        return Response(head + raw, media_type="application/octet-stream", headers=headers)

    return routes


def _id_of(question):
    return {"id": question["id"]} if "id" in question else {}


def _parsed(body, length):
    """Returns the JSON of a body, and the bytes behind it."""
    try:
        end = len(body) if length is None else int(length)
        question = json.loads(body[:end])
        if isinstance(question, dict) and all(isinstance(x, dict) for x in question["inputs"]):
            return question, body[end:]
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise Refusal(422, "The body must be a JSON object with a list of objects `inputs`.")


def _strings(tensor, rest):
    """Returns the strings of a tensor, and what is left of the bytes behind the JSON."""
    name = tensor.get("name")
    if tensor.get("datatype") != "BYTES":
        raise Refusal(422, f"inputs.{name}: BYTES are needed. Received: {tensor.get('datatype')}.")
    size = tensor.get("parameters", {}).get("binary_data_size")
    if size is None:
        values = tensor.get("data", [])
        values = [x for row in values for x in (row if isinstance(row, list) else [row])]
    else:
        part, rest, values = rest[:size], rest[size:], []
        while part:
            (length,) = struct.unpack("<I", part[:4]) if len(part) >= 4 else (len(part),)
            if len(part) < 4 + length:
                raise Refusal(422, f"inputs.{name}: the binary data ends too early.")
            values.append(part[4 : 4 + length])
            part = part[4 + length :]
    try:
        return [x.decode() if isinstance(x, bytes) else _checked(x, name) for x in values], rest
    except UnicodeDecodeError as error:
        raise Refusal(422, f"inputs.{name}: UTF-8 is needed.") from error


def _checked(value, name):
    if not isinstance(value, str):
        raise Refusal(422, f"inputs.{name}: strings are needed. Received: {type(value).__name__}.")
    return value


def _output(answers, method, is_binary):
    if method == "embed":
        vectors = np.array(answers, "<f4")
        tensor = {"name": "answer", "datatype": "FP32", "shape": list(vectors.shape)}
        data, raw = vectors.ravel(), vectors.tobytes()
    else:
        texts = [json.dumps(answer, ensure_ascii=False) for answer in answers]
        tensor = {"name": "answer", "datatype": "BYTES", "shape": [len(texts)]}
        encoded = [text.encode() for text in texts]
        data, raw = np.array(texts), b"".join(struct.pack("<I", len(x)) + x for x in encoded)
    if is_binary:
        return {**tensor, "parameters": {"binary_data_size": len(raw)}}, raw
    return {**tensor, "data": data.tolist()}, None
