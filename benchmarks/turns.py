"""Times several programs in turn, A B C A B C, each in a process of its own.

A change in the machine's speed affects all of them, so the ratios of a round are what counts. A
round in which the machine was busy with something else is discarded and counted. `alternate` does
the same for functions of one process.
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time
from concurrent import futures

WORKER = pathlib.Path(__file__).with_name("worker.py")
# A round counts if other processes took at most this share of all cores.
OTHERS_AT_MOST = 0.1


@dataclasses.dataclass
class Result:
    """The result of one side for one job.

    Attributes:
        side: str.
        seconds: list of float, one for each round that counts.
        load_seconds: float, seconds of loading, without imports and making files, or `None`.
        first_seconds: float, seconds of the first call, which compiles, or `None`.
        megabytes: float, the peak memory of its process, or of its accelerator.
        shapes: int, shapes of its batches, each compiled once by JAX and TensorFlow, or `None`.
        steps: int, training steps in each of `seconds`, or `None` if it is one piece of work.
        device: str, the accelerator that computed, or `None` if the processor did.
        output: path of a `.npy` file with its answer, or `None`.
        error: str, why it could not do the job, or `None`.
    """

    side: str
    seconds: list = dataclasses.field(default_factory=list)
    load_seconds: float | None = None
    first_seconds: float | None = None
    megabytes: float | None = None
    shapes: int | None = None
    steps: int | None = None
    device: str | None = None
    output: str | None = None
    error: str | None = None


# Kinds of jobs whose processes begin with huge pages.
TRAINING = ("train_step", "pretraining_step", "epoch", "fine_tuning", "pretraining")
HUGE_PAGES = "glibc.malloc.hugetlb=1"
# Variables from which OpenMP, TensorFlow, XLA and tokenizers take their number of threads.
THREADS = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "NPROC", "RAYON_NUM_THREADS")
# Without TensorFlow's messages, and without asking the hub.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "HF_HUB_OFFLINE": "1"}


class Worker:
    """A side in its own process, which receives its jobs as lines of JSON."""

    def __init__(self, side, folder, threads, huge_pages=False):
        name, _, backend = side.partition("-")
        self.side = side
        environment = {
            **os.environ,
            **QUIET,
            "TOKENIZERS_PARALLELISM": "true",
            **dict.fromkeys(THREADS, str(threads)),
            "KERAS_BACKEND": backend or "torch",
            # As the command line sets it (cli/bootstrap.py), unless the caller does.
            "TF_ENABLE_ONEDNN_OPTS": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "1"),
            # As docs/en/guides/speed.md advises, unless the caller sets it.
            "GLIBC_TUNABLES": os.environ.get("GLIBC_TUNABLES", HUGE_PAGES if huge_pages else ""),
        }
        self._log = open(os.path.join(folder, f"{side}.log"), "a", encoding="utf-8")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER), name, folder],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def tell(self, **message):
        """Sends a message and returns the reply, a dict; a side that died replies with `error`."""
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
            for line in self._process.stdout:
                # Libraries print to standard output too.
                if line.startswith('{"reply"'):
                    return json.loads(line)["reply"]
        except BrokenPipeError:
            pass
        return {"error": f"its process ended with {self._process.wait()}, see {self._log.name}"}

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._log.close()


def take_turns(job, sides, rounds, threads, folder, ready_together=False):
    """Has each side do a job in turn, `rounds` times.

    Args:
        job: dict, what to do; its `kind` names the function of the sides. With `warm_up` each turn
            begins with a call that is not timed, since memory that others used meanwhile is slow to
            get. A turn times the mean of `calls` calls, 1 by default. With `by_cpu` it counts the
            processor's seconds, which other programs change little, and keeps all rounds.
        sides: list of str, `"name"` or `"name-backend"`, see the folder `sides`.
        rounds: int, rounds to keep, after one that is not counted.
        threads: int, threads that each side may use.
        folder: str, where answers and logs go.
        ready_together: bool, whether the sides prepare the job at the same time.

    Returns:
        results: list of `Result`, in the order of `sides`.
        discarded: int, busy rounds that were thrown away; after `rounds` of them all rounds count.
        trusted: bool, whether the rounds that count were free of other work.
    """
    workers, results, discarded = {}, [Result(side) for side in sides], 0
    try:

        def prepared(result):
            worker = Worker(result.side, folder, threads, job["kind"] in TRAINING)
            workers[result.side] = worker
            for name, value in worker.tell(prepare=job).items():
                setattr(result, name, value)
            print(f"  {result.side}: {result.error or 'ready'}")

        with futures.ThreadPoolExecutor(len(results) if ready_together else 1) as threads_of_sides:
            list(threads_of_sides.map(prepared, results))
        able = [(workers[r.side], r) for r in results if r.error is None]
        _round(able, job)
        while able and len(able[0][1].seconds) < rounds:
            others, seconds = _round(able, job)
            if others > OTHERS_AT_MOST and discarded < rounds and not job.get("by_cpu"):
                discarded += 1
                continue
            for (_, result), value in zip(able, seconds, strict=True):
                result.seconds.append(value)
        for worker, result in able:
            reply = worker.tell(memory=True)
            result.megabytes, result.device = reply.get("megabytes"), reply.get("device")
    finally:
        for worker in workers.values():
            worker.close()
    return results, discarded, discarded < rounds


def _round(able, job):
    """Returns the share of the cores that other processes took, and the seconds of each side."""
    started, busy, ours, seconds = time.perf_counter(), busy_seconds(), sum(os.times()[:4]), []
    for worker, _ in able:
        reply = worker.tell(run=True, warm_up=job.get("warm_up", False), calls=job.get("calls", 1))
        if "error" in reply:
            raise RuntimeError(f"{worker.side}: {reply['error']}")
        seconds.append(reply["cpu_seconds_a_call" if job.get("by_cpu") else "seconds"])
        ours -= reply["cpu_seconds"]
    wall = time.perf_counter() - started
    busy = busy_seconds() - busy - (sum(os.times()[:4]) - ours)
    return busy / (wall * os.cpu_count()), seconds


def alternate(functions, rounds):
    """Calls functions in turn in this process, in each second round the last one first.

    Returns:
        seconds: a list of pairs for each function, one for each round: of the processor and by the
            clock.
        answers: list of what the functions returned last.
    """
    seconds, answers = [[] for _ in functions], [None] * len(functions)
    for number in range(rounds):
        for place in range(len(functions))[:: -1 if number % 2 else 1]:
            started = time.process_time(), time.perf_counter()
            answers[place] = functions[place]()
            ended = time.process_time(), time.perf_counter()
            seconds[place].append((ended[0] - started[0], ended[1] - started[1]))
    return seconds, answers


def resident_bytes():
    """Returns how much of this process is in memory, on Linux."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def busy_seconds():
    """Returns how long all cores together have been at work since the start; 0 outside Linux."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    except FileNotFoundError:
        return 0.0
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
