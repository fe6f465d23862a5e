import random

import pytest

from benchmarks.bert_pretraining_rules import pairs_of_document
from bert_keras.preprocessing.documents import join_documents
from bert_keras.preprocessing.sentence_pairs import (
    document_generator,
    next_sentence_segments,
)

CLS, SEP = 1, 2


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


def rows_of(documents, segments):
    """Returns `(a, b, not_next)` of each example, lists of ids."""
    ids = documents.token_ids
    return [
        (ids[first[0] : first[1]].tolist(), ids[second[0] : second[1]].tolist(), int(label))
        for first, second, label in zip(*segments[:3], strict=True)
    ]


@pytest.mark.parametrize(("sequence_length", "longest"), [(32, 40), (128, 12), (5, 4), (64, 300)])
def test_the_same_draws_give_the_examples_of_googles_rules(sequence_length, longest):
    lists = make_documents(40, seed=sequence_length, longest=longest)
    documents = join_documents(lists, SEP)
    expected = []
    for index in range(len(lists)):
        generator = document_generator(7, 3, index)
        expected += pairs_of_document(lists, index, sequence_length, 0.1, generator)
    segments = next_sentence_segments(
        documents, sequence_length, seed=7, duplicate=3, short_per="document"
    )
    assert rows_of(documents, segments) == expected
    assert len(expected) > 50 and {0, 1} == {row[2] for row in expected}
