"""Files decoded to text, line by line, with errors that name the file, the line and the byte."""

import bz2
import codecs
import contextlib
import gzip
import io
import json
import lzma
import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from bert_keras.engine.atomic_files import reading
from bert_keras.types import Path

UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# First bytes -> what decompresses.
_COMPRESSED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
# Encodings that are tried on bytes that are not UTF-8, for the advice. Both Python and iconv know
# these names.
_ENCODINGS = ("gb18030", "big5", "shift_jis", "euc-jp", "cp949", "cp1251", "koi8-r", "cp866")
_ENCODINGS += ("cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1250", "cp1257", "cp874")
_ENCODINGS += ("macintosh", "cp850")
# Characters that no text has.
_CONTROLS = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f]")


def check_at(place: str, fits: object, rule: str, value: object, advice: str = "") -> None:
    """Raises `ValueError` with a place in a file unless what stands there fits a rule."""
    if not fits:
        advice = f" {advice}" if advice else ""
        raise ValueError(f"{place}: {rule}. Received: {value!r:.200}.{advice}")


def read_lines(
    path: Path,
    stream: BinaryIO | None = None,
    allow_nul: bool = False,
    encoding: str | None = None,
) -> Iterator[str]:
    r"""Yields the lines of a text file, plain or compressed, each with its line ending.

    `"\n"` ends a line. `"\r"` ends one too if the beginning of the file has more lone `"\r"` than
    `"\n"`, as in files of old Macs. Nothing else does: U+0085, U+2028, form feeds and others, at
    which `str.splitlines` cuts, occur inside the sentences of real corpora. Files are streamed, so
    a corpus may be larger than memory, except those in UTF-16.

    Args:
        path: the file; gzip, bzip2 and xz are recognized by their first bytes, not by the name.
        stream: optional buffered binary file object to read, such as `sys.stdin.buffer`. `path` is
            then its name in messages.
        allow_nul: bool, whether a line may hold NUL characters.
        encoding: str, a name that Python knows; by default UTF-8, or what the file's byte order
            mark announces.

    Yields:
        str, a line with its ending. A byte order mark at the beginning is dropped.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file holds bytes of another encoding, NUL characters or broken gzip data,
            or is no text file, or Python knows no such encoding. The message names the file, and
            if bytes are wrong the line and the byte.
    """
    path = os.fspath(path)
    try:
        encoding = encoding and codecs.lookup(encoding).name
    except LookupError as error:
        raise ValueError(
            "`encoding` (--encoding) must be a name that Python knows, such as 'gb18030'. "
            f"Received: {encoding!r}."
        ) from error
    with contextlib.ExitStack() as stack:
        stack.enter_context(reading(path, "Fetch or compress it again."))
        if stream is None:
            stream = stack.enter_context(open(path, "rb"))
        for mark, decompress in _COMPRESSED.items():
            if stream.peek(6).startswith(mark):
                stream = stack.enter_context(decompress(stream))
                break
        encoding = encoding or ("utf-16" if stream.peek(2).startswith(UTF_16_MARKS) else "utf-8")
        if encoding.startswith(("utf-16", "utf-32")):  # A byte of a character may be a line end.
            text = stream.read().decode(encoding)
            stream, encoding = io.BufferedReader(io.BytesIO(text.encode())), "utf-8"
        yield from _decoded(_raw_lines(stream), path, allow_nul, encoding)


def _raw_lines(stream):
    """Yields the lines of a stream of bytes."""
    head = stream.peek(1 << 13)
    if len(re.findall(rb"\r(?!\n)", head)) <= head.count(b"\n"):
        yield from stream
        return
    for line in stream:
        yield from line.splitlines(keepends=True)


def _decoded(lines, path, allow_nul, encoding):
    """Yields lines of bytes as str, see `read_lines`."""
    offset = 0
    for number, raw in enumerate(lines, start=1):
        if number == 1 and raw.startswith(codecs.BOM_UTF8):
            offset, raw = len(codecs.BOM_UTF8), raw[len(codecs.BOM_UTF8) :]
        try:
            line = raw.decode(encoding)
        except UnicodeDecodeError as error:
            _refuse_binary(path, number, raw)
            raise ValueError(
                f"{path}, line {number}, byte {offset + error.start}: 0x{raw[error.start]:02x} is "
                f"not {encoding.upper()}. Convert it by `iconv -f ENCODING -t utf-8`, or pass its "
                "`encoding` (--encoding) where the reader takes one. It reads as "
                f"{_readings(raw) or 'no other encoding'}."
            ) from error
        if "\0" in line and not allow_nul:
            _refuse_binary(path, number, raw)
        offset += len(raw)
        yield line


def _refuse_binary(path, number, raw):
    """Raises `ValueError` if a line has characters that no text has."""
    if found := _CONTROLS.search(raw.decode("latin-1")):
        raise ValueError(
            f"{path} must be a text file. Received: the control character {found[0]!r} in line "
            f"{number}, which begins with {raw[:16]}, as in programs, pictures and archives. The "
            "name of a workbook must end in .xlsx, that of a Parquet file in .parquet. Save other "
            "tables as CSV, texts as plain text. If it is UTF-16, name its `encoding` (--encoding)."
        )


def _readings(line):
    """Returns how a line reads in each encoding that may be meant: several often fit."""
    found = {}
    for encoding in _ENCODINGS:
        with contextlib.suppress(UnicodeDecodeError):
            text = line.decode(encoding)
            start = max(0, re.search("[^\0-\x7f]|$", text).start() - 8)
            found.setdefault(text[start : start + 40].strip(), encoding)
    return ", ".join(f"{name}: {text!r}" for text, name in found.items())


def as_record(value: Any) -> Any:
    """Returns spaCy's pair of a text and its entities as a dict, and any other value unchanged."""
    is_pair = isinstance(value, list) and [type(x) for x in value] == [str, dict]
    return {"text": value[0], **value[1]} if is_pair and "entities" in value[1] else value


def parse_json(text: str, path: Path, line: int = 1) -> Any:
    """Returns the value of JSON that begins on the given line of a file.

    Raises:
        ValueError: it is not JSON. The message names the file, the line and the column.
    """
    try:
        value = json.loads(text)
        if "\\ud" in text.lower():
            # An escape may be half of a surrogate pair, which UTF-8 cannot hold: raises then.
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        line, fault = line + error.lineno - 1, f"not JSON ({error.msg})."
        raise ValueError(f"{path}, line {line}, column {error.colno}: {fault}") from error
    except (ValueError, RecursionError) as error:  # Half a character, or nested too deeply.
        raise ValueError(f"{path}, line {line}: not JSON that can be read ({error}).") from error
    return value
