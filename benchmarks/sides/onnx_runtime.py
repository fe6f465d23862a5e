"""ONNX Runtime on a model that torch exports from transformers' weights; `tokenizers` for text."""

import os

import numpy as np
import onnxruntime
import tokenizers
import torch
import transformers

from sides import jobs


def inference(job):
    session = make_session(transformers.AutoModel, job, "last_hidden_state")
    inputs, size = jobs.token_inputs(job), job["batch"]

    def run():
        return np.concatenate(
            [
                compute(session, *(inputs[name][begin : begin + size] for name in inputs))
                for begin in range(0, len(inputs["token_ids"]), size)
            ]
        )

    return run


def text(job):
    """Texts in batches of like length, as any careful user would have it."""
    session = make_session(transformers.AutoModelForSequenceClassification, job, "logits")
    tokenizer = tokenizers.Tokenizer.from_file(os.path.join(job["folder"], "tokenizer.json"))
    tokenizer.enable_truncation(job.get("max_length", 128))
    tokenizer.enable_padding()
    texts, size = jobs.texts(job), job["batch"]
    order = np.argsort([-len(text) for text in texts], kind="stable")

    def run():
        outputs = np.empty((len(texts), 2), "float32")
        for begin in range(0, len(texts), size):
            rows = order[begin : begin + size]
            encoded = tokenizer.encode_batch([texts[row] for row in rows])
            ids = np.array([row.ids for row in encoded])
            outputs[rows] = compute(session, ids, np.array([row.attention_mask for row in encoded]))
        return outputs

    return run


def compute(session, ids, mask):
    feed = {"input_ids": ids.astype("int64"), "attention_mask": mask.astype("int64")}
    return session.run(None, feed)[0]


class OneOutput(torch.nn.Module):
    """A model as a function of two tensors with one output: what an exporter wants."""

    def __init__(self, model, name):
        super().__init__()
        self.model, self.name = model, name

    def forward(self, input_ids, attention_mask):
        return getattr(self.model(input_ids=input_ids, attention_mask=attention_mask), self.name)


def make_session(auto_class, job, output):
    if job.get("dtype", "float32") != "float32":
        raise NotImplementedError("onnx_runtime is measured in float32 only")
    path = os.path.join(job["folder"], f"{output}.onnx")
    if not os.path.exists(path):
        model = auto_class.from_pretrained(job["folder"]).eval()
        example = torch.ones((2, 16), dtype=torch.long)
        batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
        torch.onnx.export(
            OneOutput(model, output),
            (example, example),
            path,
            input_names=["input_ids", "attention_mask"],
            dynamic_shapes={
                name: {0: batch, 1: length} for name in ("input_ids", "attention_mask")
            },
            dynamo=True,
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
