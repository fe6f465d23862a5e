# %% [markdown]
# # NNLM：字变成向量
#
# Bengio 等，2003：[A neural probabilistic language model](https://www.jmlr.org/papers/v3/bengio03a.html)。
# 每个字在一张表里有一行，也就是一个**向量**，由训练得到；一个小网络读前几个字的向量，预测下一个字。
# “刀”“枪”“棒”的向量学得相近，从“提了朴刀”学到的东西，对“提了哨棒”就自动有效，哪怕后者从没出现过。
#
# ![NNLM](../figures/nnlm.svg)

# %%
import collections
import gzip
import re

import keras
import numpy as np

keras.utils.set_random_seed(0)
with gzip.open("docs/data/shuihu_zhuan.txt.gz", "rt", encoding="utf-8") as file:
    words = re.findall(r"[\u4e00-\u9fff，。！？；]", file.read())
end = len(words) * 9 // 10
counted = collections.Counter(words[:end]).most_common()
vocabulary = ["<unk>", *(word for word, n in counted if n >= 3)]
number = {word: i for i, word in enumerate(vocabulary)}
ids = np.array([number.get(word, 0) for word in words], "int32")

# %% [markdown]
# 一个样本是三个字和紧接着的那个字。

# %%
windows = np.lib.stride_tricks.sliding_window_view(ids, 4)
train, test = windows[: end - 3], windows[end:]
print("".join(vocabulary[i] for i in train[1000, :3]), "->", vocabulary[train[1000, 3]])

# %% [markdown]
# ## 模型
#
# 与论文相同，只省去了从输入直达输出的连接：查表、首尾相接、一层 tanh、在整个字表上做 softmax。

# %%
model = keras.Sequential(
    [
        keras.Input((3,), dtype="int32"),
        keras.layers.Embedding(len(vocabulary), 64, name="vectors"),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="tanh"),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(len(vocabulary)),
    ]
)
model.compile(
    keras.optimizers.Adam(2e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
)
for epoch in range(3):
    model.fit(train[:, :3], train[:, 3], batch_size=256, verbose=0)
    loss = model.evaluate(test[:, :3], test[:, 3], batch_size=1024, verbose=0)
    print(f"第 {epoch + 1} 轮：困惑度 {np.exp(loss):.1f}")

# %% [markdown]
# 请与 [n 元语法](ngrams.py)末尾的困惑度对照，测的是同一段文字。
#
# ## 时间花在哪里

# %%
for layer in model.layers:
    print(f"{layer.name:10} {layer.count_params():8,} 个权重")

# %% [markdown]
# 每预测一个字，都要乘最后那个矩阵，字表里有多少字，它就有多少列。汉字不过几千；按词切分则有几十万，这一步就成了瓶颈。
# 下一章专门解决它。
#
# ## 向量学到了什么


# %%
def nearest(word, table, n=5):
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    order = np.argsort(-(unit @ unit[number[word]]))
    return [vocabulary[i] for i in order[1 : n + 1]]


table = np.array(model.get_layer("vectors").get_weights()[0])
for word in ("他", "道", "二", "酒", "刀", "东"):
    print(f"{word}", *nearest(word, table))

# %% [markdown]
# 常见的字，邻居是同类；生僻字出现得太少，邻居多是偶然的。
#
# ## 留给下一步的
#
# 向量在这里只是副产品，后来却成了主角。如果只想要向量，模型的大半都可以拿掉：[word2vec](word2vec.py)。
