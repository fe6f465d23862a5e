"""Memory and speed of making pre-training data, against gigabytes of text and processes.

    python benchmarks/large_corpora.py --folder /data --gigabytes 0.1,0.3,1 --workers 1,2 \
        --output large_corpora.jsonl --picture docs/pictures/large_corpora.svg
    python benchmarks/large_corpora.py --folder /data --gigabytes 1,3,10 --workers 1,2,4,8

`--folder` gets a text of each size, always the same: sentences of the shipped vocabulary's words,
as often as Zipf says, one word of fifty a new one, since in real text their number has no end. Then
`bert-keras pretraining-data` runs on the first size by each number of processes, and on the others
by the largest. What its processes hold is read from /proc, four times a second: their peak (VmHWM),
and the peak of what is theirs alone (RssAnon), without the pages of mapped files, which the system
takes back when it wants; and each second the whole tree's, with pages that are shared counted once
(PSS). `--output` gets a JSON line for each run. The table is printed in Markdown.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from absl import app, flags

FLAGS = flags.FLAGS
PRESET = Path(__file__).parents[1] / "bert_keras/presets/bert_mini_en_gutenberg"
flags.DEFINE_string("folder", None, "Folder for the texts and what is made of them.", required=True)
flags.DEFINE_list("gigabytes", ["0.1", "0.3", "1"], "Sizes of the text.")
flags.DEFINE_list("workers", [str(os.cpu_count())], "Numbers of processes.")
flags.DEFINE_integer("sequence_length", 128, "Longest row.")
flags.DEFINE_string("output", None, "File of results, a JSON line each.")
flags.DEFINE_string("picture", None, "File of a picture of the curves.")
NEW_WORDS = 0.02


def main(argv):
    sizes, workers = list(map(float, FLAGS.gigabytes)), sorted(map(int, FLAGS.workers))
    runs = [(sizes[0], count) for count in workers] + [(size, workers[-1]) for size in sizes[1:]]
    found = []
    for size, count in runs:
        path = Path(FLAGS.folder, f"text_{size:g}.txt")
        if not path.exists():
            write_text(path, size * 1e9)
        found.append({"gigabytes": size, "workers": count} | measured(path, count))
        print(json.dumps(found[-1]), flush=True)
        if FLAGS.output:
            lines = [json.dumps(each) for each in found]
            Path(FLAGS.output).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(table(found))
    if FLAGS.picture:
        draw(found, FLAGS.picture)


# Text


def write_text(path, size):
    """Writes documents, with a sentence a line and blank lines between, up to so many bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    vocabulary = (PRESET / "vocab.txt").read_text(encoding="utf-8").split("\n")
    known = np.array([word for word in vocabulary if word.isalpha() and len(word) > 1], object)
    rng, written = np.random.default_rng(0), 0
    with open(f"{path}.partial", "w", encoding="utf-8") as file:
        while written < size:
            written += file.write(block(known, rng))
    os.replace(f"{path}.partial", path)


def block(known, rng, num_words=1 << 17):
    """Returns some documents."""
    ranks = np.arange(1, len(known) + 1)
    shares = np.cumsum(1 / ranks) / np.sum(1 / ranks)
    words = known[np.searchsorted(shares, rng.random(num_words))]
    is_new = np.flatnonzero(rng.random(num_words) < NEW_WORDS)
    letters = rng.integers(ord("a"), ord("z") + 1, (len(is_new), 8), np.uint8)
    words[is_new] = letters.view("S8")[:, 0].astype(str)
    ends = np.cumsum(rng.integers(5, 30, num_words // 5))
    sentences = np.split(words, ends[ends < num_words])
    lines = [" ".join(sentence).capitalize() + "." for sentence in sentences]
    for last in np.cumsum(rng.integers(10, 60, len(lines) // 10)).tolist():
        if last < len(lines):
            lines[last] += "\n"
    return "\n".join(lines) + "\n\n"


# Measuring


def measured(path, num_workers):
    """Makes data of a text; returns seconds, megabytes a second, and megabytes of memory."""
    made = Path(FLAGS.folder, "made")
    shutil.rmtree(made, ignore_errors=True)
    command = [sys.executable, "-m", "bert_keras", "pretraining-data", f"--input={path}"]
    command += [f"--vocabulary={PRESET}", f"--output_dir={made}", f"--num_workers={num_workers}"]
    command += [f"--sequence_length={FLAGS.sequence_length}"]
    before, started = os.times(), time.perf_counter()
    notes = Path(FLAGS.folder, "notes.txt")
    with open(notes, "w", encoding="utf-8") as file:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True)
    peaks, whole, samples = {}, 0, 0
    while process.poll() is None:
        tree = process_tree(process.pid)
        for pid in tree:
            told = told_by(f"/proc/{pid}/status", ("VmHWM", "RssAnon"))
            peaks[pid] = np.maximum(peaks.get(pid, 0), told)
        if samples % 4 == 0:
            whole = max(
                whole, sum(told_by(f"/proc/{pid}/smaps_rollup", ["Pss"])[0] for pid in tree)
            )
        samples += 1
        time.sleep(0.25)
    seconds, after = time.perf_counter() - started, os.times()
    out, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"It ended with {process.returncode}, see {notes}.")
    driver = peaks.pop(process.pid)
    worker = np.max([driver if num_workers == 1 else 0 * driver, *peaks.values()], axis=0)
    processor = sum(after[2:4]) - sum(before[2:4])
    megabytes = path.stat().st_size / 1e6
    summary = json.loads(out.splitlines()[-1])
    shutil.rmtree(made)
    return {
        "examples": summary["num_examples"],
        "seconds": round(seconds, 1),
        "mb_per_second": round(megabytes / seconds, 2),
        "mb_per_processor_second": round(megabytes / processor, 2),
        "driver": dict(zip(("peak", "own"), (driver // 1000).tolist(), strict=True)),
        "worker": dict(zip(("peak", "own"), (worker // 1000).tolist(), strict=True)),
        "whole": int(whole) // 1000,
    }


def process_tree(root):
    """Returns the process and those that it and its own have started."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{name}/stat").read_text(encoding="utf-8")
        except OSError:
            continue
        parents[int(name)] = int(stat.rpartition(")")[2].split()[1])
    tree = [root]
    for pid in tree:
        tree += [child for child, parent in parents.items() if parent == pid]
    return tree


def told_by(path, names):
    """Returns the kilobytes that lines of a file of /proc tell; 0 of a process that is gone."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    told = {line.partition(":")[0]: line.split()[1] for line in lines if len(line.split()) > 2}
    return np.array([int(told.get(name, 0)) for name in names])


# What is shown


def table(found):
    """Returns a table in Markdown, a row for each run."""
    columns = ["GB of text", "processes", "MB/s", "MB/s of a core", "driver, MB (its own)"]
    columns += ["largest process, MB (its own)", "all together, MB"]
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for run in found:
        rates = [f"{run[name]:.2f}" for name in ("mb_per_second", "mb_per_processor_second")]
        held = [f"{run[of]['peak']} ({run[of]['own']})" for of in ("driver", "worker")]
        cells = [f"{run['gigabytes']:g}", run["workers"], *rates, *held, run["whole"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def draw(found, path):
    """Draws memory against the size of the text, and speed against the number of processes."""
    from matplotlib import pyplot

    figure, (memory, speed) = pyplot.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    most = max(run["workers"] for run in found)
    runs = [run for run in found if run["workers"] == most]
    sizes = [run["gigabytes"] for run in runs]
    for of, color in (("driver", "C0"), ("worker", "C1")):
        name = {"driver": "driver", "worker": "largest process beside"}[of]
        memory.plot(sizes, [run[of]["own"] for run in runs], "o-", color=color, label=name)
        label = f"{name}, with mapped files"
        memory.plot(sizes, [run[of]["peak"] for run in runs], "o:", color=color, label=label)
    memory.set(title="megabytes", xlabel="gigabytes of text", xscale="log", ylim=0)
    memory.set_xticks(sizes, [f"{size:g}" for size in sizes])
    memory.minorticks_off()
    memory.legend(fontsize="small")
    runs = [run for run in found if run["gigabytes"] == found[0]["gigabytes"]]
    counts = [run["workers"] for run in runs]
    for what, label in (("mb_per_second", "in all"), ("mb_per_processor_second", "of a core")):
        speed.plot(counts, [run[what] for run in runs], "o-", label=label)
    speed.set(title="megabytes a second", xlabel="processes", xticks=counts, ylim=0)
    speed.legend()
    figure.savefig(path)


if __name__ == "__main__":
    app.run(main)
