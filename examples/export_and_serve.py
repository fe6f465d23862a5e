# %% [markdown]
# # Export, and serve without this package
#
# A trained classifier becomes an ONNX file (on PyTorch) or a SavedModel (on TensorFlow and JAX).
# The tokenizer is a separate file, which the package `tokenizers` reads in several languages.
#
# ```shell
# KERAS_BACKEND=torch python examples/export_and_serve.py
# ```
#
# Expected: both sides print the same probabilities to four digits; PyTorch, less than a minute.

# %%
import argparse
import os
import sys

import keras
import numpy as np
import tokenizers

import bert_keras
from bert_keras import datasets, plots

parser = argparse.ArgumentParser()
parser.add_argument(
    "--preset", default="bert_mini_en_gutenberg", help="name, folder or hf:// address"
)
parser.add_argument("--epochs", type=int, default=1, help="passes over the training set")
parser.add_argument("--output_dir", default="output/export_and_serve", help="output folder")
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %%
keras.utils.set_random_seed(0)
train, dev = datasets.load_sentiment_sentences("examples/data/sentiment_labelled_sentences")
classifier = bert_keras.TextClassifier.from_preset(
    flags.preset, label_names=train.label_names, max_length=64
)
classifier.compile(learning_rate=2e-4)
history = classifier.fit(train.texts, train.labels, epochs=flags.epochs, verbose=2)

# %%
os.makedirs(flags.output_dir, exist_ok=True)
is_torch = keras.backend.backend() == "torch"
target = f"{flags.output_dir}/{'model.onnx' if is_torch else 'saved_model'}"
classifier.export(target, format="onnx" if is_torch else "tf_saved_model")
classifier.tokenizer.save(flags.output_dir)


# %% [markdown]
# A server only needs the tokenizer's file, a runtime, and a softmax.


# %%
def load(target):
    """Returns a function from input arrays to logits."""
    if is_torch:
        import onnxruntime

        session = onnxruntime.InferenceSession(target)
        return lambda inputs: session.run(None, inputs)[0]
    import tensorflow as tf

    loaded = tf.saved_model.load(target)
    return lambda inputs: loaded.serve(inputs)["logits"].numpy()


tokenizer = tokenizers.Tokenizer.from_file(f"{flags.output_dir}/tokenizer.json")
run = load(target)
for text in ("I would see it again.", "Never again."):
    encoded = tokenizer.encode(text)
    ids = np.array([encoded.ids], "int32")
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids), "segment_ids": ids * 0}
    odds = np.exp(run({name: inputs[name] for name in classifier.backbone.input_names})[0])
    print(text, dict(zip(train.label_names, (odds / odds.sum()).round(4).tolist(), strict=True)))
    print(" " * len(text), classifier.classify(text)["probabilities"])

# %%
plots.learning_curves(history, path=f"{flags.output_dir}/learning_curves.png")
