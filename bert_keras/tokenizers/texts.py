"""The check that what should be text is text."""

from collections.abc import Sequence

from bert_keras.checks import describe


def as_texts(texts, name="texts"):
    """Returns a column of texts as a list of str.

    Args:
        texts: a list, tuple, NumPy array or pandas Series of str (anything with `tolist()`).
        name: str, what the caller calls this argument, for the error message.

    Returns:
        A list of str, the same objects.

    Raises:
        TypeError: something is not a str; the message names the index and what came.
    """
    if hasattr(texts, "tolist"):
        texts = texts.tolist()
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Sequence):
        raise TypeError(
            f"`{name}` must be a list, tuple, array or column of str. Received: {describe(texts)}."
            f"{_advice(texts)}"
        )
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(
                f"`{name}` must hold str only. Received: {name}[{index}] is {describe(text)}."
                f"{_advice(text)}"
            )
    return list(texts)


def check_pairs(texts, pairs):
    """Raises `ValueError` unless there are as many second texts as first ones."""
    if len(texts) != len(pairs):
        raise ValueError(
            "First and second texts must be equally many. Received: "
            f"{len(texts)} first and {len(pairs)} second texts."
        )


def _advice(value):
    if type(value).__module__.startswith("tensorflow"):
        return (
            " In `Dataset.map` there are no texts yet. Give `fit` the dataset of strings itself: "
            "its batches are tokenized as they come."
        )
    if isinstance(value, bytes):
        return " Decode bytes first, for instance with `value.decode('utf-8')`."
    if isinstance(value, (list, tuple)):
        return (
            " Sentence pairs are two columns, the first texts and the second texts, in the same "
            "order; turn rows into columns with `firsts, seconds = zip(*rows)`."
        )
    if value is None or isinstance(value, float):
        return " Drop rows without text, or replace the missing text with ''."
    return ""


def replace_surrogates(text):
    """Replaces lone surrogates, which UTF-8 cannot hold, with U+FFFD, one character for one.

    BERT's text cleaning drops U+FFFD, so such characters vanish from the pieces while the offsets
    of everything else stay what they were.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
