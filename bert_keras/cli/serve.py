"""The command `serve`: models of sources, and a server of them that ends when it is told to."""

import contextlib
import functools
import importlib.util
import os
import socket
import tempfile

from absl import flags, logging

from bert_keras.cli import sources
from bert_keras.export import runtime

FLAGS = flags.FLAGS
# Where a server keeps its keys, apart by spaces: a process's arguments are seen by all.
KEYS = "BERT_KERAS_API_KEYS"


def define_flags():
    """Defines the flags of `serve`."""
    flags.DEFINE_string("host", "127.0.0.1", "Address to listen at; 0.0.0.0 for all networks.")
    flags.DEFINE_integer("port", 8080, "Port to listen at.", 0, 65535)
    flags.DEFINE_integer("max_batch", 32, "Texts answered together.", 1)
    flags.DEFINE_float("wait_ms", 3.0, "Milliseconds that fewer texts than before wait.", 0.0)
    flags.DEFINE_integer("max_waiting", 1024, "Texts that may wait; beyond, 429.", 1)
    flags.DEFINE_float("deadline", 30.0, "Seconds until 504.", 0.1, 86400.0)
    flags.DEFINE_integer("max_body", 2**21, "Bytes of a request's body; beyond, 413.", 1)
    flags.DEFINE_integer("max_text", 2**16, "Characters of a row of texts; beyond, 413.", 1)
    flags.DEFINE_enum(
        "runtime",
        "auto",
        ["auto", "keras", "onnx"],
        "What answers: Keras; or ONNX Runtime, by a program that is exported at the start; or "
        "whichever is sooner: that, where it can be had and there is no accelerator.",
    )
    flags.DEFINE_float("reload_every", None, "Seconds between looks for changed files.", 0.1)


def serve(named_sources):
    """Answers for models until the process is told to end; what it holds then is answered first.

    Args:
        named_sources: list of str, each `SOURCE` or `NAME=SOURCE`.

    Raises:
        ImportError: the packages of the extra `serve` are missing.
        OSError: the address is taken.
        ValueError: two models have one name, or a model no answer.
    """
    if any(
        importlib.util.find_spec(x) is None for x in ("fastapi", "uvicorn", "prometheus_client")
    ):
        raise ImportError("A server needs the extra `serve`: pip install 'bert_keras[serve]'.")
    import uvicorn

    from bert_keras.serving.app import make_app
    from bert_keras.serving.connection import Connection
    from bert_keras.serving.served import Settings

    keys = tuple(os.environ.get(KEYS, "").split())
    settings = Settings(
        FLAGS.max_batch,
        FLAGS.wait_ms / 1000,
        FLAGS.max_waiting,
        FLAGS.deadline,
        FLAGS.max_body,
        FLAGS.max_text,
        keys,
    )
    models = models_of(named_sources, settings)
    listening = bound(FLAGS.host, FLAGS.port)
    for model in models:
        model.start()
    config = uvicorn.Config(
        make_app(models, settings, FLAGS.reload_every),
        http=functools.partial(Connection, FLAGS.deadline),
        ws="none",
        log_level="warning",
        timeout_graceful_shutdown=int(FLAGS.deadline) + 1,
    )
    _allow_many_connections()
    host = f"[{FLAGS.host}]" if ":" in FLAGS.host else FLAGS.host
    port = listening.getsockname()[1]
    print(f"Serving {', '.join(x.name for x in models)} at http://{host}:{port}", flush=True)
    uvicorn.Server(config).run([listening])


def bound(host, port):
    """Returns a socket that has the address, and listens when the models are loaded."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, os.name != "nt")
        bound.bind(address)
        return bound
    except OSError as error:
        raise OSError(
            f"The server needs an address of its own. Received: {host}, port {port} ({error}). "
            "Choose another --port or --host."
        ) from error


def models_of(named_sources, settings):
    """Returns a `Served` of each source, not loaded yet."""
    import keras

    from bert_keras.serving.served import Served

    models = {}
    for each in named_sources:
        name, has_name, source = each.partition("=")
        if not has_name or os.path.exists(each):
            source, name = each, os.path.basename(os.path.abspath(each)).removesuffix(".keras")
        if not name or name in models:
            raise ValueError(
                f"Each model needs its own name: NAME={source}. Received twice, or empty: {name!r}."
            )
        # Backends that compile do so for each number of rows.
        pads = keras.backend.backend() != "torch"
        load = functools.partial(loaded, source, FLAGS.runtime)
        models[name] = Served(name, load, source, settings, pads_rows=pads)
    return list(models.values())


def loaded(source, wanted="auto"):
    """Returns the model of a source.

    Args:
        source: str, see `sources.load`.
        wanted: `"keras"`, `"onnx"` or `"auto"`, what is to answer.

    Returns:
        A task, or an `ExportedTask`, whose `tokenizer` is a `Tokenizer`, and whose `whole` is the
        task where it was exported here.
    """
    import keras

    from bert_keras.preprocessing import TextPreprocessor
    from bert_keras.tokenizers import Tokenizer

    model, warned = sources.load(source)
    if warned:
        raise ValueError(f"{source} has not all that it needs to answer. {warned[0]}")
    if isinstance(model, runtime.ExportedTask):
        if wanted == "keras":
            raise ValueError(
                f"{source} is a program, by which Keras cannot answer. Serve its task."
            )
        model.tokenizer = Tokenizer.load(os.path.join(source, "tokenizer.json"))
        return model
    program = None if wanted == "keras" else _program_of(model, wanted == "onnx")
    if program is not None:
        program.whole = model  # Whose inside can be shown.
        return program
    if keras.backend.backend() == "torch" and type(model.preprocessor) is TextPreprocessor:
        # What is asked at the same time differs in length. Other backends would compile each way to
        # lay texts into rows.
        model.preprocessor.unpadded = True
    return model


def _program_of(model, is_asked_for):
    """Returns a task as a program of ONNX Runtime, or `None` where Keras is to answer."""
    from bert_keras import distribution

    answers = runtime.answers_of(model)
    # The program would decode every token, not the masks alone.
    is_slower = distribution.has_accelerator() or "fill_mask" in answers
    if is_slower and not is_asked_for:
        return None
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            model.export(folder, format="onnx", verbose=False)
            program = loaded(folder, "onnx")
        if program.answers != answers:
            raise ValueError(f"The program answers by {program.answers}, the task by {answers}.")
        return program
    except Exception as error:
        if is_asked_for:
            raise
        logging.warning("Keras answers, as with --runtime=keras, not ONNX Runtime: %s", error)
        return None


def _allow_many_connections():
    """Lets the process have as many open connections as it may."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
