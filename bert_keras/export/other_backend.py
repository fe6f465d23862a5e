"""Exports in a process with another backend, which loads a model that this process saved."""

import importlib
import json
import os
import subprocess
import sys
import tempfile

import keras

from bert_keras.engine.keras_internals import all_layers

_PROGRAM = (
    "from bert_keras.export import other_backend, program_formats as formats; "
    "other_backend.run(formats.write)"
)


def write(format, model, path, backend):
    """Writes a model's program to a path, with another backend than this process's.

    The other process computes on the CPU, and leaves the accelerator to this one.

    Args:
        format: str, one of the formats that the backend writes.
        model: a `BuiltModel`.
        path: str.
        backend: str, `"tensorflow"` or `"torch"`.

    Raises:
        RuntimeError: the other process failed; the message says why in one line.
        ValueError: the other process cannot import a layer's class.
    """
    classes = {type(layer) for layer in all_layers(model)}
    if own := sorted(x.__name__ for x in classes if x.__module__ == "__main__"):
        raise ValueError(
            f"{format!r} is written by {backend}, in a process of its own, which imports the "
            f"model's classes from their modules. Received: {own}, defined in the script itself. "
            f"Put them in a module, or run the script with KERAS_BACKEND={backend}."
        )
    with tempfile.TemporaryDirectory() as folder:
        model.save(source := os.path.join(folder, "model.keras"))
        modules = sorted({x.__module__ for x in classes})
        job = {"format": format, "source": source, "path": path, "modules": modules}
        process = subprocess.run(
            [sys.executable, "-c", _PROGRAM, json.dumps(job)],
            env={
                **os.environ,
                "KERAS_BACKEND": backend,
                "CUDA_VISIBLE_DEVICES": "-1",
                "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
            },
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    if process.returncode:
        lines = process.stderr.strip().splitlines() or [f"It ended with {process.returncode}."]
        raise RuntimeError(
            f"{format!r} is written by {backend}, in a process of its own, which failed: "
            f"{lines[-1]}"
        )


def run(export):
    """Runs in the other process that `write` starts; an error becomes its last line of output.

    Args:
        export: function of a format, a model and a path.
    """
    job = json.loads(sys.argv[1])
    try:
        for module in job["modules"]:  # They register their classes.
            importlib.import_module(module)
        model = keras.saving.load_model(job["source"], compile=False)
        export(job["format"], model, job["path"])
    except Exception as error:
        sys.exit(" ".join(f"{type(error).__name__}: {error}".split()))
