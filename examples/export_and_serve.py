# %% [markdown]
# # Export, and serve without this package
#
# A trained classifier becomes an ONNX file (on PyTorch) or a SavedModel (on TensorFlow and JAX).
# The tokenizer is a separate file. The `tokenizers` library reads it in several programming
# languages.
#
# ```shell
# KERAS_BACKEND=torch python examples/export_and_serve.py
# ```
#
# Expected: the exported program and the classifier give the same probabilities to four digits;
# PyTorch, less than a minute.

# %%
import os

import keras
import numpy as np
import tokenizers

import bert_keras
from bert_keras import datasets, plots

# %% [markdown]
# ## A classifier to export

# %%
keras.utils.set_random_seed(0)
train, dev = datasets.load_sentiment_sentences("examples/data/sentiment_labelled_sentences")
classifier = bert_keras.TextClassifier.from_preset(
    "bert_mini_en_gutenberg", label_names=train.label_names, max_length=64
)
classifier.compile(learning_rate=2e-4)
history = classifier.fit(train.texts, train.labels, epochs=1, verbose=2)

# %% [markdown]
# ## Export
#
# This writes two files: the program that computes logits from token ids, and the tokenizer.

# %%
folder = "output/export_and_serve"
os.makedirs(folder, exist_ok=True)
is_torch = keras.backend.backend() == "torch"
if is_torch:
    classifier.export(f"{folder}/model.onnx", format="onnx")
else:
    classifier.export(f"{folder}/saved_model", format="tf_saved_model")
classifier.tokenizer.save(folder)
print(sorted(os.listdir(folder)))

# %% [markdown]
# ## Run it without Keras
#
# A server only needs the tokenizer file, a runtime, and a softmax.


# %%
def load():
    """Returns a function from input arrays to logits."""
    if is_torch:
        import onnxruntime

        session = onnxruntime.InferenceSession(f"{folder}/model.onnx")
        return lambda inputs: session.run(None, inputs)[0]
    import tensorflow as tf

    loaded = tf.saved_model.load(f"{folder}/saved_model")
    return lambda inputs: loaded.serve(inputs)["logits"].numpy()


tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
run = load()

# %% [markdown]
# ## Compare
#
# The first line of each pair comes from the exported program, the second from the classifier.

# %%
for text in ("I would see it again.", "Never again."):
    encoded = tokenizer.encode(text)
    ids = np.array([encoded.ids], "int32")
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids), "segment_ids": ids * 0}
    odds = np.exp(run({name: inputs[name] for name in classifier.backbone.input_names})[0])
    print(text, dict(zip(train.label_names, (odds / odds.sum()).round(4).tolist(), strict=True)))
    print(" " * len(text), classifier.classify(text)["probabilities"])

# %%
plots.learning_curves(history, path="output/export_and_serve/learning_curves.png")

# %% [markdown]
# ## With your own model
#
# Every trained task has `export`. If the path is a folder instead of a file,
# `classifier.export(folder, format="onnx")` also writes a runtime that takes text: see
# [export](../docs/export.md). To serve a model over HTTP, with a web page to try it, use
# `bert-keras serve`: see [serving](../docs/serving.md).
