"""Files on other machines, such as `s3://bucket/books/`, read as streams through fsspec."""

import io
import os
import re

from bert_keras.checks import require

# One letter before the colon is a Windows drive. `pathlib` makes one slash of two.
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/")


def is_remote(path):
    """Whether a path is an address with a scheme, rather than a path in this file system."""
    path = os.fspath(path)
    return isinstance(path, str) and _ADDRESS.match(path) is not None


def check_local(name, folder):
    """Refuses an address where files are mapped into memory or replaced as a whole."""
    if is_remote(folder):
        raise ValueError(
            f"{name} must be on this machine, where files can be mapped or replaced whole. "
            f"Received: {os.fspath(folder)!r}. Write or read it here, and copy it there or from "
            "there, for example by `aws s3 sync`, `gcloud storage rsync` or `rclone`; or mount it."
        )


def open_bytes(path):
    """Returns an open binary file, on this machine or another."""
    if not is_remote(path):
        return open(path, "rb")
    system, inside = _file_system(path)
    return io.BufferedReader(system.open(inside, "rb"))


def file_name(path):
    """Returns the name of a file; that of an address has no query string (such as a signature)."""
    name = os.path.basename(path)
    return re.split("[?#]", name)[0] if is_remote(path) else name


def file_size(path):
    """Returns the size of a file in bytes, 0 if its server does not tell."""
    if not is_remote(path):
        return os.path.getsize(path)
    system, inside = _file_system(path)
    return system.size(inside) or 0


def find_remote(address):
    """Returns the addresses of a file, of a pattern with `*`, or below a folder that ends in `/`.

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
    advice = "fsspec needs a package of its own for some kinds of address. Or copy the files here."
    fsspec = require("fsspec.core", f"read {address}", "remote", advice)
    try:
        return fsspec.url_to_fs(re.sub(":/+", "://", os.fspath(address), count=1))
    except ImportError as error:
        raise ImportError(f"{address} cannot be read: {error} {advice}") from error
