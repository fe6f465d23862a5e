"""The Large Movie Review Dataset (IMDB): long reviews, positive or negative.

Reference: Maas et al., "Learning Word Vectors for Sentiment Analysis", ACL 2011,
https://ai.stanford.edu/~amaas/data/sentiment/
"""

import glob
import os
from typing import Literal

import numpy as np

from bert_keras.checks import check_choice, check_exists
from bert_keras.datasets.files import read_text
from bert_keras.datasets.labelled_texts import LabelledTexts
from bert_keras.types import Path

_LABELS = {"neg": 0, "pos": 1}


def load_imdb(path: Path, split: Literal["train", "test"]) -> LabelledTexts:
    """Reads one split of the IMDB reviews from their original folder.

    Reviews are in the order of their ids, a negative and a positive one in turn, so that the first
    n are balanced. Line breaks are `<br />` in the texts, as published. The unlabelled reviews
    (`train/unsup`) are not read.

    Args:
        path: the folder `aclImdb`, or a folder that holds it.
        split: `"train"` or `"test"`.

    Returns:
        `LabelledTexts` with the label names `("negative", "positive")`.

    Raises:
        FileNotFoundError: there are no reviews in that split, or only reviews with one label.
        ValueError: a review is not UTF-8. The message names the file.

    Example:
        ```python
        train = load_imdb("aclImdb", "train")
        ```
    """
    check_choice("split", split, ("train", "test"))
    advice = "Unpack aclImdb_v1.tar.gz by `tar xzf`."
    check_exists(path, "Reviews must be in a folder", advice, exists=os.path.isdir)
    inner = os.path.join(path, "aclImdb")
    folder = os.path.join(inner if os.path.isdir(inner) else path, split)
    reviews = []
    for name, label in _LABELS.items():
        found = glob.glob(os.path.join(glob.escape(folder), name, "[0-9]*_[0-9]*.txt"))
        if not found:
            raise FileNotFoundError(
                f"{path} must hold reviews named aclImdb/{split}/{name}/<id>_<rating>.txt. "
                "Received: none. Name the folder `aclImdb`, or one that holds it; unpack the "
                "archive again if the folder is incomplete."
            )
        reviews += ((int(os.path.basename(x).partition("_")[0]), label, x) for x in found)
    reviews.sort()
    return LabelledTexts(
        texts=[read_text(file) for _, _, file in reviews],
        labels=np.array([label for _, label, _ in reviews], "int32"),
        label_names=("negative", "positive"),
    )
