"""The cost of a server: single sentences from many clients, compared with `embed` in one process.

    python benchmarks/serving.py --source minilm_l6_en_uncased --output serving.jsonl \
        --picture docs/pictures/serving_curves.svg
    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/serving.py --source ... --words 8,32,128 \
        --sides keras,onnx --clients 32
    python benchmarks/serving.py --source ... --sides onnx --soak_minutes 60

The source's vectors are served by this package (`keras` and `onnx` are its `--runtime`), and by
FastAPI and LitServe around sentence-transformers, see `serving_peers.py`. All servers run at the
same time. In each round, every number of clients asks each server in turn; clients are sockets of
this process, on the same cores. `alone` is `embed` in this process: on all texts in batches, and on
one text after another.

Each measurement is printed, and added to `--output`, as a JSON line: requests a second, and the
median and the 99th percentile of the milliseconds that a client waits. The table at the end is
Markdown, with medians over the rounds. `--soak_minutes` has 32 clients ask the first side, and
prints its memory each minute. KERAS_BACKEND is used by this package's sides other than `onnx`.
"""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
from absl import app, flags
from kept_rows import add_row
from result_tables import as_table

import bert_keras

FLAGS = flags.FLAGS
PEERS = Path(__file__).with_name("serving_peers.py")
SIDES = ["keras", "onnx", "fastapi", "litserve"]
flags.DEFINE_string("source", None, "A preset of sentence vectors.", required=True)
flags.DEFINE_list("sides", SIDES, "Which of them are asked.")
flags.DEFINE_list("clients", ["1", "8", "32", "128"], "Numbers of clients.")
flags.DEFINE_list("words", [], "Numbers of words of a text; by default sentences of several.")
flags.DEFINE_integer("requests", 256, "Texts of a round, which are asked again and again.", 1)
flags.DEFINE_float("seconds", 5.0, "Seconds of a round.", 0.1)
flags.DEFINE_integer("rounds", 3, "Rounds of each.", 1)
flags.DEFINE_float("soak_minutes", 0.0, "Minutes of asking one side alone.", 0.0)
flags.DEFINE_string("output", None, "File of results, a JSON line each.")
flags.DEFINE_string("picture", None, "File of a picture of the curves.")
WORDS = ("a film", "begins well", "and ends", "as all of them do", "with rain", "on a window")


def main(argv):
    model = bert_keras.TextEmbedder.from_preset(FLAGS.source)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        model.save_to_preset(f"{folder}/preset")
        model.export_to_huggingface(f"{folder}/huggingface")
        started = {x: running.enter_context(serving(x, folder)) for x in FLAGS.sides}
        if FLAGS.soak_minutes:
            return soak(*started[FLAGS.sides[0]])
        found = []
        for number, words in itertools.product(range(FLAGS.rounds), lengths()):
            texts, told = texts_of(FLAGS.requests, words), {"round": number, "words": words}
            found.append({**told, "side": "alone", **alone(model, texts)})
            add_row(FLAGS.output, found[-1])
            for clients, side in itertools.product(map(int, FLAGS.clients), FLAGS.sides):
                measured = asyncio.run(asked(started[side][0], texts, clients, FLAGS.seconds))
                found.append({**told, "side": side, "clients": clients, **measured})
                add_row(FLAGS.output, found[-1])
    print(table(found))
    if FLAGS.picture:
        draw(found, FLAGS.picture)


def lengths():
    """Returns the numbers of words of a text, or `None` for sentences."""
    return list(map(int, FLAGS.words)) or [None]


def texts_of(number, words=None):
    """Returns texts with this many words, or sentences of 1 to 7 phrases, the same each time."""
    rng = np.random.default_rng(0)
    if words is None:
        return [" ".join(rng.choice(WORDS, rng.integers(1, 8))) for _ in range(number)]
    return [" ".join(" ".join(rng.choice(WORDS, words)).split()[:words]) for _ in range(number)]


def alone(model, texts):
    """Returns texts per second in batches, and the median milliseconds for a single text."""
    model.embed(texts, batch_size=32)
    started, waits = time.perf_counter(), []
    model.embed(texts, batch_size=32)
    rate = len(texts) / (time.perf_counter() - started)
    for text in texts[:64]:
        started = time.perf_counter()
        model.embed(text)
        waits.append(1000 * (time.perf_counter() - started))
    return {"per_second": round(rate, 1), "p50": round(statistics.median(waits), 2)}


# Servers


@contextlib.contextmanager
def serving(side, folder):
    """Runs a server; yields its port and its process when it answers."""
    port = free_port()
    command = {x: [*own_command(folder, port), f"--runtime={x}"] for x in ("keras", "onnx")}.get(
        side, [sys.executable, str(PEERS), side, f"{folder}/huggingface", str(port)]
    )
    process = launched(command)
    try:
        wait_until_up(port, process)
        yield port, process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def free_port():
    """Returns a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def own_command(folder, port):
    """Returns the command of this package's server."""
    return [sys.executable, "-m", "bert_keras", "serve", f"x={folder}/preset", f"--port={port}"]


def launched(command):
    """Starts a command in a group of its own, with which LitServe's workers end."""
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)


def wait_until_up(port, process):
    """Waits until a server answers; raises `RuntimeError` if it has ended."""
    while not is_up(port):
        if process.poll() is not None:
            raise RuntimeError(f"The server {process.args} ended with {process.returncode}.")
        time.sleep(0.1)


def is_up(port):
    """Whether a server answers that it is healthy."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as response:
            return response.status == 200
    except OSError:
        return False


# Clients


async def asked(port, texts, clients, seconds):
    """Returns what clients measure; each asks again after its last answer, for some seconds."""
    bodies = itertools.cycle(request(text) for text in texts)
    waits = []
    end = time.perf_counter() + seconds

    async def ask():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (started := time.perf_counter()) < end:
            writer.write(next(bodies))
            await answer(reader)
            waits.append(1000 * (time.perf_counter() - started))
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(clients)))
    rate = len(waits) / (time.perf_counter() - started)
    middle, high = np.percentile(waits, [50, 99]).round(2).tolist()
    return {"requests": len(waits), "per_second": round(rate, 1), "p50": middle, "p99": high}


def request(text):
    """Returns the bytes of a request for a text's vector."""
    body = json.dumps({"inputs": text}).encode()
    head = f"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Content-Type: application/json\r\n\r\n".encode() + body


async def answer(reader):
    """Reads a whole answer and returns its head in lower case; raises unless its status is 200."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b" 200 " not in head[:16]:
        raise RuntimeError(f"The server did not answer. Received: {head[:80]}.")
    length = head.partition(b"content-length:")[2].split(b"\r", 1)[0]
    await reader.readexactly(int(length))
    return head


def soak(port, process):
    """Asks by 32 clients, and prints the server's memory and what it answered, each minute."""
    texts = texts_of(FLAGS.requests)
    for minute in range(round(FLAGS.soak_minutes)):
        found = asyncio.run(asked(port, texts, 32, 60))
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        kilobytes = int(status.partition("VmRSS:")[2].split()[0])
        print(json.dumps({"minute": minute + 1, "mb": kilobytes // 1000, **found}), flush=True)


# What is shown


def middle(found, what, **wanted):
    """Returns the median of a figure over the rounds of the lines that match."""
    values = [x[what] for x in found if wanted.items() <= x.items()]
    return statistics.median(values) if values else None


def table(found):
    """Returns a Markdown table with a row for each side and text length."""
    numbers, rows = list(map(int, FLAGS.clients)), []
    for words in lengths():
        of = {"words": words}
        rate, own = (middle(found, x, side="alone", **of) for x in ("per_second", "p50"))
        rows.append([words or "", f"`embed`: {rate:.0f}/s in batches, {own:.1f} ms for one"])
        for side in FLAGS.sides:
            cells = []
            for clients in numbers:
                names = ("per_second", "p50", "p99")
                some = {"side": side, "clients": clients, **of}
                per_second, p50, p99 = (middle(found, x, **some) for x in names)
                told = f"{per_second:.0f}/s ({per_second / rate:.0%}), {p50:.1f} and {p99:.1f} ms"
                cells.append(told + (f" ({p50 / own:.2f} times)" if clients == 1 else ""))
            rows.append([words or "", side, *cells])
    return as_table(["words", "side", *(f"{n} clients" for n in numbers)], rows)


def draw(found, path):
    """Draws requests per second and waiting times by the number of clients."""
    from matplotlib import pyplot

    figure, (rates, waits) = pyplot.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    numbers = list(map(int, FLAGS.clients))
    rates.axhline(middle(found, "per_second", side="alone"), color="grey", linestyle=":")
    rates.annotate("embed, in batches", (numbers[0], middle(found, "per_second", side="alone")))
    for side in FLAGS.sides:
        of = [{"side": side, "clients": n} for n in numbers]
        (line,) = rates.plot(numbers, [middle(found, "per_second", **x) for x in of], label=side)
        for what, style in (("p50", "-"), ("p99", "--")):
            values = [middle(found, what, **x) for x in of]
            waits.plot(numbers, values, style, color=line.get_color())
    for axes, title in ((rates, "requests a second"), (waits, "ms: median, and 99 % (dashed)")):
        axes.set(xscale="log", yscale="log", title=title, xlabel="clients", xticks=numbers)
        axes.set_xticklabels(map(str, numbers))
    rates.legend()
    figure.savefig(path)


if __name__ == "__main__":
    app.run(main)
