import random

import google_pairs
import numpy as np
import pytest
from checks import cases
from google_pairs import pairs_of_document, truncate_pair

from bert_keras.corpora import sentence_pairs
from bert_keras.corpora.documents import Documents, sentence_borders
from bert_keras.corpora.sentence_pairs import (
    document_generator,
    full_sentence_segments,
    next_sentence_segments,
    pack_segments,
    sentence_order_segments,
)
from bert_keras.tokenizers import Layout

CLS, SEP = 1, 2
LAYOUT = Layout((CLS,), (SEP,), (SEP,), 1)


def full_sentences(documents, sequence_length, layout):
    """Returns all rows at once; those of two at a time must be the same."""
    [whole] = full_sentence_segments(documents, sequence_length, layout, 1 << 20)
    parts = list(full_sentence_segments(documents, sequence_length, layout, 2))
    for name in ("first", "second", "not_next", "is_short"):
        together = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(together, getattr(whole, name))
    return whole


def make_documents(num_documents, seed=0, longest=40, most_sentences=30):
    """Returns documents whose every token is a different id."""
    generator = random.Random(seed)
    documents, next_id = [], 10
    for _ in range(num_documents):
        document = []
        for _ in range(generator.randint(1, most_sentences)):
            length = generator.randint(1, longest)
            document.append(list(range(next_id, next_id + length)))
            next_id += length
        documents.append(document)
    return documents


def join_documents(documents, separator_id):
    """Returns `Documents` of lists of sentences, each a list of ids."""
    sentences = [sentence for document in documents for sentence in document]
    ids = [id for document in documents for row in [*document, [separator_id]] for id in row]
    borders = sentence_borders(np.array(list(map(len, sentences))), list(map(len, documents)))
    return Documents(np.array(ids, np.int32), *borders)


def rows_of(documents, segments):
    """Returns `(a, b, not_next)` of each example, lists of ids."""
    ids = documents.token_ids
    return [
        (ids[first[0] : first[1]].tolist(), ids[second[0] : second[1]].tolist(), int(label))
        for first, second, label in zip(*segments[:3], strict=True)
    ]


class SameDraws:
    """Draws as `document_generator` does; coins of the truncation come from elsewhere."""

    def __init__(self, *key):
        self.generator = document_generator(*key)
        self.random, self.randint = self.generator.random, self.generator.randint


def uncut_pairs(lists, index, sequence_length, generator, monkeypatch):
    """Returns the pairs of Google's rules, whole and cut, for the draws of our generator."""
    whole, cut = [], []

    def truncate(a, b, room, _):
        whole.append((list(a), list(b)))
        surplus = len(a) + len(b) - room
        # Our draws for this pair: the same number of bits, from the same place of the stream.
        most = max((room + 1) // 2, room - len(b)), max(room // 2, room - len(a))
        for text, kept in zip((a, b), most, strict=True):
            if len(text) > kept:
                generator.generator.getrandbits(len(text) - kept)
        coins = random.Random(surplus)
        truncate_pair(a, b, room, coins)

    monkeypatch.setattr(google_pairs, "truncate_pair", truncate)
    cut += pairs_of_document(lists, index, sequence_length, 0.1, generator)
    return whole, cut


@pytest.mark.parametrize(("sequence_length", "longest"), [(32, 40), (128, 12), (5, 4), (64, 300)])
def test_the_same_draws_give_the_examples_of_googles_rules(sequence_length, longest, monkeypatch):
    lists = make_documents(40, seed=sequence_length, longest=longest)
    documents = join_documents(lists, SEP)
    whole, cut = [], []
    for index in range(len(lists)):
        generator = SameDraws(7, 3, index)
        parts = uncut_pairs(lists, index, sequence_length, generator, monkeypatch)
        whole, cut = whole + parts[0], cut + parts[1]
    segments = next_sentence_segments(
        documents, sequence_length, LAYOUT, seed=7, duplicate=3, short_per="document"
    )
    rows = rows_of(documents, segments)
    assert pack_segments(documents, segments, LAYOUT)[0].lengths.max() == sequence_length
    assert [row[2] for row in rows] == [row[2] for row in cut]
    for row, uncut, expected in zip(rows, whole, cut, strict=True):
        for ours, text, theirs in zip(row[:2], uncut, expected[:2], strict=True):
            # As long as by Google's loop, never empty, and a run of the same text.
            assert len(ours) == len(theirs) > 0
            start = text.index(ours[0])
            assert text[start : start + len(ours)] == ours
    assert len(cut) > 50 and {0, 1} == {row[2] for row in cut}


def test_tokens_are_cut_from_either_side_as_by_coins():
    lists = [[list(range(10, 80)), list(range(80, 150))], [list(range(150, 160))]] * 1500
    documents = join_documents(lists, SEP)
    options = {"short_probability": 0.0, "random_probability": 0.0}
    segments = next_sentence_segments(documents, 103, LAYOUT, **options)
    is_pair = segments.not_next == 0
    assert is_pair.sum() == 1500
    # 20 tokens of each go: binomial, 10 from the front, variance 5.
    for pair in (segments.first, segments.second):
        begins = pair[is_pair, 0]
        sentence = np.searchsorted(documents.sentence_ends, begins, side="right")
        from_front = begins - documents.sentence_starts[sentence]
        assert (pair[is_pair, 1] - begins == 50).all()
        assert abs(from_front.mean() - 10) < 5 * (5 / 1500) ** 0.5
        assert abs(from_front.var() / 5 - 1) < 5 * (2 / 1500) ** 0.5


def test_half_of_the_second_segments_are_random_and_from_other_documents():
    documents = join_documents(make_documents(60, longest=8, most_sentences=600), SEP)
    segments = next_sentence_segments(documents, 32, LAYOUT, seed=1)
    document_of = np.repeat(np.arange(60), np.diff(documents.first_sentences))
    a_place = np.searchsorted(documents.sentence_ends, segments.first[:, 0], side="right")
    b_place = np.searchsorted(documents.sentence_ends, segments.second[:, 0], side="right")
    is_random = segments.not_next == 1
    same = document_of[a_place] == document_of[b_place]
    assert same[~is_random].all() and not same[is_random].any()
    assert (segments.first[:, 1] <= segments.second[:, 0])[~is_random].all()
    # Five standard deviations of a share of 1/2 and of 1/10. One-sentence chunks are rare here.
    count = len(is_random)
    assert count > 3000
    assert abs(is_random.mean() - 0.5) < 5 * 0.5 / count**0.5 + 0.01
    assert abs(segments.is_short.mean() - 0.1) < 5 * 0.3 / count**0.5


def test_documents_can_be_divided_in_any_way():
    documents = join_documents(make_documents(11), SEP)
    for cut in (next_sentence_segments, sentence_order_segments):

        def rows(cut=cut, seed=4, duplicate=1, **options):
            options |= {"seed": seed, "duplicate": duplicate}
            return rows_of(documents, cut(documents, 32, LAYOUT, **options))

        parts = (range(0, 3), range(3, 4), range(4, 11))
        assert [row for which in parts for row in rows(which=which)] == rows()
        assert rows(duplicate=2) != rows() != rows(seed=5)


def test_the_random_document_is_always_another_one():
    documents = join_documents([[[10]] * 3000, [[20]]], SEP)
    options = {"short_probability": 0.0, "random_probability": 1.0}
    segments = next_sentence_segments(documents, 5, LAYOUT, **options)
    for a, b, _ in rows_of(documents, segments):
        assert set(a) != set(b)


def test_sentence_order_swaps_half_of_consecutive_segments():
    documents = join_documents(make_documents(80, longest=8, most_sentences=100), SEP)
    segments = sentence_order_segments(documents, 40, LAYOUT, short_probability=0.0)
    swapped = segments.not_next == 1
    first = np.where(swapped[:, None], segments.second, segments.first)
    second = np.where(swapped[:, None], segments.first, segments.second)
    # The second begins where the first ends, but for what truncation took away.
    assert (first[:, 1] <= second[:, 0]).all()
    assert np.mean(first[:, 1] == second[:, 0]) > 0.3
    assert abs(swapped.mean() - 0.5) < 5 * 0.5 / len(swapped) ** 0.5
    sentence = np.searchsorted(documents.sentence_ends, first[:, 0], side="right")
    behind = np.searchsorted(documents.sentence_ends, second[:, 0], side="right")
    document_of = np.repeat(np.arange(80), np.diff(documents.first_sentences))
    assert (document_of[sentence] == document_of[behind]).all()


def test_sentence_order_skips_a_sentence_without_a_neighbour():
    documents = join_documents([[[10]], [[20], [21]], [[30] * 9, [31] * 9, [32] * 9]], SEP)
    segments = sentence_order_segments(documents, 16, LAYOUT, short_probability=0.0)
    assert segments.num_skipped == 2
    assert len(segments.not_next) == 2
    alone = join_documents([[[10, 11], [12]]], SEP)
    assert len(sentence_order_segments(alone, 16, LAYOUT).not_next) == 1
    assert len(full_sentences(alone, 16, LAYOUT).not_next) == 1


def test_full_sentences_use_every_token_once():
    lists = make_documents(30, longest=60)
    documents = join_documents(lists, SEP)
    segments = full_sentences(documents, 34, LAYOUT)
    rows, second_starts = pack_segments(documents, segments, LAYOUT)
    tokens = [id for row in rows.to_lists() for id in row if id > SEP]
    assert tokens == [id for document in lists for sentence in document for id in sentence]
    assert rows.lengths.max() <= 34
    assert (second_starts == rows.lengths).all()
    assert all(row[0] == CLS and row[-1] == SEP for row in rows.to_lists())


@cases(
    # A separator stands before the next document.
    ([[[10, 11], [12]], [[20], [21, 22, 23]]], 8, [[1, 10, 11, 12, 2, 20, 2], [1, 21, 22, 23, 2]]),
    # A sentence that is longer than a row is cut.
    ([[[*range(10, 17)], [50]]], 5, [[1, 10, 11, 12, 2], [1, 13, 14, 15, 2], [1, 16, 50, 2]]),
)
def test_full_sentences_fill_rows(lists, sequence_length, expected):
    documents = join_documents(lists, SEP)
    rows, _ = pack_segments(documents, full_sentences(documents, sequence_length, LAYOUT), LAYOUT)
    assert rows.to_lists() == expected


def test_pairs_are_packed_with_their_special_tokens():
    documents = join_documents([[[10, 11], [12]], [[20]]], SEP)
    segments = sentence_pairs.Segments(
        np.array([[0, 2], [4, 5]]), np.array([[2, 3], [0, 2]]), np.zeros(2), np.zeros(2)
    )
    rows, second_starts = pack_segments(documents, segments, LAYOUT)
    assert rows.to_lists() == [[1, 10, 11, 2, 12, 2], [1, 20, 2, 10, 11, 2]]
    assert second_starts.tolist() == [4, 3]
