# %% [markdown]
# # 常见错误
#
# 下面的错误都是故意触发的。错误信息分三部分：规则是什么、收到了什么、该怎么办。

# %%
import bert_keras

MINI = "bert_mini_en_gutenberg"
classifier = bert_keras.TextClassifier.from_preset(MINI, num_classes=2)
texts = ["A ship came in.", "The horse was lame."]


def shown(action):
    """打印一个动作引发的错误。"""
    try:
        action()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
    else:
        raise AssertionError("这里本该出错。")


# %% [markdown]
# ## Could not locate class 'TextClassifier'
#
# 导入本库之后，`keras.models.load_model` 才认识本库的类。加载之前先写 `import bert_keras`。这个错误是 Keras 报的，
# 其中 `'module': 'bert_keras...'` 指出缺的是哪个包。下面的新进程忘了导入：

# %%
import os
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "sentiment.keras")
    classifier.save(path)
    code = f"import keras; keras.models.load_model({path!r})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    print(found.stderr.splitlines()[-1][:330], "...")
    code = "import bert_keras; " + code
    print(subprocess.run([sys.executable, "-c", code]).returncode)

# %% [markdown]
# ## 模型的名字写错了
#
# 别的库里的名字在这里没有注册。中文 BERT 叫 `bert_base_zh`；也可以写文件夹路径，或 `hf://google-bert/bert-base-chinese`。

# %%
shown(lambda: bert_keras.TextClassifier.from_preset("bert-base-chinese"))

# %% [markdown]
# ## 用了 transformers 的叫法
#
# 有些类、方法、输入和参数的名字与 transformers 不同，错误信息会告诉你这里叫什么。

# %%
shown(lambda: bert_keras.AutoModelForMaskedLM)
shown(lambda: bert_keras.TextClassifier.from_pretrained(MINI))
shown(lambda: classifier.predict({"token_ids": [[1, 2]], "attention_mask": [[1, 1]]}))
shown(lambda: classifier.compile(lr=1e-3))

# %% [markdown]
# ## 用英文模型读中文：不报错，却全错
#
# 这是中文用户最容易踩的坑。词表里没有的字一律变成 `[UNK]`，训练照样进行，结果却毫无意义。
# 得分低得奇怪时，先看看词元：

# %%
classifier.tokenizer.tokenize("我爱北京天安门。")

# %% [markdown]
# ## 标签
#
# 标签的个数要与文本相同。可以是从 0 开始的整数，也可以是 `label_names` 里的名字；新的预测头没有 `label_names` 时，会从标签里学到名字。

# %%
shown(lambda: classifier.fit(texts, [0]))
shown(lambda: classifier.fit(texts, [1, 2]))
shown(lambda: classifier.fit(texts, [[0.9, 0.9], [1, 0]]))

# %% [markdown]
# ## 空值与编码
#
# pandas 里的缺失值是 `None` 或 `nan`；以二进制方式读出的文件是 `bytes`，要先解码，
# 例如 `open(path, encoding="utf-8")`，老的中文文件可能是 `encoding="gb18030"`。

# %%
shown(lambda: classifier.fit(["A ship came in.", None], [0, 1]))
shown(lambda: classifier.fit(["第一条".encode("gb18030")], [0]))

# %% [markdown]
# ## 太长
#
# 原始文本会被截断到模型能读的长度，不报错，见[长文本](../guides/long_texts.md)。
# 直接传入的编号序列太长，或者 `max_length` 超过位置数，都会报错。

# %%
shown(lambda: classifier.predict({"token_ids": [[1] * 600]}))
shown(lambda: bert_keras.TextClassifier.from_preset(MINI, max_length=512))

# %% [markdown]
# ## 编号来自另一份词表

# %%
shown(lambda: classifier.predict({"token_ids": [[1, 99_999]]}))

# %% [markdown]
# ## 没有 `[MASK]` 可填
#
# BERT 写作 `[MASK]`，RoBERTa 写作 `<mask>`。

# %%
language_model = bert_keras.MaskedLM.from_preset(MINI)
shown(lambda: language_model.fill_mask("She opened the door."))

# %% [markdown]
# ## 字与标签不等长
#
# 标注模型用切好的词（中文是字）训练，每个词一个标签。中文里最常见的原因是文本中混进了空格或全角空格。

# %%
tagger = bert_keras.TokenClassifier.from_preset(MINI, num_classes=3)
shown(lambda: tagger.fit([list("我在北京")], [[0, 0, 1]]))

# %% [markdown]
# ## 答案的位置
#
# 答案要写成“文字与起始位置”，因为同样的字可能在文章里出现两次。

# %%
reader = bert_keras.QuestionAnswering.from_preset(MINI)
shown(lambda: reader.fit((["谁来了？"], ["林冲来了。"]), ["林冲"]))

# %% [markdown]
# ## “start at random” 的警告
#
# 预训练的检查点里没有你这个任务的预测头，`from_preset` 会给出警告，`fit` 会训练它。如果警告里列出的是**编码器**的层，
# 说明检查点缺了不该缺的部分。

# %%
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    bert_keras.TextClassifier.from_preset(MINI)
print(caught[-1].message)

# %% [markdown]
# ## 训练完了，什么也没学到
#
# | 现象 | 先看什么 |
# |---|---|
# | 准确率从第一轮起就等于最大类的占比 | 先不写 `epochs` 和 `learning_rate`，让 `fit` 按[数据量](../guides/few_examples.md)选取；再检查标签和文本是否还一一对应 |
# | 损失变成 `nan` | 学习率可能太高；或者用了 float16 却没有做损失缩放，改用 `mixed_bfloat16` |
# | 训练集好，验证集差 | 减少轮数 |
# | 验证集的得分高得不真实 | 两边是否有相同的文本：用 `bert_keras.datasets.count_shared_texts` 数一数 |
# | 每次结果都不同 | 小数据集上很正常：换三个种子，报告均值与波动 |
# | 设了 `KERAS_BACKEND` 不起作用 | 设置得太晚，Keras 已经导入过了 |
