# %% [markdown]
# # ELMo：随上下文而变的向量
#
# Peters 等，[2018](https://arxiv.org/abs/1802.05365)。训练一个从左往右读的语言模型，再训练一个从右往左读的；
# 然后扔掉预测，留下各层在每个字上的状态，这就是这个字**在这句话里**的向量。两个方向互不相通，各是一个完整的语言模型，最后才拼接在一起。
#
# ![ELMo、GPT、BERT 的方向](../figures/directions.svg)
#
# 论文用两层 4096 维的 LSTM，输入向量由字符算出，语料十亿词。这里只有一层 96 维，语料与各章相同。
# LSTM 要逐字循环，JAX 能把整个循环编译成一个程序，所以这一章用 JAX。

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
with gzip.open("docs/data/shuihu_zhuan.txt.gz", "rt", encoding="utf-8") as file:
    text = re.findall(r"[\u4e00-\u9fff，。！？；“”]", file.read())
words, spoken, is_inside = [], [], False
for word in text:
    if word in "“”":
        is_inside = word == "“"
    else:
        words.append(word)
        spoken.append(is_inside)
end = len(words) * 9 // 10
counted = collections.Counter(words[:end]).most_common()
vocabulary = ["<unk>", *(word for word, n in counted if n >= 3)]
number = {word: i for i, word in enumerate(vocabulary)}
ids = np.array([number.get(word, 0) for word in words], "int32")
LENGTH = 16
rows = ids[: len(ids) // LENGTH * LENGTH].reshape(-1, LENGTH)
num_train = end // LENGTH
print(f"{num_train:,} 行，每行 {LENGTH} 个字，用来学；另有 {len(rows) - num_train:,} 行用来测")

# %% [markdown]
# ## 共用一张表的两个语言模型
#
# 在每个位置，前向模型猜下一个字，后向模型猜上一个字。


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
        """各层在每个字上的状态：字表的向量，以及两个方向的阅读。"""
        vectors = self.table(ids)
        backward = ops.flip(self.backward_lstm(vectors), axis=1)
        return vectors, self.forward_lstm(vectors), backward

    def call(self, ids, training=None):
        _, forward, backward = self.states(ids)
        # 最后一个字没有下一个字，第一个字没有上一个字。
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
    print(f"第 {epoch + 1} 轮：两个方向的困惑度 {np.exp(loss):.1f}")

# %% [markdown]
# 每行从句子中间开始，行首的字几乎没有上文；尽管如此，仍可以与 [n 元语法](ngrams.py)和 [NNLM](nnlm.py) 对照。
#
# ## 基于特征：模型冻结，状态当输入
#
# ELMo 的向量是各层的加权和，权重由每个任务自己学：$\gamma \sum_k s_k h_k$。下面的任务不需要人工标注：
# **这个字是不是人物说的话？** 引号之内算是，引号本身不给模型看。单看一个字很难说，看上下文才知道。


# %%
class Mix(keras.layers.Layer):
    """各层的加权和，权重由训练得到。"""

    def __init__(self, num_layers):
        super().__init__()
        self.weight = self.add_weight(shape=(num_layers,), initializer="zeros", name="weight")
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

    def call(self, layers):  # (batch, num_layers, dim)
        share = ops.exp(self.weight) / ops.sum(ops.exp(self.weight))
        return self.scale * ops.sum(share[:, None] * layers, axis=1)


is_speech = np.array(spoken[: rows.size]).reshape(rows.shape)
table, forward, backward = (
    ops.convert_to_numpy(ops.stop_gradient(state)) for state in model.states(rows)
)
in_context = np.concatenate([forward, backward], axis=-1)
features = np.stack([np.concatenate([table, table], axis=-1), in_context], axis=2)


def score(features, name):
    """冻住的特征之上一层线性分类器的准确率。"""
    num_layers, width = features.shape[2:]
    inputs = keras.Input((num_layers, width))
    mix = Mix(num_layers)
    classifier = keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(mix(inputs)))
    classifier.compile(keras.optimizers.Adam(1e-2), "binary_crossentropy")
    x, y = features[:num_train].reshape(-1, num_layers, width), is_speech[:num_train].reshape(-1)
    classifier.fit(x, y.astype("float32"), batch_size=512, epochs=3, verbose=0)
    x, y = features[num_train:].reshape(-1, num_layers, width), is_speech[num_train:].reshape(-1)
    accuracy = np.mean((classifier.predict(x, batch_size=512, verbose=0)[:, 0] > 0.5) == y)
    share = np.exp(mix.get_weights()[0])
    print(f"{name} {accuracy:.3f}，各层权重", (share / share.sum()).round(2))


commoner = max(is_speech[num_train:].mean(), 1 - is_speech[num_train:].mean())
print(f"总猜多数类 {commoner:.3f}")
score(features[:, :, :1], "只用字表")
score(features[:, :, 1:], "只用两个方向的状态")
score(features, "各层混合")

# %% [markdown]
# ## 同一个字，两个地方

# %%
spots = [(r, c) for r, c in np.argwhere(rows == number["道"]) if 2 < c < LENGTH - 3][:6]
vectors = np.array([in_context[spot] for spot in spots])
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
for (r, c), cosine in zip(spots, vectors @ vectors[0], strict=True):
    print(f"{cosine:5.2f}  ……" + "".join(vocabulary[i] for i in rows[r, c - 3 : c + 4]))

# %% [markdown]
# 同一个“道”，在每个地方是不同的向量；前面几章的任何一张表，都只会打印六个 1.00。
#
# ## 留给下一步的
#
# 语言模型学到的东西对其他任务都有用；向量应该包含上下文。还剩两个问题：两个方向直到最后才结合；预训练的模型被冻结，
# 每个任务要在上面另建一个网络。[GPT](gpt.py) 解决了第二个，[BERT](bert.py) 两个都解决了。
