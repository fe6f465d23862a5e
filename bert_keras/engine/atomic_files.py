"""Writes files and folders whole or not at all. The package writes in no other way.

Why: `open(path, "w")` empties the old file first, so a kill or a full disk leaves half a file. And
no function of Python replaces a folder that holds files.

Remove when `test_keras_s_save_destroys_the_old_file_when_it_fails` and
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
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from typing import Any, TypeVar

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed.
    fcntl = None

_Reader = TypeVar("_Reader", bound=Callable[..., Any])

# Linux's constants for the folder that relative paths start from, and for swapping two names.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
# Errors of a disk, which may name no file.
_DISK_ERRORS = {errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EROFS, getattr(errno, "EDQUOT", None)}
_REFUSALS = (ValueError, TypeError, NotImplementedError)
PACKAGE = str(pathlib.Path(__file__).resolve().parent.parent) + os.sep
# How a file begins that Git LFS has in place of a large one.
_GIT_LFS = b"version https://git-lfs"
# Folders that may have to be removed, see `make_folder_of`.
_NEW_FOLDERS = []
# A folder without this file is not a checkpoint.
_MARKER = pathlib.Path("config.json")


@contextlib.contextmanager
def replacing(path):
    """Yields the path of a temporary file, which replaces `path` when it is completely written.

    After an exception or a kill, `path` is as it was. The temporary file has the same name, in a
    hidden folder beside `path`. If a run is killed, the next one that writes `path` removes it.

    Args:
        path: str or path, in a folder that exists and can be written. A link stays a link. If it is
            not a file, such as `/dev/stdout`, `path` itself is yielded.

    Raises:
        OSError: the file cannot be written, as on a full disk; the message says what is there now.
    """
    path = pathlib.Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        yield str(path)
        return
    with _beside(path, path) as temporary:
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        yield str(temporary)
        _finish(temporary, path if path.exists() else temporary.with_name("lock"))
        os.replace(temporary, path)


def make_folder_of(path):
    """Makes the folder of a file; `remove_empty_folders` removes it if it stays empty."""
    folder = pathlib.Path(path).parent
    _NEW_FOLDERS.extend(x for x in (folder, *folder.parents) if not x.exists())
    folder.mkdir(parents=True, exist_ok=True)


def remove_empty_folders():
    """Removes the folders that `make_folder_of` has made, except those with files."""
    while _NEW_FOLDERS:
        with contextlib.suppress(OSError):
            _NEW_FOLDERS.pop(0).rmdir()


@contextlib.contextmanager
def replacing_files(folder, stale=(), index=None):
    """Yields an empty folder whose files replace those of `folder` at the end, all or none.

    On Linux it replaces `folder` in one step, with links to all other files of the old folder; a
    process whose current directory is the folder must enter it again. If that is impossible
    (another system, a file system without it, a mount point, someone else's folder, the current
    directory), its files are moved one by one, `config.json` out first and in last: a kill in
    between leaves no checkpoint, but never a mixture of two, and an exception leaves the old one.

    Args:
        folder: str or path; made if missing, unless there is an `index`. A link stays a link.
        stale: names of files to remove if there is no new one.
        index: name of the file that takes the place of `config.json`, in a folder that may hold
            unrelated files. Such a folder is never swapped.

    Raises:
        OSError: a file cannot be written, as on a full disk; the message says what is there now.
    """
    folder = pathlib.Path(os.path.realpath(folder))
    is_new = not folder.exists()
    if index is None:
        if not is_new and not folder.is_dir():
            rule = "Files must go into a folder. Received"
            raise NotADirectoryError(f"{rule}: {folder}, a file. Name another folder.")
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield from _replacing_files(folder, stale, index)
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):  # It is not empty.
                folder.rmdir()
        raise


def _replacing_files(folder, stale, index):
    can_swap = index is None and os.access(folder.parent, os.W_OK) and not os.path.ismount(folder)
    reported = folder / (index or "")
    with _beside(folder if can_swap else folder / "preset", reported) as new:
        new.mkdir()
        yield new
        written = [path.relative_to(new) for path in new.rglob("*") if not path.is_dir()]
        for name in written:
            _finish(new / name, new.with_name("lock"))
        written.sort(key=lambda name: name == pathlib.Path(index or _MARKER))
        own_names = {*written, *map(pathlib.Path, stale)}
        if can_swap and _swap(new, folder, own_names):
            with contextlib.suppress(OSError):
                _link(new, folder, own_names)  # Files that others wrote meanwhile.
        else:
            _move(written, new, folder, stale)


def _finish(path, like):
    """Writes a new file to the disk, and gives it the permissions of another one.

    A library may have made a file that only its owner can read.
    """
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
    shutil.copymode(like, path)


def retry_if_changed(read: _Reader) -> _Reader:
    """Decorates a method that reads a folder or a file: it starts again if that was replaced.

    So it reads either the old files or the new ones, never a mixture.
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
    """Returns a value that changes when a file or a folder's files are replaced, or `None`.

    For a folder it is that of `config.json`, which moves out first and in last.
    """
    with contextlib.suppress(OSError, TypeError, ValueError):
        path = os.path.expanduser(path)
        status = os.stat(os.path.join(path, _MARKER) if os.path.isdir(path) else path)
        return status.st_dev, status.st_ino, status.st_mtime_ns


@contextlib.contextmanager
def _beside(path, reported):
    """Yields a path of the same name in a temporary folder beside it, which is removed at the end.

    Args:
        path: `Path`.
        reported: `Path`, its name in errors.
    """
    start = f".{path.name}."
    try:
        for leftover in path.parent.glob(f"{glob.escape(start)}*.partial"):
            remove_if_left(leftover)
        lock = None
        while lock is None or not os.path.exists(lock.name):  # Another process removed it.
            folder = tempfile.mkdtemp(prefix=start, suffix=".partial", dir=path.parent)
            with contextlib.suppress(FileNotFoundError):
                lock = open(os.path.join(folder, "lock"), "a")  # noqa: SIM115
                with contextlib.suppress(AttributeError, OSError):  # A system without locks.
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
        error = _system_error(raised)
        if error is None:
            raise
        while isinstance(error.__cause__, OSError):  # A file inside reported its own path.
            error = error.__cause__
        error_path = pathlib.Path(str(error.filename))
        parts = error_path.is_relative_to(path.parent) and error_path.relative_to(path.parent).parts
        is_write = error_path.is_relative_to(reported) or (parts and parts[0].startswith(start))
        if not is_write and error.errno not in _DISK_ERRORS:  # It concerns a file that was read.
            raise
        now = (
            "What was there is still there" if os.path.exists(reported) else "Nothing is there now"
        )
        reason = f"{error.strerror or error}. It could not be written. {now}"
        raise OSError(error.errno, reason, str(reported)) from error


def _system_error(error):
    """Returns an `OSError`, also for a disk error that a library raises as a class of its own."""
    if isinstance(error, OSError):
        return error
    numbers = [number for number in _DISK_ERRORS - {None} if os.strerror(number) in str(error)]
    return OSError(numbers[0], os.strerror(numbers[0])) if numbers else None


def remove_if_left(folder):
    """Removes a temporary folder, unless its writer is still running."""
    lock = os.path.join(folder, "lock")
    with contextlib.suppress(OSError):
        if fcntl is None:
            os.remove(lock)
            shutil.rmtree(folder)
            return
        with open(lock, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)


def _swap(new, folder, own_names):
    """Swaps two folders, after linking missing files into the new one; returns whether it could."""
    exchange = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    with contextlib.suppress(OSError):
        if exchange is not None and not pathlib.Path.cwd().is_relative_to(folder):
            _link(folder, new, own_names)
            owner = os.stat(folder)
            os.chown(new, owner.st_uid, owner.st_gid)
            paths = os.fsencode(new), os.fsencode(folder)
            return not exchange(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE)
    return False


def _link(source, target, skip):
    """Links all files of a folder into another, except those at some relative paths."""

    def link(path, target_path):
        if not os.path.lexists(target_path):
            os.link(path, target_path, follow_symlinks=False)
        elif not os.path.samestat(os.lstat(path), os.lstat(target_path)):
            os.link(path, f"{target_path}.partial", follow_symlinks=False)
            os.replace(f"{target_path}.partial", target_path)

    def ignored(folder, names):
        return [name for name in names if pathlib.Path(folder, name).relative_to(source) in skip]

    shutil.copytree(source, target, True, ignored, link, dirs_exist_ok=True)


def _move(written, new, folder, stale):
    """Moves files into a folder in the order given, after moving its own ones out."""
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
    """Yields an open text file in UTF-8, which replaces `path` when it is completely written.

    Line ends are not translated. See `replacing`.
    """
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        yield file


def write_text(path, text):
    """Writes a text file in UTF-8, whole or not at all; line ends are not translated."""
    with writing(path) as file:
        file.write(text)


def write_json(path, value):
    """Writes a JSON file, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def reading(path, advice="Download or save it again."):
    """A context in which any error that a file causes becomes one that names the file.

    Args:
        path: str or path of a file or a folder. `None` if errors may come from the user's
            arguments: they stay as they are.
        advice: str, what to do.

    Raises:
        ValueError: instead of any error that does not name the path, including a panic of a Rust
            library, which is not an `Exception`. If the file needs a class that is not registered,
            the message names it. System errors are raised unchanged. Refusals of this package are
            no damage: they keep their text, and the path is added.
    """
    try:
        yield
    except BaseException as error:
        if path is None:
            raise
        is_error = isinstance(error, Exception) or type(error).__name__ == "PanicException"
        names_path = isinstance(error, (ValueError, TypeError)) and os.fspath(path) in str(error)
        # Libraries raise plain `OSError` without a file's name.
        is_system = isinstance(error, OSError) and (error.filename or type(error) is not OSError)
        is_system = is_system and not isinstance(error, gzip.BadGzipFile)
        if not is_error or names_path or is_system or isinstance(error, ImportError):
            raise
        if found := re.search(r"Could not locate (\w+ '[^']*')", str(error)):
            raise ValueError(
                f"{path} needs the {found[1]}, which this program does not know. Import the module "
                "that defines it before you open the file."
            ) from error
        if _is_refusal(error):
            if os.path.dirname(os.path.abspath(path)) in str(error):  # It names another file.
                raise
            raise type(error)(f"{path}: {error}") from error
        raise ValueError(
            f"{path} cannot be read ({type(error).__name__}: {error!s:.500}). Is it damaged, or a "
            f"file of another kind? {advice}"
        ) from error


@contextlib.contextmanager
def requiring(path, rule):
    """A context in which a part that a file lacks, or has of another type, becomes a `ValueError`.

    Args:
        path: str or path of the file.
        rule: str, what the file must do, such as `"list modules"`.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError) as error:
        rule = f"{path} must {rule}. It does not ({error!r})."
        raise ValueError(f"{rule} {advice_for(path)}") from error


def _is_refusal(error):
    """Whether this package raised an error: then its text says what is wrong."""
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename.startswith(PACKAGE) and type(error) in _REFUSALS


def advice_for(path):
    """Returns what to do about a damaged file."""
    with open(path, "rb") as file:
        start = file.read(len(_GIT_LFS))
    if start == _GIT_LFS:
        return "It is a Git LFS pointer, not the file: run `git lfs pull` in its repository."
    return "If it is damaged or incomplete, download it again."


def read_json(path, kind=dict):
    """Returns the value of a JSON file.

    Args:
        path: str or path.
        kind: `dict` or `list`, what the value must be.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not JSON in UTF-8, or its value is of another kind.
    """
    if not os.path.isfile(path) and os.path.exists(path):  # Pipes and devices never end.
        raise FileNotFoundError(errno.ENOENT, "There is no ordinary file", str(path))
    try:
        value = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON ({error}). {advice_for(path)}") from error
    if not isinstance(value, kind):
        expected = {dict: "object", list: "list"}[kind]
        rule = f"{path} must hold a JSON {expected}. Received: {type(value).__name__}."
        raise ValueError(f"{rule} {advice_for(path)}")
    return value
