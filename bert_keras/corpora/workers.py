"""Functions run on tasks by one or several processes, with the same results in the same order."""

import collections
import functools
import multiprocessing
import os
import threading
from concurrent import futures
from concurrent.futures import process

# A process's shared values, set once: sending them with each task would cost more than the task.
STATE = {}
KILLED = (
    "A process ended before its task, as after a kill or without memory; it may have printed more "
    "above. All finished work is kept: the same call, or command, continues. Fewer `num_workers` "
    "need less memory."
)


class Workers:
    """Runs functions of modules on tasks. Each process holds their shared values in `STATE`.

    Args:
        count: int, the number of processes. 1 runs everything in this process.
        **state: the content of `STATE`. All values can be pickled.

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
        STATE.clear()
        STATE.update(self.state)
        if self.count > 1:
            # Spawned, because a forked process may hang if the backend has threads.
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
        """Yields `function(task)` for each task in order; takes a few tasks in advance.

        Raises:
            ChildProcessError: a process was killed.
        """
        running = collections.deque()
        try:
            for task in tasks:
                if self._pool is None:
                    running.append(functools.partial(function, task))
                else:
                    running.append(self._pool.submit(function, task).result)
                if len(running) > 2 * self.count:
                    yield running.popleft()()
            while running:
                yield running.popleft()()
        except process.BrokenProcessPool as error:
            raise ChildProcessError(KILLED) from error


def _set_up_process(state):
    # The tokenizers library's own threads would compete with the other processes.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    threading.Thread(target=_end_with_parent, daemon=True).start()
    STATE.update(state)


def _end_with_parent():
    """Ends this process when its parent ends, which may be killed without notice.

    Otherwise this process would finish its tasks, and overwrite the files of a restarted run.
    """
    multiprocessing.parent_process().join()
    os._exit(1)
