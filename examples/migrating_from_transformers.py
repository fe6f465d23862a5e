# %% [markdown]
# # From transformers and back
#
# A folder written by `save_pretrained` is loaded with its head and labels, gives the same numbers,
# trains on any backend, and can be exported back. Names: `AutoModelForSequenceClassification`
# becomes `TextClassifier`, which includes `AutoTokenizer` and `pipeline`; `Trainer` becomes
# `compile` and `fit`.
#
# ```shell
# python examples/migrating_from_transformers.py
# python examples/migrating_from_transformers.py --folder my_finetuned_model
# ```
#
# Expected: logits that differ by at most 6e-6, and `positive` 0.964 on both sides after training;
# PyTorch, 7 seconds of one core.

# %%
import argparse
import os
import sys

import numpy as np
import transformers

import bert_keras
from bert_keras import plots

parser = argparse.ArgumentParser()
parser.add_argument(
    "--folder",
    default=None,
    help="written by save_pretrained; by default a small random model is made",
)
parser.add_argument(
    "--output_dir", default="output/migrating_from_transformers", help="output folder"
)
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %%
folder = flags.folder or f"{flags.output_dir}/transformers"
if not flags.folder:
    transformers.set_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "bad", "film", "."]
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/vocab.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(words))
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 64, "initializer_range": 0.5, "vocab_size": len(words)}
    config = transformers.BertConfig(id2label={0: "negative", 1: "positive"}, **sizes)
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    transformers.BertTokenizerFast(f"{folder}/vocab.txt").save_pretrained(folder)

# %% [markdown]
# The same text gives the same logits, up to rounding.

# %%
text = "a good film ."
tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
theirs = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
expected = theirs(**tokenizer(text, return_tensors="pt")).logits.detach().numpy()
classifier = bert_keras.TextClassifier.from_preset(folder)
logits = classifier.predict([text], verbose=0)
print("largest difference", np.abs(logits - expected).max(), classifier.classify(text))

# %% [markdown]
# Train it here, then export it: transformers loads the new folder.

# %%
texts, labels = [text, "a bad film ."] * 16, ["positive", "negative"] * 16
classifier.compile(learning_rate=1e-3)
history = classifier.fit(texts, labels, epochs=10, verbose=0)
classifier.export_to_huggingface(f"{flags.output_dir}/back")
back = transformers.pipeline("text-classification", f"{flags.output_dir}/back")
print(back(text), classifier.classify(text))

# %%
plots.learning_curves(history, path=f"{flags.output_dir}/learning_curves.png")
