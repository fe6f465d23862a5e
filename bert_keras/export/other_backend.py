"""Exports by a process with another backend, which loads what this one saved."""

import importlib
import json
import os
import subprocess
import sys
import tempfile

import keras

_PROGRAM = (
    "from bert_keras.export import other_backend, program_formats as formats; "
    "other_backend.run(formats.write)"
)


def write(format, model, path, backend):
    """Writes a model's program at a path, by a backend that is not this process's.

    It computes on the CPU and leaves the accelerator to this process.

    Args:
        format: str, one of the formats that the backend writes.
        model: a `BuiltModel`.
        path: str.
        backend: str, `"tensorflow"` or `"torch"`.

    Raises:
        RuntimeError: the other process could not; it says why in one line.
        ValueError: a layer's class stands where the other process cannot import it from.
    """
    classes = {type(layer) for layer in model._flatten_layers()}
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
        done = subprocess.run(
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
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"It ended with {done.returncode}."]
        raise RuntimeError(
            f"{format!r} is written by {backend}, in a process of its own, which could not: "
            f"{said[0]}"
        )


def run(export):
    """Does what `write` asks of another process; a mistake is its last line.

    Args:
        export: function of a format, a model and a path.
    """
    job = json.loads(sys.argv[1])
    try:
        for module in job["modules"]:  # Which register their classes.
            importlib.import_module(module)
        model = keras.saving.load_model(job["source"], compile=False)
        export(job["format"], model, job["path"])
    except Exception as error:
        sys.exit(" ".join(f"{type(error).__name__}: {error}".split()))
