"""This package with `remat=True`, which computes activations again instead of keeping them."""

from sides import bert_keras


def train_step(job):
    return bert_keras.train_step(job, backbone={"remat": True})
