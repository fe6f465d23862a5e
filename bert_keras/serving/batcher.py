"""Answers what many ask at the same time together, in batches of like length."""

import asyncio
import collections
import time
from concurrent import futures
from typing import Any, NamedTuple


class Overloaded(Exception):
    """Too much waits already; `seconds` is when to ask again."""

    def __init__(self, seconds):
        super().__init__(f"Too many texts wait for an answer. Ask again in {seconds} s.")
        self.seconds = seconds


class Waiting(NamedTuple):
    """A row that waits for its answer: what may share a batch has the same key."""

    key: Any
    row: tuple
    length: int
    answer: asyncio.Future


class Batcher:
    """One thread that answers, and a queue of bounded length before it.

    The oldest row that waits is answered next, and with it the rows of its key that are nearest to
    it in length. Rows whose asker has gone are left out. Where a batch fails, its rows are answered
    one by one, so that a row that cannot be answered fails alone.

    Args:
        answer: function of a key and a list of rows that returns a list of as many answers. It runs
            in a thread of its own.
        max_batch: int, rows of a batch.
        wait: float, seconds that the first row of a batch waits for others.
        max_waiting: int, rows that may wait.
        observe: function of the number of rows and the seconds of each batch, or `None`.

    Raises:
        Overloaded: by `ask`, where more would wait than may.
    """

    def __init__(self, answer, max_batch=32, wait=0.003, max_waiting=1024, observe=None):
        self.answer = answer
        self.max_batch, self.wait, self.max_waiting = max_batch, wait, max_waiting
        self.observe = observe or (lambda rows, seconds: None)
        self.waiting = collections.deque()
        self._thread = futures.ThreadPoolExecutor(1)
        self._arrived, self._task, self._rate = asyncio.Event(), None, 100.0

    async def run(self, function, *args):
        """Runs a function in the thread that answers, after the batch that is being answered."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *args)

    async def ask(self, key, rows):
        """Returns the answers to rows; when it is cancelled they are not computed.

        Args:
            key: what tells the rows that can be answered together, hashable.
            rows: list of tuples of str.
        """
        if len(self.waiting) + len(rows) > self.max_waiting:
            raise Overloaded(max(1, round(len(self.waiting) / self._rate)))
        if self._task is None:
            self._task = asyncio.create_task(self._serve())
        loop = asyncio.get_running_loop()
        asked = [Waiting(key, row, sum(map(len, row)), loop.create_future()) for row in rows]
        self.waiting.extend(asked)
        self._arrived.set()
        try:
            return await asyncio.gather(*(each.answer for each in asked))
        finally:
            for each in asked:
                each.answer.cancel()

    async def close(self):
        """Answers what waits, and ends."""
        while self.waiting:
            await asyncio.sleep(0.01)
        if self._task is not None:
            self._task.cancel()
        self._thread.shutdown()

    async def _serve(self):
        while True:
            await self._arrived.wait()
            if len(self.waiting) < self.max_batch:
                await asyncio.sleep(self.wait)
            batch = self._next()
            if batch:
                started = time.monotonic()
                await self._answer(batch)
                seconds = time.monotonic() - started
                self._rate += 0.1 * (len(batch) / max(seconds, 1e-4) - self._rate)
                self.observe(len(batch), seconds)

    def _next(self):
        """Takes a batch from what waits."""
        waiting = [each for each in self.waiting if not each.answer.done()]
        batch = []
        if waiting:
            first = waiting[0]
            alike = [each for each in waiting if each.key == first.key]
            alike.sort(
                key=lambda each: abs(each.length - first.length)
            )  # Stable: the oldest first.
            batch = alike[: self.max_batch]
        taken = set(map(id, batch))
        self.waiting = collections.deque(each for each in waiting if id(each) not in taken)
        if not self.waiting:
            self._arrived.clear()
        return batch

    async def _answer(self, batch):
        try:
            answers = await self.run(self.answer, batch[0].key, [each.row for each in batch])
        except Exception as error:
            if len(batch) > 1:
                for each in batch:
                    await self._answer([each])
            elif not batch[0].answer.done():
                batch[0].answer.set_exception(error)
            return
        for each, answer in zip(batch, answers, strict=True):
            if not each.answer.done():
                each.answer.set_result(answer)
