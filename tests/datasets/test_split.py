"""Splits in which no text is in both parts, and the columns that are split."""

import numpy as np
import pytest
from checks import refusals
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from bert_keras.datasets import LabelledTexts, count_shared_texts, split_examples, split_indices
from bert_keras.datasets.split import normalize_text


def test_texts_are_compared_without_case_and_white_space():
    assert normalize_text("  GREAT\t\u00a0Straße \n") == normalize_text("great strasse")
    assert normalize_text("great.") != normalize_text("great")


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.sampled_from(["a", "A ", "b", "c", "d", "e f", "E  F", "g"]), min_size=6),
    seed=st.integers(0, 5),
)
def test_every_text_is_in_exactly_one_part(texts, seed):
    if len({normalize_text(text) for text in texts}) < 4:
        return
    try:
        train, test = split_indices(texts, 0.4, seed)
    except ValueError:
        # One big group may be larger than the test part.
        return
    assert sorted([*train, *test]) == list(range(len(texts)))
    assert count_shared_texts([texts[i] for i in train], [texts[i] for i in test]) == 0


def test_the_size_is_exact_with_strata_too():
    texts = [f"sentence {number}" for number in range(1000)]
    train, test = split_indices(texts, 0.3333, strata=["rare"] * 100 + ["common"] * 900)
    assert (len(train), len(test)) == (667, 333)


@pytest.mark.parametrize("sizes", [(4, 22, 4), (14, 18, 14, 14), (3, 27), (11, 12, 13, 14)])
def test_each_stratum_has_as_many_test_examples_as_in_scikit_learn(sizes):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    options = {"test_size": len(labels) // 10, "stratify": labels, "random_state": 0}
    _, expected = train_test_split(np.arange(len(labels)), **options)
    for seed in range(9):
        texts = [f"sentence {number}" for number in range(len(labels))]
        _, test = split_indices(texts, len(labels) // 10, seed, labels.tolist())
        # scikit-learn draws among equal remainders by lot.
        ours, theirs = (np.bincount(labels[x], minlength=len(sizes)) for x in (test, expected))
        assert sorted(ours) == sorted(theirs)


def test_the_split_depends_on_the_text_and_is_the_same_on_every_machine():
    texts = [f"sentence {number}" for number in range(50)]
    _, test = split_indices(texts, 10, seed=3)
    chosen = {texts[i] for i in test}
    _, test = split_indices(texts[::-1], 10, seed=3)
    assert {texts[::-1][i] for i in test} == chosen
    _, test = split_indices(texts, 10, seed=4)
    assert {texts[i] for i in test} != chosen
    assert split_indices(texts[:12], 4, seed=0)[1].tolist() == [3, 5, 6, 8]


def test_pairs_are_equal_if_both_texts_are():
    first = ["a", "a", "A", "b", "c", "d"]
    second = ["x", "y", "X", "x", "x", "x"]
    for seed in range(10):
        train, test = split_indices((first, second), 2, seed)
        assert (0 in train) == (2 in train)
        assert sorted([*train, *test]) == list(range(6))


def test_examples_are_split_by_label():
    texts = [f"sentence {number}" for number in range(40)]
    labels = np.array([0] * 30 + [1] * 10)
    train, test = split_examples(LabelledTexts(texts, labels, ("no", "yes")), 0.2)
    assert np.bincount(test.labels).tolist() == [6, 2]
    assert np.bincount(train.labels).tolist() == [24, 8]
    assert test.label_names == ("no", "yes")
    position = texts.index(test.texts[0])
    assert test.labels[0] == labels[position]


def test_unlabelled_and_multi_label_examples_are_split_too():
    texts = [f"sentence {number}" for number in range(10)]
    train, test = split_examples(LabelledTexts(texts), 3)
    assert train.labels is None and len(test) == 3
    labels = np.eye(10, dtype="int32")
    train, test = split_examples(LabelledTexts(texts, labels, problem_type="multi_label"), 3)
    assert test.labels.shape == (3, 10)


test_columns_of_different_lengths_and_parts_without_texts_are_refused = refusals(
    *(
        (lambda x=x: split_indices(list("abcdefghij"), x), "`test_size` must be")
        for x in (0, 10, 11, -1, 0.0, 1.0, True)
    ),
    (lambda: split_indices(["same"] * 10, 5), "leave examples in both parts"),
    (lambda: split_indices(["a", "b"], 1, strata=[0]), "Received: 1 strata, 2 texts"),
    (lambda: LabelledTexts(["a", "b"], np.array([1])), "Received: 2 texts, 1 label"),
    (lambda: LabelledTexts((["a", "b"], ["c"]), np.zeros(2)), "2 texts, 1 second text, 2 la"),
)


def test_taking_examples_keeps_pairs_and_labels_together():
    pairs, labels = (["a", "b", "c"], ["x", "y", "z"]), np.array([0, 1, 2])
    examples = LabelledTexts(pairs, labels, ("p", "q", "r"))
    taken = examples.take(np.array([2, 0]))
    assert taken.texts == (["c", "a"], ["z", "x"]) and taken.labels.tolist() == [2, 0]
    assert examples.take(slice(0, 2)).texts == (["a", "b"], ["x", "y"])
    assert len(examples) == 3 and len(taken) == 2
