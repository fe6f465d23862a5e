"""Models of transformers with random weights, to compare ours with."""

import pathlib

import pytest
from checks import model_of_transformers, perturbed, transformers_outputs
from tiny import VOCABULARY


def reference_model(architecture, folder, vocabulary=VOCABULARY, **overrides):
    """Saves a BERT model of transformers and a vocabulary in a folder, and returns the model."""
    sizes = {
        "vocab_size": len(vocabulary),
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 40,
        "max_position_embeddings": 16,
        "initializer_range": 0.3,
    }
    reference = perturbed(model_of_transformers(architecture, seed=1, **{**sizes, **overrides}))
    reference.save_pretrained(folder)
    text = "\n".join(vocabulary) + "\n"
    pathlib.Path(folder, "vocab.txt").write_text(text, encoding="utf-8")
    return reference


def exported_model(task, architecture, folder):
    """Exports a task, and returns what transformers loads of it: no weight may be missing."""
    transformers = pytest.importorskip("transformers")
    task.export_to_huggingface(folder)
    architecture = getattr(transformers, architecture)
    model, info = architecture.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"] and not info["mismatched_keys"]
    # Some architectures have no pooler.
    assert all(".pooler." in f".{name}" for name in info["unexpected_keys"])
    return model.eval()


def outputs_of(reference, inputs):
    """Returns a dict of arrays: what a model of transformers computes from our inputs."""
    outputs = transformers_outputs(reference, inputs)
    return {name: tensor.numpy() for name, tensor in outputs.items()}
