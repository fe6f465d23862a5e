# %% [markdown]
# # Classify texts
#
# Fine-tune a checkpoint to tell positive review sentences from negative ones. This is the first
# tutorial to try, and all others follow the same pattern.
#
# ```shell
# python examples/text_classification.py
# ```
#
# Expected: accuracy 0.894 ± 0.015 on 600 sentences; PyTorch, eight seeds, 34 seconds of one core
# each.

# %%
import os

import keras

import bert_keras
from bert_keras import datasets, plots

# %% [markdown]
# ## Data
#
# 3,000 sentences about films, products and restaurants, split so that no text occurs in both parts.
# A label is 0 or 1; `label_names` gives their names. We train on 800 sentences.

# %%
train, dev = datasets.load_sentiment_sentences("examples/data/sentiment_labelled_sentences")
train = train.take(range(800))
print(train.label_names)
for text, label in zip(train.texts[:3], train.labels[:3], strict=True):
    print(label, text)

# %% [markdown]
# ## Model
#
# `from_preset` loads the encoder and its tokenizer and adds a new head, which starts at random. The
# head uses the mean of the token vectors, because this checkpoint was trained with mean pooling.

# %%
keras.utils.set_random_seed(0)
classifier = bert_keras.TextClassifier.from_preset(
    "minilm_l6_en_uncased", label_names=train.label_names, pooling="mean", max_length=128
)

# %% [markdown]
# ## Train
#
# `compile` uses the recipe of the BERT paper: AdamW, a learning rate that rises and then falls, and
# gradients clipped to norm 1. Only the learning rate differs: a small encoder with a new head needs
# a higher one.

# %%
classifier.compile(learning_rate=2e-4)
history = classifier.fit(
    train.texts, train.labels, epochs=1, validation_data=(dev.texts, dev.labels), verbose=2
)

# %% [markdown]
# `val_accuracy` is the share of unseen sentences that the model gets right. Always guessing the
# same label would reach about one half.

# %% [markdown]
# ## Use
#
# The saved file contains the weights, the vocabulary and the label names. It loads on any backend,
# and the loaded model takes raw text.

# %%
os.makedirs("output", exist_ok=True)
classifier.save("output/text_classification.keras")
loaded = keras.models.load_model("output/text_classification.keras")
for text in ("The plot is a joy from start to finish.", "The battery died after two days."):
    print(text, loaded.classify(text))

# %% [markdown]
# The `probabilities` add up to 1, and `label` is the most probable class. The confusion matrix
# shows which label is mistaken for which.

# %%
answers = classifier.predict(dev.texts, verbose=0).argmax(axis=-1)
plots.confusion_matrix(
    dev.labels, answers, dev.label_names, path="output/text_classification/confusion_matrix.png"
)

# %% [markdown]
# ## With your own data
#
# Pass your texts and labels as lists or as columns of a table. Labels may be names:
#
# ```python
# import pandas as pd
#
# frame = pd.read_csv("reviews.csv")
# classifier = bert_keras.TextClassifier.from_preset(
#     "minilm_l6_en_uncased", label_names=sorted(frame["label"].unique())
# )
# classifier.fit(frame["review"], frame["label"])
# ```
#
# If you do not set `epochs` and a learning rate, `fit` chooses both based on the number of
# examples, and prints its choice. The command line does the same, and also reports a held-out score
# and compares it with always predicting the most frequent label:
#
# ```shell
# bert-keras train text_classification --train_file reviews.csv --columns review \
#     --label_column label
# ```
