"""What stands before the routes: keys, and bodies of bounded size that come in time."""

import asyncio
import hmac
import json

from bert_keras.serving.server import error_body

# Who watches over the server needs no key.
OPEN = ("/health", "/v2/health/live", "/v2/health/ready")


class Guard:
    """An ASGI application around another: it reads the body first, and tells the metrics.

    Args:
        app: ASGI application.
        settings: `Settings`.
        observe: function of the path's route, the status and the seconds of each response.
    """

    def __init__(self, app, settings, observe):
        self.app, self.settings, self.observe = app, settings, observe

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started, status = asyncio.get_running_loop().time(), [0]

        async def sending(message):
            if message["type"] == "http.response.start":
                status[0] = message["status"]
            await send(message)

        try:
            refused = self._refused(scope)
            body = None if refused else await self._body(receive)
            refused = refused or (body if isinstance(body, tuple) else None)
            if refused:
                await _respond(scope, sending, *refused)
            elif body is not None:
                await self.app(scope, _replayed(body, receive), sending)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.observe(route, status[0], asyncio.get_running_loop().time() - started)

    def _refused(self, scope):
        headers = dict(scope["headers"])
        if self.settings.api_keys and scope["path"] not in OPEN:
            given = headers.get(b"authorization", b"").removeprefix(b"Bearer ")
            # Each key is compared, so that time tells nothing.
            same = [hmac.compare_digest(given, key.encode()) for key in self.settings.api_keys]
            if not any(same):
                return 401, "An API key is needed: the header `Authorization: Bearer KEY`."
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.settings.max_body:
            return (
                413,
                f"A body has at most {self.settings.max_body} bytes. Received: {int(length)}.",
            )
        return None

    async def _body(self, receive):
        """Returns the whole body, or why it is refused; `None` when the client has gone."""
        body = bytearray()
        try:
            async with asyncio.timeout(self.settings.deadline):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > self.settings.max_body:
                        return 413, f"A body has at most {self.settings.max_body} bytes."
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            return 408, f"The body did not come within {self.settings.deadline:g} s."


def _replayed(body, receive):
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed():
        return messages.pop() if messages else await receive()

    return replayed


async def _respond(scope, send, status, message):
    content = json.dumps(error_body(scope["path"], status, message)).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
