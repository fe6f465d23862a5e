# %% [markdown]
# # GloVe：先数，再学
#
# Pennington 等，[2014](https://aclanthology.org/D14-1162/)。[word2vec](word2vec.py) 走一遍文本，看完一个窗口忘一个窗口。
# GloVe 先在整个语料上数清楚每两个字相邻过多少次，再找一组向量，让它们的内积等于次数的对数：
#
# $$J = \sum_{ij} f(X_{ij}) \, (w_i \cdot \tilde w_j + b_i + \tilde b_j - \log X_{ij})^2, \qquad
#   f(x) = \min(1, (x / x_{max})^{3/4})$$
#
# 为什么取对数？要区分“酒”和“茶”，看的是旁边的字出现次数的**比值**：“醉”在“酒”旁边出现的次数是在“茶”旁边的许多倍，“吃”在两者旁边差不多。
# 次数之比取对数就成了差，对应向量之差。

# %%
import collections
import gzip
import re

import keras
import numpy as np
from keras import ops

from bert_keras import plots

keras.utils.set_random_seed(0)
with gzip.open("docs/data/shuihu_zhuan.txt.gz", "rt", encoding="utf-8") as file:
    words = re.findall(r"[\u4e00-\u9fff]", file.read())
vocabulary = [word for word, n in collections.Counter(words).most_common() if n >= 5]
number = {word: i for i, word in enumerate(vocabulary)}
ids = np.array([number[word] for word in words if word in number])

# %% [markdown]
# ## 数共现
#
# 相隔 $d$ 个字的邻居算 $1/d$ 次；左右各看十个字，与论文相同。

# %%
X = np.zeros((len(vocabulary), len(vocabulary)), "float32")
for distance in range(1, 11):
    np.add.at(X, (ids[:-distance], ids[distance:]), 1 / distance)
X += X.T
rows, columns = np.nonzero(X)
print(f"{X.size:,} 对字里有 {len(rows):,} 对靠近过：{len(rows) / X.size:.1%}")
for word in ("吃", "刀"):
    beside = [f"“{w}” {X[number['酒'], number[w]]:.0f} 次" for w in (word, "了")]
    print(f"“酒”靠近{beside[0]}，靠近{beside[1]}")

# %% [markdown]
# ## 学
#
# 每一对出现过的字是一个样本，不论出现多少次；次数的影响由权重 $f$ 控制。


# %%
class GloVe(keras.Model):
    def __init__(self, size, dim=64):
        super().__init__()
        self.tables = [keras.layers.Embedding(size, dim) for _ in range(2)]
        self.biases = [
            keras.layers.Embedding(size, 1, embeddings_initializer="zeros") for _ in range(2)
        ]

    def call(self, pairs):
        first, second = pairs[:, :1], pairs[:, 1:]
        product = ops.sum(self.tables[0](first) * self.tables[1](second), axis=-1)
        return product + self.biases[0](first)[:, 0] + self.biases[1](second)[:, 0]


pairs = np.column_stack([rows, columns]).astype("int32")
counts = X[rows, columns]
weight = np.minimum(1, (counts / 10) ** 0.75)
model = GloVe(len(vocabulary))
model.compile(keras.optimizers.Adam(1e-2), "mean_squared_error")
history = model.fit(
    pairs, np.log(counts)[:, None], sample_weight=weight, batch_size=4096, epochs=8, verbose=0
)
print("损失", *(f"{loss:.3f}" for loss in history.history["loss"]))

# %%
plots.learning_curves(history)

# %% [markdown]
# 这里 $x_{max}$ 取 10，论文在六十亿词上取 100。结果取两张表的和，这也是论文的做法：它们只是随机初值不同。

# %%
table = sum(np.array(layer.get_weights()[0]) for layer in model.tables)
table /= np.linalg.norm(table, axis=1, keepdims=True)
for word in ("酒", "刀", "东", "父", "二"):
    order = np.argsort(-(table @ table[number[word]]))[1:6]
    print(word, *(vocabulary[i] for i in order))

# %% [markdown]
# 与 word2vec 相比如何？后来的研究（Levy 等，2015）发现，设置相同时两者相差无几：它们分解的是同一张共现表，一个按窗口逐次进行，一个一次处理整张表。
#
# ## 还剩什么
#
# “道”可以是“说”，可以是“路”，也可以指道士；表里却只有一行。任何一张表都表示不了它“**在这里**是什么意思”。[ELMo](elmo.py) 先读完整个句子。
