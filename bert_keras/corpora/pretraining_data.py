"""Text files to a folder of pre-training examples, with any number of processes."""

import itertools
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from bert_keras.checks import check_choice, check_int, check_not_empty, check_number
from bert_keras.corpora import sentence_pairs, shards
from bert_keras.corpora.shards import FORMAT_VERSION, file_sha256, json_sha256, write_shard
from bert_keras.corpora.text_files import find_text_files, read_documents
from bert_keras.corpora.tokenized_corpus import (
    open_array,
    open_tokens,
    store_tokens,
    write_arrays,
)
from bert_keras.corpora.workers import STATE, Workers
from bert_keras.engine.atomic_files import read_json, remove_if_left, write_json
from bert_keras.preprocessing.masking import TokenKinds
from bert_keras.tokenizers.tokenizer import Tokenizer
from bert_keras.types import Path

# Holds what an unfinished run needs to continue.
UNFINISHED_FOLDER = ".unfinished"
TOKENS_PER_TASK = 1 << 20
EXAMPLES_PER_PART = 1 << 16
# For less input a second process costs more than it saves: starting one takes seconds.
BYTES_PER_PROCESS = 1 << 24
# A larger share of unknown tokens means that the vocabulary is for another language or case.
MOST_UNKNOWN = 0.1
# Shards, and the incomplete files that a killed process leaves.
_SHARD = re.compile(r"examples-\d{5,}-of-\d{5,}\.\w+")
_PARTIAL = re.compile(r"\.(examples-|manifest\.).*\.partial")
# A row of `Segments` on disk.
_SEGMENT = np.dtype(
    [("first", "<i8", 2), ("second", "<i8", 2), ("not_next", "i1"), ("is_short", "?")]
)


def create_pretraining_data(
    input_files: Path | Sequence[Path],
    tokenizer: Tokenizer,
    output_dir: Path,
    *,
    sequence_length: int = 128,
    objective: Literal["next_sentence", "sentence_order", "full_sentences"] = "next_sentence",
    documents: Literal["blank_line", "file"] = "blank_line",
    sentences_per_line: bool = False,
    duplicates: int = 1,
    short_probability: float = 0.1,
    random_probability: float = 0.5,
    short_per: Literal["example", "document"] = "example",
    word_segmenter: Callable[[str], Iterable[str]] | None = None,
    seed: int = 0,
    examples_per_shard: int = 16384,
    num_workers: int | None = None,
    progress: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """Writes a folder that `PretrainingBatches` reads.

    The text is tokenized into one file of ids, the documents are cut into examples (see
    `sentence_pairs`), the examples of the whole corpus are shuffled and written in shards, and
    `manifest.json` is written last. The same input and arguments give the same bytes, whatever the
    number of processes. A file gets its name only when it is complete. After a kill the same call
    continues with the step that was killed, or with the next shard; if all shards exist, it does
    nothing.

    A corpus is plain text: `[SEP]` in it is read as characters, whatever the tokenizer does
    elsewhere.

    Args:
        input_files: path, or list of paths, of text files, plain or gzip, or folders of them. Each
            is read twice, first for its checksum.
        tokenizer: `Tokenizer` with a mask token.
        output_dir: str, the folder to write, made if needed.
        sequence_length: int, the longest row, with special tokens.
        objective: `"next_sentence"` (BERT), `"sentence_order"` (ALBERT) or `"full_sentences"`
            (RoBERTa, no pairs).
        documents: `"blank_line"` or `"file"`, what separates two documents.
        sentences_per_line: bool. With `True` each line is a sentence; with `False` paragraphs are
            split into sentences by `split_sentences`.
        duplicates: int, passes over the documents, each with other pairs.
        short_probability: float, how often a shorter target length is drawn.
        random_probability: float, how often segment B is random although the true B exists.
        short_per: `"example"` or `"document"`, see `next_sentence_segments`.
        word_segmenter: function of a sentence (str) that returns its words (iterable of str, with
            everything except spaces), for masking whole words in Chinese. It determines which
            tokens begin a word, and changes no token. It must be defined in a module, so that
            processes can import it and its name identifies it.
        seed: int.
        examples_per_shard: int.
        num_workers: int; `None` for one process per 16 MB of input, at most one per core.
        progress: function of a str, called from time to time; or `None`.

    Returns:
        The manifest, a dict.

    Raises:
        ValueError: an argument is out of range, there is no text, all tokens are unknown, there is
            no second document, no `[MASK]` or no room for two tokens, a word segmenter loses text,
            or `output_dir` holds other data.
        FileNotFoundError: an input does not exist.
        ChildProcessError: a process was killed; the same call continues.
    """
    # What, beside the text and the tokenizer, determines the examples.
    settings = {"objective": objective, "sequence_length": sequence_length}
    settings |= {"duplicates": duplicates, "short_probability": short_probability}
    settings |= {"random_probability": random_probability, "short_per": short_per, "seed": seed}
    settings["examples_per_shard"] = examples_per_shard
    _check(settings, tokenizer)
    files = find_text_files(input_files)
    num_bytes = sum(map(os.path.getsize, files))
    reading = {"documents": documents, "sentences_per_line": bool(sentences_per_line)}
    reading["word_segmenter"] = _id_of(word_segmenter)
    about = {"vocabulary": describe_vocabulary(tokenizer), "reading": reading}
    about["input"] = {"files": list(map(os.path.basename, files)), "bytes": num_bytes}
    fingerprint = json_sha256([list(map(file_sha256, files)), about, settings, FORMAT_VERSION])
    manifest = _finished_manifest(output_dir, fingerprint)
    if manifest is None:
        state = {
            "sentences_per_line": sentences_per_line,
            "word_segmenter": word_segmenter,
            "tokenizer": tokenizer.plain(),
            "settings": settings,
            "output_dir": os.path.abspath(output_dir),
            "unfinished": os.path.abspath(os.path.join(output_dir, UNFINISHED_FOLDER, fingerprint)),
        }
        count = max(1, min(os.cpu_count() or 1, num_bytes // BYTES_PER_PROCESS))
        with Workers(num_workers or count, **state) as workers:
            passages = "line" if sentences_per_line else "paragraph"
            texts = read_documents(files, documents, passages)
            made = _make_shards(workers, texts, progress or (lambda message: None))
        tokenizer.save(output_dir)
        manifest = {"version": FORMAT_VERSION, "fingerprint": fingerprint, **settings, **about}
        manifest |= made
        shards.write_manifest(output_dir, manifest)
    _remove_leftovers(output_dir, manifest["shards"])
    return manifest


def describe_vocabulary(tokenizer: Tokenizer) -> dict[str, Any]:
    """Returns the description of a tokenizer in a manifest."""
    return {
        "size": tokenizer.vocabulary_size,
        "sha256": json_sha256(tokenizer.vocabulary),
        "settings_sha256": json_sha256([tokenizer.settings, tokenizer.get_config()]),
    }


def _make_shards(workers, texts, progress):
    """Writes all shards; returns the part of the manifest that describes them."""
    settings, output_dir, unfinished = map(STATE.get, ("settings", "output_dir", "unfinished"))
    if not os.path.isdir(unfinished):
        # Remove what a killed run with other settings may have left.
        os.makedirs(output_dir, exist_ok=True)
        _remove_leftovers(output_dir)
        os.makedirs(unfinished)
    try:
        counts = store_tokens(workers, texts, os.path.join(unfinished, "tokens"), progress)
        _check_known(counts)
        cut = _cut(workers, settings, progress)
    except ValueError as error:
        if type(error) is not ValueError:
            raise  # A subclass comes from Python or a library; the same call may continue.
        # The text does not suit the arguments, so no other call can use these files.
        STATE.pop("corpus", None)
        _remove_leftovers(output_dir)
        raise
    entries, statistics = _write_shards(workers, cut, settings, progress)
    return {
        "num_examples": cut["examples"],
        "counts": counts | {"skipped_sentences": cut["skipped_sentences"]},
        "statistics": statistics,
        "shards": entries,
    }


def _check(settings, tokenizer):
    check_choice("objective", settings["objective"], sentence_pairs.OBJECTIVES)
    check_choice("short_per", settings["short_per"], ("example", "document"))
    for name in ("sequence_length", "duplicates", "examples_per_shard"):
        settings[name] = check_int(name, settings[name])
    settings["seed"] = check_int("seed", settings["seed"], 0)
    for name in ("short_probability", "random_probability"):
        check_number(name, settings[name], below=1 + 1e-9)
    if settings["duplicates"] > 1 and settings["objective"] == "full_sentences":
        raise ValueError(
            "`duplicates` would repeat the same rows of 'full_sentences'. Received: "
            f"{settings['duplicates']}. Leave it out."
        )
    # Raises if there is no mask token.
    TokenKinds.from_tokenizer(tokenizer)


def _check_known(counts):
    """Refuses a text whose tokens are all unknown, and warns of a large share of them."""
    share = counts["unknown_tokens"] / counts["tokens"]
    message = (
        f"{share:.1%} of the text's {counts['tokens']:,} tokens are not in the vocabulary. Is it "
        "for this language, and are `lowercase` and the files' encoding right?"
    )
    if share == 1:
        raise ValueError(message)
    if share > MOST_UNKNOWN:
        warnings.warn(message, stacklevel=4)


def _id_of(function):
    """Returns a function's module and name, which identify it, or `None` for `None`."""
    if function is None:
        return None
    name = getattr(function, "__qualname__", "<")
    if "<" in name:
        raise ValueError(
            "`word_segmenter` must be a function with its own name in a module, by which its data "
            f"is recognized. Received: {function!r}. Define it by `def`, outside of functions."
        )
    return f"{function.__module__}:{name}"


def _finished_manifest(output_dir, fingerprint):
    """Returns the manifest of a folder with exactly this data, `None` if it has no data."""
    if not os.path.exists(os.path.join(output_dir, shards.MANIFEST_FILE)):
        return None
    manifest = shards.read_manifest(output_dir)
    if manifest["fingerprint"] != fingerprint:
        raise ValueError(
            "`output_dir` must be new, or hold data of the same input, vocabulary and settings. "
            f"Received: {output_dir}, which holds other data. Choose another folder or remove it."
        )
    return manifest


def _remove_leftovers(output_dir, entries=()):
    """Removes the files that unfinished runs left, but not the shards that `entries` list."""
    shutil.rmtree(os.path.join(output_dir, UNFINISHED_FOLDER), ignore_errors=True)
    kept = {shard["file"] for shard in entries}
    for name in os.listdir(output_dir):
        path = os.path.join(output_dir, name)
        if name not in kept and _SHARD.fullmatch(name):
            os.remove(path)
        if _PARTIAL.fullmatch(name):
            remove_if_left(path)


def _corpus():
    """Returns `Documents` and word starts, which each process opens once."""
    if "corpus" not in STATE:
        STATE["corpus"] = open_tokens(_unfinished("tokens"), STATE["tokenizer"])
    return STATE["corpus"]


# Documents to examples


def _cut(workers, settings, progress):
    """Cuts all passes over all documents into segments, in order; returns their counts."""
    counts = write_arrays(
        _unfinished("segments"),
        {"segments": _SEGMENT},
        map(_segment_rows, _cut_parts(workers, settings)),
        lambda counts: progress(f"{counts['examples']:,} examples cut"),
    )
    advice = "Pairs need documents of two sentences or more: do blank lines end them too early?"
    examples = range(counts["examples"])
    check_not_empty(examples, "The text must give at least one example", advice)
    return counts


def _cut_parts(workers, settings):
    """Yields `Segments` of all passes over all documents."""
    documents, _ = _corpus()
    if settings["objective"] == "full_sentences":
        options = settings["sequence_length"], STATE["tokenizer"].layout, EXAMPLES_PER_PART
        yield from sentence_pairs.full_sentence_segments(documents, *options)
    else:
        passes = range(settings["duplicates"])
        yield from workers.map(
            _cut_documents, itertools.product(passes, _document_ranges(documents))
        )


def _segment_rows(segments):
    """Returns a chunk for `write_arrays`."""
    rows = np.empty(len(segments.not_next), _SEGMENT)
    for name in _SEGMENT.names:
        rows[name] = getattr(segments, name)
    counts = {"examples": len(rows), "skipped_sentences": segments.num_skipped}
    counts |= {name: int(rows[name].sum()) for name in ("not_next", "is_short")}
    return {"segments": rows}, counts


def _document_ranges(documents):
    """Yields ranges of documents with about one task's tokens. They depend only on the data."""
    starts, begin = documents.sentence_starts[documents.first_sentences[:-1]], 0
    while begin < len(starts):
        end = int(np.searchsorted(starts, starts[begin] + TOKENS_PER_TASK))
        yield range(begin, end := max(end, begin + 1))
        begin = end


def _cut_documents(task):
    duplicate, which = task
    settings, (documents, _) = STATE["settings"], _corpus()
    names = ["sequence_length", "seed", "short_probability"]
    cut = sentence_pairs.sentence_order_segments
    if settings["objective"] == "next_sentence":
        names += ["random_probability", "short_per"]
        cut = sentence_pairs.next_sentence_segments
    options = {name: settings[name] for name in names} | {"layout": STATE["tokenizer"].layout}
    return cut(documents, duplicate=duplicate, which=which, **options)


# Examples to shards


def _write_shards(workers, cut, settings, progress):
    """Writes all missing shards; returns the entries of all shards and the statistics."""
    total = cut["examples"]
    count = -(-total // settings["examples_per_shard"])
    np.save(_unfinished("order.npy"), np.random.default_rng(settings["seed"]).permutation(total))
    entries, num_tokens = [], 0
    for entry, shard_tokens in workers.map(_write_shard, ((i, count) for i in range(count))):
        entries.append(entry)
        num_tokens += shard_tokens
        progress(f"{len(entries)} of {count} shards written")
    statistics = {"short_share": round(cut["is_short"] / total, 5)}
    if settings["objective"] != "full_sentences":
        statistics["not_next_share"] = round(cut["not_next"] / total, 5)
    mean = {"mean_length": round(num_tokens / total, 3), "example_tokens": num_tokens}
    return entries, statistics | mean


def _unfinished(name):
    """Returns the path of a file or a folder of the unfinished run."""
    return os.path.join(STATE["unfinished"], name)


def _write_shard(task):
    """Writes one shard unless it exists; returns its entry in the manifest and its tokens."""
    index, count = task
    settings, folder = STATE["settings"], STATE["output_dir"]
    name = shards.shard_name(index, count)
    path = os.path.join(folder, name)
    note_path = _unfinished(f"{name}.json")
    if os.path.exists(note_path) and os.path.exists(path):
        entry, num_tokens = read_json(note_path, list)
        if entry["sha256"] == file_sha256(path):
            return entry, num_tokens
    segments = _shuffled_segments(index, settings)
    arrays = _shard_arrays(segments)
    write_shard(path, arrays)
    entry = {"file": name, "num_examples": len(segments.not_next)}
    entry |= {"bytes": os.path.getsize(path), "sha256": file_sha256(path)}
    num_tokens = int(arrays["offsets"][-1])
    write_json(note_path, [entry, num_tokens])
    return entry, num_tokens


def _shuffled_segments(index, settings):
    """Returns the `Segments` of a shard: its part of all examples, which are shuffled."""
    if "segments" not in STATE:
        STATE["segments"] = open_array(_unfinished("segments"), "segments", _SEGMENT)
        STATE["order"] = np.load(_unfinished("order.npy"), mmap_mode="r")
    size = settings["examples_per_shard"]
    rows = STATE["segments"][STATE["order"][index * size : (index + 1) * size]]
    return sentence_pairs.Segments(*map(rows.__getitem__, _SEGMENT.names))


def _shard_arrays(segments):
    """Returns the arrays of a shard, see `bert_keras.corpora.shards`."""
    tokenizer, settings = STATE["tokenizer"], STATE["settings"]
    documents, word_starts = _corpus()
    rows, second_starts = sentence_pairs.pack_segments(documents, segments, tokenizer.layout)
    arrays = {"token_ids": rows.values, "second_starts": second_starts}
    arrays["offsets"] = np.concatenate([[0], np.cumsum(rows.lengths, dtype=np.int64)])
    if settings["objective"] != "full_sentences":
        arrays["is_random_next"] = segments.not_next
    if word_starts is not None:
        documents = documents._replace(token_ids=word_starts)
        word_starts, _ = sentence_pairs.pack_segments(documents, segments, tokenizer.layout.of(1))
        arrays["word_starts"] = word_starts.values
    return arrays
