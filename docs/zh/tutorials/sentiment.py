# %% [markdown]
# # 情感分类：外卖和酒店评论
#
# 给每条评论一个类别：好评或差评。页面里的评论是为这份文档写的，只有几十条；构建网站的机器也不联网，
# 所以下面用一个**没有预训练过**的小模型走完全部流程。真正使用时只改一行：
#
# ```python
# classifier = bert_keras.TextClassifier.from_preset("bert_base_zh", label_names=["差评", "好评"])
# ```
#
# 其余代码一字不动。预训练值多少，正好可以这样比较。
#
# ## 数据

# %%
import itertools
import random

import keras

import bert_keras
from bert_keras import plots

good = [
    "很好吃",
    "非常干净",
    "服务热情",
    "送得很快",
    "味道不错",
    "还会再来",
    "物超所值",
    "十分满意",
]
bad = [
    "太难吃了",
    "又脏又旧",
    "态度很差",
    "等了两个小时",
    "味道一般还贵",
    "再也不来了",
    "不值这个价",
    "非常失望",
]
openings = ["这家店", "房间", "外卖", "前台", "早餐", "总的来说", "第二次来", "朋友推荐的"]

rows = [(f"{opening}，{phrase}。", "好评") for opening, phrase in itertools.product(openings, good)]
rows += [(f"{opening}，{phrase}。", "差评") for opening, phrase in itertools.product(openings, bad)]
random.Random(0).shuffle(rows)
train, dev = rows[:96], rows[96:]
print(len(train), "条训练，", len(dev), "条验证，例如", train[0])

# %% [markdown]
# 自己的数据一般在 CSV 里，`pandas` 的列可以直接交给 `fit`：
# `classifier.fit(frame["review"], frame["label"])`。
#
# **先看数据**：类别是否均衡？有没有重复？验证集里有没有混进训练集的句子？

# %%
labels = [label for _, label in rows]
print({name: labels.count(name) for name in ("好评", "差评")})
print("重复：", bert_keras.datasets.count_shared_texts([t for t, _ in train], [t for t, _ in dev]))

# %% [markdown]
# ## 分词器和模型
#
# 词表就是训练集里出现过的字，外加 BERT 的五个特殊符号。用 `bert_base_zh` 时，词表随模型一起来，这一步不需要。

# %%
keras.utils.set_random_seed(0)
characters = sorted({character for text, _ in train for character in text})
tokenizer = bert_keras.WordPieceTokenizer(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]
)
print(tokenizer.tokenize("味道不错，还会再来。"))

backbone = bert_keras.BertBackbone(
    vocabulary_size=tokenizer.vocabulary_size,
    num_layers=2,
    num_heads=4,
    hidden_dim=64,
    intermediate_dim=128,
    max_sequence_length=64,
)
classifier = bert_keras.TextClassifier(
    backbone,
    preprocessor=bert_keras.TextPreprocessor(tokenizer, max_length=32),
    label_names=["差评", "好评"],
)

# %% [markdown]
# ## 训练
#
# 没有预训练的模型要从零学起，学习率大，轮数多。`bert_base_zh` 请用 `learning_rate=2e-5` 到 `5e-5`、2 到 4 轮。

# %%
classifier.compile(learning_rate=1e-3)
history = classifier.fit(
    [text for text, _ in train],
    [label for _, label in train],
    validation_data=([text for text, _ in dev], [label for _, label in dev]),
    batch_size=16,
    epochs=12,
    verbose=2,
)

# %%
plots.learning_curves(history)

# %% [markdown]
# 验证集的分数看起来很高，别高兴得太早：验证集里的短语训练时都见过，只是开头不同。这样划分数据是常见的错误，
# 同一个用户、同一篇文章的句子分在两边，也是一样。换几句真正没见过的：

# %%
for text in ("服务很差，非常失望。", "早餐不错，干净。", "不难吃。", "没有不满意的地方。"):
    answer = classifier.classify(text)
    print(text, answer["label"], round(float(max(answer["probabilities"].values())), 2))

# %% [markdown]
# 对“不难吃”它几乎拿不准（概率接近一半）：训练集里只有“太难吃了”，它没见过“不”怎样改变后面的字。
# 读过大量中文的模型早就知道：这就是预训练的价值。
#
# ## 保存

# %%
import os
import tempfile

with tempfile.TemporaryDirectory() as folder:
    classifier.save(os.path.join(folder, "sentiment.keras"))
    again = keras.models.load_model(os.path.join(folder, "sentiment.keras"))
print(again.classify("这家店，十分满意。")["label"])

# %% [markdown]
# ## 公开数据集
#
# ChnSentiCorp（9600 条酒店、书籍、电脑评论）是中文情感分类的常用数据集，下载后：
#
# ```shell
# bert-keras train text_classification --preset bert_base_zh --data_dir chnsenticorp
# ```
