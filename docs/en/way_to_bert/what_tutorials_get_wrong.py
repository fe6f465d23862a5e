# %% [markdown]
# # What tutorials get wrong
#
# Many introductions to BERT contain these sentences. This page checks them with code.

# %%
import matplotlib.pyplot as plt
import numpy as np
from keras import ops

import bert_keras

MINI = "bert_mini_en_gutenberg"
registered = {row["name"]: row for row in bert_keras.presets()}

# %% [markdown]
# ## "BERT has N = 6 blocks" · "the vocabulary has 37,000 pieces"
#
# Both numbers belong to the *Transformer* of 2017, a translation model: six blocks in its encoder, and
# 37,000 byte pairs of English and German. BERT-base has 12 blocks and 30,522 word pieces. You can
# compute the number of its weights by hand, and only these values give the right result:


# %%
def num_weights(blocks, vocabulary, dim=768, positions=512, segments=2):
    embeddings = (vocabulary + positions + segments) * dim + 2 * dim
    attention = 4 * (dim * dim + dim) + 2 * dim
    feed_forward = dim * 4 * dim + 4 * dim + 4 * dim * dim + dim + 2 * dim
    pooler = dim * dim + dim
    return embeddings + blocks * (attention + feed_forward) + pooler


published = registered["bert_base_en_uncased"]["parameters"]
print(f"the checkpoint            {published:,}")
for blocks, vocabulary in ((12, 30_522), (6, 30_522), (12, 37_000)):
    print(f"{blocks:2} blocks, {vocabulary:,} pieces {num_weights(blocks, vocabulary):,}")
assert num_weights(12, 30_522) == published

# %% [markdown]
# ## "BERT's positions are sines and cosines" (or: "are relative")
#
# This is true of the Transformer. BERT's positions are a *learned* table with one row per position,
# counted from the start of the input. If they were relative, moving a sentence would change nothing:

# %%
backbone = bert_keras.BertBackbone.from_preset(MINI)
positions = backbone.embeddings.position_embedding
table = np.array(positions.get_weights()[0])
print("trainable:", positions.trainable, table.shape)

places, dims = np.arange(len(table))[:, None], np.arange(table.shape[1])[None] // 2 * 2
angles = places / 10_000 ** (dims / table.shape[1])
sines = np.where(np.arange(table.shape[1]) % 2 == 0, np.sin(angles), np.cos(angles))
cosines = [
    row @ other / np.linalg.norm(row) / np.linalg.norm(other)
    for row, other in zip(table, sines, strict=True)
]
print(f"cosine of its rows with the sinusoids: mean {np.mean(cosines):+.3f}")

# %% [markdown]
# The pictures show the similarity of each position's row to every other row. Sinusoids give stripes,
# since only the distance counts. The learned table does not.

# %%
figure, axes = plt.subplots(1, 2, figsize=(7, 3.2))
for axis, name, rows in zip(axes, ("learned", "sinusoids"), (table, sines), strict=True):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    axis.imshow(unit @ unit.T, vmin=-1, vmax=1, cmap="RdBu")
    axis.set(title=name, xlabel="position", ylabel="position")
figure.tight_layout()
plt.show()

# %%
ids = bert_keras.Tokenizer.from_preset(MINI).encode("She opened the door.").ids
moved = np.array([[0] * 7 + ids])
mask = (np.arange(moved.shape[1]) >= 7)[None].astype("int32")
here = ops.convert_to_numpy(backbone({"token_ids": np.array([ids])})["sequence_output"])
there = ops.convert_to_numpy(
    backbone({"token_ids": moved, "padding_mask": mask})["sequence_output"]
)[:, 7:]
print(f"moved by seven places, the output changes by up to {np.abs(here - there).max():.2f}")
assert positions.trainable and np.abs(here - there).max() > 0.1

# %% [markdown]
# Rotary positions, which are relative, came later. In this package ModernBERT and NomicBERT have them.
#
# ## "The three embeddings are concatenated"
#
# They are added. A concatenation would be three times as wide as the encoder.

# %%
embeddings = backbone.embeddings
print("widths:", embeddings.token_embedding.output_dim, table.shape[1], "encoder:", here.shape[-1])
token = np.array(embeddings.token_embedding.get_weights()[0])[ids]
segment = np.array(embeddings.segment_embedding.get_weights()[0])[0]
added = ops.convert_to_tensor((token + table[: len(ids)] + segment)[None])
difference = embeddings.layer_norm(added) - embeddings(np.array([ids]))
difference = np.abs(ops.convert_to_numpy(difference)).max()
print("largest difference from the sum:", difference)
assert difference < 1e-5

# %% [markdown]
# ## "Freeze BERT and train a classifier on it"
#
# ELMo is used this way, and it works. But BERT is meant to be fine-tuned: all weights are trained. Both
# ways see the same 96 sentences, each with a learning rate that suits it:

# %%
import keras

from bert_keras import datasets

train, dev = datasets.load_sentiment_sentences("examples/data/sentiment_labelled_sentences")
train, dev = train.take(range(96)), dev.take(range(200))
for name, frozen, rate, epochs in (("frozen", "backbone", 1e-2, 3), ("all", None, 1e-4, 3)):
    keras.utils.set_random_seed(0)
    classifier = bert_keras.TextClassifier.from_preset(
        "minilm_l6_en_uncased", label_names=train.label_names, pooling="mean", frozen=frozen
    )
    classifier.compile(learning_rate=rate)
    classifier.fit(train.texts, train.labels, batch_size=16, epochs=epochs, verbose=0)
    scores = classifier.evaluate(dev.texts, dev.labels, verbose=0, return_dict=True)
    print(f"{name:7} accuracy {scores['accuracy']:.3f} of {len(dev.texts)}")

# %% [markdown]
# This is one seed and few sentences. The [playbook](../../guides/fine_tuning_playbook.py) and the
# [ablations](../../fine_tuning_ablations.md) have more. Freeze the encoder if you have very few
# labels, or if one encoder must serve many tasks at once.
#
# ## Two more, without code
#
# - "`[CLS]`'s vector is the meaning of the sentence." This is true only after fine-tuning. Before that
#   the pooler is trained on next sentences. For sentence vectors take the mean of the tokens, from a
#   checkpoint that was trained for it.
# - "BERT reads 512 *words*." It reads 512 word pieces, and `[CLS]` and `[SEP]` count too.
