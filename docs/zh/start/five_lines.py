# %% [markdown]
# # 五行代码
#
# 加载一个检查点，用 BERT 论文的方法在原始文本上微调，然后给新的句子分类。下面用仓库里的 320 条英文评论，足以看清流程；
# 真正使用时，请准备几千条。
#
# 这个英文检查点小而好，所以这一页先用英文；中文见[情感分类教程](../tutorials/sentiment.py)，代码一样，
# 只是模型换成随包附带的 `modernbert_mini_zh_classics`，或者 `bert_base_zh`。

# %%
import bert_keras

train, _ = bert_keras.datasets.load_sentiment_sentences(
    "examples/data/sentiment_labelled_sentences"
)
texts, labels = train.texts[:320], train.labels[:320]

classifier = bert_keras.TextClassifier.from_preset(
    "minilm_l6_en_uncased", label_names=train.label_names
)
classifier.fit(texts, labels, verbose=2)
classifier.classify(["A joy from start to finish.", "It broke after two days."])

# %% [markdown]
# `fit` 里发生了什么：
#
# 1. 预处理器把文本切成词元（word piece），两端加上 `[CLS]` 和 `[SEP]`，再把长度相近的文本排成一批；
# 2. 标签如果是名字，会变成数字；这里本来就是数字；
# 3. 编码器和预测头的**全部**权重一起训练：AdamW，学习率在前十分之一的步数里上升，随后降到 0。
#    这就是 BERT 论文的训练方法；
# 4. 文本这么少，论文的三轮不够，所以多训练了几轮，输出的第一行写明了训练几轮，
#    见[数据很少](../guides/few_examples.md)。想自己定，用 `fit(epochs=...)` 和 `compile(learning_rate=...)`。
#
# 表格的列不用转换：`classifier.fit(df["评论"], df["标签"])` 直接用 pandas 表格的列训练，
# `classifier.classify(df["评论"])` 返回一个列表，每行一个答案。
#
# 模型本身接收的是一个由整数数组组成的字典。下面是预处理器对一个文本对的处理结果：

# %%
inputs = classifier.preprocessor((["A film."], ["A good one."]))
print(classifier.tokenizer.encode("A film.", "A good one.").pieces)
for name, array in inputs.items():
    print(name, array.tolist())

# %% [markdown]
# `token_ids` 是词元在词表里的编号；`segment_ids` 用 0、1 区分前后两段文本；`padding_mask` 里 1 是真实的词元，0 是填充。
#
# 新的预测头读的是词元向量的平均，因为这个检查点就是这样训练的；BERT 论文的检查点有训练好的池化层（pooler），
# 预测头就读它的输出。想换一种，写 `from_preset(..., pooling=...)`。
#
# ## 保存
#
# 文件里有权重、词表和标签名。在任何后端的新进程里都能加载。

# %%
import os
import tempfile

import keras

with tempfile.TemporaryDirectory() as folder:
    classifier.save(os.path.join(folder, "sentiment.keras"))
    again = keras.models.load_model(os.path.join(folder, "sentiment.keras"))
again.classify("What a waste of an evening.")

# %% [markdown]
# 下一步：[选任务](pick_a_task.md)，或者直接看[教程](../tutorials/index.md)。
