import pathlib
import sys

import numpy as np
import pytest
from files import write_records

from bert_keras.corpora import read_records

ARRAYS = {
    "token_ids": np.array([2, 10, 4, 3, 12, 3, 2, 4, 3, 21, 22, 23, 3], np.uint16),
    "offsets": np.array([0, 6, 13]),
    "second_starts": np.array([4, 3], np.int32),
    "is_random_next": np.array([0, 1], np.int8),
    "mask_offsets": np.array([0, 1, 3]),
    "mask_positions": np.array([2, 1, 4], np.int32),
    "mask_labels": np.array([11, 20, 22], np.uint16),
}


@pytest.fixture
def path(tmp_path):
    """A file with two records."""
    path = str(tmp_path / "a.tfrecord")
    write_records(path, ARRAYS, sequence_length=8, num_predictions=3)
    return path


def test_records_come_back(path):
    arrays = read_records(path)
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)


def test_features_are_those_that_googles_run_pretraining_parses(path):
    tensorflow = pytest.importorskip("tensorflow")
    # As input_fn_builder of google-research/bert's run_pretraining.py describes them.
    fixed, ints, floats = tensorflow.io.FixedLenFeature, tensorflow.int64, tensorflow.float32
    features = {
        "input_ids": fixed([8], ints),
        "input_mask": fixed([8], ints),
        "segment_ids": fixed([8], ints),
        "masked_lm_positions": fixed([3], ints),
        "masked_lm_ids": fixed([3], ints),
        "masked_lm_weights": fixed([3], floats),
        "next_sentence_labels": fixed([1], ints),
    }
    records = list(tensorflow.data.TFRecordDataset([path]))
    parsed = [tensorflow.io.parse_single_example(record, features) for record in records]
    columns = {name: [row[name].numpy().tolist() for row in parsed] for name in features}
    assert columns == {
        "input_ids": [[2, 10, 4, 3, 12, 3, 0, 0], [2, 4, 3, 21, 22, 23, 3, 0]],
        "input_mask": [[1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1, 0]],
        "segment_ids": [[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1, 1, 0]],
        "masked_lm_positions": [[2, 0, 0], [1, 4, 0]],
        "masked_lm_ids": [[11, 0, 0], [20, 22, 0]],
        "masked_lm_weights": [[1, 0, 0], [1, 1, 0]],
        "next_sentence_labels": [[0], [1]],
    }


def test_cut_altered_and_foreign_files_are_refused(path):
    tensorflow = pytest.importorskip("tensorflow")
    whole = pathlib.Path(path).read_bytes()
    middle = len(whole) // 2
    message = r"a\.tfrecord cannot be read .*damaged.* Make the data again"
    for damaged in (whole[:-3], whole[:middle] + b"x" + whole[middle + 1 :]):
        pathlib.Path(path).write_bytes(damaged)
        with pytest.raises(ValueError, match=message):
            read_records(path)
    with tensorflow.io.TFRecordWriter(path) as writer:
        writer.write(tensorflow.train.Example().SerializeToString())
    with pytest.raises(ValueError, match="must have the features"):
        read_records(path)


GOOD = {
    "input_ids": [2, 5, 3, 0],
    "input_mask": [1, 1, 1, 0],
    "segment_ids": [0, 0, 0, 0],
    "masked_lm_positions": [1, 0],
    "masked_lm_ids": [6, 0],
    "masked_lm_weights": [1.0, 0.0],
    "next_sentence_labels": [0],
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"masked_lm_weights": []}, r"Key: masked_lm_weights, Index: 1\."),
        ({"input_ids": [2, 5, 3]}, r"Key: input_ids, Index: 1\..*size: 3 .*\[4\]"),
        ({"next_sentence_labels": []}, r"Key: next_sentence_labels, Index: 1\."),
        ({"input_mask": [0] * 4}, "row 1: `input_mask` must have a token"),
        ({"input_mask": [1, 0, 1, 0]}, "row 1: `input_mask` must have padding only after tokens"),
        ({"input_ids": [2, -5, 3, 0]}, "row 1: `input_ids` must be from 0"),
        ({"masked_lm_ids": [-6, 0]}, "row 1: `masked_lm_ids` must be from 0"),
        *(
            ({"masked_lm_positions": [x, 0]}, "row 1: `masked_lm_positions` must be within the tok")
            for x in (3, 99)
        ),
        ({"next_sentence_labels": [2]}, "row 1: `next_sentence_labels` must be 0 or 1"),
    ],
)
def test_a_faulty_record_is_refused_by_file_and_row(tmp_path, changes, message):
    tensorflow = pytest.importorskip("tensorflow")
    train = tensorflow.train
    path = str(tmp_path / "a.tfrecord")
    with tensorflow.io.TFRecordWriter(path) as writer:
        for values in (GOOD, GOOD | changes):
            features = {
                name: train.Feature(float_list=train.FloatList(value=row))
                if name == "masked_lm_weights"
                else train.Feature(int64_list=train.Int64List(value=row))
                for name, row in values.items()
            }
            features = train.Features(feature=features)
            writer.write(train.Example(features=features).SerializeToString())
    with pytest.raises(ValueError, match=rf"a\.tfrecord.*{message}"):
        read_records(path)


def test_without_tensorflow_the_other_format_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ImportError, match="pip install tensorflow"):
        read_records("a.tfrecord")
