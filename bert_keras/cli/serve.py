"""The command `serve`: a server of models that runs until the process gets a signal to end."""

import contextlib
import functools
import os
import pathlib
import socket
import tempfile

from absl import logging

from bert_keras.answers.catalog import ANSWERERS, answerers_of
from bert_keras.checks import require
from bert_keras.cli import sources
from bert_keras.cli.options import Option
from bert_keras.export import runtime

# The environment variable with a server's keys, separated by spaces: arguments of a process are
# visible to all users.
KEYS = "BERT_KERAS_API_KEYS"
# What a served model answers -> the classes of these answers.
TASKS = {(cls.route or cls.method).replace("_", "-"): (cls,) for cls in ANSWERERS if cls.about}
OPTIONS = (
    Option("host", str, "127.0.0.1", "Address to listen at; 0.0.0.0 for all networks."),
    Option("port", int, 8080, "Port to listen at.", 0, 65535),
    Option("max_batch", int, 32, "Most texts in a batch.", 1),
    Option("wait_ms", float, 3.0, "Milliseconds to wait for a batch as large as the last.", 0.0),
    Option("max_waiting", int, 1024, "Most texts that wait; further requests get 429.", 1),
    Option("deadline", float, 30.0, "Seconds until a request gets 504.", 0.1, 86400.0),
    Option("max_body", int, 2**21, "Most bytes in a request's body; larger ones get 413.", 1),
    Option("max_text", int, 2**16, "Most characters in a row of texts; longer ones get 413.", 1),
    Option(
        "runtime",
        ("auto", "keras", "onnx"),
        "auto",
        "What computes the answers: Keras, or ONNX Runtime, with a program that is exported at the "
        "start. auto takes ONNX Runtime where it can be used and there is no accelerator.",
    ),
    Option(
        "task",
        tuple(TASKS),
        None,
        "What all models must answer. By default each checkpoint decides for itself, and one "
        "without a head embeds.",
    ),
)


def serve(named_sources, flags):
    """Answers requests until the process gets a signal to end, and then those it has received.

    Args:
        named_sources: list of str, each `SOURCE` or `NAME=SOURCE`.
        flags: values of `OPTIONS`.

    Raises:
        ImportError: a package of the extra `serve` is missing.
        OSError: the address is taken.
        ValueError: two models have the same name, or a model cannot answer.
    """
    for package in ("fastapi", "uvicorn", "prometheus_client"):
        require(package, "serve models", extra="serve")
    import uvicorn

    from bert_keras.serving.app import make_app
    from bert_keras.serving.guard import Connection
    from bert_keras.serving.model_handle import Settings

    wait, keys = flags.wait_ms / 1000, tuple(os.environ.get(KEYS, "").split())
    limits = flags.max_waiting, flags.deadline, flags.max_body, flags.max_text
    settings = Settings(flags.max_batch, wait, *limits, keys)
    models = models_of(named_sources, settings, flags.runtime, flags.task)
    # Bound before the models load, in case the address is taken; it listens once they are loaded.
    is_ipv6 = ":" in flags.host
    listening = socket.socket(socket.AF_INET6 if is_ipv6 else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, os.name != "nt")
    try:
        listening.bind((flags.host, flags.port))
    except OSError as error:
        raise OSError(
            f"The server needs a free address. Received: {flags.host}, port {flags.port} "
            f"({error}). Choose another --port or --host."
        ) from error
    for model in models:
        print(f"{model.name}: loading {model.source}", flush=True)
        model.start()
        print(f"{model.name}: {_described(model.model)}", flush=True)
    config = uvicorn.Config(
        make_app(models, settings),
        http=functools.partial(Connection, flags.deadline),
        ws="none",
        log_level="warning",
        timeout_graceful_shutdown=int(flags.deadline) + 1,
    )
    _allow_many_connections()
    host = f"[{flags.host}]" if is_ipv6 else flags.host
    port = listening.getsockname()[1]
    print(f"Serving {', '.join(x.name for x in models)} at http://{host}:{port}", flush=True)
    uvicorn.Server(config).run([listening])


def models_of(named_sources, settings, engine="auto", task=None):
    """Returns a `Served` for each source, not loaded yet; see `loaded`."""
    from bert_keras.serving.model_handle import Served

    models = {}
    for argument in named_sources:
        name, has_name, source = argument.partition("=")
        if not has_name or os.path.exists(argument):
            source = argument
            path = pathlib.Path(source).absolute()
            is_run = sources.model_of_run(path.parent) == str(path)
            name = (path.parent if is_run else path).name.removesuffix(".keras")
        if not name or name in models:
            raise ValueError(
                f"Each model needs its own name: NAME={source}. Received twice, or empty: {name!r}."
            )
        load = functools.partial(loaded, source, engine, task)
        models[name] = Served(name, load, source, settings)
    return list(models.values())


def _described(model):
    """Returns a model's task, how it answers, and what computes the answers."""
    is_program = isinstance(model, runtime.ExportedTask)
    methods = ", ".join(x.replace("_", "-") for x in answerers_of(model))
    return f"{sources.name_of(model)} ({methods}) on {'ONNX Runtime' if is_program else 'Keras'}"


def loaded(source, engine="auto", task=None):
    """Returns the model of a source.

    Args:
        source: str, see `sources.load`.
        engine: `"keras"`, `"onnx"` or `"auto"`, what computes the answers.
        task: str, a key of `TASKS`, what it must answer; `None` for the checkpoint's own answer. A
            checkpoint without a head becomes a `TextEmbedder`.

    Returns:
        A task, or an `ExportedTask`. If it was exported here, its `source_task` is the task.
    """

    model, _ = sources.load(source, TASKS.get(task, ()), TASKS["embed"], task or "serve")
    answers = answerers_of(model)
    if task is not None and task.replace("-", "_") not in answers:
        names = ", ".join(answers) or "nothing"
        raise ValueError(
            f"--task needs a model that answers by {task}. Received: {source}, which answers by "
            f"{names}. Leave it out."
        )
    if isinstance(model, runtime.ExportedTask):
        if engine == "keras":
            raise ValueError(
                f"{source} is a program, which Keras cannot run. Leave out --runtime=keras."
            )
        return model
    model.applies_sigmoid = _gets_sigmoid(source, model)
    program = None if engine == "keras" else _program_of(model, engine == "onnx")
    if program is not None:
        program.source_task = model  # It shows what happens inside, which a program cannot.
        program.applies_sigmoid = model.applies_sigmoid
        return program
    return model


def _gets_sigmoid(source, model):
    """Whether transformers' pipeline returns the sigmoid of the one logit of a checkpoint.

    It does unless the config says that the problem is a regression.
    """
    from bert_keras.presets.presets import open_preset

    if getattr(model, "num_classes", None) != 1 or os.path.isfile(sources.model_of_run(source)):
        return False
    config = open_preset(source).config
    return "registered_name" not in config and config.get("problem_type") is None


def _program_of(model, is_asked_for):
    """Returns a task as a program for ONNX Runtime, or `None` if Keras should answer."""
    from bert_keras.engine import kernels

    # The program would decode every token instead of the masks only.
    is_slower = kernels.has_accelerator() or "fill_mask" in answerers_of(model)
    if is_slower and not is_asked_for:
        return None
    try:
        message = "Exporting a program for ONNX Runtime; --runtime=keras starts without one"
        print(f"{message} ...", flush=True)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            model.export(folder, format="onnx", verbose=False)
            program = loaded(folder, "onnx")
        return program
    except Exception as error:
        if is_asked_for:
            raise
        logging.warning("Keras answers instead of ONNX Runtime (--runtime=keras): %s", error)
        return None


def _allow_many_connections():
    """Raises the limit on open connections to what the system allows."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
