"""Sentiment Labelled Sentences: sentences of reviews, positive or negative.

Reference: Kotzias, Denil, de Freitas and Smyth, "From Group to Individual Labels using Deep
Features", KDD 2015, https://doi.org/10.24432/C57604
"""

import os

import numpy as np

from bert_keras.datasets.classification import ClassificationTask, Layout, read_examples
from bert_keras.datasets.labelled_texts import LabelledTexts
from bert_keras.datasets.split import split_examples
from bert_keras.types import Path

SENTIMENT_SENTENCES_FILES = ("amazon_cells_labelled.txt", "imdb_labelled.txt", "yelp_labelled.txt")

_TASK = ClassificationTask(layouts=(Layout((0,), 1),), label_names=("negative", "positive"))


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
