"""Runs examples with several seeds, for the scores and the minutes that each says on top.

    KERAS_BACKEND=torch OMP_NUM_THREADS=1 python benchmarks/example_seeds.py text_classification

Of each line that the runs print alike but for its numbers, it prints these as means and standard
deviations over seeds, and last the seconds of processor time of a run, of the first with the
imports. With `--seeds 0` it says how long an example takes on a backend.
"""

import argparse
import contextlib
import io
import pathlib
import re
import runpy
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[-+]?\d+)?")


def run(name, seed):
    """Returns the lines that an example prints with this seed, and its seconds."""
    started = time.process_time()
    import keras

    original, printed = keras.utils.set_random_seed, io.StringIO()
    original(seed)
    keras.utils.set_random_seed = lambda _: original(seed)
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    finally:
        keras.utils.set_random_seed = original
    # Of what Keras says of an epoch the losses and metrics.
    lines = [re.sub(r"^\d+/\d+ .*/step - ", "", line) for line in printed.getvalue().splitlines()]
    return lines, time.process_time() - started


def summary(lines):
    """Returns a line of all runs with means and deviations, or `None` where their words differ."""
    if len({NUMBER.sub("#", line) for line in lines}) > 1 or not NUMBER.search(lines[0]):
        return None
    if len(lines) == 1:
        return lines[0]
    columns = zip(*([float(x) for x in NUMBER.findall(line)] for line in lines), strict=True)
    told = (f"{statistics.mean(x):.4g} ± {statistics.stdev(x):.2g}" for x in columns)
    return NUMBER.sub(lambda _: next(told), lines[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("examples", nargs="+", help="names of files in examples/, without .py")
    parser.add_argument("--seeds", default="0,1,2", help="numbers; of one alone no spread")
    flags = parser.parse_args()
    sys.argv = sys.argv[:1]  # The examples read their own flags.
    for name in flags.examples:
        runs = [run(name, int(seed)) for seed in flags.seeds.split(",")]
        print(f"{name}, seeds {flags.seeds}")
        for lines in zip(*(lines for lines, _ in runs), strict=False):
            if told := summary(lines):
                print("   ", told)
        seconds = [seconds for _, seconds in runs]
        print(f"    processor time {min(seconds):.0f} to {max(seconds):.0f} s", flush=True)


if __name__ == "__main__":
    main()
