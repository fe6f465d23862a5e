# %% [markdown]
# # NNLM: words become vectors
#
# Bengio and others, 2003: [A neural probabilistic language model](https://www.jmlr.org/papers/v3/bengio03a.html).
# Each word has a row of a table, a **vector** that is learned. A small network reads the vectors of the
# last words and predicts the next one. If `inspector` and `detective` get similar vectors, the model
# applies what it learns about one to the other, even in sentences that it has never seen.
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
# An example is three words and the word that follows.

# %%
windows = np.lib.stride_tricks.sliding_window_view(ids, 4)
train, test = windows[: end - 3], windows[end:]
print(" ".join(vocabulary[i] for i in train[1000, :3]), "->", vocabulary[train[1000, 3]])

# %% [markdown]
# ## The model
#
# This is the paper's model without its direct connection from words to output. It looks up the
# vectors, concatenates them, and applies a hidden layer with tanh and a softmax over the vocabulary.

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
# On the same test words [n-grams](ngrams.py) have a perplexity of 96, and this model has 93. The paper
# had larger texts and a larger gain. It found that the average of both models beats either.
#
# ## Where the time goes

# %%
for layer in model.layers:
    print(f"{layer.name:10} {layer.count_params():8,} weights")

# %% [markdown]
# Each prediction multiplies by the last matrix, which has a row for every word of the vocabulary. Here
# that is a few thousand rows; in a real text it is a hundred thousand or more. The next chapter
# avoids this product.
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
# Frequent words have sensible neighbours: pronouns, verbs in the past tense. Rare words were seen too
# rarely.
#
# ## What it gave the next
#
# The vectors are a by-product here, but later they became the main result. If you want only the
# vectors, most of this model is unnecessary: [word2vec](word2vec.py).
