"""Ctrl-C and other signals wait while weights change, so that no step stops halfway.

Why: Python runs a signal's handler between any two operations of the main thread, where the handler
may raise. `signal.pthread_sigmask` does not prevent that: another thread of the backend receives
the signal, and the main thread still runs the handler.

Remove when `test_a_blocked_signal_interrupts_the_main_thread_by_way_of_another` fails.
"""

import contextlib
import functools
import threading

# Without the enums that `signal` makes from numbers and handlers, which take 25 times as long.
from _signal import getsignal, signal, valid_signals

_NUMBERS = sorted(map(int, valid_signals()))
# Signals that arrived during a step: the handler of each, and the frame it is called with.
_waiting = {}
_is_open = True


def _run_or_wait(handler, number, frame):
    """Runs a signal's handler now or, during a step, at the end of the step."""
    if _is_open:
        handler(number, frame)
    else:
        _waiting[number] = (handler, frame)


@contextlib.contextmanager
def defer_signals():
    """A context in which no signal's handler runs; it runs at the end, and may raise there.

    `defer_signals()(step)` is a function like `step` during which signals wait.

    Handlers are Python functions, such as the one that raises `KeyboardInterrupt`. The system's own
    actions, such as that of SIGKILL, are not delayed. In other threads, where no handler runs, and
    within another such block, nothing happens. A block takes about ten microseconds.
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
                signal(number, functools.partial(_run_or_wait, handler))
        _is_open = False
        yield
    finally:
        try:
            for number, handler in handlers:
                signal(number, handler)
        finally:
            _is_open = True
            with contextlib.ExitStack() as stack:  # All of them, even if one raises.
                while _waiting:
                    number, (handler, frame) = _waiting.popitem()
                    stack.callback(handler, number, frame)


@contextlib.contextmanager
def run_on_exit(settle):
    """Calls `settle` at the end of the block, however it ends, while signals wait.

    Args:
        settle: function without arguments. It may be called twice, if a signal stops the first call
            before it starts.
    """
    try:
        yield
        with defer_signals():
            settle()
    except BaseException:
        with defer_signals():
            settle()
        raise
