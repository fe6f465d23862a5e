"""What runs a call's tasks: processes of this machine, Ray, or Apache Beam.

With Ray and Beam, processes may be on other machines. These must see the same files under the same
paths, and import the same package.
"""

import itertools
import os
import pickle
import shutil
import threading
import uuid

from bert_keras.checks import check_choice, refuse_unused, require
from bert_keras.corpora.workers import KILLED, STATE, Workers, set_up
from bert_keras.engine.atomic_files import replacing

MODULES = {"ray": "ray", "beam": "apache_beam"}
# Tasks in one pipeline. Until it ends, tasks and results are on disk, about 2 MB each.
TASKS_PER_PIPELINE = 512
_ONE_AT_A_TIME = threading.Lock()


def check_runner(runner, options=None):
    """Returns the class of the workers for a runner, `"local"`, `"ray"` or `"beam"`.

    Raises:
        ValueError: there is no such runner, or options are given to `"local"`.
        ImportError: its package is missing.
    """
    check_choice("runner", runner, ("local", *MODULES))
    if runner in MODULES:
        advice = "Without it runner='local' does the same on this machine."
        require(MODULES[runner], f"use runner={runner!r}", extra=runner, advice=advice)
    else:
        rule = "`runner_options` are for 'ray' and 'beam'"
        refuse_unused(rule, {"runner_options": options or None}, "Leave them out.")
    return {"local": Workers, "ray": RayWorkers, "beam": BeamWorkers}[runner]


class RayWorkers(Workers):
    """Runs tasks on Ray. A task whose process dies runs again, three times at most.

    Args:
        count: int, half of the number of tasks in progress.
        options: dict, arguments of `ray.init`, such as `address`; unused if Ray runs already.
        **state: as for `Workers`.
    """

    def _start(self):
        import ray

        # Disables Ray's usage reports.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            ray.init(**{"include_dashboard": False} | self.options)
        self._ray, self._remote = ray, ray.remote(_run_on_ray)
        self._run, self._state = uuid.uuid4().hex, ray.put(self.state)

    def _stop(self):
        if self._is_ours:
            self._ray.shutdown()

    def _submit(self, function, task):
        # A reference in a list is passed on as it is: each process resolves it once.
        return self._remote.remote(self._run, [self._state], function, task)

    def _result(self, submitted):
        try:
            return self._ray.get(submitted)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError as error:
            raise ChildProcessError(KILLED) from error


class BeamWorkers(Workers):
    """Runs tasks in pipelines of Apache Beam, some hundred in each.

    A pipeline keeps no order, so tasks and results are numbered files in a folder. Without options
    everything runs in this process, for a trial. On a cluster, Beam's own options set the number of
    processes.

    Args:
        count: int, unused.
        options: dict, Beam's pipeline options, such as `runner` and its own options.
        **state: as for `Workers`; `unfinished` is a folder for files that all machines see.
    """

    def _start(self):
        self._folder = os.path.join(self.state["unfinished"], "beam")
        self._run = uuid.uuid4().hex

    def _stop(self):
        shutil.rmtree(self._folder, ignore_errors=True)

    def map(self, function, tasks):
        """Yields `function(task)` for each task in order, after the end of each pipeline."""
        tasks = iter(tasks)
        while count := self._write_tasks(itertools.islice(tasks, TASKS_PER_PIPELINE)):
            self._run_pipeline(function, count)
            for number in range(count):
                result = _read(self._folder, f"result{number}")
                if isinstance(result, ValueError):
                    raise result
                yield result

    def _write_tasks(self, tasks):
        """Writes tasks and the state into an empty folder; returns the number of tasks."""
        shutil.rmtree(self._folder, ignore_errors=True)
        os.makedirs(self._folder)
        _write(self._folder, "state", self.state)
        number = -1
        for number, task in enumerate(tasks):
            _write(self._folder, f"task{number}", task)
        return number + 1

    def _run_pipeline(self, function, count):
        import apache_beam
        from apache_beam.options.pipeline_options import PipelineOptions

        # Not Beam's local processes: it would wait forever for one that is killed.
        options = {"runner": "FnApiRunner", "direct_running_mode": "in_memory"} | self.options
        with apache_beam.Pipeline(options=PipelineOptions(flags=[], **options)) as pipeline:
            numbers = pipeline | apache_beam.Create(range(count)) | apache_beam.Reshuffle()
            numbers | apache_beam.Map(_run_on_beam, self._run, self._folder, function)


def _run_on_ray(run, state, function, task):
    import ray

    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # As in our own processes.
    return _run_task(run, lambda: ray.get(state[0]), function, task)


def _run_on_beam(number, run, folder, function):
    task = _read(folder, f"task{number}")
    try:
        result = _run_task(run, lambda: _read(folder, "state"), function, task)
    except ValueError as error:  # It refuses the task, so Beam's retries would not help.
        result = error
    _write(folder, f"result{number}", result)


def _run_task(run, load_state, function, task):
    """Runs a task in a process of the runner. Its first task of a run loads the state."""
    with _ONE_AT_A_TIME:  # Beam runs tasks in threads, which share `STATE`.
        if STATE.get("run") != run:
            set_up(load_state() | {"run": run})
        return function(task)


def _read(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return pickle.load(file)


def _write(folder, name, value):
    with replacing(os.path.join(folder, name)) as path, open(path, "wb") as file:
        pickle.dump(value, file)
