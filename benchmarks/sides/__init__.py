"""The sides of the benchmarks: one file for each library, one function for each kind of job.

A function takes the job, a dict, and returns a function that does the job once and returns its
answer, float32, or `None` where there is nothing to compare.
"""

import importlib

# Variant -> the side it belongs to, the kinds of jobs it does, and what it adds to a job.
VARIANTS = {
    # On PyTorch, where compiling is not the default.
    "bert_keras_compiled": (
        "bert_keras",
        ("inference", "text", "fine_tuning", "pretraining"),
        {"jit_compile": True},
    ),
    # Attention by the explicit formula, and by Keras's function on each backend.
    "bert_keras_explicit": ("bert_keras", ("attention",), {"attention": "explicit"}),
    "bert_keras_fused": ("bert_keras", ("attention",), {"attention": "fused"}),
    # For jobs whose other sides use another precision. `mixed` is the policy of training.
    "bert_keras_float32": ("bert_keras", ("inference",), {"dtype": "float32"}),
    "bert_keras_mixed": ("bert_keras", ("inference",), {"dtype": "mixed_bfloat16"}),
    # Computes activations again instead of keeping them.
    "bert_keras_remat": ("bert_keras", ("train_step",), {"remat": True}),
    # Does not group by length, which is its default.
    "hugging_face_random": ("hugging_face", ("epoch",), {"sampling": "random"}),
    "hugging_face_compiled": (
        "hugging_face",
        ("fine_tuning", "pretraining"),
        {"compiled": "default"},
    ),
    # With CUDA graphs too.
    "hugging_face_graphs": (
        "hugging_face",
        ("fine_tuning", "pretraining"),
        {"compiled": "reduce-overhead"},
    ),
    # With the kernels of the package flash_attn.
    "hugging_face_flash": (
        "hugging_face",
        ("fine_tuning", "pretraining"),
        {"attention": "flash_attention_2"},
    ),
    # Preprocessing called on lists of texts, outside `tf.data`.
    "keras_hub_eager": ("keras_hub", ("arrays", "tokens"), {"eager": True}),
    # Keras's own dense layer, with the same memory settings as ours.
    "keras_layers": ("bert_keras", ("dense",), {"keras_layer": True}),
}


def find(name, job):
    """Returns the module of a side, and the job as this side or variant does it."""
    base, kinds, options = VARIANTS.get(name, (name, (job["kind"],), {}))
    side = importlib.import_module(f"sides.{base}")
    if job["kind"] not in kinds or not hasattr(side, job["kind"]):
        raise NotImplementedError(f"{name} does not do {job['kind']}")
    return side, job | options
