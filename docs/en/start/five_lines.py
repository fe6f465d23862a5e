# %% [markdown]
# # Five lines
#
# A checkpoint, raw text, BERT's recipe, an answer. The 320 sentences of reviews below are part of the
# repository. They are enough to see that it works. For a real task, use a few thousand.

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
# 2. Labels given as names would have become numbers; these are numbers already.
# 3. Every weight was trained, encoder and head, by AdamW, with a rate that rises over the first tenth
#    of the steps and falls to 0 afterwards: the recipe of the BERT paper. With so few texts, its three
#    epochs would be too short, so there were more, and the first line says so:
#    [few examples](../guides/few_examples.md). `fit(epochs=...)` and `compile(learning_rate=...)` change it.
#
# Columns of a table need no conversion: `classifier.fit(df["review"], df["stars"])` learns from a pandas
# DataFrame, and `classifier.classify(df["review"])` returns a list with one answer for each row.
#
# The model itself takes a dict of integer arrays. This is what the preprocessor makes from a pair of texts:

# %%
inputs = classifier.preprocessor((["A film."], ["A good one."]))
print(classifier.tokenizer.encode("A film.", "A good one.").pieces)
for name, array in inputs.items():
    print(name, array.tolist())

# %% [markdown]
# The new head reads the mean of the token vectors, because this checkpoint was trained with it. With a
# checkpoint of the BERT paper it reads the pooler. `from_preset(..., pooling=...)` chooses another.
#
# ## Save it
#
# The file holds the weights, the vocabulary and the names of the labels. It loads on any backend.

# %%
import os
import tempfile

import keras

with tempfile.TemporaryDirectory() as folder:
    classifier.save(os.path.join(folder, "sentiment.keras"))
    again = keras.models.load_model(os.path.join(folder, "sentiment.keras"))
again.classify("What a waste of an evening.")

# %% [markdown]
# Next: [pick a task](pick_a_task.md), or see a [whole tutorial](../tutorials/index.md).
