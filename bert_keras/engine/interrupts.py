"""Ctrl-C and other signals wait while weights change: no step is left half made."""

import contextlib
import threading

try:
    # Without the enums that `signal` makes of numbers and handlers, which take 25 times as long.
    from _signal import getsignal, signal, valid_signals
except ImportError:  # Not CPython.
    from signal import getsignal, signal, valid_signals

_NUMBERS = sorted(map(int, valid_signals()))
# Signals that came during a step: the handler of each, and the frame it is called with.
_waiting = {}
_is_open = True


class _Late:
    """A signal's handler that waits for the end of a step; between steps it is the user's own."""

    def __init__(self, handler):
        self.handler = handler

    def __call__(self, number, frame):
        if _is_open:
            self.handler(number, frame)
        else:
            _waiting[number] = (self.handler, frame)


@contextlib.contextmanager
def signals_wait():
    """Within it no signal's handler runs; those that came run at its end, and may raise there.

    Handlers are Python functions, such as the one that raises `KeyboardInterrupt`; Python runs them
    between any two operations of the main thread. What a signal does by itself, as SIGKILL does, is
    not held up. In other threads, where no handler runs, and within another such block, nothing
    happens. A block takes some ten microseconds.
    """
    global _is_open
    if not _is_open or threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = []
    try:
        for number in _NUMBERS:
            handler = getsignal(number)
            if callable(handler):
                handlers.append((number, handler))
                signal(number, _Late(handler))
        _is_open = False
        yield
    finally:
        try:
            for number, handler in handlers:
                signal(number, handler)
        finally:
            _is_open = True
            with contextlib.ExitStack() as stack:  # All of them, also where one raises.
                while _waiting:
                    number, (handler, frame) = _waiting.popitem()
                    stack.callback(handler, number, frame)


@contextlib.contextmanager
def settled_by(settle):
    """Calls `settle` at the end of the block, whatever ends it, and no signal comes between.

    Args:
        settle: function without arguments that may be called twice: where a signal ends the first
            call before it began.
    """
    try:
        yield
        with signals_wait():
            settle()
    except BaseException:
        with signals_wait():
            settle()
        raise
