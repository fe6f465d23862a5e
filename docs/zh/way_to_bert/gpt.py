# %% [markdown]
# # GPT：只从左往右读的 Transformer
#
# Radford 等，[2018](https://openai.com/index/language-unsupervised/)。与 [ELMo](elmo.py) 相比有两处改变：**自注意力**的块代替了 LSTM；
# 预训练好的模型不再冻结起来只取特征，而是换上新的输出层，整体微调。
#
# ![一个块](../figures/encoder_block.svg)
#
# 自注意力里，每个位置向所有位置提问：$\text{softmax}(QK^\top / \sqrt{d}) V$。语言模型不能偷看要猜的字，
# 所以 GPT 把每个位置右边的一切都遮住。下面的 `causal=True`，就是 GPT 的块与 BERT 的块的全部区别。

# %%
import collections
import gzip
import re

import keras
import numpy as np
from keras import ops

keras.utils.set_random_seed(0)
with gzip.open("docs/data/shuihu_zhuan.txt.gz", "rt", encoding="utf-8") as file:
    words = re.findall(r"[\u4e00-\u9fff，。！？；]", file.read())
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
    """先注意力，后前馈网络；各自与输入相加，再归一化。"""

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
    """可学习的位置、若干个块，输出时再用一次字表。"""

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
        print(f"causal={causal}, 第 {epoch + 1} 轮：困惑度 {np.exp(loss):.1f}")
    return model


gpt = trained(causal=True, epochs=2)

# %% [markdown]
# ## 去掉遮挡会怎样
#
# 同样的模型，`causal=False`。困惑度低得惊人，其实是作弊：每个位置都能读到下一个字，而下一个字就是答案。
# 网络学会了照抄，别的就什么也不用学了。

# %%
cheat = trained(causal=False, epochs=2)

# %% [markdown]
# 所以，语言模型的训练目标不允许“干脆两边都看”。这正是 BERT 的掩码要解决的问题。
#
# ## 续写
#
# 模型一次写一个字，写下的字在下一步又成为输入。

# %%
random = np.random.default_rng(2)
written = [number[word] for word in "只见武松"]
while len(written) < 32:
    logits = ops.convert_to_numpy(gpt(np.array([written], "int32")))[0, -1].astype(float)
    logits[0] = -np.inf  # 不写 <unk>。
    p = np.exp((logits - logits.max()) / 0.8)
    written.append(int(random.choice(len(p), p=p / p.sum())))
print("".join(vocabulary[i] for i in written))

# %% [markdown]
# ## 为什么填不了空
#
# 两句话只在空格之后不同。GPT 在空格处的状态不可能受后文影响：两次的猜测分毫不差。`causal=False` 时就不同了。


# %%
def at_the_hole(model, sentence):
    words = list(sentence)
    hole = words.index("_")
    row = np.array([[number.get(word, 0) for word in words]], "int32")
    return ops.convert_to_numpy(model(row))[0, hole - 1]


one = "那人把_吃了三碗。"
other = "那人把_砍了三下。"
for name, model in (("causal=True", gpt), ("causal=False", cheat)):
    difference = np.abs(at_the_hole(model, one) - at_the_hole(model, other)).max()
    print(f"{name:13} 输出的最大差 {difference:.6f}")

# %% [markdown]
# 也有笨办法：把每个候选字都填进去，让模型给整句话打分。每个空、每个候选都要跑一遍模型，而 BERT 一遍就够。

# %%
candidates = list("酒刀门马饭脚")
for sentence in (one, other):
    scores = {}
    for word in candidates:
        row = [number[w] for w in sentence.replace("_", word)]
        log_p = ops.convert_to_numpy(ops.log_softmax(gpt(np.array([row[:-1]], "int32"))))[0]
        scores[word] = log_p[np.arange(len(row) - 1), row[1:]].sum()
    print(*(f"{word} {scores[word]:.1f}" for word in sorted(scores, key=scores.get, reverse=True)))

# %% [markdown]
# ## 留给下一步的
#
# 块、与输入共用的输出表、可学习的位置、整体微调，BERT 全部沿用，只去掉了遮挡。
