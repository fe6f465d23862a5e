"""Checks before the routes: API keys, the type, encoding, size and time of bodies, idle clients."""

import asyncio
import base64
import contextlib
import hmac

import h11
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

from bert_keras.serving.server import CLIENT, error_body

# Content types that say nothing about the body: what `curl -d` sends by default, or none at all.
_UNTYPED = (b"", b"application/x-www-form-urlencoded")
# Bytes of a refused body that are read and dropped.
MOST_DRAINED = 2**16
# Health checks need no key.
OPEN = ("/health",)
# The bodies held at once may together be as large as this many bodies of the largest size.
MOST_BODIES = 64
# Status -> headers of a refusal.
HEADERS = {401: {"www-authenticate": "Basic"}, 429: {"retry-after": "1"}}


class Guard:
    """An ASGI application around another. It reads the whole body first and records metrics.

    Args:
        app: ASGI application.
        settings: `Settings`.
        observe: function of the path's route, the status and the seconds of each response.
    """

    def __init__(self, app, settings, observe):
        self.app, self.settings, self.observe = app, settings, observe
        self.held = 0

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started, status, body = asyncio.get_running_loop().time(), [500], bytearray()
        if scope.get("method") == "HEAD":  # Uvicorn sends the head of the answer to GET alone.
            scope = {**scope, "method": "GET"}

        async def sending(message):
            if message["type"] == "http.response.start":
                status[0] = message["status"]
            await send(message)

        try:
            refused = self._refused(scope)
            if refused is None:
                refused = await self._read(receive, body)
            elif refused[0] != 413:
                await _drain(receive)
            if refused:
                await _respond(scope, sending, *refused)
            else:
                await self.app(scope, _replayed(bytes(body), receive), sending)
        finally:
            self.held -= len(body)
            route = getattr(scope.get("route"), "path", "other")
            self.observe(route, status[0], asyncio.get_running_loop().time() - started)

    def _refused(self, scope):
        headers = dict(scope["headers"])
        scope[CLIENT] = (scope.get("client") or (None,))[0]
        if headers.get(b"content-type", b"") in _UNTYPED:
            other_headers = [x for x in scope["headers"] if x[0] != b"content-type"]
            scope["headers"] = [*other_headers, (b"content-type", b"application/json")]
        if self.settings.api_keys and scope["path"] not in OPEN:
            key = scope[CLIENT] = _key_of(headers.get(b"authorization", b""))
            # Every key is compared, so that the time reveals nothing.
            same = [hmac.compare_digest(key, each.encode()) for each in self.settings.api_keys]
            if not any(same):
                return 401, "An API key is needed: the header `Authorization: Bearer KEY`."
        encoding = headers.get(b"content-encoding", b"identity").decode("latin-1")
        if encoding.strip().lower() != "identity":
            return 415, f"Content-Encoding: bodies are read as they are. Received: {encoding:.60}."
        length, limit = headers.get(b"content-length", b"0"), self.settings.max_body
        if length.isdigit() and int(length) > limit:
            return 413, f"A body may have at most {limit} bytes. Received: {int(length)}."
        return None

    async def _read(self, receive, body):
        """Appends the body to a bytearray; returns why it is refused, or `None`."""
        try:
            async with asyncio.timeout(self.settings.deadline):
                async for part in Request({"type": "http"}, receive).stream():
                    body += part
                    self.held += len(part)
                    if len(body) > self.settings.max_body:
                        return 413, f"A body may have at most {self.settings.max_body} bytes."
                    if self.held > MOST_BODIES * self.settings.max_body:
                        return 429, "The server holds too many bodies. Ask again in 1 s."
                return None
        except ClientDisconnect:
            return 499, "The client has left."
        except TimeoutError:
            return 408, f"The body did not arrive within {self.settings.deadline:g} s."


def _key_of(authorization):
    scheme, _, key = authorization.partition(b" ")
    if scheme.lower() == b"basic":  # A browser sends the key as a password.
        with contextlib.suppress(ValueError):
            return base64.b64decode(key).partition(b":")[2]
    return key if scheme.lower() == b"bearer" else b""


def _replayed(body, receive):
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed():
        return messages.pop() if messages else await receive()

    return replayed


async def _drain(receive):
    """Reads a small body and drops it.

    A connection that closes before its body has come is reset, and the client may lose the answer.
    """
    size = 0
    with contextlib.suppress(ClientDisconnect, TimeoutError):
        async with asyncio.timeout(1):
            async for part in Request({"type": "http"}, receive).stream():
                size += len(part)
                if size > MOST_DRAINED:
                    return


async def _respond(scope, send, status, message):
    headers = {"connection": "close", **HEADERS.get(status, {})}
    response = JSONResponse(error_body(scope["path"], status, message), status, headers)
    await response(scope, None, send)


class Connection(H11Protocol):
    """HTTP over a connection that closes if its client does nothing for some seconds.

    Uvicorn itself waits forever for the head of a request, and for an answer to be read. `Guard`
    limits the time for bodies. A client that reads a part of an answer gets the same time again.

    Args:
        patience: float, seconds between two checks. A connection closes if its client did nothing
            from one to the next.
        *args, **options: uvicorn's.
    """

    def __init__(self, patience, *args, **options):
        super().__init__(*args, **options)
        self._patience, self._waiting_for = patience, (None, 0)

    def connection_made(self, transport):
        """Starts to wait for the first request."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(self._patience, self._check)

    def connection_lost(self, exc):
        """Stops waiting."""
        super().connection_lost(exc)
        self._timer.cancel()

    def shutdown(self):
        """Closes after the current answer, whose head says so unless it was sent already."""
        super().shutdown()
        # Uvicorn copies a request's header "Connection: close" to its answer.
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.scope["headers"].append(CLOSE_HEADER)

    def _check(self):
        unread, before = self.transport.get_write_buffer_size(), self._waiting_for
        waits = self.conn.their_state is h11.IDLE or unread > 0
        # A new request has a new cycle.
        self._waiting_for = (self.cycle, unread) if waits else None
        if waits and before is not None and before[0] is self.cycle and unread >= before[1]:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(self._patience, self._check)
