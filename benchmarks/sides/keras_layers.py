"""Keras's own layers on the backend that KERAS_BACKEND names."""

import keras

import bert_keras  # noqa: F401, for the same memory.
from sides import jobs


def dense(job):
    dtype = {"float32": "float32", "bfloat16": "mixed_bfloat16"}[job["dtype"]]
    return jobs.dense_step(job, keras.layers.Dense(jobs.DENSE[1], dtype=dtype))
