"""A connection that closes when its client keeps the server waiting."""

import h11
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """HTTP over a connection that closes if its client does nothing for some seconds.

    Uvicorn itself waits forever for the head of a request, and for an answer to be read. `Guard`
    limits the time for bodies. A client that reads a part of an answer gets the same time again.

    Args:
        patience: float, seconds.
        *args, **options: uvicorn's.
    """

    def __init__(self, patience, *args, **options):
        super().__init__(*args, **options)
        self._patience, self._timer, self._unread = patience, None, 0

    def connection_made(self, transport):
        """Starts to wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc):
        """Stops waiting."""
        super().connection_lost(exc)
        self._stop()

    def handle_events(self):
        """Reads what arrived, and stops waiting if it was a request."""
        super().handle_events()
        self._watch()

    def pause_writing(self):
        """Waits for an answer to be read."""
        super().pause_writing()
        self._watch()

    def resume_writing(self):
        """Continues once enough was read."""
        super().resume_writing()
        self._watch()

    def on_response_complete(self):
        """Waits for the rest to be read, or for the next request."""
        super().on_response_complete()
        self._watch()

    def shutdown(self):
        """Closes after the current answer, whose head says so unless it was sent already."""
        super().shutdown()
        # Uvicorn copies a request's header "Connection: close" to its answer.
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.scope["headers"].append(CLOSE_HEADER)

    def _watch(self):
        waits = self.conn.their_state is h11.IDLE or self.transport.get_write_buffer_size()
        if not waits and not self.transport.is_closing():
            self._stop()
        elif self._timer is None:
            self._unread = self.transport.get_write_buffer_size()
            self._timer = self.loop.call_later(self._patience, self._time_over)

    def _time_over(self):
        self._timer, before = None, self._unread
        if self.transport.get_write_buffer_size() < before:
            self._watch()
        else:
            self.transport.abort()

    def _stop(self):
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
