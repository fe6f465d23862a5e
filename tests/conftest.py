"""Every test starts from the same seed, and on a full installation no test may be skipped."""

import functools
import gc
import inspect
import json
import random
import types
import zipfile

gc.set_threshold(100_000)  # Imports and traces of programs make many objects.

import keras
import pytest
from keras.src.layers import layer
from keras.src.ops import operation
from keras.src.trainers import trainer
from skips import fail_if_skipped

MODEL_SUPPORTS_JIT = trainer.model_supports_jit
# The class has other names in other versions of Keras.
TRAINER = next(base for base in keras.Model.__mro__ if "run_eagerly" in vars(base))
RUN_EAGERLY = TRAINER.run_eagerly


@pytest.fixture(autouse=True)
def fixed_seed():
    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True, scope="session")
def seeds_of_the_cpu_alone():
    """PyTorch notes for each kind of device that is not there which line has set the seed."""
    with pytest.MonkeyPatch.context() as patch:
        if keras.backend.backend() == "torch":
            import torch

            for device in (torch.cuda, torch.xpu, torch.mtia):
                if not device.is_available():
                    patch.setattr(device, "manual_seed_all", lambda seed: None)
        yield


@functools.cache
def signature_of(function, is_bound):
    return inspect.signature(types.MethodType(function, ...) if is_bound else function)


@pytest.fixture(autouse=True, scope="session")
def signatures_are_read_once():
    """Keras reads those of a class again for each layer, a tenth of the time that one takes."""

    def signature(function):  # The cache must not hold the object of a bound method.
        own = getattr(function, "__func__", function)
        return signature_of(own, is_bound=own is not function)

    getfullargspec = functools.cache(inspect.getfullargspec)
    cached = {"signature": signature, "getfullargspec": getfullargspec}
    with pytest.MonkeyPatch.context() as patch:
        for module in (operation, layer):
            patch.setattr(module, "inspect", types.SimpleNamespace(**vars(inspect) | cached))
        yield


@pytest.fixture(autouse=True, scope="module")
def imported_objects_are_frozen():
    """The garbage collector skips the many objects that libraries keep."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def without_graph_optimization():
    """On TensorFlow graphs run as they were traced: rewriting them takes longer than the tests."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


@pytest.fixture(autouse=True)
def every_length(monkeypatch):
    """On JAX batches of tiny models have several lengths, as those of larger models do."""
    from bert_keras.preprocessing import batching

    monkeypatch.setitem(batching.COMPILE_COST, "jax", 0)


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes a file and returns its path.

    Its content is bytes, a str, a JSON object, or a list of objects, one per line.
    """

    dumps = functools.partial(json.dumps, ensure_ascii=False)

    def write_file(name, content):
        if isinstance(content, list):
            content = "".join(dumps(record) + "\n" for record in content)
        elif isinstance(content, dict):
            content = dumps(content)
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


@pytest.fixture
def noted(monkeypatch):
    """Returns a function that notes each call of a function, which its owner and name identify.

    It returns the list of the first arguments, which grows.
    """

    def note(owner, name):
        firsts, function = [], getattr(owner, name)

        def noting(*args, **kwargs):
            firsts.append(args[0])
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, noting)
        return firsts

    return note


@pytest.fixture
def reloaded(tmp_path):
    """Returns a function that saves a model and returns what its file gives back."""

    def save_and_load(model):
        model.save(tmp_path / "model.keras")
        return keras.models.load_model(tmp_path / "model.keras")

    return save_and_load


@pytest.fixture
def changed_archive():
    """Returns a function that copies an archive and changes the content of its members."""

    def change(path, function):
        changed = path.with_stem("changed")
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
            for name in old.namelist():
                new.writestr(name, function(name, old.read(name)))
        return changed

    return change


@pytest.fixture
def asked_of_other_backends(monkeypatch):
    """A list of what another backend's process is asked for; none starts, and the export ends."""
    from bert_keras.export import other_backend

    jobs = []

    def ask(format, model, path, backend):
        jobs.append((format, model, backend))
        raise InterruptedError

    monkeypatch.setattr(other_backend, "write", ask)
    return jobs


@pytest.fixture(scope="module")
def documents_of_letters(tmp_path_factory):
    """A file of twelve documents with twelve sentences each, a sentence per line."""
    generator = random.Random(0)
    sentences = (
        " ".join(generator.choices("abcdefgh", k=generator.randint(3, 9))) + " ."
        for _ in range(144)
    )
    documents = ["\n".join(twelve) for twelve in zip(*[sentences] * 12, strict=True)]
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n".join(documents))
    return path


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """On TensorFlow XLA compiles in tests marked `xla` only: for tiny models it takes long.

    It also does in the files that go from one backend to another, outside this process. Tests
    marked `eager` trace no graph either.
    """
    if keras.backend.backend() != "tensorflow":
        return
    marks = {marker.name for marker in item.iter_markers()}
    trainer.model_supports_jit = MODEL_SUPPORTS_JIT if "xla" in marks else lambda model: False
    eager = property(lambda model: True, RUN_EAGERLY.fset)
    TRAINER.run_eagerly = eager if "eager" in marks else RUN_EAGERLY


def runs_elsewhere(item):
    """Whether a test runs on PyTorch alone, or beside it on another backend than this one."""
    if also_on := item.get_closest_marker("also_on"):
        return keras.backend.backend() not in also_on.args
    return item.get_closest_marker("once") and not item.get_closest_marker("each_backend")


def pytest_collection_modifyitems(config, items):
    """Tests that run once run on PyTorch, which has nothing to compile."""
    if keras.backend.backend() == "torch":
        return
    deselected = [item for item in items if runs_elsewhere(item)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not runs_elsewhere(item)]


def pytest_report_header():
    return f"keras {keras.__version__}, backend {keras.backend.backend()}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return fail_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return fail_if_skipped((yield))
