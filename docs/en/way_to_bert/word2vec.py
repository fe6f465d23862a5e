# %% [markdown]
# # word2vec: only the vectors
#
# Mikolov and others, 2013: [one paper](https://arxiv.org/abs/1301.3781) and
# [another](https://arxiv.org/abs/1310.4546). Two simplifications make [NNLM](nnlm.py) a thousand times
# faster.
#
# 1. **No hidden layer.** Context and word meet in one product of vectors. In **CBOW** the mean of the
#    surrounding words predicts the middle one; in **skip-gram** the middle word predicts each of its
#    neighbours.
# 2. **No full softmax.** A few yes-or-no questions replace the choice among all words.
#
# ![CBOW and skip-gram](../figures/cbow_skip_gram.svg)
#
# The models are tiny and take thousands of steps. JAX compiles a step, which makes this chapter several
# times faster than with PyTorch.

# %%
import collections
import gzip
import heapq
import os
import re

os.environ["KERAS_BACKEND"] = "jax"

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
# Frequent words say little about their neighbours: *the* occurs next to everything. The method drops
# words at random, and drops frequent words more often (section 2.3 of the second paper; 1e-3 here
# instead of 1e-5, since the text is small).

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
# All four methods average the vectors of the input words and multiply the mean by a few rows of a
# second table, the *questions*. They differ in the input words, in the rows and in the answers.


# %%
class Word2Vec(keras.Model):
    def __init__(self, num_questions, dim=64):
        super().__init__()
        self.vectors = keras.layers.Embedding(len(vocabulary), dim)
        self.questions = keras.layers.Embedding(num_questions, dim, embeddings_initializer="zeros")

    def call(self, inputs):
        mean = ops.mean(self.vectors(inputs["words"]), axis=1, keepdims=True)
        return ops.sum(mean * self.questions(inputs["questions"]), axis=-1)


def answers_loss(answers, logits):
    """Binary cross-entropy, summed over the questions. The answer -1 does not count."""
    losses = ops.maximum(logits, 0) - logits * answers + ops.log1p(ops.exp(-ops.abs(logits)))
    return ops.sum(ops.where(answers < 0, 0.0, losses), axis=-1)


def trained(words, questions, answers, num_questions, epochs=3):
    model = Word2Vec(num_questions)
    model.compile(keras.optimizers.Adam(5e-3), answers_loss)
    inputs = {"words": words, "questions": questions}
    history = model.fit(inputs, answers, batch_size=512, epochs=epochs, verbose=0)
    losses = " ".join(f"{loss:.2f}" for loss in history.history["loss"])
    return np.array(model.vectors.get_weights()[0]), losses


# %% [markdown]
# ### Negative sampling
#
# The question is "does this word belong here?". It is asked about the true word and about five words
# drawn at random. The probability of a word is proportional to its count to the power of 3/4.


# %%
def with_negatives(target, k=5):
    drawn = random.choice(len(vocabulary), (len(target), k), p=counts**0.75 / sum(counts**0.75))
    questions = np.column_stack([target, drawn]).astype("int32")
    return questions, np.tile(np.array([1.0] + [0.0] * k, "float32"), (len(target), 1))


vectors = {}
pairs = random.permutation(len(middle) * 2 * WINDOW)[: 3 * len(middle)]
centre, neighbour = np.repeat(middle, 2 * WINDOW)[pairs], context.reshape(-1)[pairs]
vectors["skip-gram, negatives"], losses = trained(
    centre[:, None], *with_negatives(neighbour), len(vocabulary)
)
print("skip-gram", losses)
vectors["CBOW, negatives"], losses = trained(context, *with_negatives(middle), len(vocabulary), 5)
print("CBOW     ", losses)

# %% [markdown]
# Skip-gram could learn from all eight neighbours of each word; three of them keep this page short.
#
# ### Hierarchical softmax
#
# The words are the leaves of a binary tree. To choose a word, the model answers "left or right?" at
# each node on the way down. In a **Huffman tree** frequent words are near the root, so the average
# path is short.

# %%
heap = [(n, i) for i, n in enumerate(counts)]
heapq.heapify(heap)
parent = {}
for node in range(len(vocabulary), 2 * len(vocabulary) - 1):
    (n, left), (m, right) = heapq.heappop(heap), heapq.heappop(heap)
    parent[left], parent[right] = (node, 0.0), (node, 1.0)
    heapq.heappush(heap, (n + m, node))


def way(word):
    """The nodes above a word, and the side on which the word lies."""
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
print("".join(str(int(side)) for _, side in reversed(ways[number["the"]])), "is the path to 'the'")
print(f"average path {mean_length:.1f}, longest {deepest}")
vectors["CBOW, hierarchical"], losses = trained(
    context, nodes[middle], sides[middle], len(vocabulary) - 1, 5
)
print("CBOW     ", losses)

# %% [markdown]
# ### Adaptive softmax
#
# Grave and others, [2016](https://arxiv.org/abs/1609.04309): a softmax in two steps. The head chooses
# among the most frequent words and one entry for "some other word". For that entry a second softmax
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
        mean = ops.mean(self.vectors(inputs), axis=1)
        head = ops.log_softmax(self.head(mean))
        tail = ops.log_softmax(self.tail(self.narrow(mean)))
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
# For clarity this layer computes the tail for every row. A fast one computes it only where needed.
#
# ### What a word costs
#
# Multiplications for one prediction with 64-dimensional vectors. The second column is for a vocabulary
# of 100,000 words, where the number depends on the size alone.

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
# **Analogies**: *man* is to *woman* as *king* is to ...? The answer is the word nearest to
# king - man + woman, apart from these three. The authors' test has 19,544 questions in 14 sections.

# %%
with gzip.open("docs/data/questions-words.txt.gz", "rt", encoding="utf-8") as file:
    questions = [line.lower().split() for line in file if not line.startswith(":")]


def analogies(table, number, questions, seed=0):
    """Returns the number of questions whose words are known, and the number of right answers."""
    known = np.array([[number[w] for w in q] for q in questions if all(w in number for w in q)])
    table, right = unit(table), 0
    for a, b, c, d in known:
        scores = table @ (table[b] - table[a] + table[c])
        scores[[a, b, c]] = -np.inf
        right += scores.argmax() == d
    return len(known), right


for name, table in vectors.items():
    asked, right = analogies(table, number, questions)
    print(f"{name:22} {right} right of the {asked} questions whose words the text has 5 times")

# %% [markdown]
# That is close to nothing: 77,000 words are too few. The papers used 783 million to 33 billion. Is it
# the text or the method? Here is the same test with the token table of a checkpoint that has read far
# more. MiniLM looks up these rows *before* its first layer, so they are vectors of words without any
# context, like those above.

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
# **Similarity**: people scored how alike two words are. A good table orders the pairs as people did
# (Spearman's rank correlation). The licences of the usual sets do not allow redistribution, so this cell
# prints results only if `WORD_SIMILARITY_DIR` names their folder:

# %%
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
# Vectors that are learned once, from any text, and used everywhere as a first layer: the first
# pre-training. Two problems remained. The method sees one window at a time and never the counts of the
# whole text; [GloVe](glove.py) uses these counts. And a word has one vector, whatever it means in its sentence;
# [ELMo](elmo.py) changes that.
