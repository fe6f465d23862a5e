"""Gathers concurrent questions into batches of similar length."""

import asyncio
import collections
import time
from concurrent import futures
from typing import Any, NamedTuple

from absl import logging


class Overloaded(Exception):
    """Too many rows are waiting; the client should try again after `seconds`."""

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

    The oldest waiting row is answered next, together with the rows of its key that are closest to
    it in length. Rows of clients that have disconnected are dropped. If a batch fails, its rows are
    answered one by one, so that only the faulty row fails.

    Args:
        answer: function of a key and a list of rows that returns a list of as many answers. It runs
            in a thread of its own.
        max_batch: int, rows of a batch.
        wait: float, seconds that a batch waits for others where fewer rows are there than the batch
            before it had.
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
        self._last = 1  # Rows of the last batch: whoever asks alone need not wait for others.
        self._is_open = True

    async def ask(self, key, rows):
        """Returns the answers to rows; when it is cancelled they free their places at once.

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
            if any(each.answer.cancelled() for each in asked):
                self.waiting = collections.deque(x for x in self.waiting if not x.answer.done())

    async def close(self):
        """Answers what waits and what is being answered, and ends."""
        self._is_open = False
        self._arrived.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def _serve(self):
        while self._is_open or self.waiting:
            await self._arrived.wait()
            if len(self.waiting) < self._last:
                await asyncio.sleep(self.wait)
            batch = self._next()
            if batch:
                self._last = len(batch)
                started = time.monotonic()
                await self._answer(batch)
                seconds = time.monotonic() - started
                self._rate += 0.1 * (len(batch) / max(seconds, 1e-4) - self._rate)
                try:
                    self.observe(len(batch), seconds)
                except Exception:  # The next batch is answered all the same.
                    logging.exception("A batch could not be counted.")

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
        rows, run = [each.row for each in batch], asyncio.get_running_loop().run_in_executor
        try:
            answers = await run(self._thread, self.answer, batch[0].key, rows)
            answered = list(zip(batch, answers, strict=True))
        except Exception as error:
            if len(batch) == 1 and not batch[0].answer.done():
                batch[0].answer.set_exception(error)
            for each in batch:
                if not each.answer.done():
                    await self._answer([each])
            return
        for each, answer in answered:
            if not each.answer.done():
                each.answer.set_result(answer)
