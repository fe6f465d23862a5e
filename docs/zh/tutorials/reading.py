# %% [markdown]
# # 阅读理解：在文章里划出答案
#
# 输入一个问题和一段文章，输出文章里的一段文字。模型不会自己组织语言，只预测答案从哪个字开始、到哪个字结束。
#
# 文章和问题都是为这一页写的，只有八题，模型会把它们背下来：这一页讲的是**数据格式、训练、得分**，得分的高低没有意义。
# 模型是随包附带的 `modernbert_mini_zh_classics`，只读过四部古典小说。真正使用时，把名字换成 `bert_base_zh`，
# 数据换成 CMRC 2018。
#
# ## 数据
#
# 答案必须是文章里的原文，连同它开始的位置：同样的字可能出现两次。

# %%
import keras

import bert_keras
from bert_keras import plots

keras.utils.set_random_seed(0)
passage = (
    "图书馆早上八点开门，晚上十点关门。借书证在一楼大厅办理，需要带身份证。"
    "每人最多借十本书，借期三十天，可以续借一次。自习室在四楼，周末不开放。"
)
rows = [
    ("图书馆几点开门？", "早上八点"),
    ("图书馆几点关门？", "晚上十点"),
    ("借书证在哪里办理？", "一楼大厅"),
    ("办借书证要带什么？", "身份证"),
    ("最多可以借几本书？", "十本"),
    ("书可以借多久？", "三十天"),
    ("可以续借几次？", "一次"),
    ("自习室在几楼？", "四楼"),
]
questions = [question for question, _ in rows]
contexts = [passage] * len(rows)
answers = [(answer, passage.index(answer)) for _, answer in rows]
for question, (answer, start) in zip(questions, answers, strict=True):
    print(question, answer, start)
    assert passage[start : start + len(answer)] == answer

# %% [markdown]
# 位置是**原文的字符下标**，词元与字符的换算由分词器完成，不必自己数。
#
# ## 模型

# %%
reader = bert_keras.QuestionAnswering.from_preset("modernbert_mini_zh_classics", max_length=128)

# %% [markdown]
# 模型读到的是 `[CLS] 问题 [SEP] 文章 [SEP]`。`bert_base_zh` 还用分段编号区分两者：问题是 0，文章是 1；ModernBERT 没有分段。比 `max_length` 长的文章切成互相重叠的窗口，
# 回答时在所有窗口里取最好的一段。
#
# ## 训练

# %%
reader.compile(learning_rate=1e-3)
history = reader.fit((questions, contexts), answers, batch_size=8, epochs=40, verbose=0)
print(f"损失从 {history.history['loss'][0]:.2f} 降到 {history.history['loss'][-1]:.3f}")

# %% [markdown]
# ## 回答

# %%
answer = reader.answer("自习室在几楼？", passage)
print(answer)
print(reader.answer("周末可以去自习室吗？", passage)["answer"])

# %%
plots.answer(passage, answer)

# %% [markdown]
# 第二个问题没有训练过，答案是硬凑出来的：抽取式模型总会划出**某一段**。要让它能说“文章里没有”，
# 训练数据里就要有没有答案的问题（SQuAD 2.0 的做法），答案写作 `None`。
#
# ## 得分
#
# 中文按字算 F1，去掉标点，与 CMRC 2018 的官方脚本一致。

# %%
truth = {question: [answer] for question, answer in rows}
predictions = {question: reader.answer(question, passage)["answer"] for question in questions}
print(bert_keras.metrics.cmrc_scores(truth, predictions))

# %% [markdown]
# ```shell
# bert-keras train question_answering --preset bert_base_zh --data_dir cmrc2018
# ```
