"""The inputs of the jobs, the same for all sides."""

import functools
import json
import os
import time

import numpy as np

VOCABULARY_FROM, VOCABULARY_TO = 1000, 20000
# Inputs and outputs of MiniLM's intermediate layer.
DENSE = 384, 1536
# Heads and width of BERT-base's attention.
ATTENTION = 12, 768


def token_inputs(job, batches=None):
    """Returns `token_ids` and `padding_mask`, int32 `(rows, length)`.

    Args:
        job: dict with `batch`, `length` and `batches`; with `padded`, the rows have from a quarter
            of the length to all of it, otherwise there is no padding.
        batches: int, batches of rows, in place of the job's.
    """
    rows = job["batch"] * (batches or job.get("batches", 1))
    generator = np.random.default_rng(0)
    shape = rows, job["length"]
    token_ids = generator.integers(VOCABULARY_FROM, VOCABULARY_TO, shape).astype("int32")
    mask = np.ones_like(token_ids)
    if job.get("padded"):
        lengths = generator.integers(job["length"] // 4, job["length"] + 1, (rows, 1))
        mask = (np.arange(job["length"]) < lengths).astype("int32")
    return {"token_ids": token_ids * mask, "padding_mask": mask}


def labels(count):
    """Returns classes, int32 `(count,)`, 0 or 1."""
    return np.random.default_rng(1).integers(0, 2, count).astype("int32")


def masked_positions(job):
    """Returns positions and labels of masked tokens, int32 `(batch, 15 % of the length)`."""
    generator = np.random.default_rng(2)
    shape = job["batch"], round(0.15 * job["length"])
    columns = np.tile(np.arange(1, job["length"]), (job["batch"], 1))
    positions = np.sort(generator.permuted(columns, axis=1)[:, : shape[1]], axis=1)
    return positions.astype("int32"), generator.integers(
        VOCABULARY_FROM, VOCABULARY_TO, shape
    ).astype("int32")


def training_rows(job, steps):
    """Returns inputs and labels of this many batches, as `fit` takes them, for the job's kind."""
    rows = job | {"batch": job["batch"] * steps}
    inputs, classes = token_inputs(rows, batches=1), labels(rows["batch"])
    if not job["kind"].startswith("pretraining"):
        return inputs, classes
    inputs["mask_positions"], originals = masked_positions(rows)
    return inputs, {"masked_lm": originals, "next_sentence": classes}


def many_steps(job, fit):
    """Returns a function that trains for about the job's `seconds`, with its number of `steps`.

    Args:
        job: dict with `seconds`.
        fit: function of a number of steps, which returns once the device has finished them.
    """
    fit(2)  # Compiles.
    fit(4)  # Captures, where steps are.
    started = time.perf_counter()
    fit(4)
    run = functools.partial(
        fit, max(1, round(4 * job["seconds"] / (time.perf_counter() - started)))
    )
    (run.steps,), run.device = run.args, device
    return run


def device():
    """Returns a dict of an accelerator's name and peak memory, empty without one."""
    backend = os.environ["KERAS_BACKEND"]
    if backend == "jax":
        import jax

        found = jax.devices()[0]
        if found.platform == "cpu":
            return {}
        name, peak = found.device_kind, found.memory_stats()["peak_bytes_in_use"]
    elif backend == "torch":
        import torch

        if not torch.cuda.is_available():
            return {}
        name, peak = torch.cuda.get_device_name(), torch.cuda.max_memory_allocated()
    else:
        import tensorflow as tf

        found = tf.config.list_physical_devices("GPU")
        if not found:
            return {}
        name = tf.config.experimental.get_device_details(found[0])["device_name"]
        peak = tf.config.experimental.get_memory_info("GPU:0")["peak"]
    return {"device": name, "megabytes": peak / 1e6}


def dense_step(job, layer):
    """Returns a function that does a training step of one dense layer, as wide as MiniLM's."""
    import keras

    model = keras.Sequential([layer])
    model.compile("sgd", "mse")
    shape = job["batch"], job["length"]
    generator = np.random.default_rng(3)
    x, y = (generator.standard_normal((*shape, n)).astype("float32") for n in DENSE)
    return lambda: model.train_on_batch(x, y) and None


def one_layer(job, layer, **options):
    """Returns a function that has an attention layer answer a batch of hidden states and a mask."""
    import keras

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def call(self, inputs):
            return self.layer(*inputs, **options)[0]

    _, width = ATTENTION
    generator = np.random.default_rng(3)
    shape = job["batch"], job["length"], width
    inputs = [
        generator.standard_normal(shape).astype("float32"),
        np.ones((job["batch"], 1, 1, job["length"]), bool),
    ]
    model = Model()
    layer.build()
    for weight in layer.weights:
        weight.assign(generator.standard_normal(weight.shape) / width**0.5)
    return lambda: model.predict_on_batch(inputs)


def columns(job):
    """Returns the texts of the job's file, a tuple of one list of str, or of two for pairs."""
    with open(job["texts"], encoding="utf-8") as file:
        return tuple(json.load(file))


def as_given(job):
    """Returns the texts as Keras's models take them: a list, or a tuple of two for pairs."""
    found = columns(job)
    return found if len(found) > 1 else found[0]


def by_length(job, answer):
    """Returns a function that answers the texts in batches of similar length, the longest first.

    Args:
        answer: function of columns of texts that returns their logits.
    """
    texts, size = columns(job), job["batch"]
    order = np.argsort([-sum(map(len, row)) for row in zip(*texts, strict=True)], kind="stable")

    def run():
        logits = np.empty((len(order), 2), "float32")
        for begin in range(0, len(order), size):
            rows = order[begin : begin + size]
            logits[rows] = answer(*([column[row] for row in rows] for column in texts))
        return logits

    return run
