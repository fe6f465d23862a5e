"""Ray's and Beam's processes give what this machine's do; small fakes stand in where they are not.

The fakes hold what `runners` calls, and pickle what goes between processes. Where the packages are
installed (they are extras, and the tests' environment has neither), the same tests run them, with
PYTHONPATH=tests/preprocessing, since Ray's processes import what they run.
"""

import importlib.util
import pickle
import sys
import types

import numpy as np
import pytest
from files import contents
from test_pretraining_data import create, first_word, write_corpus

from bert_keras.corpora import runners, token_store


class FakeRayError(Exception):
    pass


class FakeTaskError(FakeRayError):
    def __init__(self, cause):
        self.cause = cause


class FakeRay(types.ModuleType):
    """Runs a task when its result is asked for; a task named so dies with its process."""

    def __init__(self):
        super().__init__("ray")
        self.exceptions = types.SimpleNamespace(RayError=FakeRayError, RayTaskError=FakeTaskError)
        self.options = None

    def is_initialized(self):
        return self.options is not None

    def init(self, **options):
        self.options = options

    def shutdown(self):
        self.options = None

    def put(self, value):
        return pickle.dumps(value)

    def remote(self, function):
        return types.SimpleNamespace(remote=lambda *given: (function, pickle.dumps(given)))

    def get(self, submitted):
        if isinstance(submitted, bytes):
            return pickle.loads(submitted)
        function, given = submitted
        try:
            return _read_only(function(*pickle.loads(given)))
        except MemoryError as error:
            raise FakeRayError from error
        except Exception as error:
            raise FakeTaskError(error) from error


def _read_only(result):
    """Returns a result as Ray does, whose arrays lie in memory that all processes share."""
    for part in result if isinstance(result, tuple) else ():
        for value in part.values() if isinstance(part, dict) else ():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
    return result


class FakePipeline(list):
    """A pipeline and what flows through it."""

    def __init__(self, values=(), options=None):
        super().__init__(values)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def __or__(self, transform):
        return FakePipeline(transform(list(self)))


def fake_beam():
    def run(function, *given):
        given = pickle.dumps((function, given))

        def transform(values):
            function, others = pickle.loads(given)
            return [function(value, *others) for value in values]

        return transform

    beam = types.ModuleType("apache_beam")
    beam.Pipeline, beam.Map = FakePipeline, run
    beam.Create = lambda values: lambda _: list(values)
    beam.Reshuffle = lambda: lambda values: values[::-1]
    options = types.ModuleType("apache_beam.options.pipeline_options")
    options.PipelineOptions = lambda flags, **options: options
    return {"apache_beam": beam, options.__name__: options}


@pytest.fixture(params=["ray", "beam"])
def runner(request, monkeypatch):
    if importlib.util.find_spec(runners.MODULES[request.param]) is None:
        for name, module in (fake_beam() | {"ray": FakeRay()}).items():
            monkeypatch.setitem(sys.modules, name, module)
    return request.param


def square(number):
    return number * number


def die(number):
    raise MemoryError


def test_every_runner_writes_the_same_bytes(runner, tmp_path, monkeypatch):
    monkeypatch.setattr(token_store, "CHARACTERS_PER_TASK", 300)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")  # Which a fake would leave so.
    monkeypatch.setattr(runners, "TASKS_PER_PIPELINE", 7)
    corpus = write_corpus(tmp_path / "corpus")
    create(corpus, tmp_path / "local")
    create(corpus, tmp_path / runner, runner=runner, num_workers=1)
    assert contents(tmp_path / runner) == contents(tmp_path / "local")


def test_the_error_of_a_task_is_raised_unchanged(runner, tmp_path):
    corpus = write_corpus(tmp_path / "corpus")
    with pytest.raises(ValueError, match="must return all of a sentence"):
        create(corpus, tmp_path / "out", runner=runner, num_workers=1, word_segmenter=first_word)


def test_only_a_few_tasks_are_read_ahead(runner, tmp_path, monkeypatch):
    monkeypatch.setattr(runners, "TASKS_PER_PIPELINE", 4)
    read = []
    tasks = (read.append(number) or number for number in range(20))
    with runners.check_runner(runner)(2, unfinished=str(tmp_path)) as workers:
        for number, result in enumerate(workers.map(square, tasks)):
            assert result == number**2 and len(read) <= number + 5
    assert len(read) == 20


def test_a_process_that_ray_lost_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", FakeRay())
    workers = runners.RayWorkers(2, {"address": "auto"})
    with workers, pytest.raises(ChildProcessError, match="the same call, or command, continues"):
        assert sys.modules["ray"].options == {"include_dashboard": False, "address": "auto"}
        list(workers.map(die, [1]))
    assert not sys.modules["ray"].is_initialized()


def test_a_runner_that_cannot_run_is_refused_before_any_work(tmp_path, monkeypatch):
    corpus = write_corpus(tmp_path / "corpus")
    for name, module in (("ray", "ray"), ("beam", "apache_beam")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=rf"pip install '\.\[{name}\]'"):
            create(corpus, tmp_path / "out", runner=name)
    with pytest.raises(ValueError, match="`runner` must be one of"):
        create(corpus, tmp_path / "out", runner="spark")
    with pytest.raises(ValueError, match="are for 'ray' and 'beam'"):
        create(corpus, tmp_path / "out", runner_options={"num_cpus": 2})
    assert not (tmp_path / "out").exists()
