"""Lets only one run at a time write into a folder."""

import contextlib

try:
    import fcntl
except ImportError:  # Windows.
    fcntl = None


@contextlib.contextmanager
def sole_writer(folder):
    """A context that refuses a second one for the same folder, on systems that have file locks.

    Args:
        folder: `Path`, made if missing.

    Raises:
        BlockingIOError: another process or thread is within this context.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as opened:
        if fcntl is not None:
            lock = opened.enter_context(open(folder / "lock", "a"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise BlockingIOError(
                    f"Only one run at a time may write into {folder}. Received: a second one. Wait "
                    "until the first one ends, or write another file."
                ) from error
            except OSError:  # A file system without locks.
                pass
        yield
