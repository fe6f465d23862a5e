"""A connection that closes when its client keeps the server waiting."""

import h11
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol


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
