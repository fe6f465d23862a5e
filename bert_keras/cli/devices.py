"""`--devices`: the processes and devices of a run, before there is a model."""

import os
import subprocess
import sys

import keras

from bert_keras import distribution

ABOUT = (
    "Devices that share each batch, such as GPUs; all processes' together where a launcher has "
    "started several, see docs/en/guides/several_devices.md."
)


def share(devices, command):
    """Shares the models of a run among devices; of several processes the first one is heard.

    On PyTorch, which has a process for each device, the command is started anew by `torchrun`
    where no launcher has done so, and this process ends with it.

    Args:
        devices: int; `None` for one, or those of the processes that a launcher has started.
        command: list of str, what stands behind `bert-keras`.
    """
    if devices is None and not distribution.is_launched():
        return
    if keras.backend.backend() == "torch" and devices != 1 and not distribution.is_launched():
        launcher = ("torch.distributed.run", "--standalone", f"--nproc_per_node={devices}")
        program = [sys.executable, "-m", *launcher, "-m", "bert_keras", *command]
        # The processes share the cores that one would have.
        threads = str(max(1, (os.cpu_count() or 1) // devices))
        sys.exit(subprocess.call(program, env={"OMP_NUM_THREADS": threads, **os.environ}))
    distribution.initialize(devices)
    if distribution.process()[0]:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
