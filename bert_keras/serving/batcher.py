"""Answers concurrent requests together, in batches of rows of similar length."""

import asyncio
import collections
import time
from concurrent import futures
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException


class Overloaded(HTTPException):
    """The queue is full; ask again after some seconds."""

    def __init__(self, seconds):
        message = f"Too many texts are waiting for an answer. Ask again in {seconds} s."
        super().__init__(429, message, {"Retry-After": str(seconds)})


class Waiting(NamedTuple):
    """A row that waits for its answer. Rows of a batch have one key, and as many texts."""

    key: Any
    row: tuple
    length: int
    answer: asyncio.Future
    client: Any
    request: object


class Batcher:
    """One thread that answers, with a queue of bounded length.

    Clients take turns. The oldest row of the client that has waited longest for its turn is
    answered next, together with the rows of the same key that are nearest to it in length, one from
    each client and then one more. While another client needs less, a client with more waiting rows
    than fit into a batch gets at most an eighth of it, so that the other does not wait long. If the
    queue is full, a client with more waiting rows loses its newest request to one with fewer.

    Rows whose client has left are dropped. If a batch fails, its rows are answered one by one, so
    that a row that cannot be answered fails alone.

    Args:
        answer: function of a key and a list of rows that returns as many answers. It runs in a
            thread.
        max_batch: int, the largest number of rows in a batch.
        wait: float, seconds to wait for more rows if there are fewer than in the last batch.
        max_waiting: int, the largest number of waiting rows.

    Attributes:
        observe: function of the number of rows and the seconds of each batch, for metrics.

    Raises:
        Overloaded: `ask` raises it if too many rows would wait, or if a client with fewer waiting
            rows took their places.
    """

    def __init__(self, answer, max_batch=32, wait=0.003, max_waiting=1024):
        self.answer = answer
        self.max_batch, self.wait, self.max_waiting = max_batch, wait, max_waiting
        self.observe = lambda rows, seconds: None
        self.waiting = collections.deque()
        self._thread = futures.ThreadPoolExecutor(1)
        self._arrived, self._task, self._rate = asyncio.Event(), None, 100.0
        self._last = 1  # Rows of the last batch. A single client need not wait for others.
        self._is_open = True
        # Client -> when it last asked, and the number of the batch that was its last turn.
        self._asked, self._turns, self._num_batches = {}, {}, 0

    async def ask(self, key, rows, client=None):
        """Returns the answers to rows. Cancelling it frees their places at once.

        Args:
            key: hashable; rows with the same key can share a batch.
            rows: list of tuples of str.
            client: hashable, the client that sent them.
        """
        self._make_room(len(rows), client)
        if self._task is None:
            self._task = asyncio.create_task(self.answer_requests())
        loop, request = asyncio.get_running_loop(), object()
        waiting_rows = [
            Waiting(key, row, sum(map(len, row)), loop.create_future(), client, request)
            for row in rows
        ]
        self._asked[client] = time.monotonic()
        self.waiting.extend(waiting_rows)
        self._arrived.set()
        try:
            return await asyncio.gather(*(each.answer for each in waiting_rows))
        finally:
            for each in waiting_rows:
                each.answer.cancel()
            if any(each.answer.cancelled() for each in waiting_rows):
                self.waiting = collections.deque(x for x in self.waiting if not x.answer.done())

    def _make_room(self, number, client):
        """Ends the newest requests of a client with more rows than this one, or raises."""
        error = Overloaded(max(1, round(len(self.waiting) / self._rate)))
        while len(self.waiting) + number > self.max_waiting:
            counts = collections.Counter(each.client for each in self.waiting)
            largest, most = max(counts.items(), key=lambda item: item[1], default=(client, 0))
            if most <= counts[client] + number:
                raise error
            newest = next(x for x in reversed(self.waiting) if x.client == largest)
            if not newest.answer.done():
                newest.answer.set_exception(error)  # `ask` then cancels the request's other rows.
            self.waiting = collections.deque(
                x for x in self.waiting if x.request is not newest.request
            )

    async def close(self):
        """Answers the rows that wait or are being computed, then ends the thread."""
        self._is_open = False
        self._arrived.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def answer_requests(self):
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
                self.observe(len(batch), seconds)

    def _next(self):
        """Takes a batch from the queue."""
        waiting = [each for each in self.waiting if not each.answer.done()]
        batch = []
        if waiting:
            first = self._first_of(waiting)
            kind = first.key, len(first.row)
            alike = [each for each in waiting if (each.key, len(each.row)) == kind]
            # The sort is stable: of equal lengths the oldest is first.
            alike.sort(key=lambda x: -1 if x is first else abs(x.length - first.length))
            shares, places, counts = self._shares(waiting), [], collections.Counter()
            for each in alike:  # A place is the number of rows of the same client before it.
                places.append(counts[each.client])
                counts[each.client] += 1
            order = sorted(range(len(alike)), key=places.__getitem__)
            batch = [alike[i] for i in order if places[i] < shares[alike[i].client]]
            batch = batch[: self.max_batch]
        taken_ids = set(map(id, batch))
        self.waiting = collections.deque(each for each in waiting if id(each) not in taken_ids)
        if not self.waiting:
            self._arrived.clear()
        return batch

    def _first_of(self, waiting):
        """Returns the oldest row of the client whose turn it is."""
        oldest, soon = {}, time.monotonic() - 1.0
        for each in waiting:
            oldest.setdefault(each.client, each)
        self._asked = {x: when for x, when in self._asked.items() if x in oldest or when > soon}
        self._turns = {client: self._turns.get(client, 0) for client in oldest}
        client = min(oldest, key=self._turns.__getitem__)  # Of equal turns, the oldest.
        self._num_batches += 1
        self._turns[client] = self._num_batches
        return oldest[client]

    def _shares(self, waiting):
        """Returns for each client the most rows in a batch."""
        counts = collections.Counter(each.client for each in waiting)
        has_modest = any(counts[client] <= self.max_batch for client in self._asked)
        small = max(1, self.max_batch // 8) if has_modest else self.max_batch
        return {x: small if n > self.max_batch else self.max_batch for x, n in counts.items()}

    async def _answer(self, batch):
        rows, run = [each.row for each in batch], asyncio.get_running_loop().run_in_executor
        try:
            answers = await run(self._thread, self.answer, batch[0].key, rows)
            pairs = list(zip(batch, answers, strict=True))
        except Exception as error:
            if len(batch) == 1 and not batch[0].answer.done():
                batch[0].answer.set_exception(error)
            for each in batch:
                if not each.answer.done():
                    await self._answer([each])
            return
        for each, answer in pairs:
            if not each.answer.done():
                each.answer.set_result(answer)
