"""This package with `jit_compile=True`, for PyTorch, where it is not the default."""

import functools

from sides import bert_keras, jobs

fine_tuning = functools.partial(bert_keras.fine_tuning, jit_compile=True)
pretraining = functools.partial(bert_keras.pretraining, jit_compile=True)


def inference(job):
    backbone = bert_keras.package.BertBackbone.from_preset(job["folder"])
    inputs, batch = jobs.token_inputs(job), job["batch"]
    backbone.compile(jit_compile=True)
    return lambda: backbone.predict(inputs, batch_size=batch, verbose=0)["sequence_output"]


def text(job):
    classifier = bert_keras.make_classifier(job)
    classifier.compile(jit_compile=True)
    texts = jobs.as_given(job)
    return lambda: classifier.predict(texts, verbose=0)
