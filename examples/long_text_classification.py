# %% [markdown]
# # Classify documents that are longer than the model's input
#
# There are two ways to classify a long document: truncate it, or read it in windows and combine
# their outputs.
#
# ```shell
# python examples/long_text_classification.py
# ```
#
# Expected: accuracy 0.955 and 1.000 with the beginning only, 1.000 both times with six windows, on
# 44 passages; PyTorch, two runs, a minute and a half of one core each.

# %%
import os

import keras

import bert_keras
from bert_keras import corpora, datasets, plots

# %% [markdown]
# ## Data
#
# The first 88 passages of 300 words from each of two novels. The label is the book. A quarter is
# held out.

# %%
texts, labels = [], []
for label, book in enumerate(("alice", "tom_sawyer")):
    (document,) = corpora.read_documents(f"examples/data/books/{book}.txt.gz")
    words = " ".join(document).split()
    passages = [" ".join(words[start : start + 300]) for start in range(0, 88 * 300, 300)]
    texts += passages
    labels += [label] * len(passages)
examples = datasets.LabelledTexts(texts, keras.ops.convert_to_numpy(labels), ("Alice", "Tom"))
train, dev = datasets.split_examples(examples, 0.25)
print(len(train), "documents to train on,", len(dev), "to measure on")

# %% [markdown]
# ## The beginning
#
# `truncation="head"` keeps the first 64 tokens. This costs nothing and is often enough: many texts
# state early what they are about.

# %%
keras.utils.set_random_seed(0)
classifier = bert_keras.TextClassifier.from_preset(
    "bert_mini_en_gutenberg", label_names=train.label_names, max_length=64, truncation="head"
)
classifier.compile(learning_rate=2e-4)
classifier.fit(train.texts, train.labels, batch_size=16, epochs=3, verbose=0)
print(classifier.evaluate(dev.texts, dev.labels, verbose=0, return_dict=True))

# %% [markdown]
# ## Windows
#
# The classifier reads up to six windows of 64 tokens each, and takes the mean of their vectors. Six
# windows take six times as long.

# %%
keras.utils.set_random_seed(0)
classifier = bert_keras.LongTextClassifier.from_preset(
    "bert_mini_en_gutenberg",
    label_names=train.label_names,
    max_length=64,
    num_windows=6,
)
classifier.compile(learning_rate=2e-4)
classifier.fit(train.texts, train.labels, batch_size=16, epochs=3, verbose=0)
print(classifier.evaluate(dev.texts, dev.labels, verbose=0, return_dict=True))

# %% [markdown]
# ## Use

# %%
os.makedirs("output", exist_ok=True)
classifier.save("output/long_text_classification.keras")
loaded = keras.models.load_model("output/long_text_classification.keras")
print(loaded.classify(dev.texts[0]), dev.label_names[dev.labels[0]])

# %%
answers = classifier.predict(dev.texts, verbose=0).argmax(axis=-1)
plots.confusion_matrix(
    dev.labels,
    answers,
    dev.label_names,
    path="output/long_text_classification/confusion_matrix.png",
)

# %% [markdown]
# ## With your own data
#
# Texts and labels have the same format as in [text classification](text_classification.py). Measure
# the lengths of your documents first: if 95 % fit into 512 tokens, truncate the rest. Otherwise
# compare both methods on your data, as here. [Long texts](../docs/en/guides/long_texts.md) shows
# how to choose.
