"""Steps that the command must take before it imports Keras, and so the rest of the package."""

import contextlib
import importlib
import os
import signal
import sys
import warnings


def prepare():
    """Prepares the process before Keras is imported.

    Libraries stay silent, warnings lose their place in the code, and Ctrl-C ends the process at
    once: as an exception it would be printed with a traceback, or lost in a library. A command that
    answers is read first, since help and wrong flags need no Keras. For an exported folder the
    import of Keras is blocked. Otherwise it is imported without what it does not need.

    The package calls it when it is imported by its command, `bert-keras` or `python -m bert_keras`.
    """
    if "--traceback" not in sys.argv:
        _silence_libraries()
        warnings.formatwarning = lambda message, *rest, **further: f"{message}\n"
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # It is not ignored.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # TensorFlow itself does so only on processors with AVX-512 (docs/benchmarks.md has the times).
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    command, source = (*sys.argv[1:3], "", "")[:2]
    if command == "serve":
        # Threads that spin while they wait would slow down the reading of requests.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # These import NumPy, and no Keras.
    from bert_keras.cli.main import WITH_OWN_FLAGS, read, run_command
    from bert_keras.export.runtime import is_exported

    if command not in WITH_OWN_FLAGS:
        run_command(read, "bert-keras", sys.argv[1:])
    if command == "compare" or (command not in ("convert", "serve") and is_exported(source)):
        sys.modules["keras"] = None
    elif "keras" not in sys.modules:
        _import_keras_alone()
        if sys.modules.get("keras"):
            # They were imported above, without what needs Keras.
            for name in ("tokenizers", "preprocessing"):
                importlib.reload(sys.modules[f"bert_keras.{name}"])
            from bert_keras.engine.jax_compilation_cache import keep_compiled_programs

            keep_compiled_programs(0.0)  # The second run of a command compiles nothing.


def _import_keras_alone():
    """Imports Keras without packages that only its wrappers and plots need.

    With them the import took 8.2 to 10.1 s of the processor on PyTorch and 4.4 to 4.5 s on JAX,
    without them 6.5 to 6.9 and 2.6 to 2.9 s: `time python -c "import keras"`, with both names set
    to `None` in `sys.modules` or not.
    """
    hidden = {"matplotlib", "sklearn"} - sys.modules.keys()
    sys.modules |= dict.fromkeys(hidden)
    try:
        importlib.import_module("keras")
    except (ImportError, ValueError) as error:
        if getattr(error, "name", None) != "keras":  # The package says that Keras is missing.
            advice = "Set KERAS_BACKEND to tensorflow, jax or torch, whichever is installed"
            print(f"bert-keras: {error}. {advice}.", file=sys.stderr)
            sys.exit(2)
    for name in hidden:
        del sys.modules[name]


def _silence_libraries():
    """Keeps libraries off standard error: no setting silences TensorFlow or JAX at their start."""
    with contextlib.suppress(AttributeError, OSError):  # There may be no standard error.
        copy = os.dup(2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        sys.stderr = open(copy, "w", 1, sys.stderr.encoding, "backslashreplace")  # noqa: SIM115
