"""This package with the policy of training: weights in float32, arithmetic in bfloat16."""

from sides import bert_keras


def inference(job):
    return bert_keras.inference({**job, "dtype": "mixed_bfloat16"})
