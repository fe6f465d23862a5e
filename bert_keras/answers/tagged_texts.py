"""Logits of words as answers: tags, and the entities that they mark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import as_column, as_texts
from ..preprocessing.word_windows import WordRows
from ..tokenizers.words import find_words, join_words
from .answerer import Answerer
from .entity_tags import entity_readings, extract_entities
from .viterbi import Chain, best_tags, tag_probabilities


def tagged_texts(
    placed: Iterable[tuple[str, Sequence[tuple[int, int]]]],
    logits: Sequence[NDArray[Any]],
    label_names: Sequence[str] | None,
    chain: Chain | None = None,
) -> list[dict[str, Any]]:
    """Returns a tagger's answers.

    Args:
        placed: for each sentence its text, and a list of `(start, end)`, the characters of each
            word.
        logits: for each sentence float `(num_words, num_tags)`.
        label_names: list of `num_tags` str, or `None` to use numbers.
        chain: see `bert_keras.answers.viterbi`.

    Returns:
        For each sentence a dict: `text`; `words`, a list of `(word, tag)`; and `entities`, a list
        of dicts with `type`, `text`, `start`, `end` and `score`, the mean probability of the words'
        tags.
    """
    answers, readings = [], entity_readings(label_names)
    columns = placed, best_tags(logits, chain), tag_probabilities(logits, chain)
    for (text, spans), numbers, probabilities in zip(*columns, strict=True):
        tags = named_tags(numbers, label_names)
        scores = probabilities[np.arange(len(numbers)), numbers]
        found = extract_entities([readings[tag] for tag in tags]) if readings else ()
        found = [(*entity, float(np.mean(scores[slice(*entity[1:])]))) for entity in found]
        answers.append(tagged_text(text, spans, tags, found))
    return answers


def tagged_text(
    text: str,
    spans: Sequence[tuple[int, int]],
    tags: Sequence[Any],
    entities: Iterable[tuple[str, int, int, float]],
) -> dict[str, Any]:
    """Returns the answer for a text, see `tagged_texts`.

    Args:
        text: str.
        spans: list of `(start, end)`, the characters of each word.
        tags: a tag for each word.
        entities: iterable of the type, the first word, the word after the last, and the score.
    """
    words = [(text[start:end], tag) for (start, end), tag in zip(spans, tags, strict=True)]
    answer = {"text": text, "words": words, "entities": []}
    for kind, first, end_word, score in entities:
        start, end = spans[first][0], spans[end_word - 1][1]
        entity = {"type": kind, "text": text[start:end], "start": start, "end": end}
        answer["entities"].append({**entity, "score": score})
    return answer


def named_tags(numbers: NDArray[np.integer], label_names: Sequence[str] | None) -> list[Any]:
    """Returns tags by their names, or without `label_names` as ints."""
    return [label_names[number] for number in numbers] if label_names else numbers.tolist()


class TagAnswerer(Answerer):
    """The words of sentences with their tags, and the entities that these mark.

    Its settings are those of `TokenClassifier`, and `crf`: the weights of the conditional random
    field, see `bert_keras.answers.viterbi`, or `[]`.
    """

    method = "tag"
    setting_names = ("num_classes", "label_names", "stride")
    about = "Tag the words of each text: named entities, or parts of speech."
    example = '"Ada Lovelace lived in London."'
    tag, does = "token-classification", "tags words"
    call = "tag(['A text.'])"

    def columns(self, *columns):
        """Returns a column of sentences, each a str or a list of words."""
        (sentences,) = columns
        return (as_sentences(sentences),), isinstance(sentences, str)

    def encode(self, texts):
        return WordRows(self.packer, texts, self.settings["stride"])

    def answer(self, rows, batches, sentences):
        placed, names = place_words(self.tokenizer, sentences), self.settings["label_names"]
        chain = [np.array(weights, "float32") for weights in self.settings["crf"]] or None
        return tagged_texts(placed, rows.collect(batches), names, chain)


class PieceLogitsAnswerer(TagAnswerer):
    """The logits of every token of texts."""

    method, about = "piece_logits", ""

    def encode(self, texts):
        return WordRows(self.packer, texts, self.settings["stride"], are_pieces=True)

    def answer(self, rows, batches, sentences):
        return rows.collect(batches)


def as_sentences(x):
    """Returns sentences as a list of str or of lists of str, after checking every entry.

    Args:
        x: a str, or a list, NumPy array or pandas column whose entries are str (plain texts) or
            lists of str (words; for Chinese, characters).

    Raises:
        TypeError: a sentence is neither.
    """
    rows = [x] if isinstance(x, str) else as_column(x, "sentences")
    return [
        row if isinstance(row, str) else as_texts(row, f"sentence {index}")
        for index, row in enumerate(rows)
    ]


def place_words(tokenizer, sentences):
    """Returns where the words of each sentence are in its text.

    A list of words is joined by `join_words`. A plain text is split as the tokenizer splits it
    before it cuts words into pieces, as BERT's does at white space, around punctuation and around
    every Chinese character; see `bert_keras.tokenizers.words.number_words` for tokenizers that
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
