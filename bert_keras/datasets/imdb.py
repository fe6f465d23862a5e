"""The Large Movie Review Dataset (IMDB): long reviews, positive or negative.

Reference: Maas et al., "Learning Word Vectors for Sentiment Analysis", ACL 2011,
https://ai.stanford.edu/~amaas/data/sentiment/
"""

import glob
import gzip
import io
import os
import re
import tarfile
import zlib
from typing import Literal

import numpy as np

from bert_keras.checks import check_choice
from bert_keras.datasets.examples import Examples
from bert_keras.datasets.files import decode_lines
from bert_keras.types import Path

_LABELS = {"neg": 0, "pos": 1}
_REVIEW = re.compile(r"(?:^|/)(train|test)/(neg|pos)/(\d+)_(\d+)\.txt$")


def load_imdb(path: Path, split: Literal["train", "test"]) -> Examples:
    """Reads one split of the IMDB reviews from the original folder layout or its archive.

    Reviews are in the order of their ids, a negative and a positive one in turn, so that the first
    n are balanced. Line breaks are `<br />` in the texts, as published. The unlabelled reviews
    (`train/unsup`) are not read.

    Args:
        path: the folder `aclImdb`, a folder that holds it or its one `aclImdb*.tar.gz`, or the
            archive itself, which is read in place.
        split: `"train"` or `"test"`.

    Returns:
        `Examples` with the label names `("negative", "positive")`.

    Raises:
        FileNotFoundError: there are no reviews of that split, or only of one label.
        ValueError: a review is not UTF-8, or the archive is broken. The message names the file.

    Example:
        ```python
        train = load_imdb("aclImdb_v1.tar.gz", "train")
        ```
    """
    check_choice("split", split, ("train", "test"))
    path = os.fspath(path)
    archive = path if os.path.isfile(path) else _find_archive(path)
    reviews = _archived_reviews(archive, split) if archive else _folder_reviews(path, split)
    reviews = sorted(reviews)
    if not reviews:
        raise FileNotFoundError(
            f"{path} holds no reviews named aclImdb/{split}/pos/<id>_<rating>.txt. Name the folder "
            f"`aclImdb`, one that holds it, or its archive."
        )
    for name, number in _LABELS.items():
        if all(label != number for _, label, _ in reviews):
            raise FileNotFoundError(
                f"{path} holds no reviews named aclImdb/{split}/{name}/<id>_<rating>.txt, only "
                "those of the other label. Unpack the archive again, or name the archive itself, "
                "which is read as it is."
            )
    return Examples(
        texts=[text for _, _, text in reviews],
        labels=np.array([label for _, label, _ in reviews], "int32"),
        label_names=("negative", "positive"),
    )


def _find_archive(folder):
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"There is no file or folder {folder}.")
    if any(os.path.isdir(os.path.join(folder, *names)) for names in (["aclImdb"], ["train"])):
        return None
    found = glob.glob(os.path.join(glob.escape(folder), "aclImdb*.tar.gz"))
    return found[0] if len(found) == 1 else None


def _folder_reviews(folder, split):
    """Yields `(id, label, text)` for each review below a folder."""
    inner = os.path.join(folder, "aclImdb")
    folder = inner if os.path.isdir(inner) else folder
    for label in _LABELS:
        for path in glob.glob(os.path.join(glob.escape(folder), split, label, "*.txt")):
            match = _REVIEW.search(path.replace(os.sep, "/"))
            if match:
                with open(path, "rb") as stream:
                    text = "".join(decode_lines(stream, path))
                yield int(match[3]), _LABELS[label], text


def _archived_reviews(archive, split):
    """Yields `(id, label, text)` for each review of a tar archive; nothing is unpacked to disk."""
    try:
        with tarfile.open(archive, "r:*") as members:
            for member in members:
                match = _REVIEW.search(member.name)
                if match and match[1] == split and member.isfile():
                    raw = members.extractfile(member).read()
                    place = f"{archive}, {member.name}"
                    text = "".join(decode_lines(io.BytesIO(raw), place))
                    yield int(match[3]), _LABELS[match[2]], text
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(
            f"{archive} is not a complete tar archive ({error}). Fetch it again."
        ) from error
