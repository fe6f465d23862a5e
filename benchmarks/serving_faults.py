r"""What a server answers to each kind of misuse, and what its other clients notice.

    ulimit -n 20000
    KERAS_BACKEND=torch python benchmarks/serving_faults.py --seconds 8 \
        --source minilm_l6_en_uncased

Eight clients ask `bert-keras serve` for vectors of single sentences all the time. Meanwhile others
do one fault after another, a hundred at once, at least `--number` times and for `--seconds`, and
open `--connections` connections without using them. The eight are at 127.0.0.1 and the others at
127.0.0.2 (Linux has both), since the server takes turns by address. The table counts the statuses
of the responses; "closed" is a connection that the server closed without an answer. For the eight
clients it shows answers, failures, and milliseconds: median, 99th percentile and longest; a client
without an answer waits until the next one. At the end the model's files change, the server is
killed and started again, and it is told to end. Prints Markdown.
"""

import asyncio
import collections
import contextlib
import itertools
import os
import signal
import tempfile
import time
import urllib.request

import numpy as np
import serving
from absl import app, flags

import bert_keras

FLAGS = flags.FLAGS
flags.DEFINE_integer("number", 1000, "Times that each fault is done at least.", 1)
flags.DEFINE_integer("connections", 10_000, "Connections that are opened and left.", 1)
CLIENTS = 8
# The address of those who misuse the server.
MISUSERS = "127.0.0.2", 0
DEADLINE = 5
HEAD = "POST /embed HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def body(content, length=None):
    """Returns the bytes of a request that announces a body of this length."""
    length = len(content) if length is None else length
    return f"{HEAD}Content-Length: {length}\r\n\r\n".encode() + content


MANY = b'{"inputs": [%s]}' % b", ".join([b'"as all of them do"'] * 400)
# What is sent, and how long a client waits for an answer before it goes away.
FAULTS = {
    "an invalid field": (body(b'{"inputs": 5}'), 60),
    "incomplete JSON": (body(b'{"inputs": "a'), 60),
    "a body above the limit": (body(b" " * 3_000_000), 60),
    "request headers of 1 MB": (f"{HEAD}X: {'x' * 1_000_000}\r\n\r\n".encode(), 60),
    "incomplete headers, then silence": (HEAD.encode(), 60),
    "incomplete body, then silence": (body(b'{"inputs"', 1000), 60),
    "requests 400 texts and disconnects": (body(MANY), 0),
    "requests 400 texts": (body(MANY), 120),
}
flags.DEFINE_multi_enum("fault", [], list(FAULTS), "Only these faults, named as in the table.")


async def sent(port, content, patience, counts):
    """Sends bytes, and counts the status of what comes back."""
    outcome = "disconnected"
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=MISUSERS)
    except OSError:
        counts["refused"] += 1
        return
    try:
        with contextlib.closing(writer):
            with contextlib.suppress(ConnectionError):
                writer.write(content)
                await writer.drain()
            if patience:
                async with asyncio.timeout(patience):
                    line = await reader.readline()
                outcome = line.split()[1].decode() if line else "closed"
    except ConnectionError:
        outcome = "closed"
    except TimeoutError:
        outcome = "no answer"
    counts[outcome] += 1


async def misuse(port, content, patience):
    """Does a fault again and again, a hundred at once; returns what came back, counted."""
    counts, end = collections.Counter(), time.perf_counter() + FLAGS.seconds

    async def one():
        while counts.total() < FLAGS.number or time.perf_counter() < end:
            await sent(port, content, patience, counts)

    await asyncio.gather(*(one() for _ in range(100)))
    return counts


async def opened_and_left(port):
    """Opens connections and says nothing, until the server has closed all of them."""
    counts, writers = collections.Counter(), []
    for _ in range(FLAGS.connections):
        try:
            opened = asyncio.open_connection("127.0.0.1", port, local_addr=MISUSERS)
            writers.append(await opened)
        except OSError:
            counts["refused"] += 1
    for reader, writer in writers:
        outcome = "closed"
        try:
            async with asyncio.timeout(10 * DEADLINE):
                outcome = "answered" if await reader.read() else "closed"
        except TimeoutError:
            outcome = "left open"
        except ConnectionError:
            pass
        counts[outcome] += 1
        writer.close()
    return counts


class Others:
    """Clients that ask all the time, each again after its answer, and again where it gets none."""

    def __init__(self, port):
        self.port = port
        self.bodies = itertools.cycle(map(serving.request, serving.texts_of(256)))
        self.waits, self.failures, self.end = [], 0, False

    async def ask(self):
        writer = asked = None
        while not self.end:
            asked = asked or time.perf_counter()
            try:
                if writer is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(next(self.bodies))
                head = await serving.answer(reader)
                self.waits.append(1000 * (time.perf_counter() - asked))
                asked = None
                if b"connection: close" in head:
                    writer.close()
                    writer = None
            except (OSError, RuntimeError, asyncio.IncompleteReadError):
                # Only what was sent is lost; an address where nobody listens yet took nothing.
                if writer is not None:
                    self.failures += 1
                    writer.close()
                writer = None
                await asyncio.sleep(0.05)
        if writer is not None:
            writer.close()

    async def beside(self, name, work):
        """Prints what the work counted, and what these clients felt beside it."""
        asking = [asyncio.create_task(self.ask()) for _ in range(CLIENTS)]
        await asyncio.sleep(1)
        self.waits, self.failures, started = [], 0, time.perf_counter()
        counts = await work
        self.end, seconds = True, time.perf_counter() - started
        await asyncio.gather(*asking)
        self.end = False
        told = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
        middle, high, longest = np.percentile(self.waits or [np.nan], [50, 99, 100])
        answers = f"{len(self.waits)} in {seconds:.1f} s"
        cells = [name, told, answers, self.failures, f"{middle:.0f}, {high:.0f}, {longest:.0f} ms"]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


async def quiet():
    """Waits, without any fault."""
    await asyncio.sleep(FLAGS.seconds)
    return {}


def vector(port):
    """Returns the bytes of the vector of a text."""
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/embed", b'{"inputs": "a"}')
    asked.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(asked, timeout=60) as found:
        return found.read()


async def changed(model, folder, port):
    """Saves a model with other weights; counts the seconds until they answer."""
    before, started = await asyncio.to_thread(vector, port), time.perf_counter()
    model.weights[0].assign(0.5 * model.weights[0])
    await asyncio.to_thread(model.save_to_preset, f"{folder}/preset")
    while await asyncio.to_thread(vector, port) == before:
        await asyncio.sleep(0.5)
    return {"seconds until the new one answers": round(time.perf_counter() - started, 1)}


async def killed(running, folder, port):
    """Kills a server, and begins one at the same address; counts the seconds until it answers."""
    process = running.pop()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    started = time.perf_counter()
    running.append(begun(folder, port))
    await asyncio.to_thread(serving.wait_until_up, port, running[0])
    return {"seconds until it answers": round(time.perf_counter() - started, 1)}


async def ended(running):
    """Tells a server to end, and waits until it has; counts seconds."""
    started, process = time.perf_counter(), running[-1]
    os.kill(process.pid, signal.SIGTERM)
    await asyncio.to_thread(process.wait)
    return {"seconds until it ended": round(time.perf_counter() - started, 1)}


def begun(folder, port):
    """Starts the server at a port."""
    options = [f"--deadline={DEADLINE}", "--runtime=onnx"]
    return serving.launched([*serving.own_command(folder, port), *options])


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
            running[-1].wait()


async def measured(model, running, folder, port):
    """Prints the table."""
    print("| misuse | responses | answers to the eight | failures | median, 99 %, longest |")
    print("|---|---|---|---|---|")
    others = Others(port)
    await others.beside("none", quiet())
    for name, (content, patience) in FAULTS.items():
        if not FLAGS.fault or name in FLAGS.fault:
            await others.beside(name, misuse(port, content, patience))
    if FLAGS.fault:
        return
    name = f"{FLAGS.connections:,} connections opened and left idle"
    await others.beside(name, opened_and_left(port))
    await others.beside("the model's files change", changed(model, folder, port))
    await others.beside("SIGKILL, and a restart", killed(running, folder, port))
    await others.beside("SIGTERM", ended(running))


if __name__ == "__main__":
    app.run(main)
