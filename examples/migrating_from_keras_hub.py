# %% [markdown]
# # From KerasHub
#
# KerasHub's BERT presets load without KerasHub and give the same outputs. Line by line, with
# `import bert_keras`:
#
# | KerasHub | bert_keras |
# |---|---|
# | `BertTextClassifier.from_preset(preset, num_classes=2)` | `model = bert_keras.TextClassifier.from_preset(preset, num_classes=2)` |
# | `BertTextClassifierPreprocessor.from_preset(preset)(texts)` | `model.preprocessor(texts)` |
# | `BertBackbone.from_preset(preset)` | `model.backbone` |
# | `model.compile(loss=..., optimizer=AdamW(1e-2), metrics=...)` | `model.compile(learning_rate=1e-2)` |
# | `model.fit(texts, labels, epochs=20, verbose=0)` | `model.fit(texts, labels, epochs=20, verbose=0)` |
# | `model.predict(texts)` | `model.predict(texts, verbose=0)` |
# | `softmax(model.predict(texts)).argmax(-1)` | `model.classify(texts)` |
# | `model.save_to_preset(output)` | `model.save_to_preset(output)` |
# | `keras_hub.models.TextClassifier.from_preset(output)` | `model.export_to_keras_hub(exported)` |
#
# One class serves every family: there is no `RobertaTextClassifier`. On JAX and PyTorch, raw text
# needs no TensorFlow. `keras.models.load_model` works with raw text, too.
#
# ```shell
# python examples/migrating_from_keras_hub.py
# ```
#
# Expected: vectors that differ by at most 3e-7; PyTorch, 6 seconds of one core.

# %%
import keras
import keras_hub
import numpy as np

import bert_keras
from bert_keras import plots

# %% [markdown]
# ## A preset of KerasHub
#
# It is small and random, so this page needs no download. Use the path of your own preset instead.

# %%
preset = "output/migrating_from_keras_hub/theirs"
keras.utils.set_random_seed(0)
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "bad", "film", "."]
backbone = keras_hub.models.BertBackbone(len(words), 2, 2, 32, 64, max_sequence_length=64)
tokenizer = keras_hub.models.BertTokenizer(words, lowercase=True)
preprocessor = keras_hub.models.BertTextClassifierPreprocessor(tokenizer, 16)
keras_hub.models.BertTextClassifier(backbone, 2, preprocessor).save_to_preset(preset)

# %% [markdown]
# ## Load
#
# The same ids give the same vectors, up to rounding.

# %%
theirs = keras_hub.models.BertBackbone.from_preset(preset)
model = bert_keras.TextClassifier.from_preset(preset, num_classes=2)
texts = ["a good film .", "a bad film ."]
packed = model.preprocessor(texts)
expected = theirs.predict(packed, verbose=0)["sequence_output"]
vectors = keras.ops.convert_to_numpy(model.backbone(packed)["sequence_output"])
print("largest difference", np.abs(vectors - expected).max())

# %% [markdown]
# ## Train
#
# The loss and metrics come with the task; the optimizer is the one from the BERT paper.

# %%
texts, labels = ["a good film .", "a bad film ."] * 16, [1, 0] * 16
model.compile(learning_rate=1e-2)
history = model.fit(texts, labels, epochs=20, verbose=0)
print(model.predict(texts, verbose=0)[:2])
print(model.classify(texts)[:2])

# %% [markdown]
# ## Save, and export to KerasHub

# %%
output, exported = (f"output/migrating_from_keras_hub/{name}" for name in ("ours", "back"))
model.save_to_preset(output)
model.export_to_keras_hub(exported)
back = keras_hub.models.BertTextClassifier.from_preset(exported)
print(np.abs(back.predict(texts[:2], verbose=0) - model.predict(texts[:2], verbose=0)).max())

# %%
plots.learning_curves(history, path="output/migrating_from_keras_hub/learning_curves.png")

# %% [markdown]
# ## With your own checkpoint
#
# `from_preset` takes the folder of a preset, or a handle such as `"kaggle://keras/bert/keras/..."`.
