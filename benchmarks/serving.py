"""What a server adds to a model: single sentences by many clients, beside `classify` of them all.

    python benchmarks/serving.py --source output/sentiment/model.keras
    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/serving.py --source ... --words 8,32,128

Prints a line of JSON for each number of clients, with requests a second and the median and the 99th
percentile of the seconds that a client waits, and one for the same texts in batches, texts a second
in this process: on one core, for texts of so many words, what a cost is reckoned from. Rounds are
interleaved. KERAS_BACKEND holds for both sides.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time

import httpx
import numpy as np
from absl import app, flags

from bert_keras.cli import sources

FLAGS = flags.FLAGS
flags.DEFINE_string("source", None, "A classifier: what `bert-keras serve` takes.", required=True)
flags.DEFINE_list("clients", ["1", "8", "32", "128"], "Numbers of clients.")
flags.DEFINE_list("words", [], "Numbers of words of a text; by default sentences of several.")
flags.DEFINE_integer("requests", 256, "Requests of a round, at most.", 1)
flags.DEFINE_float("seconds", 5.0, "Seconds of a round, at most.", 0.1)
flags.DEFINE_integer("rounds", 2, "Rounds of each.", 1)
WORDS = ("a film", "begins well", "and ends", "as all of them do", "with rain", "on a window")


def main(argv):
    logging.getLogger("httpx").setLevel(logging.WARNING)
    model, _ = sources.load(FLAGS.source)
    with serving(FLAGS.source) as address:
        for number, words in itertools.product(range(FLAGS.rounds), FLAGS.words or [None]):
            texts = texts_of(FLAGS.requests, words and int(words))
            told = {"round": number} | ({"words": int(words)} if words else {})
            model.classify(texts)
            started = time.perf_counter()
            model.classify(texts)
            rate = len(texts) / (time.perf_counter() - started)
            print(json.dumps({**told, "classify": round(rate, 2)}), flush=True)
            for clients in map(int, FLAGS.clients):
                found = asyncio.run(asked(address, texts, clients))
                print(json.dumps({**told, "clients": clients, **found}), flush=True)


def texts_of(number, words=None):
    """Returns texts of so many words, or sentences of 1 to 7 phrases, the same each time."""
    rng = np.random.default_rng(0)
    if words is None:
        return [" ".join(rng.choice(WORDS, rng.integers(1, 8))) for _ in range(number)]
    return [" ".join(" ".join(rng.choice(WORDS, words)).split()[:words]) for _ in range(number)]


@contextlib.contextmanager
def serving(source):
    """Runs the command `serve` on a free port; yields the address when it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bert_keras", "serve", f"model={source}", f"--port={port}"]
    process = subprocess.Popen(command, env=os.environ, stdout=subprocess.DEVNULL)
    try:
        while True:
            if process.poll() is not None:
                raise RuntimeError(f"The server ended with {process.returncode}.")
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"http://127.0.0.1:{port}/health").raise_for_status()
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


async def asked(address, texts, clients):
    """Returns what clients measure who ask until the texts or the seconds of a round are spent."""
    waits, left = [], iter(texts)
    end = time.perf_counter() + FLAGS.seconds

    async def ask(session):
        for text in left:
            started = time.perf_counter()
            if started > end:
                return
            response = await session.post(address, json={"inputs": text})
            response.raise_for_status()
            waits.append(time.perf_counter() - started)

    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(limits=limits, timeout=60) as session:
        started = time.perf_counter()
        await asyncio.gather(*(ask(session) for _ in range(clients)))
        rate = len(waits) / (time.perf_counter() - started)
    middle, high = np.percentile(waits, [50, 99])
    names = "requests", "per_second", "p50", "p99"
    return dict(zip(names, (len(waits), *np.round([rate, middle, high], 4).tolist()), strict=True))


if __name__ == "__main__":
    app.run(main)
