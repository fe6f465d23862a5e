"""KerasHub on the backend that KERAS_BACKEND names, through its own `predict` and `fit`."""

import json
import os

import keras
import keras_hub
import numpy as np
import safetensors.numpy

from sides import jobs


def inference(job):
    backbone = load_backbone(job)
    inputs = as_theirs(jobs.token_inputs(job))
    size = job["batch"]
    return lambda: backbone.predict(inputs, batch_size=size, verbose=0)["sequence_output"]


def text(job):
    classifier = make_classifier(job)
    texts, size = jobs.as_given(job), job["batch"]
    return lambda: classifier.predict(texts, batch_size=size, verbose=0)


def train_step(job):
    classifier = make_classifier(job, preprocessor=None)
    compile_to_train(classifier)
    inputs, labels = as_theirs(jobs.token_inputs(job, batches=1)), jobs.labels(job["batch"])
    return lambda: classifier.train_on_batch(inputs, labels) and None


def fine_tuning(job):
    return by_fit(job, make_classifier(job, preprocessor=None))


def pretraining(job):
    """Masked tokens only: KerasHub has no task for next sentences."""
    return by_fit(job, keras_hub.models.BertMaskedLM(load_backbone(job), preprocessor=None))


def prediction(job):
    model = make_classifier(job, preprocessor=None)

    def predict(steps):
        inputs, _ = jobs.training_rows(job, steps)
        keras.Model.predict(model, as_theirs(inputs), batch_size=job["batch"], verbose=0)

    return jobs.many_steps(job, predict)


def by_fit(job, model):
    compile_to_train(model)

    def fit(steps):
        inputs, labels = jobs.training_rows(job, steps)
        labels = labels["masked_lm"] if job["kind"] == "pretraining" else labels
        # Keras's own, since KerasHub's wants TensorFlow to preprocess, which is done.
        keras.Model.fit(
            model, as_theirs(inputs), labels, batch_size=job["batch"], shuffle=False, verbose=0
        )

    return jobs.many_steps(job, fit)


def epoch(job):
    classifier = make_classifier(job)
    compile_to_train(classifier)
    texts, size = jobs.as_given(job), job["batch"]
    labels = jobs.labels(len(jobs.columns(job)[0]))

    def run():
        classifier.fit(texts, labels, batch_size=size, epochs=1, verbose=0)

    return run


def arrays(job):
    """The preprocessor within `tf.data`, where `predict` and `fit` call it."""
    preprocessor = make_classifier(job).preprocessor
    if not job.get("eager"):
        read = mapped(job, preprocessor)
        return lambda: read() and None
    columns, size = jobs.columns(job), job["batch"]

    def run():
        for begin in range(0, len(columns[0]), size):
            part = [column[begin : begin + size] for column in columns]
            preprocessor(tuple(part) if len(part) > 1 else part[0])

    return run


def tokens(job):
    tokenizer = make_tokenizer(job)
    if job.get("eager"):
        (texts,) = jobs.columns(job)
        return lambda: flat(tokenizer(texts))
    read = mapped(job, tokenizer)
    return lambda: flat(row for batch in read() for row in batch)


def flat(rows):
    """Returns rows of ids as one array, without the padding that some tokenizers add."""
    values = np.concatenate([np.asarray(row) for row in rows])
    return values[values != 0]


def mapped(job, function):
    """Returns a function that reads all texts through a function of batches of them."""
    import tensorflow as tf

    batches = tf.data.Dataset.from_tensor_slices(jobs.as_given(job)).batch(job["batch"])
    batches = batches.map(function, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return lambda: list(batches.as_numpy_iterator())


def compile_to_train(classifier):
    classifier.compile(
        optimizer=keras.optimizers.AdamW(5e-5, weight_decay=0.01, global_clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )


def load_backbone(job):
    policy = {"float32": "float32", "bfloat16": "mixed_bfloat16"}[job.get("dtype", "float32")]
    return keras_hub.models.BertBackbone.from_preset(job["folder"], dtype=policy)


def make_classifier(job, **options):
    backbone = load_backbone(job)
    if "preprocessor" not in options:
        options["preprocessor"] = keras_hub.models.BertTextClassifierPreprocessor(
            make_tokenizer(job), sequence_length=job.get("max_length", 128)
        )
    with open(os.path.join(job["folder"], "config.json"), encoding="utf-8") as file:
        dropout = json.load(file)["hidden_dropout_prob"]
    classifier = keras_hub.models.BertTextClassifier(
        backbone, num_classes=2, dropout=dropout, **options
    )
    # It converts backbones only: the head is copied here.
    weights = safetensors.numpy.load_file(os.path.join(job["folder"], "model.safetensors"))
    kernel, bias = weights["classifier.weight"], weights["classifier.bias"]
    classifier.output_dense.set_weights([kernel.T, bias])
    return classifier


def make_tokenizer(job):
    return keras_hub.tokenizers.BertTokenizer(
        os.path.join(job["folder"], "vocab.txt"), lowercase=True
    )


def as_theirs(inputs):
    return {**inputs, "segment_ids": np.zeros_like(inputs["token_ids"])}
