"""This package's attention by the explicit formula, in place of Keras's function of it."""

from sides import bert_keras, jobs


def attention(job):
    layer = bert_keras.SelfAttention(*jobs.ATTENTION, dtype=bert_keras.policy(job))
    return jobs.one_layer(job, layer, return_attentions=True)
