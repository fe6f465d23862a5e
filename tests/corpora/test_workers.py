"""Processes answer in order, and do not outlive the one that started them."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The module alone: each process of the package would import Keras first.
SCRIPT = """
import time
from workers import Workers

def later(seconds):
    time.sleep(seconds)
    return seconds

if __name__ == "__main__":
    with Workers(2) as workers:
        tasks = workers.map(later, [0.5, 0, 0, 0, 0, 600, 600, 600, 600, 600])
        assert [next(tasks), next(tasks)] == [0.5, 0]
        print("begun", flush=True)
        list(tasks)
"""


def test_processes_answer_in_order_and_end_with_their_parent_when_it_is_killed(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "bert_keras" / "corpora")}
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py")],
        env=environment,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert parent.stdout.readline() == b"begun\n"
        os.kill(parent.pid, signal.SIGKILL)
        # The pipe ends when the last process that holds it does.
        assert parent.communicate(timeout=60)[0] == b""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
