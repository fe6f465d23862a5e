"""`--devices`: the processes and devices of a run, set up before the model is made."""

import os
import subprocess
import sys

import keras

from bert_keras import distribution

ABOUT = (
    "Devices that share each batch, such as GPUs, in all processes together if a launcher has "
    "started several; see docs/en/guides/several_devices.md."
)


def share(devices, command):
    """Shares the models of a run among devices; only the first of several processes prints.

    PyTorch has one process for each device. Unless a launcher has started them, the command is
    started again by `torchrun`, and this process ends with it.

    Args:
        devices: int; `None` for one, or for those of the processes that a launcher has started.
        command: list of str, the arguments after `bert-keras`.
    """
    if devices is None and not distribution.is_launched():
        return
    if keras.backend.backend() == "torch" and devices != 1 and not distribution.is_launched():
        launcher = ("torch.distributed.run", "--standalone", f"--nproc_per_node={devices}")
        program = [sys.executable, "-m", *launcher, "-m", "bert_keras", *command]
        # The processes share the cores of the machine.
        threads = str(max(1, (os.cpu_count() or 1) // devices))
        sys.exit(subprocess.call(program, env={"OMP_NUM_THREADS": threads, **os.environ}))
    distribution.initialize(devices)
    if distribution.process()[0]:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
