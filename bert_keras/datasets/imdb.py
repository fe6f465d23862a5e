"""The Large Movie Review Dataset (IMDB): long reviews, positive or negative.

Reference: Maas et al., "Learning Word Vectors for Sentiment Analysis", ACL 2011,
https://ai.stanford.edu/~amaas/data/sentiment/
"""

import glob
import io
import os
import re
import tarfile
from typing import Literal

import numpy as np

from bert_keras.checks import check_choice, check_exists
from bert_keras.datasets.files import decode_lines
from bert_keras.datasets.labelled_texts import LabelledTexts
from bert_keras.engine.atomic_files import reading
from bert_keras.types import Path

_LABELS = {"neg": 0, "pos": 1}
_REVIEW = re.compile(r"(?:^|/)(train|test)/(neg|pos)/(\d+)_(\d+)\.txt$")


def load_imdb(path: Path, split: Literal["train", "test"]) -> LabelledTexts:
    """Reads one split of the IMDB reviews from the original folder layout or its archive.

    Reviews are in the order of their ids, a negative and a positive one in turn, so that the first
    n are balanced. Line breaks are `<br />` in the texts, as published. The unlabelled reviews
    (`train/unsup`) are not read.

    Args:
        path: the folder `aclImdb`, a folder that holds it or its archive `aclImdb*.tar.gz`, or the
            archive itself, which is read without unpacking it to disk.
        split: `"train"` or `"test"`.

    Returns:
        `LabelledTexts` with the label names `("negative", "positive")`.

    Raises:
        FileNotFoundError: there are no reviews in that split, or only reviews with one label.
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
    missing = [name for name in _LABELS if _LABELS[name] not in {label for _, label, _ in reviews}]
    if missing:
        raise FileNotFoundError(
            f"{path} must hold reviews named aclImdb/{split}/{missing[0]}/<id>_<rating>.txt. "
            f"Received: {'only those of the other label' if reviews else 'no reviews'}. Name the "
            "folder `aclImdb`, one that holds it, or its archive; unpack the archive again if the "
            "folder is incomplete."
        )
    return LabelledTexts(
        texts=[text for _, _, text in reviews],
        labels=np.array([label for _, label, _ in reviews], "int32"),
        label_names=("negative", "positive"),
    )


def _find_archive(folder):
    check_exists(folder, "Reviews must be in a folder or an archive", exists=os.path.isdir)
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
    """Yields `(id, label, text)` for each review in a tar archive, without unpacking it to disk."""
    with reading(archive, "Fetch it again."), tarfile.open(archive, "r:*") as members:
        for member in members:
            match = _REVIEW.search(member.name)
            if match and match[1] == split and member.isfile():
                raw = members.extractfile(member).read()
                place = f"{archive}, {member.name}"
                text = "".join(decode_lines(io.BytesIO(raw), place))
                yield int(match[3]), _LABELS[match[2]], text
