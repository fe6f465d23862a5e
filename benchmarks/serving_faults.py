"""What clients of a server feel while others misuse it: what each fault gets, who is answered.

    ulimit -n 20000
    KERAS_BACKEND=torch python benchmarks/serving_faults.py --source minilm_l6_en_uncased

Eight clients ask `bert-keras serve` for vectors of single sentences all the time. Beside them one
fault after another is done `--number` times, connections are opened and left `--connections` times,
and what each gets is counted by its status; `cut` is a connection that the server closed. Of the
eight it counts answers, failures, and the median and the 99th percentile of milliseconds. At last
the model's files change, the server is killed and begun anew, and told to end: then it counts what
the eight lost. Prints a table in Markdown.
"""

import asyncio
import collections
import contextlib
import itertools
import os
import signal
import tempfile
import time

import numpy as np
import serving
from absl import app, flags

import bert_keras

FLAGS = flags.FLAGS
flags.DEFINE_integer("number", 1000, "Times each fault is done.", 1)
flags.DEFINE_integer("connections", 10_000, "Connections that are opened and left.", 1)
flags.DEFINE_float("quiet_seconds", 10.0, "Seconds without any fault, to compare with.", 0.1)
CLIENTS = 8
DEADLINE = 5
HEAD = "POST /embed HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def body(content, length=None):
    """Returns the bytes of a request that tells so long a body."""
    length = len(content) if length is None else length
    return f"{HEAD}Content-Length: {length}\r\n\r\n".encode() + content


MANY = b'{"inputs": [%s]}' % b", ".join([b'"as all of them do"'] * 400)
# What is sent, and how long a client waits for an answer before it goes away.
FAULTS = {
    "a field that is wrong": (body(b'{"inputs": 5}'), 60),
    "half of a JSON": (body(b'{"inputs": "a'), 60),
    "a body above the largest": (body(b" " * 3_000_000), 60),
    "a head of 1 MB": (f"{HEAD}X: {'x' * 1_000_000}\r\n\r\n".encode(), 60),
    "half a head, and silence": (HEAD.encode(), 60),
    "half a body, and silence": (body(b'{"inputs"', 1000), 60),
    "asks, and goes away at once": (body(MANY), 0),
    "asks for 400 texts": (body(MANY), 120),
}


async def sent(port, content, patience, counts):
    """Sends bytes, and counts the status of what comes back."""
    outcome = "went away"
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.closing(writer):
            with contextlib.suppress(ConnectionError):
                writer.write(content)
                await writer.drain()
            if patience:
                async with asyncio.timeout(patience):
                    line = await reader.readline()
                outcome = line.split()[1].decode() if line else "cut"
    except ConnectionError:
        outcome = "cut"
    except TimeoutError:
        outcome = "no answer"
    counts[outcome] += 1


async def misuse(port, content, patience):
    """Does a fault so many times, a hundred at once; returns what came back, counted."""
    counts, places = collections.Counter(), asyncio.Semaphore(100)

    async def one():
        async with places:
            await sent(port, content, patience, counts)

    await asyncio.gather(*(one() for _ in range(FLAGS.number)))
    return counts


async def opened_and_left(port):
    """Opens connections and says nothing, until the server has closed all of them."""
    counts, writers = collections.Counter(), []
    for _ in range(FLAGS.connections):
        try:
            writers.append(await asyncio.open_connection("127.0.0.1", port))
        except OSError:
            counts["refused"] += 1
    async with asyncio.timeout(10 * DEADLINE):
        for reader, writer in writers:
            with contextlib.suppress(ConnectionError):
                await reader.read()
            counts["cut"] += 1
            writer.close()
    return counts


class Others:
    """Clients that ask all the time, each again after its answer, and again where it gets none."""

    def __init__(self, port):
        self.port = port
        self.bodies = itertools.cycle(map(serving.request, serving.texts_of(256)))
        self.waits, self.failures, self.end = [], 0, False

    async def ask(self):
        writer = None
        while not self.end:
            started = time.perf_counter()
            try:
                if writer is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(next(self.bodies))
                head = await serving.answer(reader)
                self.waits.append(1000 * (time.perf_counter() - started))
                if b"connection: close" in head:
                    writer.close()
                    writer = None
            except (OSError, RuntimeError, asyncio.IncompleteReadError):
                # Only what was sent is lost; an address where nobody listens yet took nothing.
                self.failures += writer is not None
                if writer is not None:
                    writer.close()
                writer = None
                await asyncio.sleep(0.05)

    async def beside(self, name, work):
        """Prints what the work counted, and what these clients felt beside it."""
        self.waits, self.failures = [], 0
        asking = [asyncio.create_task(self.ask()) for _ in range(CLIENTS)]
        await asyncio.sleep(1)
        counts = await work
        await asyncio.sleep(1)
        self.end = True
        await asyncio.gather(*asking)
        self.end = False
        told = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
        middle, high = np.percentile(self.waits, [50, 99])
        cells = [name, told, len(self.waits), self.failures, f"{middle:.0f} and {high:.0f} ms"]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


async def quiet():
    await asyncio.sleep(FLAGS.quiet_seconds)
    return {}


async def changed(model, folder):
    """Saves a model anew, and waits until the server must have seen it."""
    await asyncio.to_thread(model.save_to_preset, f"{folder}/preset")
    await asyncio.sleep(30)
    return {"files changed": 1}


async def killed(running, folder, port):
    """Kills a server, and begins one at the same address; counts seconds."""
    process = running.pop()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    started = time.perf_counter()
    running.append(begun(folder, port))
    while not await asyncio.to_thread(serving.is_up, port):
        await asyncio.sleep(0.1)
    return {"seconds until it answers": round(time.perf_counter() - started, 1)}


async def ended(running):
    """Tells a server to end, and waits until it has; counts seconds."""
    started, process = time.perf_counter(), running[-1]
    os.kill(process.pid, signal.SIGTERM)
    await asyncio.to_thread(process.wait)
    return {"seconds until it ended": round(time.perf_counter() - started, 1)}


def begun(folder, port):
    """Starts the server at a port."""
    options = [f"--deadline={DEADLINE}", "--reload_every=1", "--runtime=onnx"]
    return serving.launched([*serving.own(folder, port), *options])


def main(argv):
    model = bert_keras.TextEmbedder.from_preset(FLAGS.source)
    with tempfile.TemporaryDirectory() as folder:
        model.save_to_preset(f"{folder}/preset")
        port = serving.free_port()
        running = [begun(folder, port)]
        try:
            serving.wait_until_up(port, running[0])
            asyncio.run(measured(model, running, folder, port))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running[-1].pid, signal.SIGKILL)


async def measured(model, running, folder, port):
    """Prints the table."""
    print("| | what came back | the others: answers | failures | median, 99 % |")
    print("|---|---|---|---|---|")
    others = Others(port)
    await others.beside("nothing", quiet())
    for name, (content, patience) in FAULTS.items():
        await others.beside(f"{name}, {FLAGS.number} times", misuse(port, content, patience))
    await others.beside(f"{FLAGS.connections:,} connections", opened_and_left(port))
    await others.beside("the model's files change", changed(model, folder))
    await others.beside("SIGKILL, and begun anew", killed(running, folder, port))
    await others.beside("SIGTERM", ended(running))


if __name__ == "__main__":
    app.run(main)
