"""A connection that is closed when its client is too slow."""

import h11
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """HTTP over a connection that is cut some seconds after its client's turn began.

    Uvicorn itself waits without end for the head of a request, and for an answer to be read;
    `Guard` watches over bodies. An answer of which a part was read meanwhile gets the time again.

    Args:
        patience: float, seconds.
        *args, **options: uvicorn's.
    """

    def __init__(self, patience, *args, **options):
        super().__init__(*args, **options)
        self._patience, self._timer, self._unread = patience, None, 0

    def connection_made(self, transport):
        """Begins to wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc):
        """Ends the wait."""
        super().connection_lost(exc)
        self._stop()

    def handle_events(self):
        """Reads what came, and stops to wait where it was a request."""
        super().handle_events()
        self._watch()

    def pause_writing(self):
        """Waits for an answer to be read."""
        super().pause_writing()
        self._watch()

    def resume_writing(self):
        """Goes on where enough was read."""
        super().resume_writing()
        self._watch()

    def on_response_complete(self):
        """Waits for what is left to be read, or for the next request."""
        super().on_response_complete()
        self._watch()

    def shutdown(self):
        """Ends after the answer that is under way, whose head says so where it has not gone yet."""
        super().shutdown()
        # Uvicorn repeats in its answer that a request asked to close.
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
