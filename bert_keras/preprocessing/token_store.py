"""A corpus tokenized into files that any number of processes read as memory maps."""

import collections
import itertools
import os

import numpy as np

from bert_keras.datasets.sentences import split_sentences
from bert_keras.files import read_json, write_json
from bert_keras.preprocessing.documents import (
    CachedTokenizer,
    Documents,
    cut_long_sentences,
    sentence_borders,
)
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.preprocessing.sentence_pairs import copy_slices
from bert_keras.preprocessing.workers import STATE

IDS_FILE, WORD_STARTS_FILE = "token_ids.bin", "word_starts.bin"
BORDERS_FILE, STORE_FILE = "borders.npz", "store.json"
# One task of a process: enough to outweigh its transport, little enough to share out evenly.
CHARACTERS_PER_TASK = 1 << 20
# What has no end of sentence for so long is cut, see `cut_long_sentences`.
LONGEST_SENTENCE = 512


def store_tokens(workers, texts, folder, progress):
    """Tokenizes a corpus into a folder, unless it is there already.

    Args:
        workers: `Workers` with the state `tokenizer`, `word_segmenter`, `sentences_per_line`.
        texts: iterable of documents, each a list of passages.
        folder: str, of this corpus and these settings.
        progress: function of a str.

    Returns:
        A dict of counts: `documents`, `empty_documents`, `tokens` and so on.

    Raises:
        ValueError: there is no text.
    """
    store_path = os.path.join(folder, STORE_FILE)
    if os.path.exists(store_path):
        return read_json(store_path)
    os.makedirs(folder, exist_ok=True)
    counts = _write_tokens(workers, texts, folder, progress)
    if not counts.get("documents"):
        raise ValueError("Pre-training needs text. Received: files without any token.")
    write_json(store_path, counts)
    return counts


def open_tokens(folder, tokenizer):
    """Returns what `store_tokens` wrote.

    Args:
        folder: str.
        tokenizer: the `Tokenizer` it was written with.

    Returns:
        documents: `Documents` on a memory map.
        word_starts: bool `(total,)`, a memory map, or None where the vocabulary tells.
    """
    with np.load(os.path.join(folder, BORDERS_FILE)) as saved:
        borders = sentence_borders(saved["lengths"], saved["per_document"])
    ids = np.memmap(os.path.join(folder, IDS_FILE), id_dtype(tokenizer), "r")
    starts_path = os.path.join(folder, WORD_STARTS_FILE)
    has_words = os.path.getsize(starts_path) > 0
    return Documents(ids, *borders), np.memmap(starts_path, bool, "r") if has_words else None


def id_dtype(tokenizer):
    """Returns the smallest dtype of files that holds the ids of a vocabulary."""
    return np.uint16 if tokenizer.vocabulary_size <= 1 << 16 else np.int32


def _write_tokens(workers, texts, folder, progress):
    counts, lengths, per_document = collections.Counter(), [], []
    with (
        open(os.path.join(folder, IDS_FILE), "wb") as ids_file,
        open(os.path.join(folder, WORD_STARTS_FILE), "wb") as starts_file,
    ):
        for part in workers.map(tokenize_documents, _tasks(texts)):
            ids_file.write(part["token_ids"].data)
            starts_file.write(part["word_starts"].data)
            lengths.append(part["lengths"])
            per_document.append(part["per_document"])
            counts.update(part["counts"])
            progress(f"{counts['bytes'] / 1e6:,.1f} MB of text tokenized")
    if lengths:
        lengths, per_document = np.concatenate(lengths), np.concatenate(per_document)
        np.savez(os.path.join(folder, BORDERS_FILE), lengths=lengths, per_document=per_document)
    return dict(counts)


def _tasks(documents):
    """Gathers documents until they are worth a task."""
    task, size = [], 0
    for document in documents:
        task.append(document)
        size += sum(map(len, document))
        if size >= CHARACTERS_PER_TASK:
            yield task
            task, size = [], 0
    if task:
        yield task


def tokenize_documents(documents):
    """Returns the ids of some documents, for `Documents`, and counts.

    Args:
        documents: list of documents, each a list of passages.

    Returns:
        A dict: `token_ids`, a separator behind each document; `word_starts`, bool of the same
        shape, or of none where the vocabulary tells; `lengths`, tokens of each sentence;
        `per_document`, sentences of each document that has any; `counts`, a dict of ints.
    """
    tokenizer = STATE["tokenizer"]
    rows = [_sentences(passages) for passages in documents]
    ids, lengths, word_starts = _sentence_ids(list(itertools.chain.from_iterable(rows)))
    pieces, num_pieces = cut_long_sentences(lengths, LONGEST_SENTENCE)
    document = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    per_document = np.bincount(document, num_pieces, len(rows)).astype(np.int64)
    unknown = -1 if tokenizer.unknown_token is None else tokenizer.unknown_token_id
    counts = {
        "documents": int(np.sum(per_document > 0)),
        "empty_documents": int(np.sum(per_document == 0)),
        "one_sentence_documents": int(np.sum(per_document == 1)),
        "sentences": len(pieces),
        "cut_sentences": int(np.sum(num_pieces > 1)),
        "empty_sentences": int(np.sum(num_pieces == 0)),
        "tokens": len(ids),
        "unknown_tokens": int(np.sum(ids == unknown)),
        "bytes": sum(len(text.encode("utf-8", "replace")) for row in rows for text in row),
    }
    per_document = per_document[per_document > 0]
    starts, ends, _ = sentence_borders(pieces, per_document)
    begins = np.cumsum(pieces) - pieces
    part = {"lengths": pieces, "per_document": per_document, "counts": counts}
    for name, values, separator, dtype in (
        ("token_ids", ids, tokenizer.sep_token_id, id_dtype(tokenizer)),
        ("word_starts", word_starts, True, bool),
    ):
        size = 0 if values is None else len(ids) + len(per_document)
        part[name] = np.full(size, separator, dtype)
        if size:
            copy_slices(values, begins, part[name], starts, ends - starts)
    return part


def _sentences(passages):
    if STATE["sentences_per_line"]:
        return passages
    return list(itertools.chain.from_iterable(map(split_sentences, passages)))


def _sentence_ids(sentences):
    """Returns flat ids, tokens of each sentence, and which token begins a word, or None."""
    tokenizer = STATE["tokenizer"]
    if STATE["word_segmenter"] is not None:
        return _segmented(tokenizer, sentences)
    if tokenizer.continues_word is None:
        return tokenizer.flat_ids(sentences, word_starts=True)
    if "cached_tokenizer" not in STATE:
        STATE["cached_tokenizer"] = CachedTokenizer(tokenizer)
    return *STATE["cached_tokenizer"].flat_ids(sentences), None


def _segmented(tokenizer, sentences):
    """Returns the same where the words are those of the word segmenter.

    The tokens are the sentence's own; one begins a word where its first character lies in another
    word than that of the token before.
    """
    ids, starts = [], []
    encodings = tokenizer.encode(sentences, special_tokens=False)
    for sentence, encoding in zip(sentences, encodings, strict=True):
        numbers = _word_numbers(sentence)
        places = np.array([begin for begin, _ in encoding.offsets], np.int64)
        ids.append(encoding.ids)
        starts.append(np.diff(numbers[places], prepend=-1) != 0)
    rows = Ragged.from_rows(ids)
    return rows.values, rows.lengths, np.concatenate([np.empty(0, bool), *starts])


def _word_numbers(sentence):
    """Returns the number of the word of each character, and once more that of the last."""
    words = ["".join(word.split()) for word in STATE["word_segmenter"](sentence)]
    if "".join(words) != "".join(sentence.split()):
        raise ValueError(
            "`word_segmenter` must return all of a sentence, cut into words. Received: "
            f"{words[:20]} for {sentence[:80]!r}."
        )
    of_characters = np.repeat(np.arange(len(words)), list(map(len, words)))
    # A space counts to the word before it.
    position = np.cumsum([not character.isspace() for character in sentence + " "]) - 1
    return np.append(of_characters, -1)[np.maximum(position, 0)]
