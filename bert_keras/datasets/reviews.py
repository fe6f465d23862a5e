"""Reviews, positive or negative: the Large Movie Review Dataset and Sentiment Labelled Sentences.

References: Maas et al., "Learning Word Vectors for Sentiment Analysis", ACL 2011,
https://ai.stanford.edu/~amaas/data/sentiment/. Kotzias, Denil, de Freitas and Smyth, "From Group to
Individual Labels using Deep Features", KDD 2015, https://doi.org/10.24432/C57604
"""

import glob
import os
from typing import Literal

import numpy as np

from bert_keras.checks import check_choice, check_exists
from bert_keras.datasets.classification import ClassificationTask, Layout, read_examples
from bert_keras.datasets.files import read_text
from bert_keras.datasets.labelled_texts import LabelledTexts
from bert_keras.datasets.split import split_examples
from bert_keras.types import Path

SENTIMENT_SENTENCES_FILES = ("amazon_cells_labelled.txt", "imdb_labelled.txt", "yelp_labelled.txt")

_TASK = ClassificationTask(
    layouts=(Layout((0,), 1, num_fields=(2,)),), labels=(("0", "negative"), ("1", "positive"))
)


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
    for label, name in enumerate(("neg", "pos")):
        found = glob.glob(os.path.join(glob.escape(folder), name, "[0-9]*_[0-9]*.txt"))
        if not found:
            raise FileNotFoundError(
                f"{path} must hold reviews named aclImdb/{split}/{name}/<id>_<rating>.txt. "
                "Received: none. Name the folder `aclImdb`, or one that holds it; unpack the "
                "archive again if the folder is incomplete."
            )
        reviews += ((int(os.path.basename(x).partition("_")[0]), label, x) for x in found)
    _, labels, files = zip(*sorted(reviews), strict=True)
    return LabelledTexts([*map(read_text, files)], np.array(labels, "int32"), _TASK.label_names)


def load_sentiment_sentences(
    folder: Path, test_size: int = 600, seed: int = 0
) -> tuple[LabelledTexts, LabelledTexts]:
    """Reads the Sentiment Labelled Sentences and splits them into a training and a test part.

    The set comes without a split. This one is fixed by `seed`, keeps the share of each site and
    label in both parts, and puts no sentence in both: ignoring case and white space, 19 sentences,
    such as "Great phone.", occur more than once. White space around a sentence is dropped.

    Args:
        folder: folder with `amazon_cells_labelled.txt`, `imdb_labelled.txt` and
            `yelp_labelled.txt`, each line `sentence<TAB>label`.
        test_size: int, how many of the 3,000 sentences are for testing.
        seed: int.

    Returns:
        `(train, test)`, both `LabelledTexts` with the label names `("negative", "positive")`.

    Raises:
        FileNotFoundError: one of the files is missing.
        ValueError: a file is in another format. The message names the file and the line.

    Example:
        ```python
        train, test = load_sentiment_sentences("examples/data/sentiment_labelled_sentences")
        len(train), len(test)  # (2400, 600)
        ```
    """
    parts = {x: read_examples(os.path.join(folder, x), _TASK) for x in SENTIMENT_SENTENCES_FILES}
    texts = [text.strip() for part in parts.values() for text in part.texts]
    strata = [(name, label) for name, part in parts.items() for label in part.labels.tolist()]
    labels = np.array([label for _, label in strata], "int32")
    return split_examples(LabelledTexts(texts, labels, _TASK.label_names), test_size, seed, strata)
