"""Texts of other machines, such as `s3://bucket/books/`, read as streams by fsspec."""

import io
import os
import re

# A scheme of one letter is a drive of Windows. `pathlib` makes one slash of two.
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/")


def is_remote(path):
    """Whether a path is an address, with a scheme, instead of a place in this file system."""
    path = os.fspath(path)
    return isinstance(path, str) and _ADDRESS.match(path) is not None


def check_local(name, folder):
    """Raises `ValueError` for an address where files are mapped into memory, or replaced whole."""
    if is_remote(folder):
        raise ValueError(
            f"{name} must be on this machine, where files can be mapped or replaced whole. "
            f"Received: {os.fspath(folder)!r}. Write or read it here, and copy it there or from "
            "there, for example by `aws s3 sync`, `gcloud storage rsync` or `rclone`; or mount it."
        )


def open_bytes(path):
    """Returns an open binary file, of this machine or another."""
    if not is_remote(path):
        return open(path, "rb")
    system, inside = _file_system(path)
    return io.BufferedReader(system.open(inside, "rb"))


def file_name(path):
    """Returns the name of a file, of an address without what may be a signature behind it."""
    name = os.path.basename(path)
    return re.split("[?#]", name)[0] if is_remote(path) else name


def file_size(path):
    """Returns the bytes of a file, 0 where a server does not tell."""
    if not is_remote(path):
        return os.path.getsize(path)
    system, inside = _file_system(path)
    return system.size(inside) or 0


def find_remote(address):
    """Returns the addresses that one names: a file, a pattern with `*`, or below a folder with `/`.

    Raises:
        FileNotFoundError: there is no such file.
    """
    system, inside = _file_system(address)
    if "*" in address:
        found = sorted(filter(system.isfile, system.glob(inside)))
    elif address.endswith("/"):
        found = sorted(system.find(inside))
    else:
        found = [inside] if system.exists(inside) else []
    if not found:
        advice = "" if address.endswith("/") else " The address of a folder ends with /."
        raise FileNotFoundError(f"There is no file {address}.{advice}")
    return list(map(system.unstrip_protocol, found))


def _file_system(address):
    try:
        from fsspec.core import url_to_fs

        return url_to_fs(re.sub(":/+", "://", os.fspath(address), count=1))
    except ImportError as error:
        raise ImportError(
            f"{address} is on another machine, which needs fsspec: pip install "
            f"'bert_keras[remote]', and its package for this kind of address ({error}). Or copy "
            "the files here."
        ) from error
