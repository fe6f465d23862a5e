# %% [markdown]
# # 教程里常见的错误说法
#
# 下面五句话在中文博客里反复出现，每一句都用代码核对。

# %%
import matplotlib.pyplot as plt
import numpy as np
from keras import ops

import bert_keras

MINI = "bert_mini_en_gutenberg"
registered = {row["name"]: row for row in bert_keras.presets()}

# %% [markdown]
# ## “BERT 由 N = 6 个块组成” · “词表有 37000 个词元”
#
# 这两个数字都属于 2017 年的翻译模型 **Transformer**：编码器六个块，英德两种语言共 37000 个字节对。
# BERT-base 有 12 个块；英文词表 30522，中文词表 21128。参数量可以手算，只有用对了数字才对得上：


# %%
def num_weights(blocks, vocabulary, dim=768, positions=512, segments=2):
    embeddings = (vocabulary + positions + segments) * dim + 2 * dim
    attention = 4 * (dim * dim + dim) + 2 * dim
    feed_forward = dim * 4 * dim + 4 * dim + 4 * dim * dim + dim + 2 * dim
    pooler = dim * dim + dim
    return embeddings + blocks * (attention + feed_forward) + pooler


published = registered["bert_base_zh"]["parameters"]
print(f"bert_base_zh              {published:,}")
for blocks, vocabulary in ((12, 21_128), (6, 21_128), (12, 37_000)):
    print(f"{blocks:2} 块，{vocabulary:,} 个词元    {num_weights(blocks, vocabulary):,}")
assert num_weights(12, 21_128) == published

# %% [markdown]
# ## “BERT 用正弦余弦位置编码”（或者“用相对位置”）
#
# 那是 Transformer。BERT 的位置是一张**学出来的**表，从输入开头数起，一个位置一行。
# 如果位置是相对的，把句子整体右移，输出就不会变：

# %%
backbone = bert_keras.BertBackbone.from_preset(MINI)
positions = backbone.embeddings.position_embedding
table = np.array(positions.get_weights()[0])
print("可训练：", positions.trainable, table.shape)

places, dims = np.arange(len(table))[:, None], np.arange(table.shape[1])[None] // 2 * 2
angles = places / 10_000 ** (dims / table.shape[1])
sines = np.where(np.arange(table.shape[1]) % 2 == 0, np.sin(angles), np.cos(angles))
cosines = [
    row @ other / np.linalg.norm(row) / np.linalg.norm(other)
    for row, other in zip(table, sines, strict=True)
]
print(f"与正弦表逐行的余弦相似度，平均 {np.mean(cosines):+.3f}")

# %% [markdown]
# 每两个位置的两行有多像：正弦表是一条条斜纹，只与距离有关；学出来的表不是这样。

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
print(f"右移七个位置，输出最多变化 {np.abs(here - there).max():.2f}")
assert positions.trainable and np.abs(here - there).max() > 0.1

# %% [markdown]
# 旋转位置（一种相对位置）是后来才有的，例如 ModernBERT 和 NomicBERT。
#
# ## “三种嵌入拼接起来”
#
# 是**相加**。拼接的话宽度会是编码器的三倍。

# %%
embeddings = backbone.embeddings
print("宽度：", embeddings.token_embedding.output_dim, table.shape[1], "编码器：", here.shape[-1])
token = np.array(embeddings.token_embedding.get_weights()[0])[ids]
segment = np.array(embeddings.segment_embedding.get_weights()[0])[0]
added = ops.convert_to_tensor((token + table[: len(ids)] + segment)[None])
difference = embeddings.layer_norm(added) - embeddings(np.array([ids]))
difference = np.abs(ops.convert_to_numpy(difference)).max()
print("与相加结果的最大差：", difference)
assert difference < 1e-5

# %% [markdown]
# ## “使用 BERT 就是把它冻结，再训练一个分类器”
#
# 那是 ELMo 的用法，这样也能行，但 BERT 的长处在于全部权重一起微调。同样的 96 个句子，各用合适的学习率：

# %%
import keras

from bert_keras import datasets

train, dev = datasets.load_sentiment_sentences("examples/data/sentiment_labelled_sentences")
train, dev = train.take(range(96)), dev.take(range(200))
for name, frozen, rate in (("冻住编码器", "backbone", 1e-2), ("全部微调　", None, 1e-4)):
    keras.utils.set_random_seed(0)
    classifier = bert_keras.TextClassifier.from_preset(
        "minilm_l6_en_uncased", label_names=train.label_names, pooling="mean", frozen=frozen
    )
    classifier.compile(learning_rate=rate)
    classifier.fit(train.texts, train.labels, batch_size=16, epochs=3, verbose=0)
    scores = classifier.evaluate(dev.texts, dev.labels, verbose=0, return_dict=True)
    print(f"{name} 准确率 {scores['accuracy']:.3f}（{len(dev.texts)} 句）")

# %% [markdown]
# 只有一个种子、不到一百个训练句子，只作示意；更多数据见[消融实验](../../fine_tuning_ablations.md)。
# 标注极少，或者一个编码器要同时用于很多任务时，冻结才划算。
#
# ## 另外两句
#
# - “`[CLS]` 的向量就是句子的含义。”微调之后才是；在那之前，池化层只学过判断“是不是下一句”。要句向量，取平均，并选专门训练过的检查点。
# - “BERT 能读 512 个**字**。”是 512 个词元，`[CLS]` 与 `[SEP]` 也算在内，所以单句最多 510 个。
