# %% [markdown]
# # word2vec：只要向量
#
# Mikolov 等，2013：[第一篇](https://arxiv.org/abs/1301.3781)与[第二篇](https://arxiv.org/abs/1310.4546)。
# 对 [NNLM](nnlm.py) 做了两处简化，快了上千倍。
#
# 1. **去掉隐藏层**，上下文与目标字的向量直接相乘。**CBOW** 用周围的字的平均去猜中间的字；**skip-gram** 用中间的字去猜周围的每一个字。
# 2. **去掉完整的 softmax**，不再在全部字里挑一个，只回答几个“是不是”。
#
# ![CBOW 与 skip-gram](../figures/cbow_skip_gram.svg)
#
# 模型很小，训练要走几千步。JAX 把一步编译成一个程序，比 PyTorch 快好几倍，所以这一章用 JAX。

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
with gzip.open("docs/data/shuihu_zhuan.txt.gz", "rt", encoding="utf-8") as file:
    words = re.findall(r"[\u4e00-\u9fff]", file.read())
counted = [(word, n) for word, n in collections.Counter(words).most_common() if n >= 5]
vocabulary = [word for word, _ in counted]
counts = np.array([n for _, n in counted], float)
number = {word: i for i, word in enumerate(vocabulary)}
ids = np.array([number[word] for word in words if word in number], "int32")
print(f"{len(ids):,} 个字，{len(vocabulary):,} 种")

# %% [markdown]
# “了”“的”“道”旁边什么字都有，提供的信息很少。所以随机丢弃一部分常见字，越常见丢得越多（第二篇论文 2.3 节；语料小，阈值取 1e-3 而不是 1e-5）。

# %%
share = counts / counts.sum()
keep = np.minimum(1, np.sqrt(1e-3 / share) + 1e-3 / share)
kept = ids[random.random(len(ids)) < keep[ids]]
print(f"剩下 {len(kept):,} 个；“了”留下的概率是 {keep[number['了']]:.2f}")
WINDOW = 4
around = np.lib.stride_tricks.sliding_window_view(kept, 2 * WINDOW + 1)
middle, context = around[:, WINDOW], np.delete(around, WINDOW, axis=1)

# %% [markdown]
# ## 一个模型，几种方法
#
# 几种方法都是：查出输入的向量，取平均，再与另一张表（“问题表”）的若干行相乘。区别只在于输入是什么、问哪几行、答案是什么。


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
    """各问题的二元交叉熵之和；答案为 -1 的不计。"""
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
# ### 负采样
#
# 问题是“这个字该出现在这里吗？”对真正的字问一次，再对随机抽出的五个字各问一次；抽样概率正比于字频的 3/4 次方。


# %%
def with_negatives(target, k=5):
    drawn = random.choice(len(vocabulary), (len(target), k), p=counts**0.75 / sum(counts**0.75))
    questions = np.column_stack([target, drawn]).astype("int32")
    return questions, np.tile(np.array([1.0] + [0.0] * k, "float32"), (len(target), 1))


vectors = {}
pairs = random.permutation(len(middle) * 2 * WINDOW)[: 3 * len(middle)]
centre, neighbour = np.repeat(middle, 2 * WINDOW)[pairs], context.reshape(-1)[pairs]
vectors["skip-gram，负采样"], losses = trained(
    centre[:, None], *with_negatives(neighbour), len(vocabulary)
)
print("skip-gram", losses)
vectors["CBOW，负采样"], losses = trained(context, *with_negatives(middle), len(vocabulary), 5)
print("CBOW     ", losses)

# %% [markdown]
# skip-gram 本可以从每个字的八个邻居学习，这里只取三个，让这一页快一些。
#
# ### 层次 softmax
#
# 所有的字是一棵二叉树的叶子，说出一个字，就是从树根往下一路回答“左还是右”。**哈夫曼树**把常见字放在离根近的地方，平均路径就短。

# %%
heap = [(n, i) for i, n in enumerate(counts)]
heapq.heapify(heap)
parent = {}
for node in range(len(vocabulary), 2 * len(vocabulary) - 1):
    (n, left), (m, right) = heapq.heappop(heap), heapq.heappop(heap)
    parent[left], parent[right] = (node, 0.0), (node, 1.0)
    heapq.heappush(heap, (n + m, node))


def way(word):
    """一个字上方的各个节点，以及它在每个节点的哪一侧。"""
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
print("".join(str(int(side)) for _, side in reversed(ways[number["了"]])), "是走到“了”的路")
print(f"平均路长 {mean_length:.1f}，最长 {deepest}")
vectors["CBOW，层次"], losses = trained(
    context, nodes[middle], sides[middle], len(vocabulary) - 1, 5
)
print("CBOW     ", losses)

# %% [markdown]
# ### 自适应 softmax
#
# Grave 等，[2016](https://arxiv.org/abs/1609.04309)：仍然是挑一个，但分两步。第一步在最常见的字和“其他”之间挑；选中“其他”，
# 才用维数只有四分之一的向量在其余的字里挑。与负采样不同，它给出真正的概率，所以语言模型用它。


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
vectors["CBOW，自适应"] = np.array(adaptive.vectors.get_weights()[0])
total = ops.convert_to_numpy(ops.sum(ops.exp(adaptive(context[:1]))))
print("损失", *(f"{loss:.2f}" for loss in losses), f"概率之和 {total:.4f}")

# %% [markdown]
# 为了看得清楚，这里对每一行都算了第二步；实用的实现只对需要的行计算。
#
# ### 一个字要多少次乘法
#
# 这是一次预测要做的乘法次数，向量 64 维。左列用这份字表；右列设想十万个词的词表，只列出次数仅由词表大小决定的两种方法：

# %%
rare = 1 - share[:NUM_FREQUENT].sum()
tail = 64 * 16 + 16 * (len(vocabulary) - NUM_FREQUENT)
print(f"完整 softmax       {64 * len(vocabulary):9,.0f}    {64 * 100_000:9,}")
print(f"自适应 softmax     {64 * (NUM_FREQUENT + 1) + rare * tail:9,.0f}")
print(f"层次 softmax        {64 * mean_length:9,.0f}")
print(f"五个负样本         {64 * 6:9,}    {64 * 6:9,}")

# %% [markdown]
# ## 向量好不好？
#
# **邻居**，按余弦相似度：


# %%
def unit(table):
    return table / np.linalg.norm(table, axis=1, keepdims=True)


for name, table in vectors.items():
    table = unit(table)
    print(name)
    for word in ("酒", "刀", "东", "父", "二"):
        order = np.argsort(-(table @ table[number[word]]))[1:6]
        print(f"   {word}", *(vocabulary[i] for i in order))

# %% [markdown]
# **类比**：“东”之于“西”，好比“南”之于？找离“西 − 东 + 南”最近的字，题目里的三个字除外。公开的中文类比题以词为单位，
# 这里自己写了几道单字题：

# %%
questions = [
    "东西南北",
    "上下前后",
    "父母兄弟",
    "一二三四",
    "男女公婆",
    "大小长短",
    "早晚日夜",
    "刀枪弓箭",
    "左右前后",
]
for name, table in vectors.items():
    table, right, asked = unit(table), 0, 0
    for question in questions:
        if all(word in number for word in question):
            a, b, c, d = (number[word] for word in question)
            scores = table @ (table[b] - table[a] + table[c])
            scores[[a, b, c]] = -np.inf
            asked, right = asked + 1, right + int(scores.argmax() == d)
    print(f"{name:22}{asked} 题答对 {right} 题")

# %% [markdown]
# 题目少，语料更少，只能看个大概：论文的语料有 7.83 亿到 330 亿词，这里十几万字。英文版这一章用官方的 19544 道题做了同样的测试，
# 并且与一个读过海量文本的模型的词元向量作了比较。
#
# ## 留给下一步的
#
# 向量只学一次，到处都能当第一层用：这是最早的“预训练”。还剩两个问题：它一次只看一个窗口，从不看整个语料的统计，见 [GloVe](glove.py)；
# 一个字不论在哪里、什么意思，都是同一个向量，见 [ELMo](elmo.py)。
