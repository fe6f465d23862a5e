# %% [markdown]
# # BERT: both directions at once
#
# Devlin and others, [2018](https://arxiv.org/abs/1810.04805). Without its causal mask, [GPT's](gpt.py)
# block sees both sides and with them the word that it should predict. BERT hides words *in the input*
# and predicts only these: this is the **masked language model**. A second objective asks whether one
# sentence follows another.
#
# ## Three embeddings, added
#
# ![The input embeddings](../figures/input_embeddings.svg)
#
# Each position gets the sum of three vectors: for the token, for its position and for its segment.
# Look at them in a real model, the small BERT of this package.

# %%
import numpy as np
from keras import ops

import bert_keras

model = bert_keras.Pretraining.from_preset("bert_mini_en_gutenberg")
embeddings = model.backbone.embeddings
inputs = model.preprocessor((["He opened the door."], ["It was dark."]))
print(model.tokenizer.encode("He opened the door.", "It was dark.").pieces)
print(inputs["segment_ids"][0])

token, position, segment = (
    np.array(getattr(embeddings, f"{name}_embedding").get_weights()[0])
    for name in ("token", "position", "segment")
)
print("tables:", token.shape, position.shape, segment.shape)
ids, length = inputs["token_ids"][0], inputs["token_ids"].shape[1]
added = token[ids] + position[:length] + segment[inputs["segment_ids"][0]]
norm = embeddings.layer_norm
by_hand = ops.convert_to_numpy(norm(ops.convert_to_tensor(added[None])))
by_layer = ops.convert_to_numpy(embeddings(inputs["token_ids"], inputs["segment_ids"]))
print("largest difference from the layer:", np.abs(by_hand - by_layer).max())

# %% [markdown]
# **Why add, and not concatenate?** Concatenate three one-hot vectors and multiply them by the three
# tables, stacked: the product is exactly the sum. So addition loses nothing. Training decides how
# much of the width each table uses; with concatenation you would have to fix it beforehand.

# %%
one_hots = [
    np.eye(len(table))[row] for table, row in [(token, ids[3]), (position, 3), (segment, 0)]
]
stacked = np.concatenate([token, position, segment])
print(np.abs(np.concatenate(one_hots) @ stacked - added[3]).max())

# %% [markdown]
# Positions are a *learned* table, so a text longer than the table has no representation: 512 rows in
# the paper's models, 128 in this one. Longer texts are cut or read in [windows](../guides/long_texts.md).
#
# ## Masks, worked through
#
# 15 % of the tokens are chosen. Of these, 80 % become `[MASK]`, 10 % another token, and 10 % stay as
# they are. The loss counts only the chosen positions.
#
# ![Masking](../figures/masking.svg)
#
# - Why not always `[MASK]`? It does not occur in fine-tuning, and the model would learn useful states
#   only at `[MASK]`.
# - Why sometimes the token itself? The model cannot know which tokens are original, so it must keep a
#   good representation of each one.
# - Why only 15 %? More masks leave too little context. Fewer masks teach little in each pass.


# %%
def masked(ids, random, size, mask_id, special, rate=0.15):
    """Returns the ids as the model sees them, and the weight of each position in the loss."""
    chosen = (random.random(ids.shape) < rate) & ~np.isin(ids, special)
    how, seen = random.random(ids.shape), ids.copy()
    seen[chosen & (how < 0.8)] = mask_id
    other = chosen & (how >= 0.9)
    seen[other] = random.integers(len(special), size, other.sum())
    return seen, chosen.astype("float32")


# %% [markdown]
# ## Train a small BERT
#
# It has two blocks, 96 wide, and learns from the text of the other chapters. That is little text for
# any language model. It is too little for this one, which learns from only every seventh word.

# %%
import collections
import gzip
import re

import keras

keras.utils.set_random_seed(0)
random = np.random.default_rng(0)
with gzip.open("docs/data/sherlock_holmes.txt.gz", "rt", encoding="utf-8") as file:
    text = file.read().lower()
sentences = [re.findall(r"[a-z]+(?:'[a-z]+)?|[,;]", part) for part in re.split(r"[.!?]+", text)]
sentences = [words for words in sentences if len(words) > 2]
counted = collections.Counter(word for words in sentences for word in words).most_common()
SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"]
vocabulary = [*SPECIAL, *(word for word, n in counted if n >= 3)]
number = {word: i for i, word in enumerate(vocabulary)}
LENGTH, NUM_PREDICTIONS = 48, 10


def packed(first, second):
    """[CLS] A [SEP] B [SEP], cut to length, and the segments."""
    first, second = first[:22], second[:23]
    words = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
    ids = [number.get(word, number["[UNK]"]) for word in words]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    rest = [0] * (LENGTH - len(ids))
    return ids + rest, segments + rest


def examples(sentences):
    """Half of the pairs are consecutive, label 0. The others are random, label 1."""
    is_random = random.integers(0, 2, len(sentences) - 1)
    elsewhere = random.permutation(len(sentences) - 1)
    rows = [
        packed(sentences[i], sentences[elsewhere[i] if is_random[i] else i + 1])
        for i in range(len(sentences) - 1)
    ]
    ids, segments = np.array(rows, "int32").transpose(1, 0, 2)
    return ids, segments, is_random


cut = len(sentences) * 9 // 10
train, test = examples(sentences[:cut]), examples(sentences[cut:])
print(f"{len(train[0]):,} pairs, {len(vocabulary):,} words")
print(" ".join(vocabulary[i] for i in train[0][5] if i), "- random:", train[2][5])


# %%
class Block(keras.layers.Layer):
    """GPT's block, with `causal=False`, and with padding masked."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.attention = keras.layers.MultiHeadAttention(num_heads, dim // num_heads, dropout=0.1)
        self.wide = keras.layers.Dense(4 * dim, activation="gelu")
        self.narrow = keras.layers.Dense(dim)
        self.norms = [keras.layers.LayerNormalization() for _ in range(2)]
        self.dropout = keras.layers.Dropout(0.1)

    def call(self, x, is_real, training=None):
        attended = self.attention(x, x, attention_mask=is_real[:, None, :], training=training)
        x = self.norms[0](x + self.dropout(attended, training=training))
        return self.norms[1](x + self.dropout(self.narrow(self.wide(x)), training=training))


class Bert(keras.Model):
    def __init__(self, size, dim=96, num_layers=2, num_heads=4):
        super().__init__()
        self.tokens = keras.layers.ReversibleEmbedding(size, dim)
        self.positions = keras.layers.Embedding(LENGTH, dim)
        self.segments = keras.layers.Embedding(2, dim)
        self.norm = keras.layers.LayerNormalization()
        self.blocks = [Block(dim, num_heads) for _ in range(num_layers)]
        self.transform = keras.layers.Dense(dim, activation="gelu")
        self.transform_norm = keras.layers.LayerNormalization()
        self.pooler = keras.layers.Dense(dim, activation="tanh")
        self.next_sentence = keras.layers.Dense(2)

    def call(self, inputs, training=None):
        ids = inputs["ids"]
        x = (
            self.tokens(ids)
            + self.positions(ops.arange(LENGTH))
            + self.segments(inputs["segments"])
        )
        x = self.norm(x)
        for block in self.blocks:
            x = block(x, ids != 0, training=training)
        # Only the masked words are predicted.
        hidden = ops.take_along_axis(x, inputs["positions"][:, :, None], axis=1)
        words = self.tokens(self.transform_norm(self.transform(hidden)), reverse=True)
        # The pooler: a dense layer with tanh on the vector of [CLS]. It must be trained.
        return {"words": words, "next": self.next_sentence(self.pooler(x[:, 0]))}


def batches(examples):
    """Inputs, targets and weights for `fit`, with new masks."""
    ids, segments, is_random = examples
    seen, weights = masked(ids, random, len(vocabulary), number["[MASK]"], range(len(SPECIAL)))
    # The chosen positions come first; a row that has fewer is filled up with weights of 0.
    positions = np.argsort(-weights, axis=1, kind="stable")[:, :NUM_PREDICTIONS]
    words, weights = (np.take_along_axis(rows, positions, axis=1) for rows in (ids, weights))
    return {
        "x": {"ids": seen, "segments": segments, "positions": positions},
        "y": {"words": words, "next": is_random},
        "sample_weight": {"words": weights, "next": np.ones(len(ids), "float32")},
    }


model = Bert(len(vocabulary))
loss = keras.losses.SparseCategoricalCrossentropy(
    from_logits=True, reduction="mean_with_sample_weight"
)
model.compile(
    keras.optimizers.Adam(1e-3),
    loss={"words": loss, "next": loss},
    weighted_metrics={"words": ["accuracy"], "next": ["accuracy"]},
)
# Each epoch has new masks. The paper made ten masked copies of its text beforehand.
held_out = batches(test)
for epoch in range(3):
    model.fit(**batches(train), batch_size=32, verbose=0)
    scores = model.evaluate(**held_out, verbose=0, return_dict=True)
    print(
        f"epoch {epoch + 1}: perplexity of masked words {np.exp(scores['words_loss']):.0f}, "
        f"right {scores['words_accuracy']:.1%}; next sentence {scores['next_accuracy']:.1%}"
    )
hidden = held_out["sample_weight"]["words"] > 0
commonest = np.bincount(held_out["y"]["words"][hidden]).argmax()
share = np.mean(held_out["y"]["words"][hidden] == commonest)
print(f"always '{vocabulary[commonest]}' would be right in {share:.1%}")

# %% [markdown]
# Do not compare this perplexity with those of the other chapters: only masked words count, and the
# model sees both sides of them. From so little text it learns which words are frequent and little else.
# Next sentences stay near chance. **This is what pre-training is for.** The small BERT of this package
# has the same parts, four blocks instead of two, and has read thirty books:

# %%
grown = bert_keras.MaskedLM.from_preset("bert_mini_en_gutenberg")
for text in ("He opened the [MASK] and read it to us.", "He opened the [MASK] and went in."):
    print(text, [(token, round(float(p), 2)) for token, p in grown.fill_mask(text, top_k=4)[0]])

# %% [markdown]
# The prediction depends on what *follows* the mask, which [GPT](gpt.py) cannot do. Next sentences are
# tested on forty consecutive pairs of Holmes and forty random ones:

# %%
pairs = bert_keras.NextSentencePrediction.from_preset("bert_mini_en_gutenberg")
plain = [" ".join(words) + "." for words in sentences[cut : cut + 200]]
firsts, nexts = plain[0:160:4], plain[1:161:4]
others = [plain[i] for i in random.permutation(range(2, 162, 4))]
followed = [answer["is_next"] for answer in pairs.is_next(firsts, nexts)]
thrown = [answer["is_next"] for answer in pairs.is_next(firsts, others)]
print(f"{sum(followed)} of 40 true pairs and {sum(thrown)} of 40 others are judged consecutive")

# %% [markdown]
# ## Fine-tuning
#
# ![The four shapes of fine-tuning](../figures/fine_tuning_shapes.svg)
#
# Each task adds one new layer, and all weights are trained: see
# [pick a task](../start/pick_a_task.md) and the [tutorials](../tutorials/index.md). You can also freeze
# BERT, as ELMo is frozen. In table 7 of the paper this is a little below fine-tuning, for named entities.
#
# ## The sizes
#
# | | blocks | width | heads | weights |
# |---|---|---|---|---|
# | base | 12 | 768 | 12 | 110 million |
# | large | 24 | 1,024 | 16 | 340 million |
#
# [After BERT](after_bert.md) shows what later models changed, and
# [what tutorials get wrong](what_tutorials_get_wrong.py) checks common mistakes with code.
