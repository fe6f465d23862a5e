# %% [markdown]
# # GPT: a Transformer that reads to the right
#
# Radford and others, [2018](https://openai.com/index/language-unsupervised/). GPT differs from
# [ELMo](elmo.py) in two ways. Blocks of **self-attention** replace the LSTM. And the pre-trained model
# is not frozen: all of it is fine-tuned, with a new head.
#
# ![The block](../figures/encoder_block.svg)
#
# In self-attention each position attends to all others: $\text{softmax}(QK^\top / \sqrt{d}) V$. A
# language model must not see the word that it predicts, so GPT masks everything to the right of each
# position. `causal=True` below is the only difference between GPT's block and BERT's.

# %%
import collections
import gzip
import re

import keras
import numpy as np
from keras import ops

keras.utils.set_random_seed(0)
with gzip.open("docs/data/sherlock_holmes.txt.gz", "rt", encoding="utf-8") as file:
    words = re.findall(r"[a-z]+(?:'[a-z]+)?|[.,;!?]", file.read().lower())
end = len(words) * 9 // 10
counted = collections.Counter(words[:end]).most_common()
vocabulary = ["<unk>", *(word for word, n in counted if n >= 3)]
number = {word: i for i, word in enumerate(vocabulary)}
ids = np.array([number.get(word, 0) for word in words], "int32")
LENGTH = 32
rows = ids[: (len(ids) - 1) // LENGTH * LENGTH + 1]
inputs, targets = rows[:-1].reshape(-1, LENGTH), rows[1:].reshape(-1, LENGTH)
num_train = end // LENGTH


# %%
class Block(keras.layers.Layer):
    """Attention, then a feed-forward network. Each is added to its input and normalised."""

    def __init__(self, dim, num_heads, causal):
        super().__init__()
        self.causal = causal
        self.attention = keras.layers.MultiHeadAttention(num_heads, dim // num_heads, dropout=0.1)
        self.wide = keras.layers.Dense(4 * dim, activation="gelu")
        self.narrow = keras.layers.Dense(dim)
        self.norms = [keras.layers.LayerNormalization() for _ in range(2)]
        self.dropout = keras.layers.Dropout(0.1)

    def call(self, x, training=None):
        attended = self.attention(x, x, use_causal_mask=self.causal, training=training)
        x = self.norms[0](x + self.dropout(attended, training=training))
        return self.norms[1](x + self.dropout(self.narrow(self.wide(x)), training=training))


class LanguageModel(keras.Model):
    """Learned positions, blocks, and the word table as the decoder too."""

    def __init__(self, size, dim=96, num_layers=2, num_heads=4, causal=True):
        super().__init__()
        self.words = keras.layers.ReversibleEmbedding(size, dim)
        self.positions = keras.layers.Embedding(LENGTH, dim)
        self.blocks = [Block(dim, num_heads, causal) for _ in range(num_layers)]

    def call(self, ids, training=None):
        x = self.words(ids) + self.positions(ops.arange(ops.shape(ids)[1]))
        for block in self.blocks:
            x = block(x, training=training)
        return self.words(x, reverse=True)


def trained(causal, epochs):
    model = LanguageModel(len(vocabulary), causal=causal)
    model.compile(
        keras.optimizers.Adam(2e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    for epoch in range(epochs):
        model.fit(inputs[:num_train], targets[:num_train], batch_size=16, verbose=0)
        loss = model.evaluate(inputs[num_train:], targets[num_train:], verbose=0)
        print(f"causal={causal}, epoch {epoch + 1}: perplexity {np.exp(loss):.1f}")
    return model


gpt = trained(causal=True, epochs=2)

# %% [markdown]
# ## Without the mask
#
# The same model with `causal=False`. Its perplexity looks excellent, but the model cheats: the position
# of each word also reads the next word, which is the answer. In the second epoch the blocks have
# learned to copy it.

# %%
cheat = trained(causal=False, epochs=2)

# %% [markdown]
# So a model that reads both directions cannot be trained to predict the next word. BERT's masks solve
# this problem.
#
# ## Writing
#
# The model produces one word at a time and reads it in the next step.

# %%
random = np.random.default_rng(2)
written = [number[word] for word in ["it", "was", "a"]]
while len(written) < 25:
    logits = ops.convert_to_numpy(gpt(np.array([written], "int32")))[0, -1].astype(float)
    logits[0] = -np.inf  # No <unk>.
    p = np.exp((logits - logits.max()) / 0.8)
    written.append(int(random.choice(len(p), p=p / p.sum())))
print(" ".join(vocabulary[i] for i in written))

# %% [markdown]
# ## Why it cannot fill a mask
#
# Two sentences differ only after the gap. What GPT predicts at the gap cannot depend on words after
# it, so its predictions are equal to the last digit. With `causal=False` they differ.


# %%
def at_the_hole(model, sentence):
    words = sentence.split()
    hole = words.index("___")
    row = np.array([[number.get(word, 0) for word in words]], "int32")
    return ops.convert_to_numpy(model(row))[0, hole - 1]


one = "he opened the ___ and went into the street ."
other = "he opened the ___ and read it to us ."
for name, model in (("causal=True", gpt), ("causal=False", cheat)):
    difference = np.abs(at_the_hole(model, one) - at_the_hole(model, other)).max()
    print(f"{name:13} largest difference of the logits {difference:.6f}")

# %% [markdown]
# There is a workaround: put every word of the vocabulary into the gap and let the model score each
# whole sentence. That takes one pass for each word and each gap. BERT needs one pass for all.

# %%
candidates = ["door", "letter", "window", "paper", "house", "note"]
for sentence in (one, other):
    scores = {}
    for word in candidates:
        row = [number[w] for w in sentence.replace("___", word).split()]
        log_p = ops.convert_to_numpy(ops.log_softmax(gpt(np.array([row[:-1]], "int32"))))[0]
        scores[word] = log_p[np.arange(len(row) - 1), row[1:]].sum()
    print(*(f"{word} {scores[word]:.1f}" for word in sorted(scores, key=scores.get, reverse=True)))

# %% [markdown]
# ## What it gave the next
#
# BERT adopted everything: the block, the tied decoder, the learned positions, and fine-tuning of the
# whole model with one new layer. It removed one thing, the causal mask.
