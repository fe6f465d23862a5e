import collections
import concurrent.futures
import pathlib
import shutil
import zlib

import numpy as np
import pytest
from checks import refused

from bert_keras.corpora import PretrainingBatches, create_pretraining_data
from bert_keras.preprocessing import Masking
from bert_keras.tokenizers import Tokenizer, WordPieceTokenizer

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(60))]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders of about 100 examples in shards of 16: with pairs, and without."""
    root = tmp_path_factory.mktemp("data")
    generator = np.random.default_rng(0)
    documents = [
        "\n".join(
            " ".join(f"w{i}" for i in generator.integers(0, 60, generator.integers(2, 9)))
            for _ in range(60)
        )
        for _ in range(6)
    ]
    (root / "corpus.txt").write_text("\n\n".join(documents))
    tokenizer = WordPieceTokenizer(VOCABULARY)
    folders = {name: str(root / name) for name in ("pairs", "single")}
    options = {"sequence_length": 24, "sentences_per_line": True, "examples_per_shard": 16}
    for name, objective in (("pairs", "next_sentence"), ("single", "full_sentences")):
        options |= {"objective": objective, "output_dir": folders[name]}
        create_pretraining_data(root / "corpus.txt", tokenizer, **options)
    return folders


def as_dict(labels):
    return labels if isinstance(labels, dict) else {"masked_lm": labels}


def unmasked(batch):
    """Returns the rows as they were before masking, as tuples."""
    inputs, labels, weights = (as_dict(part) for part in batch)
    token_ids = inputs["token_ids"].copy()
    rows, places = np.nonzero(weights["masked_lm"])
    token_ids[rows, inputs["mask_positions"][rows, places]] = labels["masked_lm"][rows, places]
    return [tuple(row) for row in token_ids.tolist()]


@pytest.mark.parametrize("kind", ["pairs", "single"])
def test_a_batch_has_the_arrays_that_pretraining_takes(folders, kind):
    batch = PretrainingBatches(folders[kind], 8)[0]
    # Without pairs they are the arrays that MaskedLM takes.
    assert [isinstance(part, dict) for part in batch[1:]] == [kind != "single"] * 2
    inputs, labels, weights = (as_dict(part) for part in batch)
    shapes = {"masked_lm": (8, 4)} | ({} if kind == "single" else {"next_sentence": (8,)})
    names = ("token_ids", "segment_ids", "padding_mask")
    for arrays, expected, dtype in (
        (inputs, {**dict.fromkeys(names, (8, 24)), "mask_positions": (8, 4)}, "int32"),
        (labels, shapes, "int32"),
        (weights, shapes, "float32"),
    ):
        assert {key: value.shape for key, value in arrays.items()} == expected
        assert {value.dtype.name for value in arrays.values()} == {dtype}
    assert weights["masked_lm"].sum(axis=1).min() >= 1
    token_ids, padding_mask = inputs["token_ids"], inputs["padding_mask"]
    assert (token_ids[:, 0] == 2).all()
    np.testing.assert_array_equal(padding_mask == 0, token_ids == 0)
    # Segment 1 is B and its [SEP]: what stands behind the first [SEP].
    separators = np.cumsum(token_ids == 3, axis=1) - (token_ids == 3)
    if kind == "single":
        assert not inputs["segment_ids"].any()
    else:
        np.testing.assert_array_equal(inputs["segment_ids"], (separators == 1) & (token_ids > 0))


@pytest.mark.parametrize("kind", ["pairs", "single"])
def test_a_batch_depends_only_on_its_number(folders, kind):
    straight = PretrainingBatches(folders[kind], 8, seed=5)
    batches = [straight[step] for step in range(40)]
    backwards = PretrainingBatches(folders[kind], 8, seed=5)
    for step in reversed(range(40)):
        np.testing.assert_equal(backwards[step], batches[step])
    resumed = PretrainingBatches(folders[kind], 8, seed=5, start_step=23)
    np.testing.assert_equal(resumed[0], batches[23])
    np.testing.assert_equal(resumed[10], batches[33])
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        np.testing.assert_equal(list(pool.map(backwards.__getitem__, range(40))), batches)
    other = PretrainingBatches(folders[kind], 8, seed=6)
    assert unmasked(other[0]) != unmasked(batches[0])


def test_an_epoch_reads_each_row_once_but_a_remainder_and_has_masks_of_its_own(folders):
    batches = PretrainingBatches(folders["pairs"], 8)
    ordered = PretrainingBatches(folders["pairs"], 1, shuffle=False)
    every = collections.Counter(unmasked(batch)[0] for batch in ordered)
    assert every.total() == batches.manifest["num_examples"]
    orders, masks = [[], []], [{}, {}]
    for epoch in range(2):
        for step in range(epoch * len(batches), (epoch + 1) * len(batches)):
            rows = unmasked(batches[step])
            orders[epoch] += rows
            masked = batches[step][0]["token_ids"].tolist()
            masks[epoch] |= zip(rows, masked, strict=True)
        read = collections.Counter(orders[epoch])
        assert read <= every and (every - read).total() == every.total() % 8
    assert orders[0] != orders[1]
    both = masks[0].keys() & masks[1].keys()
    assert np.mean([masks[0][row] == masks[1][row] for row in both]) < 0.2


def test_unshuffled_data_ends_with_a_batch_filled_with_rows_of_weight_0(folders):
    batches = PretrainingBatches(folders["pairs"], 32, shuffle=False)
    total = batches.manifest["num_examples"]
    assert batches.num_batches == len(batches) == -(-total // 32) and total % 32
    seen = list(batches)
    weights = np.concatenate([batch[2]["next_sentence"] for batch in seen])
    assert weights.tolist() == [1.0] * total + [0.0] * (32 * len(seen) - total)
    last = seen[-1][2]
    assert not last["masked_lm"][last["next_sentence"] == 0].any()
    np.testing.assert_equal(list(batches), seen)
    with pytest.raises(IndexError):
        batches[len(batches)]
    shuffled = PretrainingBatches(folders["pairs"], 8)
    assert shuffled.num_batches is None
    assert shuffled[10_000][0]["token_ids"].shape == (8, 24)
    ordered = PretrainingBatches(folders["pairs"], 8, shuffle=False, start_step=3)
    count = ordered.batches_per_epoch - 3
    assert len(ordered) == ordered.num_batches == len(list(ordered)) == count


def test_unshuffled_data_has_the_same_masks_for_any_seed_and_batch_size(folders):
    def masked_rows(**options):
        batches = PretrainingBatches(folders["pairs"], shuffle=False, **options)
        total, rows = batches.manifest["num_examples"], []
        for step in range(len(batches)):
            inputs, labels, weights = batches[step]
            parts = (inputs["token_ids"], inputs["mask_positions"], labels["masked_lm"])
            columns = [*(part[:, :24] for part in parts), weights["masked_lm"]]
            rows += np.concatenate([column[:, :24] for column in columns], axis=1).tolist()
        return rows[:total]

    rows = masked_rows(batch_size=8)
    for options in ({"batch_size": 5}, {"batch_size": 64, "seed": 3}):
        assert masked_rows(**options) == rows
    late = PretrainingBatches(folders["pairs"], 8, shuffle=False, start_step=2)
    early = PretrainingBatches(folders["pairs"], 8, shuffle=False)
    np.testing.assert_equal(late[0], early[2])
    # Rows of their own: were all drawn from one number, alike rows would be masked alike.
    positions = np.concatenate([batch[0]["mask_positions"][:, 0] for batch in early])
    assert len(set(positions.tolist())) > 5


def test_masks_of_shuffled_data_do_not_change_between_versions(tmp_path, monkeypatch):
    # What NumPy's function returns, also where `make test-margins` replaces it.
    monkeypatch.setattr(np.random, "default_rng", lambda x: np.random.Generator(np.random.PCG64(x)))
    lines = (" ".join(f"w{i * j % 59}" for j in range(1, 9)) for i in range(1, 180))
    (tmp_path / "corpus.txt").write_text("\n".join(lines))
    options = {"objective": "full_sentences", "sentences_per_line": True, "examples_per_shard": 16}
    options |= {"output_dir": str(tmp_path / "data"), "sequence_length": 24}
    create_pretraining_data(tmp_path / "corpus.txt", WordPieceTokenizer(VOCABULARY), **options)
    batch = PretrainingBatches(tmp_path / "data", 8, seed=5, start_step=23)[0]
    assert zlib.crc32(np.ascontiguousarray(batch[0]["token_ids"]).tobytes()) == 3149190980


def test_masking_follows_its_settings(folders):
    masking = Masking(mask_share=0.0, random_share=0.0, max_predictions=2)
    inputs, labels, weights = PretrainingBatches(folders["pairs"], 8, masking)[0]
    found = np.take_along_axis(inputs["token_ids"], inputs["mask_positions"], axis=1)
    is_real = weights["masked_lm"] > 0
    np.testing.assert_array_equal(found[is_real], labels["masked_lm"][is_real])
    assert labels["masked_lm"].shape == (8, 2) and not (inputs["token_ids"] == 4).any()


@refused(
    ("pairs", {"seed": -1}, "`seed` must be an int from 0. Received: -1"),
    ("pairs", {"batch_size": 0}, "`batch_size` must be an int from 1"),
    ("pairs", {"batch_size": 4000}, "There must be 4000 examples or more"),
    ("pairs", {"start_step": -1}, "`start_step` must be an int from 0"),
    ("pairs", {"start_step": 200, "shuffle": False}, "`start_step` must be an int from 0 to"),
    ("single", {"has_next_sentence": True}, "holds full sentences instead of pairs"),
)
def test_wrong_arguments_are_refused(folders, kind, options):
    PretrainingBatches(folders[kind], **({"batch_size": 8} | options))


def test_altered_shards_and_other_tokenizers_are_refused(folders, tmp_path):
    copy = pathlib.Path(shutil.copytree(folders["pairs"], tmp_path / "copy"))
    path = sorted(copy.glob("examples-*"))[0]
    path.write_bytes(path.read_bytes()[:-2] + b"xx")
    batches = PretrainingBatches(copy, 8, shuffle=False)
    with pytest.raises(ValueError, match="it was altered"):
        batches[0]
    lowercase = Tokenizer.load(copy).settings["normalizer"]["lowercase"]
    Tokenizer.load(copy, lowercase=not lowercase).save(copy)
    with pytest.raises(ValueError, match="must be the one that made it"):
        PretrainingBatches(copy, batch_size=2)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (copy / name).unlink()
    (copy / "vocab.txt").write_text("\n".join([*VOCABULARY, "more"]) + "\n")
    with pytest.raises(ValueError, match=r"must be the one that made it.* with 66 tokens"):
        PretrainingBatches(copy, 8)
