"""The Open Inference Protocol, version 2, as tritonclient speaks it, in JSON and in binary."""

import json
import struct
from typing import Literal

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import Field, ValidationError

from bert_keras.serving.bodies import Body, Rows, Texts
from bert_keras.serving.rows import METHODS, Refusal, check_number
from bert_keras.serving.server import as_json
from bert_keras.version import __version__

_LENGTH = "inference-header-content-length"


class InputParameters(Body):
    """How many of the bytes behind the JSON are a tensor's."""

    binary_data_size: int | None = Field(None, ge=0)


class Input(Body):
    """A tensor of texts, in JSON or in bytes behind it."""

    name: str
    datatype: Literal["BYTES"]
    shape: list[int] = Field(max_length=2)
    data: Texts | Rows | None = None
    parameters: InputParameters = InputParameters()


class OutputParameters(Body):
    """Whether a tensor comes in bytes behind the JSON; by itself as the whole question says."""

    binary_data: bool | None = None


class Output(Body):
    """The one tensor that is to come."""

    name: Literal["answer"]
    parameters: OutputParameters = OutputParameters()


class QuestionParameters(Body):
    """Whether tensors come in bytes behind the JSON."""

    binary_data_output: bool = False


class Inference(Body):
    """The JSON of a question."""

    id: str | None = None
    inputs: list[Input] = Field(max_length=2, fail_fast=True)
    outputs: list[Output] = Field([Output(name="answer")], min_length=1, max_length=1)
    parameters: QuestionParameters = QuestionParameters()


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

    @routes.get("/models/{name:path}/ready", summary="Whether a model is loaded")
    async def model_ready(name: str):
        return {"name": server.find(name).name, "ready": True}

    @routes.get("/models/{name:path}", summary="What a model takes and returns")
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

    @routes.post("/models/{name:path}/infer", summary="Answers")
    async def infer(request: Request, name: str):
        served = server.find(name)
        question, rest = _parsed(await request.body(), request.headers.get(_LENGTH))
        fields, columns = METHODS[served.method], {}
        if served.method == "classify":
            fields = ("text", "pair")
        for tensor in question.inputs:
            columns[tensor.name], rest = _strings(tensor, rest, server.settings)
        is_twice = len(columns) < len(question.inputs)
        if is_twice or fields[0] not in columns or not columns.keys() <= set(fields):
            raise Refusal(
                422, f"inputs: {', '.join(fields)} are needed. Received: {', '.join(columns)}."
            )
        if len({len(column) for column in columns.values()}) != 1:
            raise Refusal(422, "inputs: all need the same number of rows.")
        rows = list(zip(*(columns[name] for name in fields if name in columns), strict=True))
        answers = await server.ask(request, served, served.method, rows)
        is_binary = question.outputs[0].parameters.binary_data
        is_binary = question.parameters.binary_data_output if is_binary is None else is_binary
        tensor, raw = _output(answers, served.method, is_binary)
        reply = {"model_name": name, "outputs": [tensor]}
        reply |= {} if question.id is None else {"id": question.id}
        if not is_binary:
            return await as_json(reply)
        head = json.dumps(reply).encode()
        headers = {_LENGTH: str(len(head))}
        return Response(head + raw, media_type="application/octet-stream", headers=headers)

    return routes


def _parsed(body, length):
    """Returns the `Inference` of a body, and the bytes behind it."""
    length = str(len(body)) if length is None else length
    end = int(length) if length.isdecimal() and len(length) < 20 else -1
    if not 0 <= end <= len(body):
        raise Refusal(422, f"{_LENGTH}: 0 to {len(body)} are needed. Received: {length:.20}.")
    try:
        return Inference.model_validate_json(body[:end]), body[end:]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "body"
        raise Refusal(422, f"{where}: {first['msg']}") from error


def _strings(tensor, rest, settings):
    """Returns the strings of a tensor, and what is left of the bytes behind the JSON."""
    where, size = f"inputs.{tensor.name}", tensor.parameters.binary_data_size
    if (size is None) == (tensor.data is None):
        raise Refusal(422, f"{where}: `data` or `binary_data_size` is needed.")
    if size is None:
        values = [x for row in tensor.data for x in (row if isinstance(row, list) else [row])]
    elif size > len(rest):
        raise Refusal(422, f"{where}: {size} bytes behind the JSON needed, {len(rest)} received.")
    else:
        values = _unpacked(rest[:size], where)
        rest = rest[size:]
    check_number(values, settings)
    if np.prod(tensor.shape, dtype=object) != len(values):
        raise Refusal(422, f"{where}: the shape {tensor.shape} holds {len(values)} texts.")
    return values, rest


def _unpacked(raw, where):
    """Returns the texts of bytes, before each of which its length stands."""
    values, place = [], 0
    try:
        while place < len(raw):
            (length,) = struct.unpack_from("<I", raw, place)
            place += 4 + length
            values.append(raw[place - length : place].decode())
    except (struct.error, UnicodeDecodeError) as error:
        raise Refusal(422, f"{where}: UTF-8 behind lengths of 4 bytes is needed.") from error
    if place != len(raw):
        raise Refusal(422, f"{where}: the binary data ends too early.")
    return values


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
