"""This package in float32, for a job whose other sides have another precision."""

from sides import bert_keras


def inference(job):
    return bert_keras.inference({**job, "dtype": "float32"})
