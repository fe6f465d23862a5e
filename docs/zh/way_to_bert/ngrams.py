# %% [markdown]
# # n 元语法：数数
#
# **语言模型**给每一句话一个概率，一个字一个字地乘起来：
#
# $$P(w_1 \dots w_n) = \prod_i P(w_i \mid w_1 \dots w_{i-1})$$
#
# 完整的上文不会重复出现，没法数。n 元语法只看前 $n-1$ 个字；$n=3$ 时
# $P(w_i \mid w_{i-2}, w_{i-1}) \approx c(w_{i-2} w_{i-1} w_i) / c(w_{i-2} w_{i-1})$。没有梯度，没有层，只有一张计数表。
# 输入法的候选词、早年的语音识别，靠的都是它。
#
# ## 语料
#
# 《水浒传》前二十二回。一个汉字或一个标点算一个“词”。在前十分之九里出现不到三次的字记作 `<unk>`，后十分之一用来测量。
# 后面各章都用同样的划分，困惑度可以互相比较。

# %%
import collections
import gzip
import math
import random
import re

import matplotlib.pyplot as plt

with gzip.open("docs/data/shuihu_zhuan.txt.gz", "rt", encoding="utf-8") as file:
    words = re.findall(r"[\u4e00-\u9fff，。！？；]", file.read())
end = len(words) * 9 // 10
frequent = {word for word, n in collections.Counter(words[:end]).items() if n >= 3}
words = [word if word in frequent else "<unk>" for word in words]
train, test = words[:end], words[end:]
size = len(frequent) + 1
print(f"{len(train):,} 个字用来数, {len(test):,} 个字用来测, {size:,} 个不同的字")

# %% [markdown]
# ## 数


# %%
def grams(words, n):
    return zip(*(words[i:] for i in range(n)), strict=False)


counts = {n: collections.Counter(grams(train, n)) for n in (1, 2, 3)}
for n in (1, 2, 3):
    unseen = sum(gram not in counts[n] for gram in grams(test, n)) / (len(test) - n + 1)
    print(f"{n}元： {len(counts[n]):6,} 种，测试部分有 {unseen:.0%} 没见过")
print(counts[3].most_common(5))

# %% [markdown]
# 问题就在这里：测试部分近三分之二的三元组从没见过，只靠计数，它们的概率是 0，整段文字的概率也是 0。
# **平滑**就是从见过的组合里匀出一点概率，分给没见过的。最简单有效的办法：把三元、二元、一元按权重混合。


# %%
def probability(gram, weights):
    """P(最后一个字 | 前面的字)，由三张表混合而成。"""
    *_, b, c = gram
    result = weights[0] * (counts[1][(c,)] + 1) / (len(train) + size)
    if counts[1][(b,)]:
        result += weights[1] * counts[2][(b, c)] / counts[1][(b,)]
    if len(gram) == 3 and counts[2][gram[:2]]:
        result += weights[2] * counts[3][gram] / counts[2][gram[:2]]
    return result


def perplexity(weights):
    """平均惊讶程度的指数：在多少个同样可能的字之间犹豫。"""
    surprise = [-math.log(probability(gram, weights)) for gram in grams(test, 3)]
    return math.exp(sum(surprise) / len(surprise))


perplexities = []
for name, weights in {
    "只看单字": (1, 0, 0),
    "加上二元": (0.4, 0.6, 0),
    "加上三元": (0.35, 0.45, 0.2),
}.items():
    perplexities.append(perplexity(weights))
    print(f"{name} 困惑度 {perplexities[-1]:6.1f}")

# %%
figure, axis = plt.subplots(figsize=(5, 2.6))
bars = axis.bar(["1-grams", "1 and 2", "1, 2 and 3"], perplexities)
axis.bar_label(bars, fmt="%.0f")
axis.set_ylabel("perplexity")
plt.show()

# %% [markdown]
# **困惑度**（perplexity）是这几章统一的尺子：模型平均在多少个同样可能的字之间犹豫。能完全背下来的文字，困惑度是 1；
# 完全瞎猜时，它等于字表的大小。
#
# ## 写
#
# 有概率就能抽样。三元语法写出的句子，三五个字之内还像样，再长就不知所云了。

# %%
random.seed(1)
for _ in range(3):
    sentence = ["宋", "江"]
    while sentence[-1] != "。" and len(sentence) < 40:
        after = [(gram[2], n) for gram, n in counts[3].items() if gram[:2] == (*sentence[-2:],)]
        candidates, weights = zip(*after, strict=True)
        sentence += random.choices(candidates, weights)
    print("".join(sentence))

# %% [markdown]
# ## 缺什么
#
# 在计数表眼里，“刀”与“枪”的差别和“刀”与“酒”的差别一样大：数过“提了朴刀”，对“提了哨棒”毫无帮助。
# 上文取得更长，表只会更空。[下一章](nnlm.py)让字与字之间有远近。
