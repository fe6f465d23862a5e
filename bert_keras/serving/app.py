"""The application of a server: all protocols, and the page."""

import contextlib
import pathlib

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from bert_keras.serving import answers, openai, text_embeddings
from bert_keras.serving import huggingface_api as huggingface
from bert_keras.serving.guard import Guard
from bert_keras.serving.metrics import Numbers
from bert_keras.serving.rows import mistake_of
from bert_keras.serving.server import Server, error_body
from bert_keras.version import __version__

PAGES = pathlib.Path(__file__).with_name("pages")
# No scripts, styles or pictures from elsewhere, and no other site may embed the page.
POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"


def make_app(models, settings):
    """Returns the ASGI application that answers for models.

    Args:
        models: list of `Served` that have started.
        settings: `Settings`.
    """
    numbers, server = Numbers(models), Server(models, settings)

    @contextlib.asynccontextmanager
    async def lifespan(app):
        yield
        for model in models:
            await model.batcher.close()

    app = FastAPI(
        title="bert_keras", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None
    )
    # From some vectors on; a faster level makes numbers in JSON nearly as small.
    app.add_middleware(GZipMiddleware, minimum_size=2**15, compresslevel=1)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _failed)
    for protocol in (huggingface, openai, text_embeddings, answers):
        app.include_router(protocol.router(server))

    @app.get("/metrics", tags=["bert_keras"], summary="Prometheus")
    async def metrics():
        return Response(numbers.text(), media_type="text/plain; version=0.0.4")

    for path in PAGES.iterdir():
        _add_page(app, path)
    return Guard(app, settings, numbers.response)


def _add_page(app, path):
    kinds = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
    route = {"index.html": "/", "docs.html": "/docs"}.get(path.name, f"/pages/{path.name}")
    content, headers = path.read_bytes(), {"Content-Security-Policy": POLICY}

    @app.get(route, include_in_schema=False)
    async def page():
        return Response(content, media_type=f"{kinds[path.suffix]}; charset=utf-8", headers=headers)


async def _invalid(request: Request, error: RequestValidationError):
    place, rule = mistake_of(error.errors())
    place = place.removeprefix("body.")
    if place.isdecimal():  # It is no JSON.
        place = f"body, character {place}"
    message = f"{place}: {rule}"
    if "json" not in request.headers.get("content-type", ""):
        message += ". Send JSON, with the header `Content-Type: application/json`."
    body = error_body(request.url.path, 422, message)
    return JSONResponse(body, 422)


async def _http_error(request: Request, error: HTTPException):
    body = error_body(request.url.path, error.status_code, error.detail)
    return JSONResponse(body, error.status_code, headers=error.headers)


async def _failed(request: Request, error: Exception):
    message = "The server could not answer; its log says why."
    return JSONResponse(error_body(request.url.path, 500, message), 500)
