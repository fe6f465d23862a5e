"""Documents cut into pre-training examples: pairs of segments, or rows of full sentences."""

import itertools
import random
from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from bert_keras.checks import check_choice, check_int
from bert_keras.preprocessing.ragged import Ragged

OBJECTIVES = ("next_sentence", "sentence_order", "full_sentences")
# If so many draws of a random document hit the example's own, the next document is taken.
TRIES = 10
NEXT, NOT_NEXT = 0, 1


class Segments(NamedTuple):
    """The places of the examples' segments in `Documents.token_ids`.

    Attributes:
        first: int64 `(num_examples, 2)`, start and end of segment A.
        second: int64 `(num_examples, 2)`, start and end of segment B; the same if there is no B.
        not_next: int8 `(num_examples,)`, 0 if B follows A, 1 if it is random or swapped.
        is_short: bool `(num_examples,)`, whether a shorter target length was drawn.
        num_skipped: int, the number of sentences in no example.
    """

    first: np.ndarray
    second: np.ndarray
    not_next: np.ndarray
    is_short: np.ndarray
    num_skipped: int = 0


def next_sentence_segments(
    documents,
    sequence_length,
    layout,
    *,
    seed=0,
    duplicate=0,
    short_probability=0.1,
    random_probability=0.5,
    short_per="example",
    which=None,
):
    """Cuts documents into pairs of segments for next sentence prediction.

    Sentences of a document are collected until they reach the target length. Segment A is a random
    number of them, at least one. Half of the time segment B is the rest. Otherwise, and if there
    is only one sentence, B is sentences from a random place in another document, and the unused
    sentences are put back. Tokens beyond the length are dropped one by one from
    the longer segment, from its front or back at random. The target is the full length, or with
    `short_probability` drawn uniformly from 2 up to it, so that the model sees short inputs too.
    These are the steps and the draws of google-research/bert's create_pretraining_data.py, with
    two differences. The random document is never the example's own; Google's may be, after 10
    tries. And the target is drawn for each example. Google draws it once for a document, so that
    every tenth book of a corpus has only short examples; `short_per="document"` does the same.

    The random numbers of a document depend on `seed`, `duplicate` and its index, so that
    documents can be divided among any number of processes.

    Args:
        documents: `Documents`, at least two.
        sequence_length: int, the longest row, with special tokens.
        layout: `Layout`, the special tokens of a row.
        seed: int.
        duplicate: int, the number of this pass over the documents; each draws other pairs.
        short_probability: float.
        random_probability: float, how often B is random although the true B exists.
        short_per: `"example"` or `"document"`.
        which: range of documents to cut; `None` for all.

    Returns:
        `Segments`, in the order of the documents.

    Raises:
        ValueError: there is only one document, or no room for two tokens.

    Reference: Devlin et al. 2019, https://arxiv.org/abs/1810.04805, appendix A.2.
    """
    if documents.num_documents < 2:
        raise ValueError(
            "Next sentence prediction needs at least two documents, since random sentences come "
            f"from another one. Received: {documents.num_documents}. Separate documents by "
            "blank lines or files, or use 'sentence_order' or 'full_sentences'."
        )
    check_choice("short_per", short_per, ("example", "document"))
    cutter = _Cutter(documents, sequence_length, layout, short_probability)
    for document in range(documents.num_documents) if which is None else which:
        generator = document_generator(seed, duplicate, document)
        cutter.cut_next(document, generator, random_probability, short_per == "example")
    return cutter.segments()


def sentence_order_segments(
    documents, sequence_length, layout, *, seed=0, duplicate=0, short_probability=0.1, which=None
):
    """Cuts documents into pairs of consecutive segments, swapped half of the time, as in ALBERT.

    Sentences are collected and split into A and B as for `next_sentence_segments`; with probability
    1/2 the two are swapped, and the label is 1. A chunk of one sentence cannot be split, so it gets
    the following one too; if there is none, the sentence is left out and counted. (ALBERT's code
    takes a random segment for B instead.)

    Args:
        documents: `Documents`.
        sequence_length: int, the longest row, with special tokens.
        layout: `Layout`, the special tokens of a row.
        seed: int.
        duplicate: int, the number of this pass over the documents.
        short_probability: float, how often a shorter target length is drawn for an example.
        which: range of documents to cut; `None` for all.

    Returns:
        `Segments`, in the order of the documents.

    Raises:
        ValueError: there is no room for two tokens.

    Reference: Lan et al. 2020, https://arxiv.org/abs/1909.11942, section 3.1.
    """
    cutter = _Cutter(documents, sequence_length, layout, short_probability)
    for document in range(documents.num_documents) if which is None else which:
        cutter.cut_ordered(document, document_generator(seed, duplicate, document))
    return cutter.segments()


def full_sentence_segments(documents, sequence_length, layout, size):
    """Cuts the corpus into rows of whole sentences, as many as fit: RoBERTa's FULL-SENTENCES.

    A row continues into the next document, after a separator. A sentence longer than a row
    is cut at the row's end. Nothing is random, nothing is left out, and there is no segment B.

    Args:
        documents: `Documents`.
        sequence_length: int, the longest row, with special tokens.
        layout: `Layout`, the special tokens of a row.
        size: int, the number of rows in each `Segments`.

    Yields:
        `Segments` of `size` rows; the last one has fewer.

    Raises:
        ValueError: there is no room for two tokens.

    Reference: Liu et al. 2019, https://arxiv.org/abs/1907.11692, section 4.2.
    """
    rows = _full_sentences(documents, _budget(sequence_length, layout.num_special()))
    while part := list(itertools.islice(rows, size)):
        first = np.array(part, np.int64)
        none = np.zeros(len(part), np.int8)
        yield Segments(first, np.zeros_like(first), none, none.astype(bool))


def _full_sentences(documents, budget):
    starts, ends = memoryview(documents.sentence_starts), memoryview(documents.sentence_ends)
    begin, sentence = 0, 0
    while sentence < len(ends):
        stop = bisect_left(ends, begin + budget + 1, sentence)
        end = ends[stop - 1] if stop > sentence else begin + budget
        yield begin, end
        sentence = stop
        if sentence < len(ends):
            begin = max(end, starts[sentence])


def document_generator(seed, duplicate, document):
    """Returns the `random.Random` for one pass over one document."""
    return random.Random(f"{seed}/{duplicate}/{document}")


def pack_segments(documents, segments, layout):
    """Writes special tokens around A, or around A and B if there is a B, one row per example.

    Args:
        documents: `Documents`.
        segments: `Segments`.
        layout: `Layout`.

    Returns:
        rows: `Ragged` with the dtype of `documents.token_ids`.
        second_starts: int32 `(num_examples,)`, the column of B's first token, or the row's length.
    """
    first_lengths, second_lengths = (
        np.diff(pair)[:, 0] for pair in (segments.first, segments.second)
    )
    is_pair, num_before = second_lengths > 0, len(layout.before)
    first_ends = num_before + first_lengths
    second_starts = first_ends + np.where(is_pair, len(layout.between), len(layout.after))
    lengths = second_starts + second_lengths + is_pair * len(layout.after)
    values = np.zeros(int(lengths.sum()), documents.token_ids.dtype)
    rows = Ragged.from_flat(values, lengths)
    ends = rows.starts + lengths - len(layout.after)
    between = (rows.starts + first_ends)[is_pair]
    specials = (layout.before, layout.between, layout.after)
    for places, ids in zip((rows.starts, between, ends), specials, strict=True):
        for shift, id in enumerate(ids):
            values[places + shift] = id
    for pair, starts, counts in (
        (segments.first, rows.starts + num_before, first_lengths),
        (segments.second, rows.starts + second_starts, second_lengths),
    ):
        copy_slices(documents.token_ids, pair[:, 0], values, starts, counts)
    return rows, second_starts.astype(np.int32)


def copy_slices(source, source_starts, target, target_starts, lengths):
    """Copies `source[s : s + n]` to `target[t : t + n]` for each `s, t, n` of the three arrays.

    For slices of a few dozen tokens, memory views are three times faster than an index array.
    """
    source, target = memoryview(source.astype(target.dtype, copy=False)), memoryview(target)
    columns = (source_starts, target_starts, lengths)
    for start, place, length in zip(*(column.tolist() for column in columns), strict=True):
        target[place : place + length] = source[start : start + length]


def _budget(sequence_length, num_special):
    """Returns the most tokens of text in a row."""
    least, advice = num_special + 2, f"It must hold {num_special} special tokens and two others."
    return check_int("sequence_length", sequence_length, least, advice=advice) - num_special


class _Cutter:
    """Cuts documents into pairs by the borders of their sentences alone: no token is copied."""

    def __init__(self, documents, sequence_length, layout, short_probability):
        # Memory views give plain ints, which are several times faster than NumPy's scalars.
        self.starts = memoryview(np.ascontiguousarray(documents.sentence_starts))
        self.ends = memoryview(np.ascontiguousarray(documents.sentence_ends))
        self.firsts = memoryview(np.ascontiguousarray(documents.first_sentences))
        self.num_documents = documents.num_documents
        self.budget = _budget(sequence_length, layout.num_special(is_pair=True))
        self.short_probability = short_probability
        self.rows, self.num_skipped = [], 0

    def segments(self):
        """Returns the segments so far."""
        columns = np.array(self.rows, np.int64).reshape(-1, 6)
        flags = columns[:, 4].astype(np.int8), columns[:, 5].astype(bool)
        return Segments(columns[:, 0:2], columns[:, 2:4], *flags, self.num_skipped)

    def cut_next(self, document, generator, random_probability, is_target_per_example):
        """Cuts one document into pairs for next sentence prediction."""
        starts, ends = self.starts, self.ends
        sentence, stop = self.firsts[document], self.firsts[document + 1]
        target, is_short = self._draw_target(generator)
        while sentence < stop:
            chunk_end = self._chunk_end(sentence, stop, target)
            num_sentences = chunk_end - sentence
            a_end = sentence + 1
            if num_sentences >= 2:
                a_end = sentence + generator.randint(1, num_sentences - 1)
            a = starts[sentence], ends[a_end - 1]
            if num_sentences == 1 or generator.random() < random_probability:
                b = self._draw_second(generator, document, target - (a[1] - a[0]))
                not_next, sentence = NOT_NEXT, a_end
            else:
                b = starts[a_end], ends[chunk_end - 1]
                not_next, sentence = NEXT, chunk_end
            self._add(a, b, not_next, is_short, generator)
            if is_target_per_example:
                target, is_short = self._draw_target(generator)

    def cut_ordered(self, document, generator):
        """Cuts one document into pairs of consecutive segments, swapped half of the time."""
        starts, ends = self.starts, self.ends
        sentence, stop = self.firsts[document], self.firsts[document + 1]
        while sentence < stop:
            target, is_short = self._draw_target(generator)
            chunk_end = max(self._chunk_end(sentence, stop, target), sentence + 2)
            if chunk_end > stop:
                self.num_skipped += 1
                return
            a_end = sentence + generator.randint(1, chunk_end - sentence - 1)
            a = starts[sentence], ends[a_end - 1]
            b = starts[a_end], ends[chunk_end - 1]
            not_next = NOT_NEXT if generator.random() < 0.5 else NEXT
            self._add(*((b, a) if not_next else (a, b)), not_next, is_short, generator)
            sentence = chunk_end

    def _draw_target(self, generator):
        if generator.random() < self.short_probability:
            return generator.randint(2, self.budget), 1
        return self.budget, 0

    def _chunk_end(self, sentence, stop, target):
        """Returns the end of a chunk of sentences, at least one, that reaches the target length."""
        reached = bisect_left(self.ends, self.starts[sentence] + target, sentence, stop)
        return min(reached + 1, stop)

    def _draw_second(self, generator, document, target):
        for _ in range(TRIES):
            other = generator.randint(0, self.num_documents - 1)
            if other != document:
                break
        else:
            other = (document + 1) % self.num_documents
        sentence, stop = self.firsts[other], self.firsts[other + 1]
        sentence += generator.randint(0, stop - sentence - 1)
        return self.starts[sentence], self.ends[self._chunk_end(sentence, stop, target) - 1]

    def _add(self, a, b, not_next, is_short, generator):
        """Shortens a pair to the budget and adds it to the rows.

        Tokens go from the longer segment, one by one, and from B if both are equally long, as in
        Google's `truncate_seq_pair`; a formula gives the result. For each dropped token a random
        bit chooses front or back.
        """
        room, row = self.budget, []
        most = max((room + 1) // 2, room - (b[1] - b[0])), max(room // 2, room - (a[1] - a[0]))
        for (start, end), longest in zip((a, b), most, strict=True):
            surplus = end - start - longest
            if surplus > 0:
                from_front = generator.getrandbits(surplus).bit_count()
                start, end = start + from_front, end - surplus + from_front
            row += (start, end)
        self.rows.append((*row, not_next, is_short))
