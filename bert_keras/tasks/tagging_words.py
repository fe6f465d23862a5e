"""Sentences as users pass them, as texts or as words, and where each word stands in the text."""

from bert_keras.export.runtime import with_marks
from bert_keras.tasks.user_columns import as_column, is_column
from bert_keras.tokenizers.texts import describe


def as_sentences(x):
    """Returns sentences as a list of str or of lists of str, every entry checked.

    Args:
        x: a str, or a list, NumPy array or pandas column whose entries are str (plain texts) or
            lists of str (words; for Chinese, characters).

    Raises:
        TypeError: something is neither.
    """
    if isinstance(x, str):
        return [x]
    if not is_column(x):
        raise TypeError(
            f"Sentences must be a list of lists of words, or of texts. Received: {describe(x)}."
        )
    return [_as_sentence(row, index) for index, row in enumerate(as_column(x))]


def _as_sentence(row, index):
    if isinstance(row, str):
        return row
    if not is_column(row):
        raise TypeError(
            "A sentence must be a list of words, or a str. Received as sentence "
            f"{index}: {describe(row)}."
        )
    words = as_column(row)
    for place, word in enumerate(words):
        if not isinstance(word, str):
            raise TypeError(
                f"A word must be a str. Received as word {place} of sentence {index}: "
                f"{describe(word)}."
            )
    return words


def place_words(tokenizer, sentences):
    """Finds the words of each sentence in its text.

    The text of a word list is written by `join_words`. A plain text is split as the tokenizer
    splits it before it cuts words to pieces, as BERT's does at white space, around punctuation and
    around every Chinese character; marks on its last character belong to a word.

    Args:
        tokenizer: a `Tokenizer`.
        sentences: list of str or of lists of str.

    Returns:
        For each sentence its text, and a list of `(start, end)`, the characters of each word.
    """
    texts = [sentence for sentence in sentences if isinstance(sentence, str)]
    encodings = iter(tokenizer.encode(texts) if texts else ())
    return [
        (sentence, with_marks(sentence, _word_spans(next(encodings))))
        if isinstance(sentence, str)
        else join_words(sentence)
        for sentence in sentences
    ]


def _word_spans(encoding):
    spans, last = [], None
    for word, (start, end) in zip(encoding.word_ids, encoding.offsets, strict=True):
        if word is None:
            continue
        if word == last:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
        last = word
    return spans


def join_words(words):
    """Writes words as a text.

    Words are joined by a space; by nothing where each is a single character, as Chinese comes.

    Args:
        words: list of str.

    Returns:
        The text, and a list of `(start, end)`, the characters of each word.

    Example:

    >>> join_words(["a", "film"]), join_words(["北", "京"])
    (('a film', [(0, 1), (2, 6)]), ('北京', [(0, 1), (1, 2)]))
    """
    between = "" if all(len(word) <= 1 for word in words) else " "
    spans, start = [], 0
    for word in words:
        spans.append((start, start + len(word)))
        start += len(word) + len(between)
    return between.join(words), spans
