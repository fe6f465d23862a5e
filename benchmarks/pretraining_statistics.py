"""What 100,000 pre-training examples are like, beside the paper and google-research/bert's rules.

    python benchmarks/pretraining_statistics.py --input 'books/*.txt.gz' --vocabulary vocab.txt

All sides cut the same sentences, as the same tokens, into rows of 128: Google's rules, which stand
in bert_pretraining_rules.py, with their defaults; ours with Google's way to draw short rows; and
ours as they come. Ours are read from the shards that `create_pretraining_data` wrote. Everything is
measured on the finished rows: where a segment was cut, its first or last eight tokens are not those
at any sentence's border. The flags, and how books become documents, are those of
pretraining_data.py. Prints a table in Markdown, and one line of JSON.
"""

import itertools
import json
import os
import random
import tempfile
from typing import NamedTuple

import numpy as np
from absl import app, flags
from bert_pretraining_rules import create_examples
from pretraining_data import write_sentences

from bert_keras.corpora import create_pretraining_data, open_shard, read_documents
from bert_keras.corpora.documents import CachedTokenizer
from bert_keras.preprocessing import Masking
from bert_keras.tokenizers import WordPieceTokenizer

FLAGS = flags.FLAGS
FLAGS.set_default("megabytes", 1e6)
flags.DEFINE_integer("num_examples", 100_000, "Rows to look at, of the shuffled ones.", 1)

LENGTH = 128
# Tokens that tell a place of the text from others.
PLACE = 8
PAPER = {
    "second segment random": 0.5,
    "predicted tokens": 0.15,
    "... that become [MASK]": 0.8,
    "... that become another token": 0.1,
    "... that stay": 0.1,
}


class Rows(NamedTuple):
    """Examples, one behind the other.

    Fields:
        token_ids: int64 `(total,)`, as the text has them.
        masked: int64 `(total,)`, as the model sees them.
        starts: int64 `(num_rows + 1,)`, where each row begins, and the end.
        second_starts: int64 `(num_rows,)`, where each second segment begins.
        not_next: `(num_rows,)`, 1 where it is random.
        places: int64 `(num_predictions,)`, where the predicted tokens stand.
    """

    token_ids: np.ndarray
    masked: np.ndarray
    starts: np.ndarray
    second_starts: np.ndarray
    not_next: np.ndarray
    places: np.ndarray


def main(argv):
    tokenizer = WordPieceTokenizer.load(FLAGS.vocabulary)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sentences.txt")
        write_sentences(path)
        sentences = read_sentences(path, tokenizer)
        sides = {
            "Google's rules": their_rows(sentences, tokenizer),
            "ours, short rows as Google's": our_rows(path, tokenizer, folder, "document"),
            "ours": our_rows(path, tokenizer, folder, "example"),
        }
    borders = texts_at_borders(sentences)
    found = {name: statistics(rows, borders, tokenizer) for name, rows in sides.items()}
    lengths = [np.diff(rows.starts) for rows in sides.values()]
    for side, other in zip(found.values(), lengths, strict=True):
        side["largest gap of the lengths' distribution to Google's"] = gap(lengths[0], other)
    print(table({"paper": PAPER, **found}))
    print(json.dumps(found))


def read_sentences(path, tokenizer):
    """Returns documents, each a list of sentences, each a list of ids."""
    texts = list(read_documents(path, documents="blank_line", passages="line"))
    ids, lengths = CachedTokenizer(tokenizer).flat_ids(list(itertools.chain.from_iterable(texts)))
    rows = iter(np.split(ids, np.cumsum(lengths)[:-1]))
    documents = [[next(rows).tolist() for _ in text] for text in texts]
    documents = [[sentence for sentence in document if sentence] for document in documents]
    return [document for document in documents if document]


def their_rows(documents, tokenizer):
    """Returns the `Rows` of Google's rules."""
    generator, words = random.Random(12345), list(range(tokenizer.vocabulary_size))
    documents = random.Random(0).sample(documents, len(documents))
    options = (LENGTH, 0.15, 20, FLAGS.duplicates, generator)
    examples = create_examples(documents, words, *options)[: FLAGS.num_examples]
    special = {token: tokenizer.vocabulary.index(token) for token in ("[CLS]", "[SEP]", "[MASK]")}
    masked = [special.get(token, token) for example in examples for token in example.tokens]
    starts = np.cumsum([0] + [len(example.tokens) for example in examples])
    first_lengths = [example.segment_ids.index(1) for example in examples]
    counts = [len(example.positions) for example in examples]
    positions = np.concatenate([example.positions for example in examples])
    labels = np.concatenate([example.labels for example in examples])
    not_next = np.array([example.not_next for example in examples])
    return make_rows(np.array(masked), starts, first_lengths, not_next, counts, positions, labels)


def our_rows(path, tokenizer, folder, short_per):
    """Returns the `Rows` that `create_pretraining_data` wrote."""
    folder = os.path.join(folder, short_per)
    manifest = create_pretraining_data(
        path,
        tokenizer,
        folder,
        sequence_length=LENGTH,
        sentences_per_line=True,
        duplicates=FLAGS.duplicates,
        masking=Masking(),
        short_per=short_per,
        num_workers=1,
    )
    shards = [open_shard(os.path.join(folder, shard["file"]))[0] for shard in manifest["shards"]]

    def column(name):
        return np.concatenate([np.asarray(shard[name]) for shard in shards])

    lengths = np.concatenate([np.diff(shard["offsets"]) for shard in shards])[: FLAGS.num_examples]
    counts = np.concatenate([np.diff(shard["mask_offsets"]) for shard in shards])[: len(lengths)]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    total = int(counts.sum())
    return make_rows(
        column("token_ids")[: starts[-1]].astype(np.int64),
        starts,
        column("second_starts")[: len(lengths)],
        column("is_random_next")[: len(lengths)],
        counts,
        column("mask_positions")[:total],
        column("mask_labels")[:total],
    )


def make_rows(masked, starts, first_lengths, not_next, counts, positions, labels):
    """Returns `Rows` of columns and labels of the predicted tokens, `counts` of them in a row."""
    places = np.repeat(starts[:-1], counts) + positions
    token_ids = masked.copy()
    token_ids[places] = labels
    return Rows(token_ids, masked, starts, starts[:-1] + first_lengths, not_next, places)


def texts_at_borders(documents):
    """Returns what stands at the beginnings and at the ends of sentences, as `place_of` says it."""
    flat, starts, ends = [], [], []
    for document in documents:
        for sentence in document:
            starts.append(len(flat))
            flat.extend(sentence)
            ends.append(len(flat))
        # Nothing that a row could hold, before the first document too, by negative indices.
        flat.extend([-1] * PLACE)
    flat, starts, ends = map(np.array, (flat, starts, ends))
    return place_of(flat, starts), place_of(flat, ends - PLACE)


def place_of(ids, starts):
    """Returns an int for the `PLACE` tokens from each start on, hardly ever equal for others."""
    factors = np.random.default_rng(0).integers(1, 1 << 62, PLACE)
    return (ids[starts[:, None] + np.arange(PLACE)] * factors).sum(axis=1)


def statistics(rows, borders, tokenizer):
    """Returns what the rows are like, a dict of floats."""
    lengths = np.diff(rows.starts)
    seen, label = rows.masked[rows.places], rows.token_ids[rows.places]
    is_masked = seen == tokenizer.mask_token_id
    found = {
        "examples": len(lengths),
        "second segment random": np.mean(rows.not_next),
        "mean length": np.mean(lengths),
    }
    edges = range(0, LENGTH, 16)
    for low in edges:
        is_in = (lengths > low) & (lengths <= low + 16)
        found[f"rows of {low + 1} to {low + 16} tokens"] = np.mean(is_in)
    found |= {
        "rows of 128 tokens": np.mean(lengths == LENGTH),
        "predicted tokens": len(rows.places) / len(rows.token_ids),
        "... that become [MASK]": np.mean(is_masked),
        "... that become another token": np.mean(~is_masked & (seen != label)),
        "... that stay": np.mean(seen == label),
    }
    segments = {
        "first": (rows.starts[:-1] + 1, rows.second_starts - 1),
        "second": (rows.second_starts, rows.starts[1:] - 1),
    }
    for name, (begin, end) in segments.items():
        is_long = end - begin >= PLACE
        at_front = place_of(rows.token_ids, begin[is_long])
        at_back = place_of(rows.token_ids, end[is_long] - PLACE)
        found[f"mean length of the {name} segment"] = np.mean(end - begin)
        found[f"{name} segment cut at its front"] = np.mean(~np.isin(at_front, borders[0]))
        found[f"{name} segment cut at its back"] = np.mean(~np.isin(at_back, borders[1]))
    return {name: round(float(value), 4) for name, value in found.items()}


def gap(first, second):
    """Returns the largest distance of two cumulative distributions of lengths."""
    curves = [
        np.cumsum(np.bincount(lengths, minlength=LENGTH + 1)) / len(lengths)
        for lengths in (first, second)
    ]
    return round(float(np.abs(curves[0] - curves[1]).max()), 4)


def table(sides):
    """Returns the table in Markdown."""
    lines = ["| | " + " | ".join(sides) + " |", "|---" * (len(sides) + 1) + "|"]
    for name in list(sides.values())[-1]:
        cells = [f"{side[name]:g}" if name in side else "" for side in sides.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    app.run(main)
