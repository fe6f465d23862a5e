"""This package in bfloat16, for a job whose first side is float32."""

from sides import bert_keras


def inference(job):
    return bert_keras.inference({**job, "dtype": "bfloat16"})
