import numpy as np
import pytest
import scipy.special
from checks import check_task, refusals
from tiny import ready_inputs, tiny_task

pytestmark = pytest.mark.once

FIRST, SECOND = ["a b", "c d", "e f", "g h"], ["b a", "d c c c", "f e", "h"]
PAIRS = (FIRST, SECOND)


def tiny_model(**options):
    return tiny_task("NextSentencePrediction", **options)


# A task that no test changes: it is compiled once for all.
shared = pytest.fixture(tiny_model, scope="module")


def test_it_keeps_the_contract_of_tasks(tmp_path):
    check_task(tiny_model(frozen=1), ready_inputs(3, 6), tmp_path, {"is_next": PAIRS})


def test_class_0_is_next(shared):
    logits = shared.predict(PAIRS, verbose=0)
    answers = shared.is_next(FIRST, SECOND)
    expected = 1 / (1 + np.exp(logits[:, 1] - logits[:, 0]))
    np.testing.assert_allclose([a["probability"] for a in answers], expected, atol=1e-6)
    assert [a["is_next"] for a in answers] == (logits[:, 0] > logits[:, 1]).tolist()
    one = shared.is_next(FIRST[1], SECOND[1])
    assert one["probability"] == pytest.approx(expected[1], abs=1e-5)


test_what_does_not_fit_is_refused = refusals(
    (lambda m: m.fit(PAIRS, [0, 1, 2, 0]), "must be 0 or 1.*1 is random"),
    (lambda m: m.fit(PAIRS, [True, False, True, True]), "dtype bool"),
    (lambda m: m.fit(PAIRS, np.ones((4, 2))), "whose sum is 1"),
    (lambda m: m.fit(PAIRS), "needs labels"),
    (lambda m: m.fit(FIRST, [0, 1, 1, 0]), "takes pairs"),
    (lambda m: m.fit((FIRST, SECOND[:2]), [0, 1, 1, 0]), "equally many"),
    (lambda m: m.is_next([], ["a"]), "equally many"),
    (lambda m: m.is_next("a", ["b"]), TypeError, r"\['b'\]"),
    of="shared",
)


def test_labels_may_be_shares_of_both_classes(shared):
    shares = np.array([[0.5, 0.5], [0.25, 0.75], [1, 0], [0, 1]])
    log_p = scipy.special.log_softmax(shared.predict(PAIRS, verbose=0), axis=-1)
    expected = -(shares * log_p).sum(axis=-1).mean()
    assert shared.evaluate(PAIRS, shares, verbose=0)[0] == pytest.approx(expected, abs=1e-5)
