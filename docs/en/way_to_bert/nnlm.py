# %% [markdown]
# # NNLM: words become vectors
#
# Bengio and others, 2003: [A neural probabilistic language model](https://www.jmlr.org/papers/v3/bengio03a.html).
# Each word gets a row of a table, a **vector** that is learned. A small network reads the vectors of
# the last words and predicts the next one. If `inspector` and `detective` come to have similar
# vectors, then what is learned of the one holds for the other: also in sentences never seen.
#
# ![NNLM](../figures/nnlm.svg)

# %%
import collections
import gzip
import re

import keras
import numpy as np

keras.utils.set_random_seed(0)
with gzip.open("docs/data/sherlock_holmes.txt.gz", "rt", encoding="utf-8") as file:
    words = re.findall(r"[a-z]+(?:'[a-z]+)?|[.,;!?]", file.read().lower())
end = len(words) * 9 // 10
counted = collections.Counter(words[:end]).most_common()
vocabulary = ["<unk>", *(word for word, n in counted if n >= 3)]
number = {word: i for i, word in enumerate(vocabulary)}
ids = np.array([number.get(word, 0) for word in words], "int32")

# %% [markdown]
# An example is three words and the one that follows.

# %%
windows = np.lib.stride_tricks.sliding_window_view(ids, 4)
train, test = windows[: end - 3], windows[end:]
print(" ".join(vocabulary[i] for i in train[1000, :3]), "->", vocabulary[train[1000, 3]])

# %% [markdown]
# ## The model
#
# The paper's, without its direct connection from words to output: look up, concatenate, one hidden
# layer with tanh, a softmax over the vocabulary.

# %%
model = keras.Sequential(
    [
        keras.Input((3,), dtype="int32"),
        keras.layers.Embedding(len(vocabulary), 64, name="vectors"),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="tanh"),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(len(vocabulary)),
    ]
)
model.compile(
    keras.optimizers.Adam(2e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
)
for epoch in range(3):
    model.fit(train[:, :3], train[:, 3], batch_size=256, verbose=0)
    loss = model.evaluate(test[:, :3], test[:, 3], batch_size=1024, verbose=0)
    print(f"epoch {epoch + 1}: perplexity {np.exp(loss):.1f}")

# %% [markdown]
# Compare it with the table of [n-grams](ngrams.py), on the same test words: 93 here against their 96. The
# paper had larger texts and a larger gain, and found that the mean of both models beats either.
#
# ## Where the time goes

# %%
for layer in model.layers:
    print(f"{layer.name:10} {layer.count_params():8,} weights")

# %% [markdown]
# Each prediction multiplies with the last matrix, a row for every word of the vocabulary. Here they
# are some thousand; in a real text a hundred thousand and more. That is what the next chapter is about.
#
# ## What the vectors have learned


# %%
def nearest(word, table, n=5):
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    order = np.argsort(-(unit @ unit[number[word]]))
    return [vocabulary[i] for i in order[1 : n + 1]]


table = np.array(model.get_layer("vectors").get_weights()[0])
for word in ("he", "was", "holmes", "two", "my"):
    print(f"{word:8}", *nearest(word, table))

# %% [markdown]
# Frequent words find their like: pronouns, verbs in the past. Rare words have been met too seldom.
#
# ## What it gave the next
#
# The vectors are a by-product here, and turned out to be the main thing. If they are all that one
# wants, much of this model can go: [word2vec](word2vec.py).
