"""Reads damaged files for some time and reports what went wrong. Used by `test_fuzz.py`.

KERAS_BACKEND=torch FUZZ_SECONDS=600 python tests/fuzz/worker.py FOLDER tokenizer_json squad

Each reader gets FUZZ_SECONDS of processor time. The files must be read, or refused by an error of
our own that names a file, within 2 s of processor time and 1 GiB. Nothing may be executed or
unpickled, and no file may be opened outside the folder and Python's own installation. Anything else
is a finding, whose files are kept in FOLDER.
"""

import itertools
import json
import os
import pathlib
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("", "tests", "tests/presets", "tests/tasks")]

import numpy as np
from mutations import mutated
from targets import TARGETS, folder_of

CORPUS = pathlib.Path(__file__).parent / "corpus"
SECONDS = float(os.environ.get("FUZZ_SECONDS", 0.1))
MOST_SECONDS, MOST_BYTES = 2.0, 2**30
_FORBIDDEN = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.")
_FORBIDDEN += ("pickle.find_class", "ctypes.dlopen", "code.__new__", "function.__new__")
_KNOWN = tuple(
    {sys.prefix, sys.base_prefix, str(ROOT / "bert_keras"), "/proc", "/sys", "/dev/null"}
)


class TooSlowError(BaseException):
    """The reader took too long."""


class Guard:
    """Records audit events of things that no reader should do."""

    def __init__(self):
        self.folder, self.seen = None, []
        sys.addaudithook(self)

    def __call__(self, event, arguments):
        if self.folder is None:
            return
        if event == "open":
            path = arguments[0]
            # Removing a folder opens its contents by name alone.
            is_removal = sys._getframe(1).f_code.co_filename == shutil.__file__
            if isinstance(path, (str, bytes)) and not is_removal:
                path = os.path.realpath(os.fsdecode(path))
                if not path.startswith((self.folder, *_KNOWN)) and "bytecode" not in path:
                    self.seen.append(f"open {path}")
        elif event.startswith(_FORBIDDEN):
            self.seen.append(f"{event} {arguments!r:.200}")
        elif event in ("exec", "compile", "marshal.loads"):
            frame, is_import = sys._getframe(1), False
            while frame is not None and not is_import:
                is_import = frame.f_code.co_filename.startswith("<frozen importlib")
                frame = frame.f_back
            name = getattr(arguments[0], "co_filename", "") if event == "exec" else ""
            # NumPy's headers are parsed, as "<unknown>", and not executed.
            name = str(arguments[1]) if event == "compile" else name
            if not is_import and not name.startswith((*_KNOWN, "<frozen", "<unknown>")):
                self.seen.append(f"{event} {arguments!r:.200}")


def outcome_of(error, folder):
    """Returns what is wrong with an error, or `None` if it is one of our own."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    is_ours = str(ROOT / "bert_keras") in last.filename and last.line.startswith("raise")
    parts = (folder, *(path.name for path in folder.rglob("*")))
    names = any(str(part) in str(error) for part in parts)
    if isinstance(error, (ValueError, TypeError, OSError)) and is_ours and names:
        return None
    if isinstance(error, FileNotFoundError) and names:
        return None
    place = traceback.extract_tb(error.__traceback__)
    ours = [f for f in place if str(ROOT / "bert_keras") in f.filename]
    where = ours[-1] if ours else last
    where = f"{pathlib.Path(where.filename).name}:{where.name}"
    kind = "names no file: " if is_ours else ""
    return f"{kind}{type(error).__name__} at {where}: {str(error)[:160]!r}"


def once(target, files, guard, work):
    """Reads files; returns what went wrong, or `None`."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=work))
    try:
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        guard.seen, guard.folder = [], str(work)
        tempfile.tempdir = str(work)  # Keras unpacks there.
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                target.read(folder)
            found = None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            guard.folder = None  # To describe it opens the files of its traceback.
            found = outcome_of(error, folder)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            guard.folder = None
        if guard.seen:
            found = f"did {guard.seen[0]}"
        return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fuzz(name, seconds, guard, keep, seed):
    """Reads damaged files for some seconds; returns how many, and the findings."""
    tempfile.tempdir = None
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    (keep / "running.json").write_text(json.dumps([name, 0]))
    target, findings, work = TARGETS[name], {}, pathlib.Path(tempfile.mkdtemp()).resolve()
    seeds = work / "seeds"
    seeds.mkdir()
    target.write(seeds)
    files = folder_of(seeds)
    before, guard.seen = target.read(seeds), []
    del before
    saved = [files | folder_of(path) for path in sorted((CORPUS / name).glob("*"))]
    allow_memory()
    first, count = time.process_time(), 0
    for count in itertools.count():
        if count >= len(saved) and time.process_time() - first > seconds:
            break
        if count < len(saved):
            tried = saved[count]
        else:
            tried = mutated(files, np.random.default_rng([seed, zlib.crc32(name.encode()), count]))
        (keep / "running.json").write_text(json.dumps([name, count]))
        found = once(target, tried, guard, work)
        if found is not None:
            key = found.split(": ")[0] if not found.startswith("names no") else found[:60]
            if key not in findings:
                findings[key] = [found, count]
                store(keep / name / f"{count}", tried, files)
    shutil.rmtree(work, ignore_errors=True)
    return count, list(findings.values())


def store(folder, tried, files):
    """Writes the files that differ from the valid ones."""
    for path, content in tried.items():
        if files.get(path) != content:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)


def allow_memory():
    """Limits the process to `MOST_BYTES` more address space than it has now."""
    now = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MOST_BYTES, resource.RLIM_INFINITY))


def too_slow(number, frame):
    raise TooSlowError


def run(names, keep, seconds):
    """Yields for each reader what was found, and keeps its files."""
    seed = int(os.environ.get("FUZZ_SEED", 0))
    # Threads take address space, and no reader accounts for their processor time.
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "RUST_BACKTRACE": "0"}
    keep.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGPROF, too_slow)
    guard = Guard()
    for name in names:
        count, findings = fuzz(name, seconds, guard, keep, seed)
        yield {"reader": name, "files": count, "findings": findings}


if __name__ == "__main__":
    for result in run(sys.argv[2:] or TARGETS, pathlib.Path(sys.argv[1]), SECONDS):
        print(json.dumps(result), flush=True)
