# %% [markdown]
# # 情感分类：外卖和酒店评论
#
# 给每条评论一个类别：好评或差评。评论是为这一页写的，一共两百多条。模型是随包附带的
# `modernbert_mini_zh_classics`：4 层、256 维，只读过四部古典小说，不需要联网，一个 CPU 核就能训练。
# 真正使用时，从 `bert_base_zh` 开始，一行就够：
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
    "又大又亮",
    "人很和气",
    "安静舒服",
    "喜欢得很",
    "香气扑鼻",
    "便宜实惠",
    "真好看",
    "样样周到",
    "比上次更好",
    "没有可挑剔的",
    "色香味俱全",
    "笑脸相迎",
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
    "又小又黑",
    "人很无礼",
    "吵得头疼",
    "讨厌得很",
    "臭气熏天",
    "贵得吓人",
    "真难看",
    "样样不行",
    "比上次更差",
    "没有一样好的",
    "又冷又硬",
    "冷言冷语",
]
NEW_GOOD = [
    "又香又甜",
    "老板和气",
    "真舒服",
    "干净明亮",
    "快得很",
    "很喜欢",
    "满意极了",
    "好吃又便宜",
]
NEW_BAD = ["又臭又硬", "老板无礼", "真吵", "脏得很", "慢得吓人", "很讨厌", "失望极了", "难吃又贵"]
OPENINGS = ["这家店", "房间", "外卖", "总的来说"]


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
# 骨干网络读出检查点的权重，上面接一个新的分类头，读各个词元向量的平均。`load_weights=False` 让同样的结构从随机权重开始，
# 后面用来比较。一个汉字是一个词元，不需要先分词：

# %%
PRESET = "modernbert_mini_zh_classics"
preprocessor = bert_keras.TextPreprocessor.from_preset(PRESET, max_length=32)


def make_classifier(load_weights):
    keras.utils.set_random_seed(0)
    classifier = bert_keras.TextClassifier(
        bert_keras.ModernBertBackbone.from_preset(PRESET, load_weights=load_weights),
        preprocessor=preprocessor,
        label_names=["差评", "好评"],
        pooling="mean",
    )
    classifier.compile(learning_rate=3e-4)
    return classifier


classifier = make_classifier(load_weights=True)
print(classifier.tokenizer.tokenize("味道不错，还会再来。"))

# %% [markdown]
# ## 训练
#
# 小模型的学习率要大一些，用 3e-4；`bert_base_zh` 用 2e-5 到 5e-5，训练 2 到 4 轮。

# %%
history = classifier.fit(
    texts, labels, validation_data=(dev_texts, dev_labels), batch_size=16, epochs=6, verbose=2
)
plots.learning_curves(history)

# %% [markdown]
# ## 预训练有多大作用？
#
# 同样的结构，同样的训练，只是权重随机初始化：

# %%
untrained = make_classifier(load_weights=False)
untrained.fit(texts, labels, batch_size=16, epochs=6, verbose=0)
for name, model in (("预训练过", classifier), ("随机权重", untrained)):
    score = model.evaluate(dev_texts, dev_labels, verbose=0, return_dict=True)
    print(f"{name}：没见过的短语，准确率 {score['accuracy']:.3f}")

# %% [markdown]
# 验证集的短语都是新的，里面的“香”“脏”“吵”却大多在训练集里出现过，所以随机权重也学得会，只比预训练过的低几个百分点。
# 六十四条里差三条，也可能是运气。两千条真实评论上的比较见
# [预训练](../guides/pretraining.md#中文四大名著)。
#
# ## 看几句

# %%
for text in ("服务很差，非常失望。", "早餐不错，干净。", "不难吃。", "没有不满意的地方。"):
    answer = classifier.classify(text)
    print(text, answer["label"], round(float(max(answer["probabilities"].values())), 2))

# %% [markdown]
# 要判断“不难吃”，得懂得“不”怎样改变后面的字。一百多条评论不够学会这一点，这么小的模型在预训练时也没有学到。
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
# bert-keras train text_classification --preset bert_base_zh --data_dir chnsenticorp
# ```
