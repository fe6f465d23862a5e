"""TFRecord files of google-research/bert's script, converted to a folder of shards."""

import collections
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bert_keras.checks import check_not_empty
from bert_keras.corpora import pretraining_data, shards
from bert_keras.corpora.tfrecord import read_records, record_sizes
from bert_keras.datasets.remote import check_local
from bert_keras.tokenizers.tokenizer import Tokenizer
from bert_keras.types import Path


def import_records(
    paths: Sequence[Path],
    tokenizer: Tokenizer,
    output_dir: Path,
    progress: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """Converts TFRecord files into a folder that `PretrainingBatches` reads without TensorFlow.

    Each file becomes one shard of the same examples in the same order, with their masks. If segment
    B follows A in all pairs, they teach nothing about next sentences, and the manifest calls them
    full sentences.

    Args:
        paths: list of paths, files of google-research/bert's create_pretraining_data.py.
        tokenizer: `Tokenizer` with the vocabulary that made the files. They do not name it.
        output_dir: str, the folder to write, made if needed.
        progress: function of a str, called after each file; or `None`.

    Returns:
        The manifest, a dict.

    Raises:
        ImportError: TensorFlow is not installed.
        ValueError: a file is damaged or has other features, a row is wrong, rows have different
            lengths or another vocabulary, `output_dir` holds data already, or it or a file
            is an address such as `s3://bucket/file`.
    """
    paths = [os.fspath(path) for path in paths]
    check_not_empty(paths, "`paths` must name TFRecord files")
    if os.path.exists(os.path.join(output_dir, shards.MANIFEST_FILE)):
        raise ValueError(
            f"`output_dir` must be new. Received: {output_dir}, which holds data. Choose another "
            "folder or remove it."
        )
    for path in (output_dir, *paths):
        check_local("TFRecord files and `output_dir`", path)
    sizes = {path: record_sizes(path) for path in paths}
    if len(set(sizes.values())) > 1:
        rule = "All files must have rows of the same length and number of predictions"
        raise ValueError(f"{rule}. Received: {sizes}.")
    os.makedirs(output_dir, exist_ok=True)
    entries, sums = [], collections.Counter()
    for index, path in enumerate(paths):
        arrays = read_records(path)
        _check_rows(arrays, tokenizer, path)
        shard_path = os.path.join(output_dir, shards.shard_name(index, len(paths)))
        shards.write_shard(shard_path, arrays)
        entries.append(pretraining_data.describe_shard(shard_path, len(arrays["offsets"]) - 1))
        sums["example_tokens"] += len(arrays["token_ids"])
        sums["predictions"] += len(arrays["mask_labels"])
        sums["not_next"] += int(arrays["is_random_next"].sum())
        if progress is not None:
            progress(f"{index + 1} of {len(paths)} files imported")
    tokenizer.save(output_dir)
    num_examples = sum(shard["num_examples"] for shard in entries)
    counts = {"bytes": sum(map(os.path.getsize, paths))}
    manifest = {
        "version": shards.FORMAT_VERSION,
        "fingerprint": shards.json_sha256([shard["sha256"] for shard in entries]),
        "num_examples": num_examples,
        "objective": "next_sentence" if sums["not_next"] else "full_sentences",
        "sequence_length": sizes[paths[0]][0],
        "masking": {"imported": True},
        "num_predictions": sizes[paths[0]][1],
        "vocabulary": pretraining_data.describe_vocabulary(tokenizer),
        "input": {"files": [os.path.basename(path) for path in paths], **counts},
        "counts": counts,
        "statistics": {
            "not_next_share": round(sums["not_next"] / num_examples, 5),
            **pretraining_data.token_statistics(sums, num_examples),
        },
        "shards": entries,
    }
    shards.write_manifest(output_dir, manifest)
    return manifest


def _check_rows(arrays, tokenizer, path):
    """Refuses rows of another vocabulary: all ids must exist, and rows must begin with [CLS]."""
    largest = max(arrays["token_ids"].max(), arrays["mask_labels"].max(initial=0))
    starts = arrays["offsets"][:-1]
    # The first token of a row is never masked, since it is special.
    is_cls = arrays["token_ids"][starts] == tokenizer.layout.before[0]
    if largest >= tokenizer.vocabulary_size or not np.all(is_cls):
        raise ValueError(
            "The vocabulary must be the one that made the records. Received: one of "
            f"{tokenizer.vocabulary_size} tokens with {tokenizer.cls_token} = "
            f"{tokenizer.cls_token_id}; {path} has ids up to {largest}, and {np.sum(~is_cls)} of "
            f"its {len(is_cls)} rows begin with another. Pass the tokenizer of the records."
        )
