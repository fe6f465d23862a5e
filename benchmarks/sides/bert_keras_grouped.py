"""This package with batches grouped by length as widely as transformers' Trainer groups them."""

from sides import bert_keras

# Batches that Trainer sorts together with `group_by_length`, or all where there are fewer.
WINDOW = 50


def epoch(job):
    return bert_keras.epoch(job, sort_window=WINDOW)
