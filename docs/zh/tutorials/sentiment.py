# %% [markdown]
# # 情感分类：外卖和酒店评论
#
# 给每条评论一个类别：好评或差评。评论是为这一页写的，只有一百多条。模型是随包附带的
# `modernbert_mini_zh_classics`：4 层、256 维，只读过四部古典小说，不需要联网，一个 CPU 核就能训练。
# 真正使用时只改一行：
#
# ```python
# classifier = bert_keras.TextClassifier.from_preset("bert_base_zh", label_names=["差评", "好评"])
# ```
#
# ## 数据

# %%
import itertools
import os
import tempfile

import keras

import bert_keras
from bert_keras import plots

GOOD = [
    "很好吃",
    "非常干净",
    "服务热情",
    "送得很快",
    "味道不错",
    "还会再来",
    "物超所值",
    "十分满意",
]
BAD = [
    "太难吃了",
    "又脏又旧",
    "态度很差",
    "等了半天",
    "味道很怪",
    "再也不来了",
    "不值这个价",
    "非常失望",
]
NEW_GOOD = ["又香又甜", "老板和气", "风景很美", "睡得安稳"]
NEW_BAD = ["又冷又硬", "老板无礼", "吵得睡不着", "有一股臭味"]
OPENINGS = ["这家店", "房间", "外卖", "前台", "早餐", "总的来说", "第二次来", "朋友推荐的"]


def reviews(good, bad):
    rows = [(phrase, "好评") for phrase in good] + [(phrase, "差评") for phrase in bad]
    pairs = itertools.product(OPENINGS, rows)
    return zip(
        *[(f"{opening}，{phrase}。", label) for opening, (phrase, label) in pairs], strict=True
    )


texts, labels = map(list, reviews(GOOD, BAD))
dev_texts, dev_labels = map(list, reviews(NEW_GOOD, NEW_BAD))
print(len(texts), "条训练，", len(dev_texts), "条验证，例如", texts[0], labels[0])

# %% [markdown]
# **先看数据**：类别是否均衡？有没有重复？验证集里有没有混进训练集的句子？
#
# 这里的训练集和验证集没有一个短语相同。如果把所有评论打乱了再随机划分，验证集的短语训练时全都见过，分数会接近满分，
# 却什么也说明不了。同一个用户、同一篇文章的句子分在两边，也是同样的错误。

# %%
print({name: labels.count(name) for name in ("好评", "差评")})
print("重复：", bert_keras.datasets.count_shared_texts(texts, dev_texts))

# %% [markdown]
# ## 模型
#
# `from_preset` 读出编码器的权重和词表，再接上一个新的分类头。一个汉字是一个词元，不需要先分词：

# %%
keras.utils.set_random_seed(0)
classifier = bert_keras.TextClassifier.from_preset(
    "modernbert_mini_zh_classics", label_names=["差评", "好评"], pooling="mean", max_length=32
)
print(classifier.tokenizer.tokenize("味道不错，还会再来。"))

# %% [markdown]
# ## 训练
#
# 小模型的学习率要大一些，用 3e-4；`bert_base_zh` 用 2e-5 到 5e-5，训练 2 到 4 轮。

# %%
classifier.compile(learning_rate=3e-4)
history = classifier.fit(
    texts, labels, validation_data=(dev_texts, dev_labels), batch_size=16, epochs=6, verbose=2
)
plots.learning_curves(history)

# %% [markdown]
# ## 预训练值多少？
#
# 同样的结构，同样的训练，只是权重从随机值开始：

# %%
keras.utils.set_random_seed(0)
backbone = bert_keras.ModernBertBackbone.from_preset(
    "modernbert_mini_zh_classics", load_weights=False
)
untrained = bert_keras.TextClassifier(
    backbone, preprocessor=classifier.preprocessor, label_names=["差评", "好评"], pooling="mean"
)
untrained.compile(learning_rate=3e-4)
untrained.fit(texts, labels, batch_size=16, epochs=6, verbose=0)
for name, model in (("预训练过", classifier), ("随机权重", untrained)):
    score = model.evaluate(dev_texts, dev_labels, verbose=0, return_dict=True)
    print(f"{name}：没见过的短语，准确率 {score['accuracy']:.3f}")

# %% [markdown]
# @@RESULT@@
#
# ## 看几句

# %%
for text in ("服务很差，非常失望。", "早餐不错，干净。", "不难吃。", "没有不满意的地方。"):
    answer = classifier.classify(text)
    print(text, answer["label"], round(float(max(answer["probabilities"].values())), 2))

# %% [markdown]
# “不难吃”要懂得“不”怎样改变后面的字，一百多条评论教不会，这么小的模型也不懂。
#
# ## 保存
#
# 文件里有权重、词表和标签名，在任何后端的新进程里都能加载。

# %%
with tempfile.TemporaryDirectory() as folder:
    classifier.save(os.path.join(folder, "sentiment.keras"))
    again = keras.models.load_model(os.path.join(folder, "sentiment.keras"))
print(again.classify("这家店，十分满意。")["label"])

# %% [markdown]
# ## 换成你的数据
#
# `pandas` 的列可以直接交给 `fit`：`classifier.fit(frame["评论"], frame["标签"])`。
# CSV 用命令行训练更省事，见[你自己的数据](../guides/your_own_data.md)。
#
# ChnSentiCorp（9,600 条酒店、书籍、电脑评论）是中文情感分类的常用数据集：
#
# ```shell
# bert-keras train text_classification --data_dir chnsenticorp --preset bert_base_zh
# ```
