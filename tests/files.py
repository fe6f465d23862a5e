"""What tests do to files: they change JSON, compare folders, and write Google's records."""

import json

import numpy as np
import pytest


def write_json(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def change_json(path, **changes):
    """Sets some keys of a JSON object."""
    write_json(path, {**read_json(path), **changes})


def contents(folder):
    """Returns the bytes of each file of a folder, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def write_records(path, arrays, sequence_length, num_predictions):
    """Writes the arrays of a shard as create_pretraining_data.py of google-research/bert does."""
    tensorflow = pytest.importorskip("tensorflow")
    train, offsets, borders = tensorflow.train, arrays["offsets"], arrays["mask_offsets"]
    not_next = arrays.get("is_random_next", np.zeros(len(offsets) - 1, np.int8))

    def padded(values, width=sequence_length):
        return np.pad(values, (0, width - len(values))).astype(int).tolist()

    with tensorflow.io.TFRecordWriter(str(path)) as writer:
        for row, second in enumerate(arrays["second_starts"]):
            ids = arrays["token_ids"][offsets[row] : offsets[row + 1]]
            masked = slice(borders[row], borders[row + 1])
            ints = {
                "input_ids": padded(ids),
                "input_mask": padded(np.ones(len(ids))),
                "segment_ids": padded(np.arange(len(ids)) >= second),
                "masked_lm_positions": padded(arrays["mask_positions"][masked], num_predictions),
                "masked_lm_ids": padded(arrays["mask_labels"][masked], num_predictions),
                "next_sentence_labels": [int(not_next[row])],
            }
            weights = padded(np.ones(masked.stop - masked.start), num_predictions)
            features = {
                name: train.Feature(int64_list=train.Int64List(value=x)) for name, x in ints.items()
            }
            features["masked_lm_weights"] = train.Feature(float_list=train.FloatList(value=weights))
            example = train.Example(features=train.Features(feature=features))
            writer.write(example.SerializeToString())
