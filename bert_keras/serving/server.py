"""What all protocols share: the models by name, questions to them, and errors."""

import asyncio

from absl import logging
from fastapi.responses import JSONResponse

from bert_keras.serving.batcher import Overloaded
from bert_keras.serving.rows import Refusal, check_rows

# What a status is called in the bodies of errors.
KINDS = {
    400: "validation",
    401: "unauthorized",
    404: "not_found",
    405: "validation",
    408: "timeout",
    413: "validation",
    422: "validation",
    429: "overloaded",
    504: "timeout",
}


def error_body(path, status, message):
    """Returns what the body of an error says, in the form of the path's protocol."""
    message = message[:1000].encode("utf-8", "backslashreplace").decode()
    kind = KINDS.get(status, "backend")
    if path.startswith("/v1/"):
        return {"error": {"message": message, "type": kind, "code": status}}
    return {"error": message, "error_type": kind}


async def as_json(content):
    """Returns a response of JSON, which is written beside the loop that all clients share."""
    return await asyncio.to_thread(JSONResponse, content)


class Server:
    """Models by name, and questions to them that end when the asker goes or the deadline is over.

    Args:
        models: list of `Served`.
        settings: `Settings`.
    """

    def __init__(self, models, settings):
        self.models = {model.name: model for model in models}
        self.settings = settings

    def find(self, name=None, *methods):
        """Returns the model of a name, or without one the first that has one of the methods.

        Raises:
            Refusal: 404, there is none; 422, it answers otherwise.
        """
        if name is not None and name not in self.models:
            raise Refusal(404, f"There is no model {name!r}. There are: {', '.join(self.models)}.")
        candidates = [self.models[name]] if name is not None else list(self.models.values())
        fitting = [x for x in candidates if not methods or any(map(x.has, methods))]
        if not fitting:
            known = ", ".join(f"{x.name} ({x.method})" for x in self.models.values())
            raise Refusal(
                422,
                f"This needs a model that answers by {' or '.join(methods)}. There are: {known}.",
            )
        return fitting[0]

    async def ask(self, request, served, method, rows, truncate=True, **options):
        """Returns the model's answers to rows.

        Args:
            request: the request that asks.
            served: `Served`.
            method: str.
            rows: list of tuples of str.
            truncate: bool, whether rows of more tokens than the model reads are cut, not refused.
            **options: of the method.

        Raises:
            Refusal: the rows do not fit, too many wait, or the deadline is over.
        """
        check_rows(served, method, rows, self.settings, **options)
        if not truncate:
            await asyncio.to_thread(served.check_whole, rows)
        work = asyncio.ensure_future(served.ask(method, rows, **options))
        gone = asyncio.ensure_future(_is_gone(request))
        try:
            await asyncio.wait(
                {work, gone},
                timeout=self.settings.deadline,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if work.done():
                return work.result()
            if gone.done():
                raise Refusal(499, "The client has gone.")
            raise Refusal(504, f"There was no answer within {self.settings.deadline:g} s.")
        except Overloaded as error:
            raise Refusal(429, str(error), **{"Retry-After": str(error.seconds)}) from error
        except (ValueError, TypeError) as error:
            raise Refusal(422, f"inputs: {error}") from error
        except Refusal:
            raise
        except Exception as error:
            logging.exception("A model could not answer.")
            raise Refusal(500, "The model could not answer; the server's log says why.") from error
        finally:
            work.cancel()
            gone.cancel()


async def _is_gone(request):
    while (await request.receive())["type"] != "http.disconnect":
        pass
