"""This package. Each function prepares a job and returns a function that does it once."""

import random

import keras
import numpy as np

import bert_keras as package
from bert_keras.engine import kernels
from bert_keras.layers.adaptable_dense import AdaptableDense
from bert_keras.layers.attention import SelfAttention
from bert_keras.tasks.user_columns import normalize_columns
from sides import jobs

package.keep_freed_memory()


def inference(job):
    # In bfloat16 the weights are too, as on the other sides: nothing is trained.
    dtype = job.get("dtype", "float32")
    backbone = package.BertBackbone.from_preset(job["folder"], dtype=dtype)
    inputs = jobs.token_inputs(job)
    batch = job["batch"]
    backbone.compile(**compilation(job))  # Keras reads from here whether XLA compiles.
    return lambda: backbone.predict(inputs, batch_size=batch, verbose=0)["sequence_output"]


def text(job):
    classifier = make_classifier(job)
    if job.get("jit_compile"):
        classifier.compile(jit_compile=True)
    texts, seen = jobs.as_given(job), set()
    pack = classifier.preprocessor.pack

    def noted(*args, **kwargs):
        inputs = pack(*args, **kwargs)
        seen.add(inputs["token_ids"].shape)
        return inputs

    def run():
        return classifier.predict(texts, verbose=0)

    # XLA compiles each shape once; Keras pads the last batch if that saves one.
    classifier.preprocessor.pack = noted
    run.shapes = lambda: len(seen)
    return run


def train_step(job):
    classifier = make_classifier(job, backbone={"remat": job.get("remat", False)})
    classifier.compile(package.AdamW(5e-5))
    inputs, labels = jobs.training_rows(job, steps=1)
    return lambda: classifier.train_on_batch(inputs, labels) and None


def epoch(job):
    classifier = make_classifier(job)
    texts = jobs.as_given(job)
    labels = jobs.labels(len(jobs.columns(job)[0]))
    classifier.compile(package.AdamW(5e-5))

    return lambda: classifier.fit(texts, labels, job["batch"], epochs=1, verbose=0) and None


def pretraining_step(job):
    model = package.Pretraining(package.BertBackbone.from_preset(job["folder"]))
    model.compile(package.AdamW(1e-4))
    inputs, labels = jobs.training_rows(job, steps=1)
    return lambda: model.train_on_batch(inputs, labels) and None


def fine_tuning(job):
    return by_fit(job, make_classifier(job))


def pretraining(job):
    backbone = package.BertBackbone.from_preset(job["folder"], dtype=policy(job))
    return by_fit(job, package.Pretraining(backbone))


def prediction(job):
    model = make_classifier(job)
    model.compile(**compilation(job))

    def predict(steps):
        inputs, _ = jobs.training_rows(job, steps)
        model.predict(inputs, batch_size=job["batch"], verbose=0)

    return jobs.many_steps(job, predict)


def by_fit(job, model):
    model.compile(package.AdamW(5e-5), **compilation(job))

    def fit(steps):
        inputs, labels = jobs.training_rows(job, steps)
        model.fit(inputs, labels, batch_size=job["batch"], shuffle=False, verbose=0)

    return jobs.many_steps(job, fit)


def arrays(job):
    classifier = make_classifier(job)
    texts = jobs.as_given(job)

    def run():
        columns = normalize_columns(classifier, texts)
        rows = classifier.encode_columns(columns, training=False)
        batches = classifier.make_batches(rows, job["batch"])
        for index in range(len(batches)):
            batches[index]

    return run


def tokens(job):
    """Flat ids and lengths, from which `predict` and `fit` make their batches."""
    tokenizer = package.Tokenizer.load(job["folder"])
    (texts,) = jobs.columns(job)
    return lambda: tokenizer.flat_ids(texts)[0]


def attention(job):
    way = job.get("attention")
    if way == "fused":
        kernels.has_fused_attention = lambda *_: True
    options = {"return_attentions": True} if way == "explicit" else {}
    return jobs.one_layer(job, SelfAttention(*jobs.ATTENTION, dtype=policy(job)), **options)


def dense(job):
    layer = keras.layers.Dense if job.get("keras_layer") else AdaptableDense
    return jobs.dense_step(job, layer(jobs.DENSE[1], dtype=policy(job)))


def make_classifier(job, **options):
    classifier = package.TextClassifier.from_preset(
        job["folder"],
        num_classes=2,
        max_length=job.get("max_length", 128),
        dtype=policy(job),
        **options,
    )
    if job.get("dtype") == "int8":
        classifier.quantize("int8")
    return classifier


def compilation(job):
    return {"jit_compile": True} if job.get("jit_compile") else {}


def policy(job):
    # A model that becomes int8 is loaded in float32.
    policies = {"float32": "float32", "bfloat16": "mixed_bfloat16", "int8": "float32"}
    return policies[job.get("dtype", "float32")]


# `keras.utils.set_random_seed` would load TensorFlow into every backend's process.
random.seed(0)
np.random.seed(0)
