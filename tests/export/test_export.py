"""Exported programs give the model's outputs, by name, for any number of rows and tokens."""

import importlib.util
import os
import shutil

import keras
import numpy as np
import pytest
from checks import assert_close, inputs_of
from tiny import VOCABULARY, tiny_backbone, tiny_classifier

import bert_keras
from benchmarks.read_programs import read_program
from bert_keras.export import other_backend
from bert_keras.export import program_formats as formats

BACKEND = keras.backend.backend()
# The formats that a backend writes itself, and one that another backend writes for it.
OWN = {"tensorflow": ("litert", "tf_saved_model"), "jax": ("tf_saved_model",), "torch": ("onnx",)}
OTHER = {"tensorflow": "onnx", "jax": "litert", "torch": "tf_saved_model"}[BACKEND]
SUFFIXES = {"tf_saved_model": "", "litert": ".tflite", "onnx": ".onnx"}


def of_family(name, **options):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 24}
    options = {**sizes, "initializer_range": 0.3, **options}
    return getattr(bert_keras, f"{name}Backbone")(len(VOCABULARY), **options)


DISTANCES = {"num_buckets": 6, "max_distance": 9, "convolution_size": 3}
# A tiny `TextClassifier` is written by the test of another backend, and of `convert`.
MODELS = {
    "MultipleChoice": lambda: bert_keras.MultipleChoice(tiny_backbone()),
    "SpanBoundary": lambda: bert_keras.SpanBoundary(tiny_backbone()),
    "ModernBERT": lambda: bert_keras.TokenClassifier(
        of_family("ModernBert", num_layers=2, max_sequence_length=64), 3, crf=True
    ),
    "MPNet": lambda: bert_keras.TextEmbedder(of_family("MPNet")),
    "DeBERTa": lambda: bert_keras.QuestionAnswering(of_family("DebertaV2", **DISTANCES)),
    "NomicBERT": lambda: of_family("NomicBert", has_pooler=True),
}


def model_of(name):
    """Returns a model; PyTorch's programs of heads are in folders of test_runtime.py."""
    model = MODELS[name]()
    return getattr(model, "backbone", model) if BACKEND == "torch" else model


def check_program(model, path, format):
    """Checks that a program gives the model's outputs for any number of rows and tokens."""
    program = read_program(path, format)
    model.run_eagerly = BACKEND == "tensorflow"  # Tracing each size takes longer.
    # JAX compiles the model for each size.
    for rows, length in ((1, 1), *[(1, 7)] * (BACKEND != "jax"), (3, 16)):
        inputs = inputs_of(model, rows, length)
        inputs["padding_mask"][0, ..., length // 2 : -1] = 0
        wanted = model.predict(inputs, verbose=0)
        check_outputs(program(inputs), wanted)
    check_refusals(model, program, inputs)
    if format == "tf_saved_model":
        import tensorflow as tf

        [weights] = (path / "variables").glob("*.data-*")
        assert weights.stat().st_size < 1.5 * 4 * model.count_params()  # Once.
        served = tf.saved_model.load(str(path)).signatures["serving_default"]
        check_outputs(served(**{name: tf.constant(x) for name, x in inputs.items()}), wanted)
        functions = served.graph.as_graph_def().library.function
        operations = [op for f in functions for op in f.node_def]
        # Only for the CPU that trains or predicts, some operations leave oneDNN.
        assert not {"Bitcast", "BatchMatMulV3"} & {op.op for op in operations}
        calls = [op for op in operations if op.op == "XlaCallModule"]
        platforms = {tuple(op.attr["platforms"].list.s) for op in calls}
        assert platforms == ({(b"CPU", b"CUDA")} if BACKEND == "jax" else set())


def check_refusals(model, program, inputs):
    """Checks that a program fails for an id outside its table, and for too many tokens."""
    backbone = getattr(model, "backbone", model)
    sizes = {"token_ids": backbone.vocabulary_size, "segment_ids": backbone.num_segments}
    sizes["mask_positions"] = inputs["token_ids"].shape[-1]
    wrong = [
        {**inputs, name: np.where(np.arange(inputs[name].shape[-1]) == 0, id, inputs[name])}
        for name in sizes.keys() & inputs.keys()
        for id in (-1, sizes[name])
    ]
    if backbone.max_sequence_length is not None:
        number = 1 + backbone.max_sequence_length // inputs["token_ids"].shape[-1]
        wrong.append({name: np.concatenate([x] * number, axis=-1) for name, x in inputs.items()})
    for each in [*wrong, *wrong[-1:]]:  # Also where the last call failed.
        with pytest.raises(Exception, match=r"(?i)must be within|gather|scatter|bounds|guard"):
            program({name: x.astype("int32") for name, x in each.items()})


def check_outputs(found, wanted):
    wanted = wanted if isinstance(wanted, dict) else {"logits": wanted}
    assert found.keys() == wanted.keys()
    for name in wanted:
        assert_close(found[name], wanted[name], 1e-5)


# Both runtimes read these.
IN_ONNX = ("MPNet", "DeBERTa", "NomicBERT")
ELSEWHERE = {"torch": (*IN_ONNX, "MultipleChoice", "SpanBoundary")}
ELSEWHERE["jax"] = ("SpanBoundary", "NomicBERT")
NAMES = [name for name in MODELS if name not in ELSEWHERE.get(BACKEND, ())]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_gives_the_same_at_any_size(name, tmp_path):
    model = model_of(name)
    for format in OWN[BACKEND] if name == "MultipleChoice" else OWN[BACKEND][:1]:
        path = tmp_path / format / f"model{SUFFIXES[format]}"
        path.parent.mkdir()
        model.export(path, format=format, verbose=False)
        assert os.listdir(path.parent) == [path.name]
        check_program(model, path, format)


@pytest.mark.once  # On PyTorch, which writes it; the test of another process has the others.
@pytest.mark.parametrize("name", IN_ONNX)
def test_onnx_gives_the_same_to_both_runtimes(name, tmp_path, recwarn, monkeypatch):
    import onnxruntime

    model, path = model_of(name), tmp_path / "model.onnx"
    if name == "NomicBERT":  # As if a protocol buffer would become too large.
        threshold = "torch.onnx._internal.exporter._onnx_program._LARGE_MODEL_THRESHOLD"
        monkeypatch.setattr(threshold, 0)
    model.export(path, format="onnx", verbose=False)
    assert not [str(warning.message) for warning in recwarn if "onnx" in warning.filename]
    files = ["model.onnx", "model.onnx.data"] if name == "NomicBERT" else ["model.onnx"]
    assert sorted(os.listdir(tmp_path)) == files
    session = onnxruntime.InferenceSession(str(path))
    assert {value.name for value in session.get_inputs()} == {*model.input_names}
    check_program(model, path, "onnx")
    check_program(model, path, "openvino")
    if name == "DeBERTa":  # OpenVINO's two files are made from ONNX, which takes seconds to write.
        monkeypatch.setattr(formats, "_write_onnx", lambda model, to, *_: shutil.copy(path, to))
        (tmp_path / "openvino").mkdir()
        model.export(two := tmp_path / "openvino" / "model.xml", format="openvino", verbose=False)
        assert sorted(os.listdir(two.parent)) == ["model.bin", "model.xml"]
        check_program(model, two, "openvino")


def test_another_backend_writes_what_this_one_cannot(tmp_path, capsys, request):
    """PyTorch waits for the process. TensorFlow and JAX ask for the same one."""
    model, path = tiny_classifier(), tmp_path / f"model{SUFFIXES[OTHER]}"
    if BACKEND != "torch":
        jobs = request.getfixturevalue("asked_of_other_backends")
        with pytest.raises(InterruptedError):
            model.export(path, format=OTHER)
        assert jobs == [(OTHER, model, {"tensorflow": "torch", "jax": "tensorflow"}[BACKEND])]
        return
    model.export(path, format=OTHER)
    assert f"Saved {OTHER} at '{path}'" in capsys.readouterr().out
    check_program(model, path, OTHER)


@pytest.mark.once
def test_a_program_of_pytorch_is_traced_on_the_cpu(tmp_path, monkeypatch):
    """A process with an accelerator starts one without, which writes the program."""
    jobs = []
    monkeypatch.setattr(formats.kernels, "has_accelerator", lambda: True)
    monkeypatch.setattr(other_backend, "write", lambda *job: jobs.append((job[0], job[-1])))
    for name in ("onnx", "openvino"):
        formats.write(name, tiny_classifier(), str(tmp_path / "model"))
    assert jobs == [("onnx", "torch"), ("openvino", "torch")]


def test_a_program_that_cannot_be_written_is_refused_and_old_files_stay(tmp_path, monkeypatch):
    model, path = tiny_classifier(), tmp_path / f"model{SUFFIXES[OTHER]}"
    (tmp_path / "model.tflite").write_text("old")
    with pytest.raises(ValueError, match="'savedmodel'"):
        model.export(path, format="savedmodel")
    with pytest.raises(ValueError, match="tflite"):
        model.export(tmp_path / "model.xml", format="litert")
    half = tiny_classifier(tiny_backbone(dtype="mixed_bfloat16"))
    with pytest.raises(ValueError, match="mixed_bfloat16"):
        half.export(tmp_path / "model.onnx", format="onnx")
    own = type("Own", (keras.layers.Layer,), {"__module__": "__main__"})
    with pytest.raises(ValueError, match=r"\['Own'\], defined in the script"):
        other_backend.write("onnx", keras.Sequential([own()]), str(path), "torch")
    mistake = "import sys; sys.exit('warning\\nValueError: it broke')"
    monkeypatch.setattr(other_backend, "_PROGRAM", mistake)
    with pytest.raises(RuntimeError, match=r"failed: ValueError: it broke$"):
        model.export(path, format=OTHER)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install .*onnxscript openvino"):
        model.export(tmp_path / "model.xml", format="openvino")
    assert os.listdir(tmp_path) == ["model.tflite"]
    assert (tmp_path / "model.tflite").read_text() == "old"


@pytest.mark.once
def test_a_wrapper_that_trains_a_task_is_not_exported(tmp_path):
    student = bert_keras.distill(tiny_classifier(), student=(0,))
    with pytest.raises(ValueError, match=r"model\.student\.export"):
        student.export(tmp_path / "model")
