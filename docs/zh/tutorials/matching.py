# %% [markdown]
# # 语义匹配：客服问题问的是不是同一件事
#
# “花呗怎么还款”和“还花呗的钱在哪里操作”问的是同一件事，“花呗怎么还款”和“借呗怎么还款”不是，尽管只差一个字。
# 公开的数据集 LCQMC、AFQMC、BQ 都是这种句子对。做法有两种：
#
# | | 怎么做 | 什么时候用 |
# |---|---|---|
# | 分类 | `TextClassifier` 同时读两句，判断“同义”或“不同义” | 候选不多，要求准确 |
# | 句向量 | `TextEmbedder` 把每句变成一个向量，比较余弦 | 要从成千上万个标准问题里找，只能用它 |
#
# 这一页做第二种。问题是为这一页写的。模型是随包附带的 `modernbert_mini_zh_classics`，只读过四部古典小说；
# 真正使用时，把名字换成 `bert_base_zh`。
#
# ## 数据
#
# 每一行是同一件事的几种问法。前四种用来训练，最后一种留出来测量。

# %%
import keras
import numpy as np

import bert_keras
from bert_keras import metrics, plots

keras.utils.set_random_seed(0)
asked = [
    "怎么退货 想退货怎么办 退货流程是什么 东西不想要了 买错了能退吗",
    "什么时候发货 几天能发出 为什么还没发货 发货要多久 下单两天了没动静",
    "运费谁出 邮费要自己付吗 包邮吗 快递费多少 需要另付运费吗",
    "怎么改地址 地址填错了 能换收货地址吗 收货地址可以修改吗 想寄到另一个地方",
    "怎么开发票 可以开发票吗 发票在哪里申请 需要报销凭证 电子发票怎么弄",
    "优惠券怎么用 券用不了 为什么不能用优惠券 优惠券在哪里 领的券怎么抵扣",
    "忘记密码了 密码怎么找回 登录不上密码不对 怎么重设密码 密码想不起来了",
    "怎么联系客服 有人工客服吗 客服电话多少 转人工 我要找真人",
    "快递到哪了 怎么查物流 物流不更新了 包裹在哪里 看看我的快递",
    "东西坏了怎么办 收到是破的 商品有质量问题 货有破损 拆开发现裂了",
    "可以货到付款吗 能不能到了再给钱 支持货到付款吗 先收货后付款行吗 收到再付可以吗",
    "怎么注销账号 想删除账户 账号不用了怎么销 注销帐户的步骤 把我的账号删掉",
]
rows = [line.split() for line in asked]
known, held_out = [row[:4] for row in rows], [row[4] for row in rows]
print(len(rows), "件事，", sum(map(len, known)), "种问法训练；留出的例如：", held_out[0])

# %% [markdown]
# ## 先看一个不用训练的办法
#
# 数两句话有多少字相同（Jaccard 系数）。任何模型都要先胜过它。每个留出的问法找最像的已知问法，看是不是同一件事。


# %%
def overlap(first, second):
    return len(set(first) & set(second)) / len(set(first) | set(second))


questions = [question for row in known for question in row]
topics = np.repeat(np.arange(len(rows)), 4)


def accuracy(similarities):
    return np.mean(topics[np.argmax(similarities, axis=1)] == np.arange(len(rows)))


counted = np.array([[overlap(a, b) for b in questions] for a in held_out])
print(f"相同的字：{accuracy(counted):.2f}")

# %% [markdown]
# ## 模型
#
# 目标 `ranking`：一批里每一句的“另一种问法”要比其他各句都近，其他各句就是负例，不必另外标注。
# 所以**同一批里不能有同一件事的两对**，否则正确答案会被当成负例：下面一批十二对，一件事一对，不打乱。

# %%
embedder = bert_keras.TextEmbedder.from_preset(
    "modernbert_mini_zh_classics", pooling="mean", objective="ranking", max_length=32
)


def measured():
    return metrics.similarity_matrix(embedder.embed(held_out), embedder.embed(questions))


print(f"没有训练的向量：{accuracy(measured()):.2f}")

# %%
pairs = [(row[i], row[j]) for i in range(4) for j in range(4) if i != j for row in known]
firsts, seconds = map(list, zip(*pairs, strict=True))
embedder.compile(learning_rate=3e-4)
history = embedder.fit((firsts, seconds), batch_size=len(rows), epochs=8, shuffle=False, verbose=0)
print(f"损失从 {history.history['loss'][0]:.2f} 降到 {history.history['loss'][-1]:.2f}")
similarities = measured()
print(f"训练过的向量：{accuracy(similarities):.2f}")

# %% [markdown]
# 看看对在哪里、错在哪里：

# %%
for question, row, topic in zip(held_out, similarities, range(len(rows)), strict=True):
    best = row.argmax()
    print(
        "对" if topics[best] == topic else "错", question, "→", questions[best], f"{row[best]:.2f}"
    )

# %% [markdown]
# 十二个问题里，比数相同的字多对了一个；但这么小的模型懂得的字义不多：“下单两天了没动静”与“为什么还没发货”只有“没”字相同，
# 它看不出是一回事。读过大量中文的 `bert_base_zh` 更有希望，这就是预训练的价值；但也别跳过训练直接用它的向量，见
# [句向量](../../../examples/text_embedding.py)。
#
# 同一件事的余弦（`True`）和不同的事的余弦，分得越开，越容易定一个阈值，低于它就回答“不认识这个问题，转人工”：

# %%
same = topics[None] == np.arange(len(rows))[:, None]
plots.similarities(similarities.ravel(), same.ravel())
