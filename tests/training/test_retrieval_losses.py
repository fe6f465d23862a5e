"""The losses of retrieval, against their published formulas in NumPy."""

import functools

import numpy as np
import pytest
from checks import compute, made_again, refusals, to_numpy
from scipy.special import expit, softmax

from bert_keras.training.contrastive import MultipleNegativesRanking
from bert_keras.training.cosent import AnglE, CoSENT
from bert_keras.training.list_losses import LambdaLoss, ListwiseCrossentropy, RelevanceCrossentropy
from bert_keras.training.matryoshka import Matryoshka
from bert_keras.training.similarities import maxsim, similarity_matrix
from bert_keras.training.teacher_losses import EmbeddingMSE, MarginMSE, TeacherDivergence

pytestmark = pytest.mark.once

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(5, 4, 6)).astype("float32")
TEACHER = RNG.normal(size=(5, 3)).astype("float32")
SCORES = RNG.normal(size=(5, 5)).astype("float32")
# Candidates of five queries, of which some do not exist.
NONE = -np.inf
GRADES = [[0, 2, 1, 0, 3], [1, 0, 0, NONE, NONE], [0, 0, 1, 2, NONE], [0] * 5, [2, *[NONE] * 4]]
GRADES = np.array(GRADES)
BINARY = np.where(np.isfinite(GRADES), GRADES > 0, GRADES)


def l2_normalize(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def dots(vectors):
    return (vectors[:, :1] * vectors[:, 1:]).sum(-1)


def by_pairs(similarities, labels, scale=20.0):
    """The formula of CoSENT, pair by pair."""
    terms = [
        np.exp(scale * (similarities[j] - similarities[i]))
        for i in range(len(labels))
        for j in range(len(labels))
        if labels[i] > labels[j]
    ]
    return np.log(1 + np.sum(terms))


def cosent(labels, vectors):
    vectors = l2_normalize(vectors.astype("float64"))
    return by_pairs((vectors[:, 0] * vectors[:, 1]).sum(-1), labels)


def angle(labels, vectors):
    vectors = l2_normalize(vectors.astype("float64"))
    z, w = (vectors[:, i, :2] + 1j * vectors[:, i, 2:] for i in (0, 1))
    # In the complex product, the imaginary part is the sine.
    product = (z * w.conj()).sum(-1)
    return by_pairs(np.abs(product.real + product.imag), labels)


def margin_mse(teacher, scores):
    margins = (scores[:, :1] - scores[:, 1:]) - (teacher[:, :1] - teacher[:, 1:])
    exists = np.isfinite(margins)
    squares = np.where(exists, margins, 0.0) ** 2
    return (squares.sum(1) / np.maximum(exists.sum(1), 1)).mean()


def divergence(teacher, scores, temperature=1.0):
    rows = []
    for t, s in zip(teacher, scores, strict=True):
        p, q = (softmax(x[np.isfinite(t)] / temperature) for x in (t, s))
        rows.append(temperature**2 * np.sum(p * np.log(p / q)))
    return np.mean(rows)


def relevance(labels, logits, pos_weight=1.0):
    p = expit(logits.astype("float64"))
    each = -pos_weight * labels * np.log(p) - (1 - labels) * np.log(1 - p)
    return np.nanmean(np.where(np.isfinite(labels), each, np.nan), axis=1).mean()


def listwise(labels, scores):
    rows = []
    for y, s in zip(labels, scores, strict=True):
        y, s = y[np.isfinite(y)], s[np.isfinite(y)]
        rows.append(-np.sum(y / max(y.sum(), 1e-9) * np.log(softmax(s))))
    return np.mean(rows)


def lambda_loss(labels, scores, k=None, sigma=1.0, mu=10.0):
    """The formula of NDCG-Loss2++, pair by pair."""
    rows = []
    for y, s in zip(labels, scores, strict=True):
        s, y = s[np.isfinite(y)], y[np.isfinite(y)]
        y, s = y[np.argsort(-s)], np.sort(s)[::-1]
        last = k or len(y)
        ideal = np.sort(2.0**y - 1)[::-1] / np.log2(1 + np.arange(1, len(y) + 1))
        gains, total, count = (2.0**y - 1) / max(ideal[:last].sum(), 1e-10), 0.0, 0
        for i in range(len(y)):
            for j in range(len(y)):
                if y[i] > y[j] and min(i, j) < last:
                    near = abs(i - j)
                    weight = abs(1 / np.log2(2 + i) - 1 / np.log2(2 + j))
                    weight += mu * abs(1 / np.log2(1 + near) - 1 / np.log2(2 + near))
                    logarithm = np.log2(1 + np.exp(-sigma * (s[i] - s[j])))
                    total, count = total + weight * abs(gains[i] - gains[j]) * logarithm, count + 1
        rows.append(total / max(count, 1))
    return np.mean(rows)


def matryoshka(labels, vectors):
    parts = [(6, 1.0), (2, 0.5)]
    return sum(w * margin_mse(labels, dots(l2_normalize(vectors[..., :d]))) for d, w in parts)


LABELS = np.array([0.5, 0.1, 0.5, -1.0, 0.9], "float32")


def of_vectors(formula, **options):
    return lambda labels, vectors: formula(labels, dots(vectors), **options)


def vector_errors(teacher, vectors):
    return ((vectors - teacher[:, None]) ** 2).mean()


THREEFOLD = functools.partial(relevance, pos_weight=3.0)
LAMBDA_AT_2 = functools.partial(lambda_loss, k=2, sigma=1.5, mu=3.0)
CASES = {
    "cosent": (CoSENT(), LABELS, VECTORS[:, :2], cosent),
    "angle": (AnglE(), LABELS, VECTORS[:, :2, :4], angle),
    "margins": (MarginMSE(), TEACHER, VECTORS, of_vectors(margin_mse)),
    "margins_of_scores": (MarginMSE(), GRADES, SCORES, margin_mse),
    "divergence": (TeacherDivergence(2.0), TEACHER, VECTORS, of_vectors(divergence, temperature=2)),
    "divergence_of_scores": (TeacherDivergence(), GRADES, SCORES, divergence),
    "vectors": (EmbeddingMSE(), VECTORS[:, 0], VECTORS[:, 1:], vector_errors),
    "relevance": (RelevanceCrossentropy(), BINARY, SCORES, relevance),
    "pos_weight": (RelevanceCrossentropy(3.0), BINARY, SCORES, THREEFOLD),
    "listwise": (ListwiseCrossentropy(), GRADES, SCORES, listwise),
    "lambda": (LambdaLoss(), GRADES, SCORES, lambda_loss),
    "lambda_at_2": (LambdaLoss(2, 1.5, 3.0), GRADES, SCORES, LAMBDA_AT_2),
    "matryoshka": (Matryoshka(MarginMSE(), (6, 2), (1.0, 0.5)), TEACHER, VECTORS, matryoshka),
}


def value(loss, labels, outputs):
    return float(to_numpy(compute(loss, np.asarray(labels, "float32"), outputs)))


@pytest.mark.each_backend
@pytest.mark.parametrize("name", CASES)
def test_a_loss_is_its_formula(name):
    loss, labels, outputs, formula = CASES[name]
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = formula(labels, outputs)
    assert abs(expected) > 1e-3
    # Of a file, too.
    assert value(made_again(loss), labels, outputs) == pytest.approx(expected, rel=1e-4)


@pytest.mark.each_backend
def test_maxsim_is_the_sum_of_each_token_s_best_match():
    queries, documents = VECTORS[:2].copy(), VECTORS[2:].copy()
    queries[1, 3] = documents[0, 1] = documents[2, 2:] = 0
    expected = [
        [sum(max(q @ d for d in doc if d.any()) for q in query if q.any()) for doc in documents]
        for query in queries
    ]
    found = compute(functools.partial(similarity_matrix, "maxsim"), queries, documents)
    np.testing.assert_allclose(to_numpy(found), expected, atol=1e-5)
    pairs = compute(maxsim, queries, documents[:2])
    np.testing.assert_allclose(to_numpy(pairs), np.diagonal(expected), atol=1e-5)


def test_ranking_by_dot_products_has_no_length_1():
    scores = VECTORS[:, 0] @ VECTORS[:, 1].T
    expected = -np.log(softmax(scores, axis=1).diagonal()).mean()
    loss = MultipleNegativesRanking(scale=1.0, similarity="dot")
    assert value(loss, np.arange(5), VECTORS[:, :2]) == pytest.approx(expected, rel=1e-5)


test_what_does_not_fit_is_refused = refusals(
    (lambda: value(ListwiseCrossentropy(), np.ones((2, 1)), np.ones((2, 1))), "one candidate"),
    (lambda: value(LambdaLoss(), np.ones((2, 1)), np.ones((2, 1))), "one candidate"),
    (lambda: value(MarginMSE(), np.ones((5, 1)), VECTORS[:, :2]), "one candidate"),
    (lambda: value(CoSENT(), LABELS, VECTORS), "columns of texts"),
    (lambda: value(AnglE(), LABELS, VECTORS[:, :2, :5]), "even number.*Received: 5"),
    (lambda: value(Matryoshka(CoSENT(), (7,)), LABELS, VECTORS[:, :2]), "`dims`.*from 1 to 6"),
    (lambda: Matryoshka(CoSENT(), ()), "at least one width"),
    (lambda: Matryoshka(CoSENT(), (4, 2), (1.0,)), "weight for each"),
    (lambda: LambdaLoss(k=0), "`k`"),
    (lambda: RelevanceCrossentropy(pos_weight=0), "pos_weight"),
    (lambda: MarginMSE(similarity="l2"), "similarity"),
    (lambda: TeacherDivergence(temperature=0), "temperature"),
)
