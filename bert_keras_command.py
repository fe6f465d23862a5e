"""The command `bert-keras`: what has to happen before the package, and so Keras, is imported."""

import contextlib
import os
import sys


def run():
    """Runs `bert_keras.cli.main`; for an exported folder without Keras, as if it were missing."""
    if "--traceback" not in sys.argv:
        _let_python_alone_tell()
    command, source, *_ = [word for word in sys.argv[1:] if not word.startswith("-")] + [""] * 2
    if command != "convert" and os.path.isfile(os.path.join(source, "model.onnx")):
        sys.modules["keras"] = None
    with contextlib.suppress(KeyboardInterrupt):  # While Keras is imported.
        from bert_keras.cli.main import run

        run()


def _let_python_alone_tell():
    """Keeps libraries off standard error: no setting silences the start of TensorFlow or JAX."""
    with contextlib.suppress(AttributeError, OSError):  # There may be none.
        told = os.dup(2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        sys.stderr = open(told, "w", 1, sys.stderr.encoding, "backslashreplace")  # noqa: SIM115


if __name__ == "__main__":
    run()
