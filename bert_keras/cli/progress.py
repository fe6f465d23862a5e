"""What a command does while it has nothing else to print."""

import contextlib
import sys
import threading
import time


@contextlib.contextmanager
def progress(what, every=1.0):
    """Prints what is being done, and in a terminal also for how many seconds.

    Args:
        what: str.
        every: float, seconds between two updates in a terminal.
    """
    if not sys.stdout.isatty():
        print(f"{what} ...", flush=True)
        yield
        return
    started, is_done = time.monotonic(), threading.Event()

    def show():
        seconds = time.monotonic() - started
        print(f"\r{what} ... {seconds:.0f} s", end="", flush=True)

    def count():
        while not is_done.wait(every):
            show()

    show()
    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()
        show()
        print(flush=True)
