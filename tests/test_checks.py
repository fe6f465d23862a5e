"""Checks of arguments: what each helper accepts, and the whole message of each refusal."""

import re

import numpy as np
import pytest

from bert_keras import checks

LABELS = np.array([0, 2, 7, 9])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: checks.check_type("masking", 3, (dict, list), "a dict", "Leave it out."),
            TypeError,
            "`masking` must be a dict. Received: 3 of type int. Leave it out.",
        ),
        (
            lambda: checks.check_shape("Labels", LABELS, ("num_examples", 3), advice="Argmax."),
            ValueError,
            "Labels must have the shape (num_examples, 3). Received: shape (4,). Argmax.",
        ),
        (
            lambda: checks.check_shape("Labels", LABELS, (3,)),
            ValueError,
            "Labels must have the shape (3,). Received: shape (4,).",
        ),
        (
            lambda: checks.check_shape("Labels", LABELS / 2, ("num_examples",), "iu"),
            ValueError,
            "Labels must be ints of the shape (num_examples,). Received: dtype float64, "
            "shape (4,).",
        ),
        (
            lambda: checks.check_same_length(
                "One label a text", texts=["a"], pairs=None, labels=[]
            ),
            ValueError,
            "One label a text. Received: 1 texts, 0 labels.",
        ),
        (
            lambda: checks.check_not_empty([], "Batches need at least one row"),
            ValueError,
            "Batches need at least one row. Received: none.",
        ),
        (
            lambda: checks.refuse_first(LABELS > 2, LABELS, "Labels must be below 3", "Count."),
            ValueError,
            "Labels must be below 3. Received 7 at the index 2. Count.",
        ),
        (
            lambda: checks.refuse_first(np.eye(2)[::-1] > 0, np.ones((2, 2)), "All must be 0"),
            ValueError,
            "All must be 0. Received 1.0 at the index (0, 1).",
        ),
        (
            lambda: checks.refuse_first([False, True], ["a", " "], "No text may be blank"),
            ValueError,
            "No text may be blank. Received ' ' at the index 1.",
        ),
        (
            lambda: checks.refuse_first([True], np.array([[2, 1]]), "A span must have a length"),
            ValueError,
            "A span must have a length. Received [2, 1] at the index 0.",
        ),
        (
            lambda: checks.require("no_such_thing", "read tables", advice="Or use CSV."),
            ImportError,
            "To read tables, no-such-thing must be installed: `pip install no-such-thing`. "
            "Received: No module named 'no_such_thing'. Or use CSV.",
        ),
        (
            lambda: checks.require("no_such.part", "read tables", extra="tables"),
            ImportError,
            "To read tables, no-such must be installed: `pip install 'bert_keras[tables]'`. "
            "Received: No module named 'no_such'.",
        ),
    ],
)
def test_a_refusal_states_the_rule_the_value_and_the_remedy(call, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call()


def test_what_follows_the_rules_is_returned():
    assert checks.check_type("masking", {}, (dict, list), "a dict") == {}
    assert checks.check_shape("Labels", LABELS, ("num_examples",), "iu") is LABELS
    assert checks.check_shape("Labels", LABELS, (4,)) is LABELS
    assert checks.check_not_empty(LABELS, "Some are needed") is LABELS
    assert checks.require("json.decoder", "read JSON").JSONDecoder
    checks.check_same_length("One label a text", texts=["a"], labels=[0])
    checks.refuse_first(LABELS > 9, LABELS, "Labels must be below 10")


def test_a_long_value_is_shortened():
    assert checks.describe("x" * 100) == f"'{'x' * 56}... of type str"
