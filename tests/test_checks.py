"""Checks of arguments: what each helper accepts, and the whole message of each refusal."""

import functools
import os

import numpy as np
import pytest

from bert_keras import checks
from bert_keras.checks import check_same_length, check_shape, check_type, raise_at_first, require

LABELS = np.array([0, 2, 7, 9])


def refusal(function, *arguments, **options):
    """Returns the type and the message of the error that a call raises."""
    with pytest.raises((TypeError, ValueError, ImportError, OSError)) as raised:
        function(*arguments, **options)
    return f"{raised.type.__name__}: {raised.value}"


def test_a_wrong_type_or_shape_is_stated_with_the_rule_and_the_remedy():
    assert refusal(check_type, "masking", 3, (dict, list), "a dict", "Leave it out.") == (
        "TypeError: `masking` must be a dict. Received: 3 of type int. Leave it out."
    )
    of_labels = functools.partial(refusal, check_shape, "Labels")
    assert of_labels(LABELS, ("num_examples", 3), advice="Argmax.") == (
        "ValueError: Labels must have the shape (num_examples, 3). Received: shape (4,). Argmax."
    )
    assert of_labels(LABELS, (3,)) == (
        "ValueError: Labels must have the shape (3,). Received: shape (4,)."
    )
    assert of_labels(LABELS / 2, ("num_examples",), "iu") == (
        "ValueError: Labels must be ints of the shape (num_examples,). Received: dtype float64, "
        "shape (4,)."
    )
    # A length of None is left out.
    assert refusal(check_same_length, "One label each", texts=["a"], pairs=None, labels=[]) == (
        "ValueError: One label each. Received: 1 text, 0 labels."
    )
    assert refusal(checks.check_not_empty, [], "Batches need at least one row") == (
        "ValueError: Batches need at least one row. Received: none."
    )


def test_the_first_wrong_value_is_stated_with_its_index():
    assert refusal(raise_at_first, LABELS > 2, LABELS, "Labels must be below 3", "Count.") == (
        "ValueError: Labels must be below 3. Received 7 at the index 2. Count."
    )
    assert refusal(raise_at_first, np.eye(2)[::-1] > 0, np.ones((2, 2)), "All must be 0") == (
        "ValueError: All must be 0. Received 1.0 at the index (0, 1)."
    )
    assert refusal(raise_at_first, [False, True], ["a", " "], "No text may be blank") == (
        "ValueError: No text may be blank. Received ' ' at the index 1."
    )
    assert refusal(raise_at_first, [True], np.array([[2, 1]]), "A span must have a length") == (
        "ValueError: A span must have a length. Received [2, 1] at the index 0."
    )


def test_a_missing_package_is_named_with_how_to_install_it():
    assert refusal(require, "no_such_thing", "read tables", advice="Or use CSV.") == (
        "ImportError: To read tables, no-such-thing must be installed. Install it: `pip install "
        "no-such-thing`. Received: No module named 'no_such_thing'. Or use CSV."
    )
    assert refusal(require, "no_such.part", "read tables", extra="tables") == (
        "ImportError: To read tables, no-such must be installed. Install the extra 'tables' from a "
        "clone of bert_keras: `pip install '.[tables]'`. Received: No module named 'no_such'."
    )


def test_what_is_missing_or_would_have_no_effect_is_named(tmp_path):
    path = str(tmp_path / "a.txt")
    assert refusal(checks.check_exists, path, "FILE must exist", "Write it.") == (
        f"FileNotFoundError: FILE must exist. Received: {path!r}, not found. Write it."
    )
    assert "not found" in refusal(checks.check_exists, tmp_path, "A file", exists=os.path.isfile)
    assert refusal(checks.check_has_labels, None, "Reranker", "Pass a score.") == (
        "ValueError: Reranker needs labels to train or to be evaluated. Received: y=None. Pass a "
        "score."
    )
    of_tables = functools.partial(refusal, checks.refuse_options, "They are for tables")
    assert of_tables({"separator": None, "quoting": False, "mark": ";"}) == (
        "ValueError: They are for tables. Received: quoting=False, mark=';'. Leave it out."
    )


def test_a_long_value_is_shortened():
    assert checks.describe("x" * 100) == f"'{'x' * 56}... of type str"
    assert len(refusal(checks.check_int, "batch_size", ["a text"] * 1000)) < 300
