# %% [markdown]
# # From KerasHub
#
# Presets of KerasHub's BERT can be loaded without KerasHub, and give the same numbers. Names:
# `BertTextClassifier` becomes `TextClassifier`, for every family; the preprocessor takes the same
# texts.
#
# ```shell
# python examples/migrating_from_keras_hub.py
# python examples/migrating_from_keras_hub.py --folder my_keras_hub_preset
# ```
#
# Expected: vectors that differ by at most 2e-7; PyTorch, 6 seconds of one core.

# %%
import argparse
import sys

import keras
import keras_hub
import numpy as np

import bert_keras
from bert_keras import plots

parser = argparse.ArgumentParser()
parser.add_argument(
    "--folder", default=None, help="a preset of KerasHub; by default a small random one is made"
)
parser.add_argument("--output_dir", default="output/migrating_from_keras_hub", help="output folder")
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %%
folder = flags.folder or f"{flags.output_dir}/keras_hub"
if not flags.folder:
    keras.utils.set_random_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "bad", "film", "."]
    backbone = keras_hub.models.BertBackbone(len(words), 2, 2, 32, 64, max_sequence_length=64)
    tokenizer = keras_hub.models.BertTokenizer(words, lowercase=True)
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(tokenizer, 16)
    keras_hub.models.BertTextClassifier(backbone, 2, preprocessor).save_to_preset(folder)

# %% [markdown]
# The same ids give the same vectors, up to rounding.

# %%
theirs = keras_hub.models.BertBackbone.from_preset(folder)
classifier = bert_keras.TextClassifier.from_preset(folder, num_classes=2)
packed = classifier.preprocessor(["a good film .", "a bad film ."])
expected = theirs.predict(packed, verbose=0)["sequence_output"]
vectors = keras.ops.convert_to_numpy(classifier.backbone(packed)["sequence_output"])
print("largest difference", np.abs(vectors - expected).max())

# %% [markdown]
# From here on, this is a task like any other.

# %%
classifier.compile(learning_rate=1e-3)
history = classifier.fit(["a good film .", "a bad film ."] * 16, [1, 0] * 16, epochs=10, verbose=0)
print(classifier.classify("a good film ."))

# %%
plots.learning_curves(history, path=f"{flags.output_dir}/learning_curves.png")
