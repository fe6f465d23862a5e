"""Exports every task on every family, and measures how exact and fast each format is.

    KERAS_BACKEND=torch python benchmarks/export_formats.py --output matrix.jsonl
    KERAS_BACKEND=torch python benchmarks/export_formats.py --sst2_dir SST-2 --mrpc_dir MRPC

The first command prints the matrix: a line of JSON for each task, family and format of tiny models,
with the largest difference from `predict` over four shapes, or the error. The second fine-tunes
MiniLM on samples of SST-2 and MRPC. It prints size, time for one text and for a batch, and accuracy
on the dev sets, in float32 and int8.
"""

import pathlib
import statistics
import tempfile
import time

import keras
import numpy as np
import turns
from absl import app, flags, logging
from kept_rows import add_row
from read_programs import read_program

import bert_keras
from bert_keras.export.program_formats import FORMATS

FLAGS = flags.FLAGS
flags.DEFINE_list("formats", None, "Formats; by default those that this backend writes itself.")
flags.DEFINE_list("families", None, "Families of the matrix, all by default.")
flags.DEFINE_list("tasks", None, "Tasks of the matrix, all by default.")
flags.DEFINE_string("output", None, "File that lines of JSON are added to.")
flags.DEFINE_string("sst2_dir", None, "Folder of SST-2: measures it and MRPC, no matrix.")
flags.DEFINE_string("mrpc_dir", None, "Folder of MRPC.")
flags.DEFINE_string("models_dir", "models", "Folder of the fine-tuned models, made when missing.")
flags.DEFINE_integer("examples", 2000, "Examples to fine-tune on.")

SIZES = {"vocabulary_size": 50, "num_layers": 1, "num_heads": 2, "hidden_dim": 16}
SIZES |= {"intermediate_dim": 24, "max_sequence_length": 64}
FAMILIES = {
    "Bert": {},
    "Roberta": {},
    "DistilBert": {},
    "Albert": {"embedding_dim": 8},
    "Electra": {"embedding_dim": 8},
    "ModernBert": {"num_layers": 2, "local_attention": 4},
}
TASKS = {
    "backbone": lambda backbone: backbone,
    "TextClassifier": bert_keras.TextClassifier,
    "LongTextClassifier": bert_keras.LongTextClassifier,
    "TokenClassifier": lambda backbone: bert_keras.TokenClassifier(backbone, 3),
    "TokenClassifier with CRF": lambda backbone: bert_keras.TokenClassifier(backbone, 3, crf=True),
    "QuestionAnswering": bert_keras.QuestionAnswering,
    "MultipleChoice": bert_keras.MultipleChoice,
    "TextEmbedder": bert_keras.TextEmbedder,
    "MaskedLM": bert_keras.MaskedLM,
    "NextSentencePrediction": bert_keras.NextSentencePrediction,
    "Pretraining": bert_keras.Pretraining,
    "SpanBoundary": bert_keras.SpanBoundary,
    "ReplacedTokenDetector": bert_keras.ReplacedTokenDetector,
}
SHAPES = ((1, 1), (1, 7), (3, 20), (5, 64))
SUFFIXES = {"litert": ".tflite", "onnx": ".onnx", "openvino": ".xml"}


def random_inputs(model, rows, length, seed=0):
    """Returns a dict of int32 arrays with padding inside, as the model's program takes it."""
    backbone, rng = getattr(model, "backbone", model), np.random.default_rng(seed)
    shape = (rows, length) if model.num_input_axes == 2 else (rows, 2, length)
    mask = rng.integers(0, 2, shape)
    mask[..., ::2] = 1  # Otherwise local attention might see no token at all.
    inputs = {"token_ids": rng.integers(5, 50, shape), "padding_mask": mask}
    inputs["segment_ids"] = rng.integers(0, 2, shape)
    inputs["mask_positions"] = np.sort(rng.integers(0, length, (rows, 3)), axis=1)
    names = (*backbone.input_names, *model.further_inputs)
    return {name: inputs[name].astype("int32") for name in names}


def largest_difference(program, model):
    """Returns the largest difference of a program to the model, over all shapes and outputs."""
    largest = 0.0
    for rows, length in SHAPES:
        inputs = random_inputs(model, rows, length)
        found, wanted = program(inputs), model.predict(inputs, verbose=0)
        wanted = wanted if isinstance(wanted, dict) else {"logits": wanted}
        if found.keys() != wanted.keys():
            raise ValueError(f"outputs {sorted(found)} instead of {sorted(wanted)}")
        for name, expected in wanted.items():
            if found[name].shape != expected.shape:
                raise ValueError(f"{name}: {found[name].shape} instead of {expected.shape}")
            difference = np.abs(found[name] - expected)
            largest = max(largest, float(difference.max()))
    return largest


def measured(model, format):
    """Exports a model, reads it again, and returns the results, a dict for one line."""
    started = time.time()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model" + SUFFIXES.get(format, ""))
        try:
            model.export(path, format=format, verbose=False)
            found = {"seconds": round(time.time() - started, 1)}
            found["difference"] = largest_difference(read_program(path, format), model)
            if format == "onnx":  # OpenVINO's files are made from these.
                program = read_program(path, "openvino")
                found["by_openvino"] = largest_difference(program, model)
            return found
        except Exception as error:
            return {"error": " ".join(f"{type(error).__name__}: {error}".split())[:2000]}


def matrix(formats):
    """Yields a line for each task, family and format."""
    for family in FLAGS.families or FAMILIES:
        for task in FLAGS.tasks or TASKS:
            keras.utils.set_random_seed(0)
            backbone_class = getattr(bert_keras, f"{family}Backbone")
            line = {"backend": keras.backend.backend(), "family": family, "task": task}
            try:
                model = TASKS[task](backbone_class(**{**SIZES, **FAMILIES[family]}))
            except ValueError as error:
                yield {**line, "refused": str(error)}
                continue
            for format in formats:
                yield {**line, "format": format, **measured(model, format)}


def fine_tuned(task, examples):
    """Returns MiniLM fine-tuned on examples, from its file where there is one."""
    path = pathlib.Path(FLAGS.models_dir, f"{task}.keras")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        keras.utils.set_random_seed(0)
        model = bert_keras.TextClassifier.from_preset(
            "minilm_l6_en_uncased", num_classes=2, pooling="pooler"
        )
        model.compile(learning_rate=5e-5)
        rows = np.random.default_rng(0).permutation(len(examples))[: FLAGS.examples]
        chosen = examples.take(rows)
        model.fit(chosen.texts, chosen.labels, batch_size=32, epochs=2, verbose=2)
        model.save(path)
    return keras.saving.load_model(path, compile=False)


def quantized(path, format):
    """Writes an int8 program beside a float32 one, as docs/export.md does; returns its path."""
    target = path.with_name(f"{path.stem}_int8{path.suffix}")
    if format == "onnx":
        from onnxruntime.quantization import quantize_dynamic

        quantize_dynamic(path, target)
    else:
        import nncf
        import openvino

        program = nncf.compress_weights(openvino.Core().read_model(path))
        openvino.save_model(program, target, compress_to_fp16=False)
    return target


def accuracy(run, batches, labels):
    """Returns the share of rows whose largest logit is that of the label, and all logits."""
    logits = np.concatenate([run(batch) for batch in batches])
    return float(np.mean(logits.argmax(axis=1) == labels)), logits


def milliseconds(run, inputs, times):
    """Returns the median time of a call, after one that is not counted."""
    run(inputs)
    (seconds,), _ = turns.alternate([lambda: run(inputs)], times)
    return round(1000 * statistics.median(wall for _, wall in seconds), 1)


def table(formats):
    """Yields a line for each task and program, and the model's own before them."""
    for task, folder in (("sst2", FLAGS.sst2_dir), ("mrpc", FLAGS.mrpc_dir)):
        model = fine_tuned(task, bert_keras.datasets.load_glue(task, folder, "train"))
        dev = bert_keras.datasets.load_glue(task, folder, "dev")
        pairs = isinstance(dev.texts, tuple)
        parts = [slice(i, i + 32) for i in range(0, len(dev), 32)]
        texts = [tuple(x[p] for x in dev.texts) if pairs else dev.texts[p] for p in parts]
        batches = [model.preprocessor(x) for x in texts]
        one = {name: x[:1, :16] for name, x in batches[0].items()}
        many = {name: np.ones((32, 64), "int32") for name in one}
        line = {"backend": keras.backend.backend(), "task": task}

        def measure(run, wanted=None, batches=batches, labels=dev.labels, one=one, many=many):
            share, logits = accuracy(run, batches, labels)
            found = {"accuracy": round(100 * share, 2)}
            if wanted is not None:
                found["difference"] = float(np.abs(logits - wanted).max())
            found |= {"one": milliseconds(run, one, 20), "batch": milliseconds(run, many, 5)}
            return found, logits

        def predict(inputs, model=model):
            return model.predict_on_batch(inputs)

        found, wanted = measure(predict)
        yield {**line, "format": "predict", **found}
        for format in formats:
            with tempfile.TemporaryDirectory() as made:
                path = pathlib.Path(made, "model" + SUFFIXES.get(format, ""))
                started = time.time()
                model.export(path, format=format, verbose=False)
                seconds = round(time.time() - started)
                for name in (format, f"{format} int8")[: 1 + (format in ("onnx", "openvino"))]:
                    path = path if name == format else quantized(path, format)
                    program = read_program(path, format)
                    found, _ = measure(lambda x, program=program: program(x)["logits"], wanted)
                    yield {**line, "format": name, "seconds": seconds, **size_of(path), **found}
        model.quantize("int8")
        found, _ = measure(predict, wanted)
        yield {**line, "format": "predict int8", **found}


def size_of(path):
    """Returns the size of a program's files, a folder's or those of one stem."""
    files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.stem}.*")
    return {"megabytes": round(sum(x.stat().st_size for x in files if x.is_file()) / 1e6, 1)}


def main(argv):
    logging.set_verbosity("error")  # TensorFlow and onnxscript log each step.
    backend = keras.backend.backend()
    own = [name for name in FORMATS if backend in FORMATS[name].backends and name != "openvino"]
    lines = table(FLAGS.formats or FORMATS) if FLAGS.sst2_dir else matrix(FLAGS.formats or own)
    for line in lines:
        add_row(FLAGS.output, line)


if __name__ == "__main__":
    app.run(main)
