"""The fastest matrix product of each library: an upper limit for a model."""

import os
import time

import numpy as np

from sides import jobs

# A feed-forward layer of BERT-base on 8 x 128 tokens.
ROWS, INNER, COLUMNS = 1024, 768, 3072
TIMES = 20
FLOPS = 2 * ROWS * INNER * COLUMNS * TIMES


def ceiling(job):
    fastest = min(ways(ROWS, INNER, COLUMNS, job["dtype"]), key=seconds)
    return lambda: [fastest() for _ in range(TIMES)] and None


def ways(rows, inner, columns, dtype):
    """Returns functions that multiply matrices of these sizes, each a way of the library's."""
    generator = np.random.default_rng(0)
    first = generator.standard_normal((rows, inner)).astype("float32")
    second = generator.standard_normal((inner, columns)).astype("float32")
    libraries = {"jax": by_jax, "torch": by_torch, "tensorflow": by_tensorflow}
    return libraries[os.environ["KERAS_BACKEND"]](first, second, dtype)


def by_size(job):
    """Products of square matrices so large that an accelerator cannot do better, many in a row."""
    size = job["matrix_size"]
    fastest = min(ways(size, size, size, job["dtype"]), key=seconds)

    def fit(steps):
        for _ in range(steps):
            product = fastest()
        wait(product)

    return jobs.many_steps(job, fit)


fine_tuning = pretraining = prediction = by_size


def wait(product):
    """Waits for a product; devices return from the call before they have computed it."""
    float(product[(0,) * product.ndim])


def seconds(function):
    """Returns the seconds of the fastest of several calls, after a first one."""
    found = []
    for _ in range(6):
        started = time.perf_counter()
        wait(function())
        found.append(time.perf_counter() - started)
    return min(found[1:])


def by_jax(first, second, dtype):
    import jax
    import jax.numpy as jnp

    first, second = jnp.asarray(first, dtype), jnp.asarray(second, dtype)
    product = jax.jit(jnp.matmul, static_argnames="preferred_element_type")
    return [
        lambda: product(first, second).block_until_ready(),
        lambda: product(first, second, preferred_element_type="float32").block_until_ready(),
    ]


def by_torch(first, second, dtype):
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    first, second = (torch.tensor(x).to(device, getattr(torch, dtype)) for x in (first, second))
    # F.linear stores weights output by input. As a convolution, oneDNN computes the product.
    second = second.T.contiguous()
    rows, kernel = first.T[None, :, :, None], second[:, :, None, None]
    rows, kernel = (x.to(memory_format=torch.channels_last) for x in (rows, kernel))
    return [
        lambda: torch.nn.functional.linear(first, second),
        lambda: torch.nn.functional.conv2d(rows, kernel),
    ]


def by_tensorflow(first, second, dtype):
    import tensorflow

    first, second = (tensorflow.cast(tensorflow.constant(x), dtype) for x in (first, second))
    # Eager functions of the CPU have ended when they return.
    by_xla = tensorflow.function(tensorflow.matmul, jit_compile=True)
    return [lambda: by_xla(first, second), lambda: tensorflow.matmul(first, second)]
