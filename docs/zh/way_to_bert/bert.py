# %% [markdown]
# # BERT：同时看两边
#
# Devlin 等，[2018](https://arxiv.org/abs/1810.04805)。去掉 [GPT](gpt.py) 的遮挡，两边都看得见，可是要猜的字也看得见了。
# BERT 的办法是在**输入里**把字藏起来，只猜藏起来的字：**掩码语言模型**。另一个目标是判断两句话是否前后相接。
#
# ## 三种嵌入，相加
#
# ![输入嵌入](../figures/input_embeddings.svg)
#
# 每个位置的输入是三行之和：词元、位置、分段。用随包附带的小 BERT 来看（它只读过英文，所以例句是英文）：

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
print("三张表：", token.shape, position.shape, segment.shape)
ids, length = inputs["token_ids"][0], inputs["token_ids"].shape[1]
added = token[ids] + position[:length] + segment[inputs["segment_ids"][0]]
norm = embeddings.layer_norm
by_hand = ops.convert_to_numpy(norm(ops.convert_to_tensor(added[None])))
by_layer = ops.convert_to_numpy(embeddings(inputs["token_ids"], inputs["segment_ids"]))
print("与模型的层相差最多：", np.abs(by_hand - by_layer).max())

# %% [markdown]
# **为什么是相加而不是拼接？** 相加并不比拼接少什么：把三个 one-hot 向量首尾相接，乘以上下叠放的三张表，
# 恰好就是三行之和。三种信息各占哪些方向，由训练决定，不必事先划定宽度。

# %%
one_hots = [
    np.eye(len(table))[row] for table, row in [(token, ids[3]), (position, 3), (segment, 0)]
]
stacked = np.concatenate([token, position, segment])
print(np.abs(np.concatenate(one_hots) @ stacked - added[3]).max())

# %% [markdown]
# 位置是一张**学出来的**表，表有多少行就只能读多少个位置：论文的模型 512 行，这个小模型 128 行。更长的文本见[长文本](../guides/long_texts.md)。
#
# ## 掩码，一步一步
#
# 选出 15% 的字。其中 80% 换成 `[MASK]`，10% 换成别的字，10% 保持原样；损失只计算选中的位置。
#
# ![掩码](../figures/masking.svg)
#
# - 为什么不全换成 `[MASK]`？微调时没有 `[MASK]`，模型会学成“只在 `[MASK]` 处用心”。
# - 为什么有时保持原样？模型不知道眼前的字是真是假，只好对每个字都认真。
# - 为什么只选 15%？空太多，剩下的不够猜；空太少，一遍学不到多少东西。
#
# 对中文还有一个问题：只遮一个字往往太容易，“林[MASK]”谁都会填。所以后来的中文模型用**全词掩码**（wwm）。


# %%
def masked(ids, random, size, mask_id, special, rate=0.15):
    """返回模型看到的编号，以及每个位置在损失中的权重。"""
    chosen = (random.random(ids.shape) < rate) & ~np.isin(ids, special)
    how, seen = random.random(ids.shape), ids.copy()
    seen[chosen & (how < 0.8)] = mask_id
    other = chosen & (how >= 0.9)
    seen[other] = random.integers(len(special), size, other.sum())
    return seen, chosen.astype("float32")


# %% [markdown]
# ## 自己的 BERT
#
# 用各章同样的语料。对任何语言模型这都太少，对 BERT 尤其少，因为每七个字才有一个用来学习。两个块，96 维。

# %%
import collections
import gzip
import re

import keras

keras.utils.set_random_seed(0)
random = np.random.default_rng(0)
with gzip.open("docs/data/shuihu_zhuan.txt.gz", "rt", encoding="utf-8") as file:
    text = file.read()
sentences = [re.findall(r"[\u4e00-\u9fff，；]", part) for part in re.split(r"[。！？]", text)]
sentences = [words for words in sentences if len(words) > 2]
counted = collections.Counter(word for words in sentences for word in words).most_common()
SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"]
vocabulary = [*SPECIAL, *(word for word, n in counted if n >= 3)]
number = {word: i for i, word in enumerate(vocabulary)}
LENGTH, NUM_PREDICTIONS = 48, 10


def packed(first, second):
    """[CLS] 甲 [SEP] 乙 [SEP]，截断并补齐，以及分段。"""
    first, second = first[:22], second[:23]
    words = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
    ids = [number.get(word, number["[UNK]"]) for word in words]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    rest = [0] * (LENGTH - len(ids))
    return ids + rest, segments + rest


def examples(sentences):
    """一半是前后句，标签 0；另一半是随机凑的，标签 1。"""
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
print(f"{len(train[0]):,} 对句子，{len(vocabulary):,} 个字")
print(" ".join(vocabulary[i] for i in train[0][5] if i), "—— 随机：", train[2][5])


# %%
class Block(keras.layers.Layer):
    """与 GPT 的块相同，`causal=False`，并遮住填充。"""

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
        # 只猜遮住的字。
        hidden = ops.take_along_axis(x, inputs["positions"][:, :, None], axis=1)
        words = self.tokens(self.transform_norm(self.transform(hidden)), reverse=True)
        # 池化层：[CLS] 的向量过一层 tanh。它也要训练。
        return {"words": words, "next": self.next_sentence(self.pooler(x[:, 0]))}


def batches(examples):
    """`fit` 的输入、目标与权重，每次重新抽掩码。"""
    ids, segments, is_random = examples
    seen, weights = masked(ids, random, len(vocabulary), number["[MASK]"], range(len(SPECIAL)))
    # 选中的位置排在最前；不够的，用权重为 0 的位置补足。
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
# 每一轮换新的掩码；论文是事先把语料复制十份。
held_out = batches(test)
for epoch in range(3):
    model.fit(**batches(train), batch_size=32, verbose=0)
    scores = model.evaluate(**held_out, verbose=0, return_dict=True)
    print(
        f"第 {epoch + 1} 轮：遮住的字困惑度 {np.exp(scores['words_loss']):.0f}, "
        f"猜对 {scores['words_accuracy']:.1%}; 下一句 {scores['next_accuracy']:.1%}"
    )
hidden = held_out["sample_weight"]["words"] > 0
commonest = np.bincount(held_out["y"]["words"][hidden]).argmax()
share = np.mean(held_out["y"]["words"][hidden] == commonest)
print(f"总猜“{vocabulary[commonest]}”能对 {share:.1%}")

# %% [markdown]
# 这个困惑度不能与前几章相比：只计算遮住的字，而且两边都看得见。这点语料只够模型学会哪些字常见，“下一句”也接近瞎猜。
# **预训练的意义正在这里。** 随包附带的小 BERT 部件相同，有四个块，读过三十本（英文）书：

# %%
grown = bert_keras.MaskedLM.from_preset("bert_mini_en_gutenberg")
for text in ("He opened the [MASK] and read it to us.", "He opened the [MASK] and went in."):
    print(text, [(token, round(float(p), 2)) for token, p in grown.fill_mask(text, top_k=4)[0]])

# %% [markdown]
# 猜测随着空格**后面**的文字而变，这是 [GPT](gpt.py) 做不到的。
#
# ## 微调
#
# ![微调的四种形状](../figures/fine_tuning_shapes.svg)
#
# 每个任务加一层，全部权重一起训练：见[选任务](../start/pick_a_task.md)与[教程](../tutorials/index.md)。另一种办法是像 ELMo 那样冻结 BERT，
# 只取特征，论文的表 7 也测过：在命名实体识别上略低于微调。
#
# ## 大小
#
# | | 块 | 宽度 | 注意力头 | 参数量 |
# |---|---|---|---|---|
# | base | 12 | 768 | 12 | 1.1 亿（中文版 1.02 亿，词表较小） |
# | large | 24 | 1024 | 16 | 3.4 亿 |
#
# 后来的模型改了什么，见 [BERT 之后](after_bert.md)；教程里常见的错误说法，见[用代码核对](what_tutorials_get_wrong.py)。
