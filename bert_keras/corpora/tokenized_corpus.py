"""A corpus tokenized into files, which any number of processes read as memory maps."""

import collections
import contextlib
import itertools
import os

import numpy as np

from bert_keras.checks import check_not_empty
from bert_keras.corpora.documents import (
    CachedTokenizer,
    Documents,
    cut_long_sentences,
    sentence_borders,
)
from bert_keras.corpora.sentences import split_sentences
from bert_keras.corpora.workers import STATE
from bert_keras.engine.atomic_files import read_json, write_json
from bert_keras.preprocessing.ragged import Ragged

# A task is large enough to outweigh its transport, and small enough to balance the processes.
CHARACTERS_PER_TASK = 1 << 20
# Longer sentences are cut, see `cut_long_sentences`.
LONGEST_SENTENCE = 512
# Holds the counts, and is written last.
COUNTS_FILE = "counts.json"


def store_tokens(workers, texts, folder, progress):
    """Tokenizes a corpus into a folder, unless an earlier call has finished.

    Args:
        workers: `Workers` with the state `tokenizer`, `word_segmenter`, `sentences_per_line`.
        texts: iterable of documents, each a list of passages.
        folder: str, the folder of this corpus and these settings.
        progress: function of a str.

    Returns:
        A dict of counts: `documents`, `empty_documents`, `tokens` and so on.

    Raises:
        ValueError: there is no text.
    """
    counts = write_arrays(
        folder,
        _dtypes(STATE["tokenizer"]),
        _shifted(workers.map(tokenize_documents, _tasks(texts))),
        lambda counts: progress(f"{counts['bytes'] / 1e6:,.1f} MB of text tokenized"),
    )
    check_not_empty(range(counts["documents"]), "The files must have tokens to train on")
    return dict(counts)


def open_tokens(folder, tokenizer):
    """Returns the corpus in a folder that `store_tokens` wrote.

    Args:
        folder: str.
        tokenizer: the `Tokenizer` it was written with.

    Returns:
        documents: `Documents` on memory maps.
        word_starts: bool `(total,)`, a memory map, whether a word begins at each token; `None` if
            the vocabulary tells.
    """
    arrays = {name: open_array(folder, name, x) for name, x in _dtypes(tokenizer).items()}
    word_starts = arrays.pop("word_starts")
    return Documents(**arrays), word_starts if len(word_starts) else None


def _dtypes(tokenizer):
    dtypes = dict.fromkeys(Documents._fields, np.int64)
    return dtypes | {"token_ids": id_dtype(tokenizer), "word_starts": bool}


def _shifted(chunks):
    """Yields chunks with their borders shifted by what is there before them."""
    lengths = collections.Counter()
    for arrays, counts in chunks:
        shifts = [lengths[name] for name in ("token_ids", "token_ids", "sentence_starts")]
        for name, shift in zip(Documents._fields[1:], shifts, strict=True):
            arrays[name] += shift
        if lengths["first_sentences"]:  # Its last entry is also the chunk's first: drop it.
            arrays["first_sentences"] = arrays["first_sentences"][1:]
        lengths.update({name: len(array) for name, array in arrays.items()})
        yield arrays, counts


def id_dtype(tokenizer):
    """Returns the smallest dtype for the ids of a vocabulary."""
    return np.uint16 if tokenizer.vocabulary_size <= 1 << 16 else np.int32


def _tasks(documents):
    """Yields lists of documents, each large enough for a task."""
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
    """Tokenizes some documents.

    Args:
        documents: list of documents, each a list of passages.

    Returns:
        arrays: dict, the fields of `Documents` for documents with a sentence, and `word_starts`,
            bool with the shape of `token_ids`, or empty if the vocabulary tells them.
        counts: dict of ints.
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
    _, ends, first_sentences = borders = sentence_borders(pieces, per_document)
    arrays = dict(zip(Documents._fields[1:], borders, strict=True))
    # A separator follows each document.
    places = ends[first_sentences[1:] - 1] - np.arange(len(per_document))
    ids = np.insert(ids, places, tokenizer.sep_token_id).astype(id_dtype(tokenizer))
    starts = np.empty(0, bool) if word_starts is None else np.insert(word_starts, places, True)
    return arrays | {"token_ids": ids, "word_starts": starts}, counts


def _sentences(passages):
    if STATE["sentences_per_line"]:
        return passages
    return list(itertools.chain.from_iterable(map(split_sentences, passages)))


def _sentence_ids(sentences):
    """Returns flat ids, the length of each sentence, and whether each token begins a word.

    The last is `None` if the vocabulary tells.
    """
    tokenizer = STATE["tokenizer"]
    if STATE["word_segmenter"] is not None:
        return _segmented_ids(tokenizer, sentences)
    if tokenizer.continues_word is None:
        return tokenizer.flat_ids(sentences, word_starts=True)
    if "cached_tokenizer" not in STATE:
        STATE["cached_tokenizer"] = CachedTokenizer(tokenizer)
    return *STATE["cached_tokenizer"].flat_ids(sentences), None


def _segmented_ids(tokenizer, sentences):
    """Returns the same as `_sentence_ids`, with words from the word segmenter.

    It changes no token. A token begins a word if its first character is in another word than that
    of the previous token.
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
    """Returns the number of each character's word, and a last entry for the end."""
    words = ["".join(word.split()) for word in STATE["word_segmenter"](sentence)]
    if "".join(words) != "".join(sentence.split()):
        raise ValueError(
            "`word_segmenter` must return all of a sentence, split into words. Received: "
            f"{words[:20]} for {sentence[:80]!r}."
        )
    of_characters = np.repeat(np.arange(len(words)), list(map(len, words)))
    # A space belongs to the word before it.
    position = np.cumsum([not character.isspace() for character in sentence + " "]) - 1
    return np.append(of_characters, -1)[np.maximum(position, 0)]


def write_arrays(folder, dtypes, chunks, progress):
    """Writes arrays into a folder, unless an earlier call has finished.

    Args:
        folder: str, made if needed.
        dtypes: dict from the name of an array to its dtype.
        chunks: iterable of `(arrays, counts)`: a dict from each name to the next rows, and a dict
            of ints to sum.
        progress: function of the counts so far, called after each chunk.

    Returns:
        `collections.Counter`, the sums of the counts.
    """
    path, counts = os.path.join(folder, COUNTS_FILE), collections.Counter()
    if os.path.exists(path):
        return collections.Counter(read_json(path))
    os.makedirs(folder, exist_ok=True)
    with contextlib.ExitStack() as opened:
        files = {x: opened.enter_context(open(_path(folder, x), "wb")) for x in dtypes}
        for arrays, more_counts in chunks:
            for name, file in files.items():
                file.write(np.ascontiguousarray(arrays[name], dtypes[name]))
            counts.update(more_counts)
            progress(counts)
    write_json(path, counts)
    return counts


def open_array(folder, name, dtype):
    """Returns an array as a read-only memory map."""
    path = _path(folder, name)
    return np.memmap(path, dtype, "r") if os.path.getsize(path) else np.empty(0, dtype)


def _path(folder, name):
    return os.path.join(folder, f"{name}.bin")
