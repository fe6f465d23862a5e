# %% [markdown]
# # Five lines
#
# Load a checkpoint, train it on raw text, and classify new text. The 320 sentences from reviews
# below are part of the repository. They are enough to show that it works. For a real task, use a
# few thousand.

# %%
import bert_keras

train, _ = bert_keras.datasets.load_sentiment_sentences(
    "examples/data/sentiment_labelled_sentences"
)
texts, labels = train.texts[:320], train.labels[:320]

classifier = bert_keras.TextClassifier.from_preset(
    "minilm_l6_en_uncased", label_names=train.label_names
)
classifier.fit(texts, labels, verbose=2)
classifier.classify(["A joy from start to finish.", "It broke after two days."])

# %% [markdown]
# What happened in `fit`:
#
# 1. The preprocessor cut the texts into word pieces, put `[CLS]` and `[SEP]` around them, and batched texts of
#    similar length.
# 2. Labels given as names are converted to numbers; here they are numbers already.
# 3. AdamW trained every weight of the encoder and the head. The learning rate rose over the first tenth
#    of the steps and then fell to 0. This is the recipe of the BERT paper.
# 4. The paper's three epochs would be too short for so few texts, so `fit` trained longer. The
#    first line of its output says how long: see [few examples](../guides/few_examples.md).
#    `fit(epochs=...)` and `compile(learning_rate=...)` change this.
#
# Table columns need no conversion: `classifier.fit(df["review"], df["stars"])` trains on a pandas
# DataFrame, and `classifier.classify(df["review"])` returns a list with one answer for each row.
#
# The model itself takes a dict of integer arrays. For a pair of texts, the preprocessor returns:

# %%
inputs = classifier.preprocessor((["A film."], ["A good one."]))
print(classifier.tokenizer.encode("A film.", "A good one.").pieces)
for name, array in inputs.items():
    print(name, array.tolist())

# %% [markdown]
# The new head uses the mean of the token vectors, because this checkpoint was trained with mean
# pooling. With one of Google's BERT checkpoints, it would use the pooler: a dense layer on the
# vector of `[CLS]`. `from_preset(..., pooling=...)` overrides this choice.
#
# ## Save it
#
# The file contains the weights, the vocabulary and the label names. It loads on any backend.

# %%
import os
import tempfile

import keras

with tempfile.TemporaryDirectory() as folder:
    classifier.save(os.path.join(folder, "sentiment.keras"))
    again = keras.models.load_model(os.path.join(folder, "sentiment.keras"))
again.classify("What a waste of an evening.")

# %% [markdown]
# Next: [pick a task](pick_a_task.md), or read a [tutorial](../tutorials/index.md).
