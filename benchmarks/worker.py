"""One side of a benchmark in its own process: python benchmarks/worker.py SIDE FOLDER.

Reads lines of JSON: `{"prepare": job}`, `{"run": true}`, `{"memory": true}`; answers each with a
line `{"reply": ...}`.
"""

import json
import os
import resource
import sys
import time
import traceback

import numpy as np
import sides


def main(name, folder):
    replies = sys.stdout
    # What libraries print must not be mistaken for a reply.
    sys.stdout = sys.stderr
    run = None
    for line in sys.stdin:
        message = json.loads(line)
        try:
            if "prepare" in message:
                run, reply = prepare(name, message["prepare"], folder)
            elif "run" in message:
                reply = timed(run, message["warm_up"], message["calls"])
            else:
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                reply = {"megabytes": peak * (1 if sys.platform == "darwin" else 1024) / 1e6}
                reply |= run.device() if hasattr(run, "device") else {}
        except Exception as error:
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {str(error).strip()[:300]}"}
        print(json.dumps({"reply": reply}), file=replies, flush=True)


def prepare(name, job, folder):
    """Returns the function that does the job once, and the reply about its first call."""
    side, job = sides.find(name, job)
    if hasattr(side, "make_files"):
        side.make_files(job)
    started = time.perf_counter()
    run = getattr(side, job["kind"])(job)
    loaded = time.perf_counter()
    answer = run()
    reply = {"load_seconds": loaded - started, "first_seconds": time.perf_counter() - loaded}
    if hasattr(run, "shapes"):
        reply["shapes"] = run.shapes()
    if hasattr(run, "steps"):
        reply["steps"] = run.steps
    if answer is not None:
        backend = os.environ.get("KERAS_BACKEND", "")
        reply["output"] = os.path.join(folder, f"{name}-{backend}-{os.getpid()}.npy")
        np.save(reply["output"], np.asarray(answer, "float32"))
    return run, reply


def timed(run, warm_up, calls):
    """Returns the mean seconds of some calls, with `warm_up` after a first one.

    `cpu_seconds` are the processor's for all calls, `cpu_seconds_a_call` for those that are timed.
    """
    before = sum(os.times()[:4])
    if warm_up:
        run()
    started, cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        run()
    return {
        "seconds": (time.perf_counter() - started) / calls,
        "cpu_seconds_a_call": (time.process_time() - cpu) / calls,
        "cpu_seconds": sum(os.times()[:4]) - before,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
