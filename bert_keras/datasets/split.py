"""Splitting a set into two parts so that no text is in both."""

import collections
import hashlib
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bert_keras.checks import check_int, check_number, check_same_length
from bert_keras.datasets.labelled_texts import LabelledTexts


def normalize_text(text: str) -> str:
    """Returns a text in the form that duplicates share: case folded, single spaces.

    Example:
        ```python
        normalize_text("  Great \\t PHONE. ")  # 'great phone.'
        ```
    """
    return " ".join(text.casefold().split())


def split_indices(
    texts: Sequence[str] | tuple[Sequence[str], Sequence[str]],
    test_size: float,
    seed: int | str = 0,
    strata: Iterable[Hashable] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Splits positions into two parts, by the text, so that no text is in both.

    If a set repeats sentences, a random split would test a model on sentences that it was trained
    on. Here equal texts (see `normalize_text`) form a group, which goes to one part as a whole. In
    each stratum, groups are ordered by a hash of `seed` and their text, and the first groups that
    fit into the stratum's share of `test_size` are the test part. Thanks to the hash, the split
    does not depend on the order of the texts, the platform or NumPy's version.

    Args:
        texts: list of str, or a tuple of two lists for pairs (a pair is equal if both texts are).
        test_size: int, the number of test examples, or float, their share of all. Groups of
            duplicates may leave the test part a few examples short.
        seed: int or str.
        strata: optional sequence of hashable values, one per text, such as labels. Each value keeps
            its share in both parts. A group of duplicates belongs to the stratum of its first text.

    Returns:
        Two int64 NumPy arrays, the positions of the training and of the test examples, each in
        ascending order.

    Raises:
        ValueError: `test_size` leaves one of the parts empty, or `strata` has another length.
    """
    keys = _keys(texts)
    strata = [0] * len(keys) if strata is None else list(strata)
    check_same_length("`strata` must have one value per text", strata=strata, texts=keys)
    if isinstance(test_size, float):
        num_test = round(check_number("test_size", test_size, above=0.0, below=1.0) * len(keys))
    else:
        num_test = check_int("test_size", test_size, most=len(keys) - 1)
    groups = collections.defaultdict(list)
    for position, key in enumerate(keys):
        groups[key].append(position)
    by_stratum = collections.defaultdict(list)
    for key in sorted(groups, key=lambda key: _hash(seed, key)):
        by_stratum[strata[groups[key][0]]].append(groups[key])
    sizes = np.array([sum(map(len, members)) for members in by_stratum.values()], "int64")
    # As scikit-learn does, what rounding down leaves goes to the largest remainders.
    counts, remainders = np.divmod(num_test * sizes, len(keys))
    counts[np.argsort(-remainders, kind="stable")[: num_test - counts.sum()]] += 1
    test = []
    for members, left in zip(by_stratum.values(), counts, strict=True):
        for group in members:
            if len(group) <= left:
                left -= len(group)
                test += group
    test = np.array(sorted(test), "int64")
    train = np.setdiff1d(np.arange(len(keys), dtype="int64"), test)
    if not len(test) or not len(train):
        raise ValueError(
            f"`test_size` must leave examples in both parts. Received: {test_size} for {len(keys)} "
            f"texts, {len(groups)} of them different. Equal texts stay together, and strata keep "
            "their shares. Pass more different texts, or others to measure on (`--dev_file`)."
        )
    return train, test


def split_examples(
    examples: LabelledTexts,
    test_size: float,
    seed: int | str = 0,
    strata: Iterable[Hashable] | None = None,
) -> tuple[LabelledTexts, LabelledTexts]:
    """Splits `LabelledTexts` in two, by default stratified by label; see `split_indices`.

    Returns:
        `(train, test)`, both `LabelledTexts`.
    """
    if strata is None and examples.labels is not None and examples.problem_type == "single_label":
        strata = np.asarray(examples.labels).tolist()
    return tuple(map(examples.take, split_indices(examples.texts, test_size, seed, strata)))


def count_shared_texts(
    first: LabelledTexts | Sequence[str], second: LabelledTexts | Sequence[str]
) -> int:
    """Returns the number of different texts (or pairs) that are in both, by `normalize_text`."""
    first, second = ({*_keys(getattr(x, "texts", x))} for x in (first, second))
    return len(first & second)


def _keys(texts):
    columns = texts if isinstance(texts, tuple) else (texts,)
    return [tuple(normalize_text(text) for text in pair) for pair in zip(*columns, strict=True)]


def _hash(seed, key):
    text = "\0".join((str(seed), *key))
    # JSON escapes may give lone surrogates, which are hashed like any other character.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
