# %% [markdown]
# # word2vec: only the vectors
#
# Mikolov and others, 2013: [one paper](https://arxiv.org/abs/1301.3781) and
# [another](https://arxiv.org/abs/1310.4546). Two cuts made [NNLM](nnlm.py) a thousand times faster.
#
# 1. **No hidden layer.** Context and word meet in one product of vectors. In **CBOW** the mean of the
#    words around predicts the middle one; in **skip-gram** the middle one predicts each around it.
# 2. **No full softmax.** A few yes-or-no questions take the place of a choice among all words.
#
# ![CBOW and skip-gram](../figures/cbow_skip_gram.svg)

# %%
import collections
import gzip
import heapq
import re

import keras
import numpy as np
from keras import ops

keras.utils.set_random_seed(0)
random = np.random.default_rng(0)
with gzip.open("docs/data/sherlock_holmes.txt.gz", "rt", encoding="utf-8") as file:
    words = re.findall(r"[a-z]+", file.read().lower())
counted = [(word, n) for word, n in collections.Counter(words).most_common() if n >= 5]
vocabulary = [word for word, _ in counted]
counts = np.array([n for _, n in counted], float)
number = {word: i for i, word in enumerate(vocabulary)}
ids = np.array([number[word] for word in words if word in number], "int32")
print(f"{len(ids):,} words, {len(vocabulary):,} different")

# %% [markdown]
# Frequent words say little about their neighbours: *the* stands beside everything. They are dropped
# at random, the more often the more frequent they are (section 2.3 of the second paper; 1e-3 rather
# than its 1e-5, for so small a text).

# %%
share = counts / counts.sum()
keep = np.minimum(1, np.sqrt(1e-3 / share) + 1e-3 / share)
kept = ids[random.random(len(ids)) < keep[ids]]
print(f"{len(kept):,} left; 'the' is kept with probability {keep[number['the']]:.2f}")
WINDOW = 4
around = np.lib.stride_tricks.sliding_window_view(kept, 2 * WINDOW + 1)
middle, context = around[:, WINDOW], np.delete(around, WINDOW, axis=1)

# %% [markdown]
# ## One model for four methods
#
# All of them look up the input's vectors, take their mean, and multiply it with some rows of a second
# table: the *questions*. They differ in what the input is, and which rows are asked with which answers.


# %%
class Word2Vec(keras.Model):
    def __init__(self, num_questions, dim=64):
        super().__init__()
        self.vectors = keras.layers.Embedding(len(vocabulary), dim)
        self.questions = keras.layers.Embedding(num_questions, dim, embeddings_initializer="zeros")

    def call(self, inputs):
        given = ops.mean(self.vectors(inputs["given"]), axis=1, keepdims=True)
        return ops.sum(given * self.questions(inputs["asked"]), axis=-1)


def answers_loss(answers, logits):
    """Binary cross-entropy, summed over the questions; the answer -1 counts nothing."""
    losses = ops.maximum(logits, 0) - logits * answers + ops.log1p(ops.exp(-ops.abs(logits)))
    return ops.sum(ops.where(answers < 0, 0.0, losses), axis=-1)


def trained(given, asked, answers, num_questions, epochs=3):
    model = Word2Vec(num_questions)
    model.compile(keras.optimizers.Adam(5e-3), answers_loss)
    inputs = {"given": given, "asked": asked}
    history = model.fit(inputs, answers, batch_size=512, epochs=epochs, verbose=0)
    losses = " ".join(f"{loss:.2f}" for loss in history.history["loss"])
    return np.array(model.vectors.get_weights()[0]), losses


# %% [markdown]
# ### Negative sampling
#
# "Is this word from here?" is asked of the true word, and of five drawn at random, with probabilities
# as their counts to the power of 3/4.


# %%
def with_negatives(target, k=5):
    drawn = random.choice(len(vocabulary), (len(target), k), p=counts**0.75 / sum(counts**0.75))
    asked = np.column_stack([target, drawn]).astype("int32")
    return asked, np.tile(np.array([1.0] + [0.0] * k, "float32"), (len(target), 1))


vectors = {}
pairs = random.permutation(len(middle) * 2 * WINDOW)[: 3 * len(middle)]
centre, neighbour = np.repeat(middle, 2 * WINDOW)[pairs], context.reshape(-1)[pairs]
vectors["skip-gram, negatives"], losses = trained(
    centre[:, None], *with_negatives(neighbour), len(vocabulary)
)
print("skip-gram", losses)
vectors["CBOW, negatives"], losses = trained(context, *with_negatives(middle), len(vocabulary), 9)
print("CBOW     ", losses)

# %% [markdown]
# Skip-gram could learn from all eight neighbours of each word; three of them keep this page short.
#
# ### Hierarchical softmax
#
# The words are the leaves of a binary tree; to name one is to answer "left or right?" at each node on
# the way down. In a **Huffman tree** frequent words are near the root, so the mean way is short.

# %%
heap = [(n, i) for i, n in enumerate(counts)]
heapq.heapify(heap)
parent = {}
for node in range(len(vocabulary), 2 * len(vocabulary) - 1):
    (n, left), (m, right) = heapq.heappop(heap), heapq.heappop(heap)
    parent[left], parent[right] = (node, 0.0), (node, 1.0)
    heapq.heappush(heap, (n + m, node))


def way(word):
    """The nodes above a word, and at which side of each it lies."""
    while word in parent:
        word, side = parent[word]
        yield word - len(vocabulary), side


ways = [list(way(i)) for i in range(len(vocabulary))]
deepest = max(map(len, ways))
nodes = np.zeros((len(vocabulary), deepest), "int32")
sides = np.full((len(vocabulary), deepest), -1, "float32")
for i, steps in enumerate(ways):
    nodes[i, : len(steps)], sides[i, : len(steps)] = zip(*steps, strict=True)
mean_length = sum(len(steps) * p for steps, p in zip(ways, share, strict=True))
print("".join(str(int(side)) for _, side in reversed(ways[number["the"]])), "is the way to 'the'")
print(f"mean way {mean_length:.1f}, longest {deepest}")
vectors["CBOW, hierarchical"], losses = trained(
    context, nodes[middle], sides[middle], len(vocabulary) - 1, 9
)
print("CBOW     ", losses)

# %% [markdown]
# ### Adaptive softmax
#
# Grave and others, [2016](https://arxiv.org/abs/1609.04309): a choice, but in two steps. The head
# chooses among the most frequent words and one entry "some other word"; only then a second softmax
# chooses among the rest, from vectors a quarter as wide. Unlike negative sampling it gives true
# probabilities, so language models use it.


# %%
class AdaptiveSoftmax(keras.Model):
    def __init__(self, num_frequent, dim=64):
        super().__init__()
        self.num_frequent = num_frequent
        self.vectors = keras.layers.Embedding(len(vocabulary), dim)
        self.head = keras.layers.Dense(num_frequent + 1)
        self.narrow = keras.layers.Dense(dim // 4, use_bias=False)
        self.tail = keras.layers.Dense(len(vocabulary) - num_frequent)

    def call(self, inputs):
        given = ops.mean(self.vectors(inputs), axis=1)
        head = ops.log_softmax(self.head(given))
        tail = ops.log_softmax(self.tail(self.narrow(given)))
        return ops.concatenate([head[:, :-1], head[:, -1:] + tail], axis=-1)


NUM_FREQUENT = 300
adaptive = AdaptiveSoftmax(NUM_FREQUENT)
adaptive.compile(
    keras.optimizers.Adam(5e-3),
    lambda y, log_p: -ops.take_along_axis(log_p, ops.cast(y, "int32")[:, None], axis=1),
)
losses = adaptive.fit(context, middle, batch_size=512, epochs=3, verbose=0).history["loss"]
vectors["CBOW, adaptive"] = np.array(adaptive.vectors.get_weights()[0])
total = ops.convert_to_numpy(ops.sum(ops.exp(adaptive(context[:1]))))
print("losses", *(f"{loss:.2f}" for loss in losses), f"- probabilities sum to {total:.4f}")

# %% [markdown]
# For clarity it computes the tail for every row; a fast one does so only for the rows that need it.
#
# ### What a word costs
#
# Multiplications for one prediction with vectors of 64, on this text and, where only the sizes count,
# on a vocabulary of 100,000:

# %%
rare = 1 - share[:NUM_FREQUENT].sum()
tail = 64 * 16 + 16 * (len(vocabulary) - NUM_FREQUENT)
print(f"full softmax        {64 * len(vocabulary):9,.0f}    {64 * 100_000:9,}")
print(f"adaptive softmax    {64 * (NUM_FREQUENT + 1) + rare * tail:9,.0f}")
print(f"hierarchical        {64 * mean_length:9,.0f}")
print(f"5 negatives         {64 * 6:9,}    {64 * 6:9,}")

# %% [markdown]
# ## Are the vectors any good?
#
# **Neighbours**, by the cosine:


# %%
def unit(table):
    return table / np.linalg.norm(table, axis=1, keepdims=True)


for name, table in vectors.items():
    table = unit(table)
    print(name)
    for word in ("holmes", "door", "she", "morning"):
        order = np.argsort(-(table @ table[number[word]]))[1:6]
        print(f"   {word:8}", *(vocabulary[i] for i in order))

# %% [markdown]
# **Analogies**: *man* is to *woman* as *king* to ...? The word nearest to king - man + woman, the three
# given ones left out. The authors' test has 19,544 of them in 14 sections.

# %%
with gzip.open("docs/data/questions-words.txt.gz", "rt", encoding="utf-8") as file:
    questions = [line.lower().split() for line in file if not line.startswith(":")]


def analogies(table, number, questions, seed=0):
    """Returns (how many of the questions could be asked, how many of them were answered right)."""
    known = np.array([[number[w] for w in q] for q in questions if all(w in number for w in q)])
    table, right = unit(table), 0
    for a, b, c, d in known:
        scores = table @ (table[b] - table[a] + table[c])
        scores[[a, b, c]] = -np.inf
        right += scores.argmax() == d
    return len(known), right


for name, table in vectors.items():
    asked, right = analogies(table, number, questions)
    print(f"{name:22} {right} right of the {asked} whose words the text has 5 times")

# %% [markdown]
# That is as good as nothing, and honest: 77,000 words are too few. The papers had 783 million to 33
# billion. How much is the text's fault and how much the method's? Here is the same test with the
# token table of a checkpoint that has read far more: the rows that MiniLM looks up *before* its first
# layer are vectors of words without any context, like the ones above.

# %%
import bert_keras

minilm = bert_keras.TextEmbedder.from_preset("minilm_l6_en_uncased")
pieces = minilm.tokenizer.get_vocabulary()
whole = [i for i, piece in enumerate(pieces) if piece.isalpha() and i < 15_000]
table = np.array(minilm.backbone.token_embedding.get_weights()[0])[whole]
number_there = {pieces[i]: row for row, i in enumerate(whole)}
asked, right = analogies(table, number_there, questions[::10])
print(f"{right} right of {asked}: {right / asked:.0%}, among {len(whole):,} words")

# %% [markdown]
# **Similarity**: people scored pairs of words for likeness; a good table orders the pairs as they did
# (Spearman's rank correlation). The usual sets may not be passed on, so this runs where their folder
# is named, and the page is built without it:

# %%
import os
import pathlib

from scipy.stats import spearmanr

for path in sorted(pathlib.Path(os.environ.get("WORD_SIMILARITY_DIR", "none")).glob("EN-*.txt")):
    rows = [line.split() for line in path.read_text().lower().splitlines()]
    rows = [(a, b, float(score)) for a, b, score in rows if a in number_there and b in number_there]
    ours = [unit(table)[number_there[a]] @ unit(table)[number_there[b]] for a, b, _ in rows]
    print(f"{path.stem:15} {spearmanr(ours, [row[2] for row in rows])[0]:.2f} of {len(rows)} pairs")

# %% [markdown]
# ## What it gave the next
#
# Vectors learned once, from any text, and used everywhere as a first layer: the first pre-training.
# Two things were left. The method looks at one window at a time and never at the whole text's counts:
# [GloVe](glove.py). And a word has one vector, whatever it means where it stands: [ELMo](elmo.py).
