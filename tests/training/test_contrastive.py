"""The losses for embeddings, against torch and values by hand."""

import functools

import numpy as np
import pytest
import torch
from checks import cases, compute, made_again, refusals, to_numpy
from keras import ops
from torch.nn import functional

from bert_keras.training.contrastive import (
    CosineRegression,
    MultipleNegativesRanking,
    TripletLoss,
    cosine,
)

pytestmark = pytest.mark.once


def random_vectors(batch=5, num_texts=2, hidden_dim=7, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(batch, num_texts, hidden_dim)).astype("float32")


def scores_by_torch(columns, scale=20.0):
    """Returns the scaled cosines of the first column with all vectors of the others."""
    first, second = columns[0], torch.cat(columns[1:])
    return scale * functional.cosine_similarity(first[:, None], second[None], dim=-1)


def values(loss, y_true, y_pred, **kwargs):
    return to_numpy(compute(functools.partial(loss, **kwargs), np.asarray(y_true), y_pred))


def value(*args, **kwargs):
    return float(values(*args, **kwargs))


@pytest.mark.parametrize(("num_texts", "scale"), [(2, 1.0), (3, 20.0), (4, 20.0)])
def test_ranking_equals_torchs_crossentropy_over_all_candidates(num_texts, scale):
    vectors = random_vectors(num_texts=num_texts)
    scores = scores_by_torch(torch.tensor(vectors).unbind(1), scale)
    expected = functional.cross_entropy(scores, torch.arange(5))
    actual = value(MultipleNegativesRanking(scale), np.arange(5), vectors)
    assert actual == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.each_backend
def test_symmetric_ranking_is_the_mean_of_both_directions():
    vectors = random_vectors(num_texts=3)
    scores = scores_by_torch(torch.tensor(vectors).unbind(1))
    there = functional.cross_entropy(scores, torch.arange(5))
    back = functional.cross_entropy(scores[:, :5].T, torch.arange(5))
    actual = value(MultipleNegativesRanking(symmetric=True), np.arange(5), vectors)
    assert actual == pytest.approx((there + back).item() / 2, abs=1e-5)


@pytest.mark.each_backend
def test_rows_of_one_group_are_not_negatives_of_each_other():
    vectors = random_vectors(batch=4)
    vectors[1] = vectors[0]  # the same pair twice
    for symmetric in (False, True):
        loss = MultipleNegativesRanking(symmetric=symmetric, reduction=None)
        grouped = values(loss, [7, 7, 2, 3], vectors)
        once = values(loss, np.arange(3), vectors[1:])
        np.testing.assert_allclose(grouped[:2], once[[0, 0]], atol=1e-5)


@pytest.mark.each_backend
def test_regression_is_the_squared_difference_of_cosine_and_score():
    vectors = random_vectors()
    scores = np.linspace(-1, 1, 5).astype("float32")
    cosines = functional.cosine_similarity(*torch.tensor(vectors).unbind(1))
    expected = functional.mse_loss(cosines, torch.tensor(scores))
    actual = value(CosineRegression(), scores, vectors)
    assert actual == pytest.approx(expected.item(), abs=1e-6)
    assert value(CosineRegression(), scores[:, None], vectors) == pytest.approx(actual)


@cases(("cosine", 0.5), pytest.param("euclidean", 1.0, marks=pytest.mark.each_backend))
def test_the_triplet_loss_equals_torchs(distance, margin):
    vectors = random_vectors(batch=8, num_texts=3)
    function = {
        "cosine": lambda a, b: 1 - functional.cosine_similarity(a, b),
        "euclidean": lambda a, b: (a - b).norm(dim=-1),
    }[distance]
    expected = functional.triplet_margin_with_distance_loss(
        *torch.tensor(vectors).unbind(1), distance_function=function, margin=margin
    )
    actual = value(TripletLoss(margin, distance), np.zeros(8), vectors)
    assert actual == pytest.approx(expected.item(), abs=1e-5)


LOSSES = [
    (MultipleNegativesRanking(scale=5.0, symmetric=True), 3),
    (CosineRegression(), 2),
    (TripletLoss(margin=2.5, distance="euclidean"), 3),
]


@pytest.mark.parametrize(("loss", "num_texts"), LOSSES)
def test_losses_are_weighted_means(loss, num_texts):
    vectors = random_vectors(num_texts=num_texts)
    weights = np.array([1.0, 0, 2, 0, 0], "float32")
    each = type(loss).from_config({**loss.get_config(), "reduction": None})
    rows = values(each, np.arange(5) / 5, vectors)
    expected = (rows * weights).sum() / weights.sum()
    actual = value(made_again(loss), np.arange(5) / 5, vectors, sample_weight=weights)
    assert actual == pytest.approx(expected, rel=1e-5)


def test_cosines_ignore_length_and_accept_zeros():
    first = np.array([[3.0, 4], [0, 0], [1, 0]], "float32")
    second = np.array([[6.0, 8], [1, 0], [-5, 0]], "float32")
    np.testing.assert_allclose(to_numpy(cosine(first, second)), [1, 0, -1], atol=1e-6)


def loss_of(loss, *shape):
    return loss(np.zeros(5), ops.ones(shape))


test_impossible_settings_and_wrong_numbers_of_texts_are_refused = refusals(
    (lambda: loss_of(MultipleNegativesRanking(), 5, 1, 7), "columns of texts"),
    (lambda: loss_of(MultipleNegativesRanking(), 5, 7), "columns of texts"),
    (lambda: loss_of(CosineRegression(), 5, 3, 7), "columns of texts"),
    (lambda: loss_of(CosineRegression(), 5, 7), "columns of texts"),
    (lambda: MultipleNegativesRanking(scale=0), "scale"),
    (lambda: TripletLoss(margin=-1.0), "margin"),
    (lambda: TripletLoss(distance="manhattan"), "distance"),
)
