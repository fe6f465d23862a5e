"""Several devices share a batch, and give what one gives; what would be wrong is refused."""

import importlib
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import several_devices
from checks import TINY
from several_devices import LABELS, TEXTS, trained
from tiny import tiny_backbone, tiny_classifier, tiny_task

import bert_keras
from bert_keras import distribution
from bert_keras.distribution import DataShard
from bert_keras.training import recipe
from bert_keras.training.contrastive import MultipleNegativesRanking

pytestmark = pytest.mark.once

BACKEND = keras.backend.backend()
BACKBONES = [name for name in dir(bert_keras) if name.endswith("Backbone")]
BATCH = (
    {"token_ids": np.arange(10).reshape(5, 2)},
    {"first": np.arange(5), "second": np.arange(10).reshape(5, 2)},
)


@pytest.mark.each_backend
@pytest.mark.xla
def test_several_devices_train_as_one_does_and_what_they_save_loads_on_one(tmp_path):
    """On PyTorch two processes; on TensorFlow two devices; on JAX four, two for each weight."""
    path = tmp_path / "found.npz"
    if BACKEND == "torch":
        by_torchrun(several_devices.main, path)
    else:
        on_devices_of_one_process(path)
    task, alone = trained()
    with np.load(path) as found:
        assert set(found) == set(alone)
        for name, expected in alone.items():
            np.testing.assert_allclose(found[name], expected, rtol=0, atol=2e-6, err_msg=name)
    loaded = bert_keras.load_model(tmp_path / "found.keras")
    for theirs, ours in zip(loaded.get_weights(), task.get_weights(), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=2e-6)


def on_devices_of_one_process(path):
    """Trains in this process or, if the backend has started with one device, in another one."""
    try:
        several_devices.main(path)
    except ValueError as error:
        assert "Call it before any other use of" in str(error)
        program = [sys.executable, several_devices.__file__, path]
        subprocess.run(program, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True)
    finally:
        if BACKEND == "jax":
            keras.distribution.set_distribution(None)
        else:
            importlib.import_module("tensorflow").distribute.experimental_set_strategy(None)


def by_torchrun(function, *arguments):
    """Calls a function in two processes of `torchrun`, forks of this one, which has the imports."""
    from torch.distributed.elastic.rendezvous import dynamic_rendezvous
    from torch.distributed.launcher import api

    options = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "run_id": "test"}
    options |= {"max_restarts": 0, "start_method": "fork"}
    config = api.LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, **options)
    with pytest.MonkeyPatch.context() as patch:
        # For each event it reads the source of the whole stack, which takes most of the time.
        patch.setattr(dynamic_rendezvous, "construct_and_record_rdzv_event", lambda **_: None)
        patch.setattr(dynamic_rendezvous, "get_method_name", lambda depth=2: "")
        api.elastic_launch(config, in_one_thread)(function, *arguments)


def in_one_thread(function, *arguments):
    import torch

    torch.set_num_threads(1)  # A fork has no other threads.
    function(*arguments)


def test_shares_are_the_rows_of_a_batch_and_copies_that_weigh_0():
    shares = [DataShard(index, 2, 4)(BATCH) for index in range(2)]
    inputs, labels, weights = keras.tree.map_structure(lambda *x: np.concatenate(x), *shares)
    assert [len(share[0]["token_ids"]) for share in shares] == [4, 4]
    np.testing.assert_array_equal(inputs["token_ids"], [*BATCH[0]["token_ids"], *[[0, 1]] * 3])
    np.testing.assert_array_equal(labels["second"][:5], BATCH[1]["second"])
    np.testing.assert_equal(weights, dict.fromkeys(labels, np.repeat([1, 0], [5, 3])))
    own = {"first": np.ones(5), "second": np.full((5, 2), 2.0)}
    assert DataShard(1, 2, 2)((*BATCH, own))[2]["second"].tolist() == [[2, 2], [2, 2], [0, 0]]
    # All batches have the same parts.
    assert [w.tolist() for w in DataShard(0, 5, 5)(BATCH)[2].values()] == [[1], [1]]
    assert len(DataShard(0, 5, 5, fills=False)(BATCH)) == 2
    assert DataShard()(BATCH) is BATCH
    with pytest.raises(ValueError, match=r"multiple of 2 rows.*5 rows.*weighted_metrics"):
        DataShard(0, 2, 2, fills=False)(BATCH)


def test_batches_are_filled_up_only_where_rows_of_weight_0_do_not_count(monkeypatch):
    tasks = tiny_task("TextEmbedder"), tiny_task("TextEmbedder", objective="triplet")
    monkeypatch.setattr(distribution, "process", lambda: (0, 2))
    assert [distribution.shard_of(task).fills for task in tasks] == [False, True]


@pytest.mark.parametrize("name", BACKBONES)
def test_each_familys_large_weights_are_cut(name):
    backbone = getattr(bert_keras, name)(**TINY)
    mesh = keras.distribution.DeviceMesh((1, 2), ("batch", "model"), ["cpu:0", "cpu:1"])
    layouts = distribution.layout_map(backbone, mesh)
    ranks = {w.path: len(w.shape) for w in backbone.weights}
    of_task = {path: layouts[f"some_task/another/{path.split('/', 1)[1]}"] for path in ranks}
    cut = {path: len(layout.axes) for path, layout in of_task.items() if layout is not None}
    large = {path for path in ranks if path.endswith("/kernel") and "encoder" in path}
    assert large and large <= cut.keys()
    assert backbone.token_embedding.embeddings.path in cut
    assert not any("norm" in path for path in cut)
    assert cut.items() <= ranks.items()
    with pytest.raises(ValueError, match=r"`axis`.*\('batch', 'model'\).*'rows'"):
        distribution.layout_map(backbone, mesh, "rows")
    mesh = keras.distribution.DeviceMesh((1, 3), ("batch", "model"), ["cpu:0", "cpu:1", "cpu:2"])
    with pytest.raises(ValueError, match=r"split evenly into 3.*divisor"):
        distribution.layout_map(backbone, mesh)


@pytest.mark.each_backend
def test_what_would_do_nothing_or_be_wrong_is_refused(monkeypatch):
    task = tiny_classifier()
    optimizer = keras.optimizers.AdamW(clipnorm=1.0)
    monkeypatch.setattr(recipe, "is_distributed", lambda task: True)
    monkeypatch.setattr(distribution, "shard_of", lambda task, whole=False: DataShard(0, 1, 2))
    if BACKEND == "jax":  # Every row sees all others there, and gradients are of whole batches.
        task.compile(optimizer, loss=MultipleNegativesRanking())
        return
    with pytest.raises(ValueError, match=r"MultipleNegativesRanking compares.*With JAX"):
        task.compile(loss=MultipleNegativesRanking())
    with pytest.raises(ValueError, match="SparseTextEmbedder compares the rows"):
        tiny_task("SparseTextEmbedder", objective="triplet")
    tiny_task("SparseTextEmbedder", objective="triplet", regularization=(0, 0))
    task.compile(optimizer)
    with pytest.raises(ValueError, match=r"before it clips.*AdamW.*optimizer='auto'"):
        task.fit(TEXTS, LABELS, verbose=0)
    monkeypatch.undo()
    if BACKEND == "tensorflow":
        strategy = type("MultiWorkerMirroredStrategy", (), {"num_replicas_in_sync": 2})()
        monkeypatch.setattr(type(task), "distribute_strategy", strategy)
        with pytest.raises(ValueError, match=r"by tf.distribute.MirroredStrategy.*JAX or PyTorch"):
            distribution.shard_of(task)
        monkeypatch.undo()
    monkeypatch.setattr(keras.distribution, "distribution", lambda: "DataParallel")
    with pytest.raises(ValueError, match=f"does nothing with {BACKEND}.*{'torchrun|Mirrored'}"):
        tiny_backbone()


def test_processes_of_torchrun_must_be_joined(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RuntimeError, match=r"joined before.*distribution.initialize\(\)"):
        tiny_classifier()
    with pytest.raises(ValueError, match="`devices` must be"):
        distribution.initialize(0)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="torchrun --nproc_per_node 2"):
        distribution.initialize(2)
