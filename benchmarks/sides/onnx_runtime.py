"""ONNX Runtime on a model that torch exports from transformers' weights; `tokenizers` for text."""

import os

import numpy as np
import onnxruntime
import tokenizers
import torch
import transformers

from sides import jobs


def inference(job):
    session = make_session(job)
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
    """Texts in batches of similar length, as a careful user would make them."""
    session = make_session(job)
    tokenizer = tokenizers.Tokenizer.from_file(os.path.join(job["folder"], "tokenizer.json"))
    tokenizer.enable_truncation(job.get("max_length", 128))
    tokenizer.enable_padding()
    parts = ("ids", "attention_mask", "type_ids")

    def answer(texts, *pairs):
        encoded = tokenizer.encode_batch(list(zip(texts, *pairs, strict=True)) if pairs else texts)
        arrays = (np.array([getattr(row, part) for row in encoded]) for part in parts)
        return compute(session, *arrays)

    return jobs.by_length(job, answer)


def tokens(job):
    """`tokenizers` only: this side has no other step for text."""
    tokenizer = tokenizers.Tokenizer.from_file(os.path.join(job["folder"], "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    (texts,) = jobs.columns(job)

    def run():
        found = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return np.concatenate([np.array(row.ids, "int32") for row in found])

    return run


INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def compute(session, ids, mask, types=None):
    types = np.zeros_like(ids) if types is None else types
    feed = dict(zip(INPUTS, (x.astype("int64") for x in (ids, mask, types)), strict=True))
    return session.run(None, feed)[0]


class OneOutput(torch.nn.Module):
    """A model as a function of tensors with one output, which the exporter needs."""

    def __init__(self, model, name):
        super().__init__()
        self.model, self.name = model, name

    def forward(self, input_ids, attention_mask, token_type_ids):
        outputs = self.model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        )
        return getattr(outputs, self.name)


def quantized(path):
    """Returns the path of the model with weights in int8; activations are quantized as it runs."""
    import onnx
    from onnxruntime import quantization

    target = path.replace(".onnx", ".int8.onnx")
    if not os.path.exists(target):
        model = onnx.load(path)
        # The exporter's shapes are of weights that it transposed afterwards.
        del model.graph.value_info[:]
        quantization.quantize_dynamic(model, target, weight_type=quantization.QuantType.QInt8)
    return target


# Kind of job -> transformers' class, and the output that answers it.
MODELS = {
    "inference": (transformers.AutoModel, "last_hidden_state"),
    "text": (transformers.AutoModelForSequenceClassification, "logits"),
}


def make_files(job):
    """Exports the model, and quantizes it where the job is in int8."""
    # A side that cannot do a job says so in its row; no suite asks this one for bfloat16.
    if job.get("dtype") == "bfloat16":
        raise NotImplementedError("onnx_runtime is measured in float32 and int8 only")
    if job["kind"] not in MODELS:
        return
    auto_class, output = MODELS[job["kind"]]
    path = path_of(job)
    if not os.path.exists(path):
        model = auto_class.from_pretrained(job["folder"]).eval()
        # Each input needs its own tensor: the exporter takes equal tensors for one input.
        examples = tuple(torch.ones((2, 16), dtype=torch.long) for _ in INPUTS)
        batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
        torch.onnx.export(
            OneOutput(model, output),
            examples,
            path,
            input_names=list(INPUTS),
            dynamic_shapes={name: {0: batch, 1: length} for name in INPUTS},
            dynamo=True,
        )
    if job.get("dtype") == "int8":
        quantized(path)


def path_of(job):
    return os.path.join(job["folder"], f"{MODELS[job['kind']][1]}-{len(INPUTS)}-inputs.onnx")


def make_session(job):
    path = path_of(job)
    if job.get("dtype") == "int8":
        path = quantized(path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
