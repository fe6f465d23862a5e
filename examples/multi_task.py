# %% [markdown]
# # Two heads on one backbone, trained together
#
# For each sentence from a review, one head predicts whether it is positive, and the other which
# website it comes from. The encoder runs once for both.
#
# ```shell
# python examples/multi_task.py
# ```
#
# Expected after one epoch: accuracy 0.599 ± 0.007 for the sentiment and 0.543 ± 0.008 for the site
# (chance is 0.500 and 0.333); PyTorch, three seeds, 25 seconds of one core each.

# %%
import csv

import keras
import numpy as np
import pandas
from keras import layers

import bert_keras
from bert_keras import datasets, plots

# %% [markdown]
# ## Data
#
# 3,000 sentences from three files. A fifth is held out; no text occurs in both parts.

# %%
SITES = {"amazon": "amazon_cells_labelled", "imdb": "imdb_labelled", "yelp": "yelp_labelled"}
texts, sentiments, sites = [], [], []
for number, file in enumerate(SITES.values()):
    path = f"examples/data/sentiment_labelled_sentences/{file}.txt"
    table = pandas.read_csv(path, sep="\t", header=None, quoting=csv.QUOTE_NONE)
    texts += table[0].tolist()
    sentiments += table[1].tolist()
    sites += [number] * len(table[0])
kept, held_out = datasets.split_indices(texts, 0.2, strata=sites)
labels = {"sentiment": np.array(sentiments), "site": np.array(sites)}

# %% [markdown]
# ## Model
#
# Both heads use the vector of the first token. Keras adds up the losses; you can weight them with
# `loss_weights`.

# %%
keras.utils.set_random_seed(0)
task = bert_keras.TextEmbedder.from_preset("bert_mini_en_gutenberg", max_length=48)
backbone, preprocessor = task.backbone, task.preprocessor
inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in backbone.input_names}
first = layers.Dropout(0.1)(backbone(inputs)["sequence_output"][:, 0])
heads = {"sentiment": layers.Dense(2)(first), "site": layers.Dense(3)(first)}
model = keras.Model(inputs, heads)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(
    bert_keras.AdamW(2e-4, weight_decay=0.01),
    loss=dict.fromkeys(heads, loss),
    metrics={name: ["accuracy"] for name in heads},
)

# %% [markdown]
# ## Train
#
# Labels are a dict with the names of the heads as keys. The metrics that `fit` prints use the same
# names.


# %%
def batch_of(rows):
    """Returns the inputs and labels of these rows."""
    inputs = preprocessor([texts[row] for row in rows])
    return inputs, {name: values[rows] for name, values in labels.items()}


history = model.fit(*batch_of(kept), epochs=1, validation_data=batch_of(held_out), verbose=2)

# %% [markdown]
# ## Use

# %%
logits = model.predict(preprocessor(["The soup was cold.", "Great phone."]), verbose=0)
for sentiment, site in zip(logits["sentiment"], logits["site"], strict=True):
    print(("negative", "positive")[sentiment.argmax()], list(SITES)[site.argmax()])

# %%
plots.learning_curves(history, path="output/multi_task/learning_curves.png")

# %% [markdown]
# ## With your own data
#
# For each kind of label, such as the intent and the sentiment of a customer's message, add a head
# of the right width and an entry in `labels`. If an example lacks one of the labels, set its weight
# to 0 in `sample_weight`.
