# %% [markdown]
# # 选模型
#
# **家族**指一种模型结构，一篇论文对应一个类；**预设**（preset）是起了名字的检查点，带着自己的分词器。
# 任何任务都能用任何家族，`from_preset` 会根据文件判断是哪个家族。
#
# ## 家族
#
# | 家族 | 改了什么 | 什么时候选 |
# |---|---|---|
# | BERT（2018） | 掩码与下一句预测、可学习的绝对位置、WordPiece 词元 | 资料最多；中文的首选 |
# | RoBERTa（2019） | 结构相同；字节对编码；去掉分段与下一句预测；语料多得多 | 英文分类；XLM-R 适合一百种语言 |
# | ALBERT（2019） | 所有层共用一个块，词表嵌入变窄 | 文件要小；但并不更快 |
# | DistilBERT（2019） | 只有一半的层，向 BERT 的答案学习；没有池化层和分段 | 在意速度 |
# | ELECTRA（2020） | 对每个词元判断它是否被一个小生成器换掉 | 想自己训练一个好的小模型，也有时间训练很久 |
# | MPNet（2020） | 注意力加上由距离决定的偏置，所有层共用；按随机顺序猜词元 | 英文句向量 |
# | DeBERTa（2020，v3 2021） | 内容与距离分开打分；v3 的训练目标与 ELECTRA 相同 | 同样大小下最看重准确率，不太在意速度 |
# | NomicBERT（2024） | BERT 的块加上旋转位置与门控，8,192 个词元；GTE 与 Jina 第三代编码器同属此类 | 长文本的向量；GTE 支持中文 |
# | ModernBERT（2024） | 旋转位置、局部注意力、门控前馈、8,192 个词元 | 英文，尤其是长文本 |
#
# **注意名字**：`hfl/chinese-roberta-wwm-ext` 虽然叫 RoBERTa，结构和分词器却都是 BERT 的，它的 `config.json` 里写着
# `"model_type": "bert"`。在别的库里要记得用 BERT 的类去读；这里不必操心，`from_preset` 看文件，不看名字。
#
# 用同样的书训练半小时，各家族分别学到了多少，见[这张表](../guides/pretraining.md#哪个家族学得最多)。
#
# 下面给每个类建一个极小的模型，打印从外部就能看到的差别：

# %%
import numpy as np

import bert_keras

sizes = {"vocabulary_size": 100, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
families = (
    "Bert",
    "Roberta",
    "Albert",
    "DistilBert",
    "Electra",
    "MPNet",
    "DebertaV2",
    "NomicBert",
    "ModernBert",
)
for family in families:
    cls = getattr(bert_keras, f"{family}Backbone")
    backbone, deeper = cls(num_layers=2, **sizes), cls(num_layers=4, **sizes)
    outputs = backbone({"token_ids": np.array([[5, 6, 7]])})
    has_pooler = "有池化层" if "pooled_output" in outputs else "无池化层"
    segments = "有分段" if backbone.num_segments > 1 else "无分段"
    added = deeper.count_params() - backbone.count_params()
    print(f"{family:12}{segments}  {has_pooler}  多两层增加 {added:,} 个参数")

# %% [markdown]
# ALBERT 多加几层不增加参数，因为各层共用同一份；但每一层照样要算，所以不会更快。
#
# ## 预设
#
# `bert_keras.presets()` 列出全部注册过的名字。前三个随包附带，不需要联网，其余的在第一次使用时从 Hugging Face Hub 下载。
# 这些家族的其他检查点，用文件夹路径或 `hf://作者/名字` 来指定，
# 见[检查点](../guides/checkpoints.md)和[最常用的四十个编码器](forty_encoders.md)，后者逐个写出了加载代码。

# %%
bert_keras.presets()

# %% [markdown]
# ## 先用哪一个？
#
# - **中文**：`bert_base_zh`。想再好一点，换成 `hf://hfl/chinese-roberta-wwm-ext`（预训练时用全词掩码）。
#   显存只有 4 GB？先把 `max_length` 降到 128，再减小 `batch_size`。
# - **英文，笔记本电脑**：`minilm_l6_en_uncased`。
# - **英文，有 GPU**：`modernbert_base_en_cased` 或 `roberta_base_en_cased`。
# - **英文句向量**：`mpnet_base_en_uncased`。中文句向量：`hf://BAAI/bge-m3` 这样的多语言检查点。
# - **多种语言混排**：`xlm_roberta_base_multi_cased`。
# - **学习、试流程**：中文用 `modernbert_mini_zh_classics`，只读过四部古典小说；英文用 `bert_mini_en_gutenberg` 或
#   `modernbert_mini_en_gutenberg`，只读过十九世纪的小说。它们都很小，不能代表 BERT 的水平。
#
# 从小的开始。流程里的错误换成大模型照样会出，只是出得更慢。
