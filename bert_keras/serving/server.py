"""What all protocols share: models by name, questions to them, and errors."""

import asyncio

from absl import logging
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from bert_keras.serving.rows import check, check_rows

# The key of a request's scope that holds who asks: its API key, or without keys its address.
CLIENT = "bert_keras.client"
# Status -> its name in the bodies of errors.
KINDS = {401: "unauthorized", 404: "not_found", 408: "timeout", 429: "overloaded", 504: "timeout"}


def error_body(path, status, message):
    """Returns the body of an error in the form of the path's protocol."""
    message = message[:1000].encode("utf-8", "backslashreplace").decode()
    kind = KINDS.get(status, "validation" if status < 500 else "backend")
    if path.startswith("/v1/"):
        return {"error": {"message": message, "type": kind, "code": status}}
    return {"error": message, "error_type": kind}


async def as_json(content):
    """Returns a JSON response, which a thread writes so that other clients need not wait."""
    return await asyncio.to_thread(JSONResponse, content)


class Server:
    """Models by name. A question ends when the client leaves or the deadline passes.

    Args:
        models: list of `Served`.
        settings: `Settings`.
    """

    def __init__(self, models, settings):
        self.models = {model.name: model for model in models}
        self.settings = settings

    def find(self, name=None, *methods):
        """Returns the model of a name, or without a name the first that has one of the methods.

        Raises:
            HTTPException: 404, there is none; 422, it has none of the methods.
        """
        names = ", ".join(self.models)
        is_known = name is None or name in self.models
        check(is_known, f"There is no model {name!r}. There are: {names}.", 404)
        candidates = [self.models[name]] if name is not None else list(self.models.values())
        fitting = [x for x in candidates if not methods or x.answerers.keys() & {*methods}]
        names = ", ".join(f"{x.name} ({x.method})" for x in self.models.values())
        needed = " or ".join(methods)
        check(fitting, f"This needs a model with the method {needed}. There are: {names}.")
        return fitting[0]

    async def ask(self, request, served, method, rows, truncate=True, **options):
        """Returns the model's answers to rows.

        Args:
            request: the request that asks.
            served: `Served`.
            method: str.
            rows: list of tuples of str.
            truncate: bool, whether rows of too many tokens are truncated instead of refused.
            **options: options of the method.

        Raises:
            HTTPException: the rows do not fit, too many wait, or the deadline has passed.
        """
        check_rows(served, method, rows, self.settings, **options)
        if not truncate:
            prompt = options.get("prompt", options.get("kind"))
            await asyncio.to_thread(served.check_whole, rows, prompt)
        client = request.scope.get(CLIENT)
        work = asyncio.ensure_future(served.ask(method, rows, client, **options))
        gone = asyncio.ensure_future(_is_gone(request))
        try:
            deadline = self.settings.deadline
            await asyncio.wait({work, gone}, timeout=deadline, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            check(not gone.done(), "The client has left.", 499)
            raise HTTPException(504, f"There was no answer within {deadline:g} s.")
        except HTTPException:
            raise
        except (ValueError, TypeError) as error:
            raise HTTPException(422, f"inputs: {error}") from error
        except Exception as error:
            logging.exception("A model could not answer.")
            message = "The model could not answer. The server's log says why."
            raise HTTPException(500, message) from error
        finally:
            work.cancel()
            gone.cancel()


async def _is_gone(request):
    while (await request.receive())["type"] != "http.disconnect":
        pass
