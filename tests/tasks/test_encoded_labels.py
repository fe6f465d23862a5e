import numpy as np
import pytest

from bert_keras.tasks.encoded_labels import as_label_array, encode_labels

pytestmark = pytest.mark.once


def test_columns_of_objects_are_read_by_their_values():
    for values, kind in (([*"abba"], "U"), ([0, 1], "i"), ([True, False], "b"), ([[0], [1]], "i")):
        found = as_label_array(np.array(values, dtype=object))
        assert found.dtype.kind == kind and found.tolist() == values


def test_several_labels_are_lists_of_names_or_zeros_and_ones():
    names, expected = ("a", "b", "c, d"), [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    for rows in (
        [["a", "b"], [], ["c, d"]],
        [("a", " b "), (), {"c, d"}],
        [np.array(["a", "b"]), np.array([], dtype=str), np.array(["c, d"])],
        [["b", "a"], "", "c, d"],
        expected,
    ):
        found = encode_labels(rows, "multi_label", 3, names)
        assert found.tolist() == expected and found.dtype == "float32"
    for rows in (["b, a"], np.array(["b, a"], dtype=object)):
        with pytest.raises(ValueError, match="Received 'b, a' at the index 0"):
            encode_labels(rows, "multi_label", 3, names)


def test_blanks_around_a_name_do_not_count_unless_they_belong_to_it():
    assert encode_labels([" y", "x ", "x"], "single_label", 2, ("x", "y")).tolist() == [1, 0, 0]
    assert encode_labels([" x", "x"], "single_label", 2, ("x", " x")).tolist() == [1, 0]
