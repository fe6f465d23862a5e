"""The matrix product alone, by each library's own: the ceiling of what a model could reach."""

import os

import numpy as np

# A feed-forward layer of BERT-base on 8 x 128 tokens.
ROWS, INNER, COLUMNS = 1024, 768, 3072
TIMES = 20
FLOPS = 2 * ROWS * INNER * COLUMNS * TIMES


def ceiling(job):
    generator = np.random.default_rng(0)
    first = generator.standard_normal((ROWS, INNER)).astype("float32")
    second = generator.standard_normal((INNER, COLUMNS)).astype("float32")
    run = {"jax": by_jax, "torch": by_torch, "tensorflow": by_tensorflow}
    return run[os.environ["KERAS_BACKEND"]](first, second, job["dtype"])


def by_jax(first, second, dtype):
    import jax
    import jax.numpy as jnp

    first, second = jnp.asarray(first, dtype), jnp.asarray(second, dtype)
    product = jax.jit(jnp.matmul)
    return lambda: [product(first, second).block_until_ready() for _ in range(TIMES)] and None


def by_torch(first, second, dtype):
    import torch

    first, second = (torch.tensor(x).to(getattr(torch, dtype)) for x in (first, second))
    # As F.linear has it: the weights are stored output by input.
    second = second.T.contiguous()
    return lambda: [torch.nn.functional.linear(first, second) for _ in range(TIMES)] and None


def by_tensorflow(first, second, dtype):
    import tensorflow

    first, second = (tensorflow.cast(tensorflow.constant(x), dtype) for x in (first, second))
    product = tensorflow.function(tensorflow.matmul)
    return lambda: [product(first, second).numpy() is None for _ in range(TIMES)] and None
