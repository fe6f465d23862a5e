# %% [markdown]
# # GloVe: count first, then learn
#
# Pennington and others, [2014](https://aclanthology.org/D14-1162/). [word2vec](word2vec.py) reads one
# window after another. GloVe first counts, over the whole text, how often each pair of words occurs
# together. Then it learns vectors whose products are the logarithms of these counts:
#
# $$J = \sum_{ij} f(X_{ij}) \, (w_i \cdot \tilde w_j + b_i + \tilde b_j - \log X_{ij})^2, \qquad
#   f(x) = \min(1, (x / x_{max})^{3/4})$$
#
# Why the logarithm? Take the words *ice* and *steam*. The *ratio* of the counts of their neighbours
# distinguishes them: *solid* is near *ice* many times as often, *water* is near both. A ratio of
# counts is a difference of logarithms, and so a difference of vectors.

# %%
import collections
import gzip
import re

import keras
import numpy as np
from keras import ops

from bert_keras import plots

keras.utils.set_random_seed(0)
with gzip.open("docs/data/sherlock_holmes.txt.gz", "rt", encoding="utf-8") as file:
    words = re.findall(r"[a-z]+", file.read().lower())
vocabulary = [word for word, n in collections.Counter(words).most_common() if n >= 5]
number = {word: i for i, word in enumerate(vocabulary)}
ids = np.array([number[word] for word in words if word in number])

# %% [markdown]
# ## Counting pairs
#
# A neighbour at distance $d$ counts $1/d$. The window is ten words on each side, as in the paper.

# %%
X = np.zeros((len(vocabulary), len(vocabulary)), "float32")
for distance in range(1, 11):
    np.add.at(X, (ids[:-distance], ids[distance:]), 1 / distance)
X += X.T
rows, columns = np.nonzero(X)
print(f"{len(rows):,} of {X.size:,} pairs stand near each other: {len(rows) / X.size:.1%}")
for word in ("said", "door"):
    beside = [f"{w} {X[number['holmes'], number[w]]:.0f}" for w in (word, "the")]
    print(f"holmes beside {beside[0]} and {beside[1]} times")

# %% [markdown]
# ## Learning
#
# Each pair that occurs is one example, however often it occurs. The weight $f$ accounts for its count.


# %%
class GloVe(keras.Model):
    def __init__(self, size, dim=64):
        super().__init__()
        self.tables = [keras.layers.Embedding(size, dim) for _ in range(2)]
        self.biases = [
            keras.layers.Embedding(size, 1, embeddings_initializer="zeros") for _ in range(2)
        ]

    def call(self, pairs):
        first, second = pairs[:, :1], pairs[:, 1:]
        product = ops.sum(self.tables[0](first) * self.tables[1](second), axis=-1)
        return product + self.biases[0](first)[:, 0] + self.biases[1](second)[:, 0]


pairs = np.column_stack([rows, columns]).astype("int32")
counts = X[rows, columns]
weight = np.minimum(1, (counts / 10) ** 0.75)
model = GloVe(len(vocabulary))
model.compile(keras.optimizers.Adam(1e-2), "mean_squared_error")
history = model.fit(
    pairs, np.log(counts)[:, None], sample_weight=weight, batch_size=4096, epochs=8, verbose=0
)
print("losses", *(f"{loss:.3f}" for loss in history.history["loss"]))

# %%
plots.learning_curves(history)

# %% [markdown]
# $x_{max}$ is 10 here; the paper uses 100 on a text of six billion words. The result is the sum of both
# tables, as in the paper: they differ only in their initial values.

# %%
table = sum(np.array(layer.get_weights()[0]) for layer in model.tables)
table /= np.linalg.norm(table, axis=1, keepdims=True)
for word in ("holmes", "door", "she", "morning"):
    order = np.argsort(-(table @ table[number[word]]))[1:6]
    print(f"{word:8}", *(vocabulary[i] for i in order))
with gzip.open("docs/data/questions-words.txt.gz", "rt", encoding="utf-8") as file:
    questions = [line.lower().split() for line in file if not line.startswith(":")]
known = [[number[w] for w in q] for q in questions if all(w in number for w in q)]
right = 0
for a, b, c, d in known:
    scores = table @ (table[b] - table[a] + table[c])
    scores[[a, b, c]] = -np.inf
    right += int(scores.argmax() == d)
print(f"{right} of {len(known)} analogies")

# %% [markdown]
# On the same small text GloVe solves about as few analogies as word2vec. Levy and others (2015) found
# that the two methods perform alike if their settings are alike. Both factorise a table of
# co-occurrences: word2vec one window at a time, GloVe as a whole.
#
# ## What is left
#
# *lay* can mean *put down*, *was lying* or *not of the clergy*, but it has one row in the table.
# No table can say what a word means *in this sentence*. [ELMo](elmo.py) reads the sentence first.
