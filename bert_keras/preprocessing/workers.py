"""Functions run on tasks by one process or several, with the same results in the same order."""

import collections
import multiprocessing
import os
import threading
from concurrent import futures

# What a process knows: set once, since sending it with each task would cost more than the task.
STATE = {}


class Workers:
    """Runs functions of modules on tasks; what all tasks share lies in `STATE` of each process.

    Args:
        count: int. 1 runs everything in this process.
        **state: what `STATE` shall hold, able to be pickled.

    Example:
    ```python
    with Workers(4, tokenizer=tokenizer) as workers:
        for ids in workers.map(tokenize_part, parts):      # reads STATE["tokenizer"]
            ...
    ```
    """

    def __init__(self, count, **state):
        self.count, self.state, self._pool = count, state, None

    def __enter__(self):
        _set_up(self.state)
        if self.count > 1:
            # Spawned, because a forked process may hang where the backend has threads.
            context = multiprocessing.get_context("spawn")
            self._pool = futures.ProcessPoolExecutor(
                self.count, context, _set_up_process, (self.state,)
            )
        return self

    def __exit__(self, *error):
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        STATE.clear()

    def map(self, function, tasks):
        """Yields `function(task)` for each task, in their order, a few tasks read ahead."""
        if self._pool is None:
            yield from map(function, tasks)
            return
        running = collections.deque()
        for task in tasks:
            running.append(self._pool.submit(function, task))
            if len(running) > 2 * self.count:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


def _set_up(state):
    STATE.clear()
    STATE.update(state)


def _set_up_process(state):
    # The tokenizers library's own threads would compete with the other processes.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _set_up(state)


def _end_with_parent():
    """Ends this process with the one that started it, which may be killed without a word.

    Left alone it would go on with its tasks, and write over the files of a run begun anew.
    """
    multiprocessing.parent_process().join()
    os._exit(1)
