"""sentence-transformers' `encode`; BERT's pooler and classifier are modules of its model, so that
what it encodes a text to is the classifier's logits."""

import sentence_transformers
import torch
import transformers
from sentence_transformers import models

from sides import hugging_face, jobs


def text(job):
    whole = hugging_face.load(transformers.AutoModelForSequenceClassification, job)
    encoder = models.Transformer(job["folder"], max_seq_length=job.get("max_length", 128))
    modules = [
        encoder,
        models.Pooling(whole.config.hidden_size, "cls"),
        dense(whole.bert.pooler.dense, torch.nn.Tanh()),
        dense(whole.classifier, torch.nn.Identity()),
    ]
    model = sentence_transformers.SentenceTransformer(modules=modules)
    texts = jobs.as_given(job)
    if isinstance(texts, tuple):
        texts = list(zip(*texts, strict=True))
    return lambda: model.encode(texts, batch_size=job["batch"], show_progress_bar=False)


def dense(layer, activation):
    return models.Dense(
        layer.in_features,
        layer.out_features,
        activation_function=activation,
        init_weight=layer.weight,
        init_bias=layer.bias,
    )
