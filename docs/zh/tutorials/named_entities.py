# %% [markdown]
# # 命名实体识别：《水浒传》里的人名
#
# 给每个字一个标签：`B-PER` 是人名的第一个字，`I-PER` 是其余的字，`O` 不是人名。
#
# 标注数据从哪里来？人工标注最可靠，也最贵。这里用一个常见的起步办法：一份**名单**去匹配原文，得到“银标准”标注。
# 名单分成两半，训练只用前一半的人；看看模型能不能从上下文认出后一半从没标过的人。
#
# 模型是随包附带的 `modernbert_mini_zh_classics`：4 层、256 维，只读过四部古典小说。《水浒传》它也读过，但没有见过标注。
# 真正使用时，把名字换成 `bert_base_zh`。

# %%
import gzip
import re

import keras

import bert_keras
from bert_keras import plots

keras.utils.set_random_seed(0)
with gzip.open("docs/data/shuihu_zhuan.txt.gz", "rt", encoding="utf-8") as file:
    sentences = re.findall(r"[\u4e00-\u9fff，：“”、]{8,48}[。？！]", file.read())
known = ["林冲", "宋江", "杨志", "史进", "晁盖", "陆谦", "王伦", "刘唐", "阎婆", "朱贵"]
held_out = ["武松", "柴进", "李忠", "吴用", "何涛"]
print(len(sentences), "句，例如：", sentences[100])

# %% [markdown]
# ## 打标签


# %%
def tags(sentence, names):
    found = ["O"] * len(sentence)
    for name in names:
        for match in re.finditer(name, sentence):
            found[match.start()] = "B-PER"
            found[match.start() + 1 : match.end()] = ["I-PER"] * (len(name) - 1)
    return found


train = [s for s in sentences if any(n in s for n in known) and not any(n in s for n in held_out)]
unseen = [s for s in sentences if any(n in s for n in held_out)]
train, dev = train[:700], train[700:850]
print(len(train), "句训练，", len(dev), "句验证，", len(unseen), "句含有没见过的名字")
print(list(zip(train[3], tags(train[3], known), strict=True))[:12])

# %% [markdown]
# **按字，不按词**：句子写成字的列表 `list(sentence)`，标签与字一一对应。
#
# ## 训练

# %%
tagger = bert_keras.TokenClassifier.from_preset(
    "modernbert_mini_zh_classics", label_names=["O", "B-PER", "I-PER"], max_length=64
)
tagger.compile(learning_rate=5e-4)
tagger.fit(
    [list(sentence) for sentence in train],
    [tags(sentence, known) for sentence in train],
    batch_size=32,
    epochs=2,
    verbose=2,
)

# %% [markdown]
# ## 测量
#
# 只看每个字的准确率会骗人：绝大多数字是 `O`，全猜 `O` 也有九成多。要按**整个实体**算：位置和类别全对才算对。


# %%
def entities(sentence, names):
    return {(m.start(), m.end()) for name in names for m in re.finditer(name, sentence)}


def scores(sentences, names):
    right = guessed = there = 0
    answers = tagger.tag([list(sentence) for sentence in sentences])
    for sentence, found in zip(sentences, answers, strict=True):
        guess = {(entity["start"], entity["end"]) for entity in found["entities"]}
        truth = entities(sentence, names)
        right, guessed, there = right + len(guess & truth), guessed + len(guess), there + len(truth)
    return f"找出 {right}/{there}，猜了 {guessed} 处"


print("名单里的人：", scores(dev, known))
print("没见过的人：", scores(unseen[:150], held_out))

# %% [markdown]
# 名单里的人等于背下来了；没见过的人却一个也找不到：名单之外的人名在训练时全都标成了 `O`，
# 模型学会的正是不去认它们。只报前一个数字，就是把记性当成了本事：
# 评测命名实体识别，一定要看没见过的实体。

# %%
for sentence in unseen[:4]:
    print(sentence, [entity["text"] for entity in tagger.tag([list(sentence)])[0]["entities"]])

# %% [markdown]
# 再看看名单里的人在没训练过的句子里的标注：

# %%
plots.tags(tagger.tag([list(sentence) for sentence in dev[:4]]))

# %% [markdown]
# ## 下一步
#
# - 换成 `bert_base_zh`，它从没读过标注，却知道“武松”像个人名。
# - `TokenClassifier(..., crf=True)` 在输出上加一层条件随机场，避免 `O` 后面直接跟 `I-PER`。
# - 公开数据：微博实体、人民日报、MSRA；`bert-keras train token_classification --preset bert_base_zh --data_dir 数据目录`。
