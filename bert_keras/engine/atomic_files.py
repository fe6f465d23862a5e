"""Writes files and folders whole or not at all. The package writes in no other way.

Why: `open(path, "w")` empties the old file first, so a kill or a full disk leaves half a file. And
no function of Python replaces a folder that holds files.

Goes when `test_keras_s_save_destroys_the_old_file_when_it_fails` and
`test_python_replaces_no_folder_that_holds_files` fail.
"""

import contextlib
import ctypes
import errno
import functools
import glob
import gzip
import json
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from typing import Any, TypeVar

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file that is open.
    fcntl = None

_Reader = TypeVar("_Reader", bound=Callable[..., Any])

# What Linux calls the folder that relative paths begin in, and the swap of two names.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
# Of errors that name no file, those of a disk.
_OF_A_DISK = {errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EROFS, getattr(errno, "EDQUOT", None)}
# A folder without it is no checkpoint.
_LAST = pathlib.Path("config.json")


@contextlib.contextmanager
def replacing(path):
    """Yields the path of a temporary file, which takes the place of `path` when all is written.

    An exception or a kill leaves `path` as it was. The temporary file has the same name, in a
    hidden folder beside; what a killed run leaves of it, the next that writes `path` removes.

    Args:
        path: str or path, in a folder that exists and may be written. A link stays one. Where it is
            no file, such as `/dev/stdout`, it is yielded itself.

    Raises:
        OSError: the file cannot be written, as on a full disk; it says what is there now.
    """
    path = pathlib.Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        yield str(path)
        return
    with _beside(path, path) as temporary:
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        yield str(temporary)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        # A library may have made a file that its owner alone may read.
        shutil.copymode(path if path.exists() else temporary.with_name("lock"), temporary)
        os.replace(temporary, path)


@contextlib.contextmanager
def replacing_files(folder, stale=(), index=None):
    """Yields an empty folder whose files replace those of `folder` at the end, all or none.

    On Linux it takes the place of `folder` in one step, with links to all else that is in there; a
    process that works in the folder has to enter it again. Where that cannot be (another system, a
    file system without it, a mount point, someone else's folder, the current directory) its files
    move one by one, `config.json` out first and in last: a kill between leaves no checkpoint, but
    never parts of two, and an exception leaves the old one.

    Args:
        folder: str or path, made when missing. A link stays one.
        stale: names of files that go where there is no new one.
        index: name of the file in place of `config.json`, where the folder may hold all sorts of
            files, which no swap is to touch.

    Raises:
        OSError: a file cannot be written, as on a full disk; it says what is there now.
    """
    folder = pathlib.Path(os.path.realpath(folder))
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield from _replacing_files(folder, stale, index)
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):  # Some of it is there.
                folder.rmdir()
        raise


def _replacing_files(folder, stale, index):
    can_swap = index is None and os.access(folder.parent, os.W_OK) and not os.path.ismount(folder)
    with _beside(folder if can_swap else folder / "preset", folder) as new:
        new.mkdir()
        yield new
        written = [path.relative_to(new) for path in new.rglob("*") if not path.is_dir()]
        written.sort(key=lambda name: name == pathlib.Path(index or _LAST))
        ours = {*written, *map(pathlib.Path, stale)}
        if can_swap and _swap(new, folder, ours):
            with contextlib.suppress(OSError):
                _link(new, folder, ours)  # What came, or was replaced, meanwhile.
        else:
            _move(written, new, folder, stale)


@contextlib.contextmanager
def replacing_with(path, beside):
    """Like `replacing`, for a file that may have another beside it: both are replaced, or none.

    `path` moves out first and in last: a kill between leaves no `path`, never one without its own.

    Args:
        path: str or path, in a folder that exists and may be written.
        beside: name of the other file, which goes where there is no new one.

    Raises:
        OSError: a file cannot be written, as on a full disk; it says what is there now.
    """
    path = pathlib.Path(os.path.realpath(path))
    with _beside(path, path) as temporary:
        new = temporary.with_name("new")
        new.mkdir()
        yield str(new / path.name)
        written = sorted(os.listdir(new), key=lambda name: name == path.name)
        for name in written:
            shutil.copymode(temporary.with_name("lock"), new / name)
            with open(new / name, "rb+") as file:
                os.fsync(file.fileno())
        _move(written, new, path.parent, {beside}.difference(written))


def of_one_state(read: _Reader) -> _Reader:
    """Makes a method that reads a folder, or a file, begin again where that is replaced meanwhile.

    So it reads the old files or the new ones, never some of both.
    """

    @functools.wraps(read)
    def reading(self, preset, *args, **kwargs):
        while True:
            state = _state(preset)
            try:
                result = read(self, preset, *args, **kwargs)
            except Exception:
                if state == _state(preset):
                    raise
            else:
                if state == _state(preset):
                    return result

    return reading


def _state(path):
    """Returns what changes when a file or a folder's files are replaced; None if nothing is there.

    Of a folder it is that of the file that is out first and in last.
    """
    with contextlib.suppress(OSError, TypeError, ValueError):
        path = os.path.expanduser(path)
        found = os.stat(os.path.join(path, _LAST) if os.path.isdir(path) else path)
        return found.st_dev, found.st_ino, found.st_mtime_ns


@contextlib.contextmanager
def _beside(path, shown):
    """Yields a path of the same name in a folder beside, which goes at the end with what it holds.

    Args:
        path: `Path`.
        shown: `Path`, what to call it in errors.
    """
    start = f".{path.name}."
    try:
        for left in path.parent.glob(f"{glob.escape(start)}*.partial"):
            remove_if_left(left)
        lock = None
        while lock is None or not os.path.exists(lock.name):  # It was taken for left.
            folder = tempfile.mkdtemp(prefix=start, suffix=".partial", dir=path.parent)
            with contextlib.suppress(FileNotFoundError):
                lock = open(os.path.join(folder, "lock"), "a")  # noqa: SIM115
                with contextlib.suppress(AttributeError, OSError):  # Where there are no locks.
                    fcntl.flock(lock, fcntl.LOCK_EX)
        with lock:
            try:
                yield pathlib.Path(folder, path.name)
            finally:
                if fcntl is None:
                    lock.close()
                shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # Windows opens no folders.
            descriptor = os.open(path.parent, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
    except Exception as raised:
        error = _of_the_system(raised)
        if error is None:
            raise
        while isinstance(error.__cause__, OSError):  # What a file inside has told of its own path.
            error = error.__cause__
        named = pathlib.Path(str(error.filename))
        beside = named.is_relative_to(path.parent) and named.relative_to(path.parent).parts
        is_ours = named.is_relative_to(shown) or (beside and beside[0].startswith(start))
        if not is_ours and error.errno not in _OF_A_DISK:  # Of what it was made from.
            raise
        now = "What was there is still there" if os.path.exists(shown) else "Nothing is there now"
        reason = f"{error.strerror or error}. It could not be written. {now}"
        raise OSError(error.errno, reason, str(shown)) from error


def _of_the_system(error):
    """Returns an `OSError`, also for one of a disk that a library tells by its own class."""
    if isinstance(error, OSError):
        return error
    told = [number for number in _OF_A_DISK - {None} if os.strerror(number) in str(error)]
    return OSError(told[0], os.strerror(told[0])) if told else None


def remove_if_left(folder):
    """Removes a temporary folder, unless its writer is at work."""
    lock = os.path.join(folder, "lock")
    with contextlib.suppress(OSError):
        if fcntl is None:
            os.remove(lock)
            shutil.rmtree(folder)
            return
        with open(lock, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)


def _swap(new, folder, ours):
    """Swaps two folders, the new one with links to what it lacks; returns whether it could."""
    exchange = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    with contextlib.suppress(OSError):
        if exchange is not None and not pathlib.Path.cwd().is_relative_to(folder):
            _link(folder, new, ours)
            owner = os.stat(folder)
            os.chown(new, owner.st_uid, owner.st_gid)
            paths = os.fsencode(new), os.fsencode(folder)
            return not exchange(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE)
    return False


def _link(source, target, ours):
    """Gives a folder links to all files of another, but of some relative paths."""

    def link(path, there):
        if not os.path.lexists(there):
            os.link(path, there, follow_symlinks=False)
        elif not os.path.samestat(os.lstat(path), os.lstat(there)):
            os.link(path, f"{there}.partial", follow_symlinks=False)
            os.replace(f"{there}.partial", there)

    def ignored(folder, names):
        return [name for name in names if pathlib.Path(folder, name).relative_to(source) in ours]

    shutil.copytree(source, target, True, ignored, link, dirs_exist_ok=True)


def _move(written, new, folder, stale):
    """Moves files into a folder in the order of their names, its own ones out before."""
    old, moved = new.with_name(f"{new.name} before"), []

    def move(name, source, target):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(source / name, target / name)
        moved.append((name, source, target))

    try:
        for name in (*reversed(written), *stale):
            if os.path.lexists(folder / name):
                move(name, folder, old)
        for name in written:
            move(name, new, folder)
    except BaseException:
        for name, source, target in reversed(moved):
            shutil.move(target / name, source / name)
        raise


@contextlib.contextmanager
def writing(path):
    """Yields an open text file in UTF-8, which takes the place of `path` when all is written.

    Lines end as they are written. See `replacing`.
    """
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        yield file


def write_text(path, text):
    """Writes a text file in UTF-8, whole or not at all; lines end as they stand in `text`."""
    with writing(path) as file:
        file.write(text)


def write_json(path, value):
    """Writes a JSON file, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def reading(path, advice="Download or save it again."):
    """A context in which an error that a file causes, whosever it is, becomes one that names it.

    Args:
        path: str or path, of a file or of a folder.
        advice: str, what to do.

    Raises:
        ValueError: in place of any error that does not name the path, a panic of a library in Rust
            among them, which is no `Exception`; those of the system stay.
    """
    try:
        yield
    except BaseException as error:
        is_files = isinstance(error, Exception) or type(error).__name__ == "PanicException"
        is_told = isinstance(error, (ValueError, TypeError)) and os.fspath(path) in str(error)
        # Libraries' own are plain `OSError` without a file's name.
        is_systems = isinstance(error, OSError) and (error.filename or type(error) is not OSError)
        is_systems = is_systems and not isinstance(error, gzip.BadGzipFile)
        if not is_files or is_told or is_systems or isinstance(error, ImportError):
            raise
        raise ValueError(
            f"{path} cannot be read ({type(error).__name__}: {error!s:.500}). Is it damaged, or of "
            f"another kind? {advice}"
        ) from error


def read_json(path, kind=dict):
    """Returns the value of a JSON file.

    Args:
        path: str or path.
        kind: `dict` or `list`, what the value must be.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no JSON in UTF-8, or its value is of another kind.
    """
    if not os.path.isfile(path) and os.path.exists(path):  # A pipe never ends, nor does a device.
        raise FileNotFoundError(errno.ENOENT, "There is no ordinary file", str(path))
    try:
        value = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not valid JSON ({error}). Download or save it again."
        ) from error
    if not isinstance(value, kind):
        wanted = {dict: "object", list: "list"}[kind]
        raise ValueError(f"{path} must hold a JSON {wanted}. Received: {type(value).__name__}.")
    return value
