# %% [markdown]
# # ELMo: a vector for a word in its place
#
# Peters and others, [2018](https://arxiv.org/abs/1802.05365). Train a language model that reads from
# left to right, and another that reads from right to left. Then discard the predictions and keep the
# states of the layers at each word: they are the word's vector *in this sentence*. Each direction is a
# true language model that knows nothing of the other. Their states are concatenated at the end.
#
# ![Directions of ELMo, GPT and BERT](../figures/directions.svg)
#
# The paper uses two LSTM layers of 4,096 units over vectors made from characters, and a billion words.
# Here one layer has 96 units and reads the text of the other chapters. An LSTM is a loop over the
# words. JAX compiles it as a whole, so this chapter uses JAX.

# %%
import collections
import gzip
import os
import re

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import ops

keras.utils.set_random_seed(0)
with gzip.open("docs/data/sherlock_holmes.txt.gz", "rt", encoding="utf-8") as file:
    written = re.findall(r"[A-Za-z]+(?:'[a-z]+)?|[.,;!?]", file.read())
words = [word.lower() for word in written]
end = len(words) * 9 // 10
counted = collections.Counter(words[:end]).most_common()
vocabulary = ["<unk>", *(word for word, n in counted if n >= 3)]
number = {word: i for i, word in enumerate(vocabulary)}
ids = np.array([number.get(word, 0) for word in words], "int32")
LENGTH = 16
rows = ids[: len(ids) // LENGTH * LENGTH].reshape(-1, LENGTH)
num_train = end // LENGTH
print(
    f"{num_train:,} rows of {LENGTH} words to learn from, {len(rows) - num_train:,} to measure on"
)

# %% [markdown]
# ## Two language models that share their table
#
# At each position the forward model predicts the next word and the backward model the previous one.


# %%
class BidirectionalLanguageModel(keras.Model):
    def __init__(self, size, dim=96):
        super().__init__()
        self.table = keras.layers.Embedding(size, dim)
        self.forward_lstm = keras.layers.LSTM(dim, return_sequences=True)
        self.backward_lstm = keras.layers.LSTM(dim, return_sequences=True, go_backwards=True)
        self.dropout = keras.layers.Dropout(0.2)
        self.decoder = keras.layers.Dense(size)

    def states(self, ids):
        """The states of the layers at each word: the table's vector, and those of both directions."""
        vectors = self.table(ids)
        backward = ops.flip(self.backward_lstm(vectors), axis=1)
        return vectors, self.forward_lstm(vectors), backward

    def call(self, ids, training=None):
        _, forward, backward = self.states(ids)
        # The last position has no next word, the first no previous one.
        read = ops.concatenate([forward[:, :-1], backward[:, 1:]], axis=1)
        return self.decoder(self.dropout(read, training=training))


def targets(rows):
    return np.concatenate([rows[:, 1:], rows[:, :-1]], axis=1)


train, test = rows[:num_train], rows[num_train:]
model = BidirectionalLanguageModel(len(vocabulary))
model.compile(
    keras.optimizers.Adam(3e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
)
for epoch in range(4):
    model.fit(train, targets(train), batch_size=32, verbose=0)
    loss = model.evaluate(test, targets(test), batch_size=64, verbose=0)
    print(f"epoch {epoch + 1}: perplexity of both directions {np.exp(loss):.1f}")

# %% [markdown]
# Rows begin in the middle of a sentence, so their first words have hardly any context. The perplexity
# can still be compared with those of [n-grams](ngrams.py) and [NNLM](nnlm.py).
#
# ## Feature-based: the model is frozen, its states are inputs
#
# ELMo's vector is a weighted sum of the layers, $\gamma \sum_k s_k h_k$. Each task learns its own
# weights. The task here needs no human labels: **was this word written with a capital letter?** The
# models read lower case. If the word is in the vocabulary, its vector can hold the answer. If it is
# `<unk>`, only the context can tell.


# %%
class Mix(keras.layers.Layer):
    """The learned weighted sum of the layers."""

    def __init__(self, num_layers):
        super().__init__()
        self.weight = self.add_weight(shape=(num_layers,), initializer="zeros", name="weight")
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

    def call(self, layers):  # (batch, num_layers, dim)
        share = ops.exp(self.weight) / ops.sum(ops.exp(self.weight))
        return self.scale * ops.sum(share[:, None] * layers, axis=1)


is_capital = np.array([word[0].isupper() for word in written[: rows.size]]).reshape(rows.shape)
table, forward, backward = (
    ops.convert_to_numpy(ops.stop_gradient(state)) for state in model.states(rows)
)
static = np.concatenate([table, table], axis=-1)
in_context = np.concatenate([forward, backward], axis=-1)
features = np.stack([static, in_context], axis=2)
is_unknown = rows == 0


def score(features, name):
    """Accuracy of a linear layer on frozen features, on words outside the vocabulary."""
    num_layers, width = features.shape[2:]
    inputs = keras.Input((num_layers, width))
    mix = Mix(num_layers)
    outputs = keras.layers.Dense(1, activation="sigmoid")(mix(inputs))
    classifier = keras.Model(inputs, outputs)
    classifier.compile(keras.optimizers.Adam(1e-2), "binary_crossentropy")
    x, y = features[:num_train].reshape(-1, num_layers, width), is_capital[:num_train].reshape(-1)
    unknown = is_unknown[:num_train].reshape(-1)
    classifier.fit(x[unknown], y[unknown].astype("float32"), batch_size=64, epochs=10, verbose=0)
    x, y = features[num_train:], is_capital[num_train:]
    x, y = x[is_unknown[num_train:]], y[is_unknown[num_train:]]
    accuracy = np.mean((classifier.predict(x, verbose=0)[:, 0] > 0.5) == y)
    share = np.exp(mix.get_weights()[0])
    print(
        f"{name:22} {accuracy:.3f} of {len(y)}, shares of the layers",
        (share / share.sum()).round(2),
    )


rare = is_capital[num_train:][is_unknown[num_train:]]
print(f"{'always no':22} {1 - rare.mean():.3f} of {len(rare)}")
score(features[:, :, :1], "the table's vector")
score(features[:, :, 1:], "both readings")
score(features, "the mix of the layers")

# %% [markdown]
# The table has one vector for every `<unk>`, so it can only guess the more frequent answer. The states
# know the surrounding words, and the mix learns that they matter more.
#
# ## The same word in two places

# %%
spots = [(r, c) for r, c in np.argwhere(rows == number["lay"]) if 2 < c < LENGTH - 3][:6]
vectors = np.array([in_context[spot] for spot in spots])
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
for (r, c), cosine in zip(spots, vectors @ vectors[0], strict=True):
    print(f"{cosine:5.2f}  ...", *(vocabulary[i] for i in rows[r, c - 3 : c + 4]))

# %% [markdown]
# One word has a different vector in each place. With a table the cosine would be 1.00 in every line.
#
# ## What it gave the next
#
# A language model can teach every other task, and context belongs in the vector. Two limits remained:
# the directions meet only at the end, and the model stays frozen below a network that each task builds
# for itself. [GPT](gpt.py) removes the second limit, [BERT](bert.py) both.
