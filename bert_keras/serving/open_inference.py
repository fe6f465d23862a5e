"""The Open Inference Protocol, version 2, in JSON and in binary, for tritonclient and others."""

import json
import struct
from typing import Literal

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import Field, ValidationError

from bert_keras.serving.bodies import Body, Rows, Texts
from bert_keras.serving.rows import METHODS, Refusal, check, check_num_rows
from bert_keras.serving.server import as_json
from bert_keras.version import __version__

_LENGTH = "inference-header-content-length"


class InputParameters(Body):
    """How many of the bytes after the JSON belong to a tensor."""

    binary_data_size: int | None = Field(None, ge=0)


class Input(Body):
    """A tensor of texts, in the JSON or in the bytes after it."""

    name: str
    datatype: Literal["BYTES"]
    shape: list[int] = Field(max_length=2)
    data: Texts | Rows | None = None
    parameters: InputParameters = InputParameters()


class OutputParameters(Body):
    """Whether a tensor is sent as bytes after the JSON. The default is the request's."""

    binary_data: bool | None = None


class Output(Body):
    """The only output."""

    name: Literal["answer"]
    parameters: OutputParameters = OutputParameters()


class QuestionParameters(Body):
    """Whether tensors are sent as bytes after the JSON."""

    binary_data_output: bool = False


class Inference(Body):
    """The JSON of a request."""

    id: str | None = None
    inputs: list[Input] = Field(max_length=2, fail_fast=True)
    outputs: list[Output] = Field([Output(name="answer")], min_length=1, max_length=1)
    parameters: QuestionParameters = QuestionParameters()


def router(server):
    """Returns the routes below `/v2`.

    A model takes its fields as tensors BYTES `(n,)`: `text`, or `question` and `context`; a
    classifier of pairs takes `text` and `pair`. It returns `answer`: BYTES `(n,)` of JSON, or
    vectors as FP32 `(n, dim)`.
    """
    routes = APIRouter(prefix="/v2", tags=["Open Inference Protocol"])

    @routes.get("", summary="The server")
    async def metadata():
        return {"name": "bert_keras", "version": __version__, "extensions": ["binary_tensor_data"]}

    @routes.get("/health/live", summary="Whether the server runs")
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
        is_repeated = len(columns) < len(question.inputs)
        check(
            not is_repeated and fields[0] in columns and columns.keys() <= set(fields),
            f"inputs: {', '.join(fields)} are needed. Received: {', '.join(columns)}.",
        )
        lengths = {len(column) for column in columns.values()}
        check(len(lengths) == 1, "inputs: all need the same number of rows.")
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
    """Returns the `Inference` of a body and the bytes after it."""
    length = str(len(body)) if length is None else length
    end = int(length) if length.isdecimal() and len(length) < 20 else -1
    message = f"{_LENGTH}: a number up to {len(body)} is needed. Received: {length:.20}."
    check(0 <= end <= len(body), message)
    try:
        return Inference.model_validate_json(body[:end]), body[end:]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "body"
        raise Refusal(422, f"{where}: {first['msg']}") from error


def _strings(tensor, raw, settings):
    """Returns the strings of a tensor and the rest of the bytes after the JSON."""
    where, size = f"inputs.{tensor.name}", tensor.parameters.binary_data_size
    is_binary, available = size is not None, len(raw)
    check(is_binary == (tensor.data is None), f"{where}: `data` or `binary_data_size` is needed.")
    if is_binary:
        message = f"{where}: {size} bytes after the JSON are needed. Received: {available}."
        check(size <= available, message)
        values, raw = _unpacked(raw[:size], where), raw[size:]
    else:
        values = [x for row in tensor.data for x in (row if isinstance(row, list) else [row])]
    check_num_rows(values, settings)
    fits = np.prod(tensor.shape, dtype=object) == len(values)
    check(fits, f"{where}: the shape {tensor.shape} does not fit {len(values)} texts.")
    return values, raw


def _unpacked(raw, where):
    """Returns the texts of bytes, each of which is preceded by its length."""
    values, place = [], 0
    try:
        while place < len(raw):
            (length,) = struct.unpack_from("<I", raw, place)
            place += 4 + length
            values.append(raw[place - length : place].decode())
    except (struct.error, UnicodeDecodeError) as error:
        message = f"{where}: UTF-8 texts, each after its length in 4 bytes, are needed."
        raise Refusal(422, message) from error
    check(place == len(raw), f"{where}: the binary data ends too early.")
    return values


def _output(answers, method, is_binary):
    if method == "embed":
        vectors = np.array(answers, "<f4")
        tensor = {"name": "answer", "datatype": "FP32", "shape": list(vectors.shape)}
        data, raw = vectors.ravel(), vectors.tobytes()
    else:
        answers = [x.tolist() if isinstance(x, np.ndarray) else x for x in answers]
        texts = [json.dumps(answer, ensure_ascii=False) for answer in answers]
        tensor = {"name": "answer", "datatype": "BYTES", "shape": [len(texts)]}
        encoded = [text.encode() for text in texts]
        data, raw = np.array(texts), b"".join(struct.pack("<I", len(x)) + x for x in encoded)
    if is_binary:
        return {**tensor, "parameters": {"binary_data_size": len(raw)}}, raw
    return {**tensor, "data": data.tolist()}, None
