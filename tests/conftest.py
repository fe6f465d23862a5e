"""Every test starts from the same seed; where all is installed, no test is skipped unseen."""

import gc

import keras
import pytest
from keras.src.trainers import trainer
from skips import fail_if_skipped


@pytest.fixture(autouse=True)
def fixed_seed():
    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True, scope="module")
def without_collecting_what_was_imported():
    """Garbage is looked for among what a file's tests made, not among all that libraries hold."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def without_graph_optimization():
    """On TensorFlow graphs run as they were traced: to rewrite them takes longer than they do."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


@pytest.fixture(autouse=True)
def without_xla(request, monkeypatch):
    """On TensorFlow tiny models are not compiled by XLA, which takes longer than their tests.

    Tests marked `xla` are, and so is all that runs outside of pytest: the recipes, and the files
    between the backends, where every task is.
    """
    if keras.backend.backend() == "tensorflow" and "xla" not in request.keywords:
        monkeypatch.setattr(trainer, "model_supports_jit", lambda model: False)


@pytest.fixture(autouse=True)
def every_length(monkeypatch):
    """On JAX batches have several lengths: for tiny models one alone would be worth compiling."""
    from bert_keras.tasks import task_data

    monkeypatch.setitem(task_data.COMPILATION, "jax", 0)


def pytest_collection_modifyitems(config, items):
    """Leaves the tests marked `once` to PyTorch, which has nothing to compile."""
    if keras.backend.backend() == "torch":
        return
    left = [item for item in items if item.get_closest_marker("once")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("once")]


def pytest_report_header():
    return f"keras {keras.__version__}, backend {keras.backend.backend()}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return fail_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return fail_if_skipped((yield))
