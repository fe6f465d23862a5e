"""Forks the kernels of pages from a process that has imported Keras and the package.

These imports take a dozen processor seconds, more than most pages need for themselves. The process
that kernels come from has only imported, so that they start alike, and share nothing afterwards.
"""

import os
import signal
import subprocess
import sys
import threading
from typing import ClassVar

from jupyter_client.manager import AsyncKernelManager


class ForkedKernel:
    """A process as Jupyter asks for it, in the manner of `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, pid):
        self.pid = pid

    def poll(self):
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def wait(self):
        return self.poll()

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


class Server:
    """The process that forks kernels of one environment."""

    def __init__(self, environment):
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            [sys.executable, "-P", __file__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, connection_file):
        with self.lock:
            print(connection_file, file=self.process.stdin, flush=True)
            if not (pid := self.process.stdout.readline()):
                raise RuntimeError(
                    "The process that starts kernels must run until the last page. It ended with "
                    f"{self.process.wait()}; its messages are above."
                )
            return ForkedKernel(int(pid))

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class WarmKernelManager(AsyncKernelManager):
    """A manager of one kernel that a server forks. Kernels of one environment share a server."""

    lock = threading.Lock()
    servers: ClassVar = {}  # Backend and path of imports -> server.

    async def _async_launch_kernel(self, kernel_cmd, **options):
        environment = options["env"]
        with self.lock:
            key = environment["KERAS_BACKEND"], environment["PYTHONPATH"]
            if key not in self.servers:
                self.servers[key] = Server(environment)
        process = self.servers[key].start(self.connection_file)
        self.provisioner.process = process
        self.provisioner.pid = self.provisioner.pgid = process.pid
        self._reconcile_connection_info(self.provisioner.connection_info)

    @classmethod
    def close_servers(cls):
        while cls.servers:
            cls.servers.popitem()[1].close()


def run_kernel(connection_file):
    """Runs in the forked process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # The other end of 1 expects process ids.

    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance(argv=["-f", connection_file, "--log-level=ERROR"])


def fork_on_request():
    """Reads connection files, one a line, and answers with the ids of the kernels that have them."""
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # Kernels end with this process.
    # As a kernel does; Matplotlib reads it when it is imported.
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    import ipykernel.kernelapp  # noqa: F401
    import matplotlib.pyplot  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn.metrics  # noqa: F401

    from bert_keras import corpora, datasets, plots, search  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # So that kernels that end leave no zombie.
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            return run_kernel(line.strip())
        print(pid, flush=True)


if __name__ == "__main__":
    fork_on_request()
