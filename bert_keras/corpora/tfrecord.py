"""Pre-training examples as TFRecord files with the features of google-research/bert.

| feature | kind, length | meaning |
|---|---|---|
| `input_ids` | int64, seq_len | ids, padded with 0 |
| `input_mask` | int64, seq_len | 1 for tokens, 0 for padding |
| `segment_ids` | int64, seq_len | 1 for segment B and its `[SEP]` |
| `masked_lm_positions` | int64, num_predictions | columns, padded with 0 |
| `masked_lm_ids` | int64, num_predictions | original ids, padded with 0 |
| `masked_lm_weights` | float, num_predictions | 1.0 for predictions, 0.0 for padding |
| `next_sentence_labels` | int64, 1 | 1 if B is random; 0 in rows without pairs |
"""

import numpy as np

from bert_keras.checks import raise_at_first, require
from bert_keras.engine.atomic_files import reading
from bert_keras.types import Array, Path

_ADVICE = "Make the data again, or copy the file again."


def record_sizes(path: Path) -> tuple[int, ...]:
    """Returns the lengths that the rows of a TFRecord file are padded to, from its first record.

    Args:
        path: str.

    Returns:
        `(sequence_length, num_predictions)`.

    Raises:
        ImportError: TensorFlow is not installed.
        ValueError: the file is damaged, empty, or has other features.
    """
    tensorflow = require("tensorflow", f"read {path}")
    sizes = 0, 0
    with reading(path, _ADVICE):
        for record in tensorflow.data.TFRecordDataset([path]).take(1).as_numpy_iterator():
            features = tensorflow.train.Example.FromString(record).features.feature
            names = ("input_ids", "masked_lm_positions")
            sizes = tuple(len(features[name].int64_list.value) for name in names)
    if not all(sizes):
        raise ValueError(
            f"The records of {path} must have the features of google-research/bert, such as "
            "input_ids and masked_lm_positions. Received: other features, or no record."
        )
    return sizes


def read_records(path: Path) -> dict[str, Array]:
    """Reads a TFRecord file of google-research/bert.

    Args:
        path: str.

    Returns:
        A dict of arrays as in a shard, see `bert_keras.corpora.shards`: rows without padding.

    Raises:
        ImportError: TensorFlow is not installed.
        ValueError: the file is damaged, its features are not those named above, or a row is wrong:
            it has another length than the first, no tokens, or a prediction outside its tokens.
    """
    tensorflow = require("tensorflow", f"read {path}")
    sequence_length, num_predictions = record_sizes(path)
    sizes = dict.fromkeys(("input_ids", "input_mask", "segment_ids"), sequence_length)
    predictions = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    sizes |= {**dict.fromkeys(predictions, num_predictions), "next_sentence_labels": 1}
    dtypes = dict.fromkeys(sizes, "int64") | {"masked_lm_weights": "float32"}
    features = {x: tensorflow.io.FixedLenFeature([sizes[x]], dtypes[x]) for x in sizes}
    with reading(path, _ADVICE):
        records = list(tensorflow.data.TFRecordDataset([path]).as_numpy_iterator())
        columns = tensorflow.io.parse_example(records, features)
    table = {name: column.numpy() for name, column in columns.items()}
    is_token, is_masked = table["input_mask"] > 0, table["masked_lm_weights"] > 0
    _check_rows(table, is_token, is_masked, path)
    lengths = is_token.sum(axis=1)
    num_second = (table["segment_ids"] * is_token).sum(axis=1)
    return {
        "token_ids": table["input_ids"][is_token].astype(np.int32),
        "offsets": np.concatenate([[0], np.cumsum(lengths)]),
        "second_starts": (lengths - num_second).astype(np.int32),
        "is_random_next": table["next_sentence_labels"][:, 0].astype(np.int8),
        "mask_offsets": np.concatenate([[0], np.cumsum(is_masked.sum(axis=1))]),
        "mask_positions": table["masked_lm_positions"][is_masked].astype(np.int32),
        "mask_labels": table["masked_lm_ids"][is_masked].astype(np.int32),
    }


def _check_rows(table, is_token, is_masked, path):
    """Refuses the first row with a fault."""
    positions, labels = table["masked_lm_positions"], table["next_sentence_labels"]
    is_outside = (positions < 0) | (positions >= is_token.sum(axis=1)[:, None])
    places = [f"{path}, row {row}" for row in range(len(is_token))]
    for column, rule, wrong in (
        ("input_mask", "have a token", ~is_token.any(axis=1, keepdims=True)),
        ("input_mask", "have padding only after tokens", np.diff(is_token.astype(int)) > 0),
        ("input_ids", "be from 0", table["input_ids"] < 0),
        ("masked_lm_ids", "be from 0", table["masked_lm_ids"] < 0),
        ("masked_lm_positions", "be within the tokens", is_outside & is_masked),
        ("next_sentence_labels", "be 0 or 1", ~np.isin(labels, (0, 1))),
    ):
        rule = f"`{column}` must {rule}"
        raise_at_first(wrong.any(axis=1), table[column], rule, _ADVICE, places)
