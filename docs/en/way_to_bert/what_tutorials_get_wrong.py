# %% [markdown]
# # What tutorials get wrong
#
# Five sentences that stand in many introductions to BERT. Each is checked here by code.

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
# Both are figures of the *Transformer* of 2017, a translator: six blocks in its encoder, and 37,000
# byte pairs of English and German. BERT-base has 12 blocks and 30,522 word pieces. The number of its
# weights can be reckoned by hand, and only with these does it come out:


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
# So they are in the Transformer. BERT's are a table that is *learned*, one row a position, counted from
# the beginning of the input. If they were relative, moving a sentence would change nothing:

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
# How alike each position's row is to each other's: sinusoids make stripes, since only the distance
# counts; the table that was learned does not.

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
# Rotary, relative positions came later: in this package ModernBERT has them.
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
# That is ELMo's way, and it works, but it is not what BERT is known for. Fine-tuning trains all weights.
# The same 96 sentences for both, each with a rate that suits it:

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
# One seed and few sentences: the [playbook](../../guides/fine_tuning_playbook.py) and the
# [ablations](../../fine_tuning_ablations.md) have more. A frozen encoder is right where labels are very
# few, or where one encoder must serve many tasks at once.
#
# ## Two more, without code
#
# - "`[CLS]`'s vector is the meaning of the sentence." Only after fine-tuning: before it the pooler knows
#   about next sentences. For vectors of sentences take the mean, and a checkpoint trained for it.
# - "BERT understands 512 *words*." Word pieces, and `[CLS]` and `[SEP]` count too.
