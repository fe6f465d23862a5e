"""Sentences as users pass them, texts or lists of words, and the place of each word."""

from bert_keras.answers.words import find_words, join_words
from bert_keras.checks import describe
from bert_keras.tasks.user_columns import as_column, is_column


def as_sentences(x):
    """Returns sentences as a list of str or of lists of str, after checking every entry.

    Args:
        x: a str, or a list, NumPy array or pandas column whose entries are str (plain texts) or
            lists of str (words; for Chinese, characters).

    Raises:
        TypeError: a sentence is neither.
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
    """Returns where the words of each sentence are in its text.

    A list of words is joined by `join_words`. A plain text is split as the tokenizer splits it
    before it cuts words into pieces, as BERT's does at white space, around punctuation and around
    every Chinese character; see `bert_keras.answers.words.number_words` for tokenizers that
    separate no words.

    Args:
        tokenizer: a `Tokenizer`.
        sentences: list of str or of lists of str.

    Returns:
        For each sentence its text, and a list of `(start, end)`, the characters of each word.
    """
    texts = [sentence for sentence in sentences if isinstance(sentence, str)]
    encodings = iter(tokenizer.encode_sentences(texts))

    def placed(text):
        encoding = next(encodings)
        return text, find_words(text, encoding.word_ids, encoding.offsets)

    return [placed(each) if isinstance(each, str) else join_words(each) for each in sentences]
