# %% [markdown]
# # Pick a model
#
# A **family** is an architecture, one class per paper. A **preset** is a named checkpoint with its
# tokenizer. Every task works with every family, and `from_preset` detects the family from the
# files.
#
# ## The families
#
# | family | what is new | choose it |
# |---|---|---|
# | BERT (2018) | trained on masked tokens and next sentences; learned absolute positions; word pieces | because it is the best understood, or for Chinese |
# | RoBERTa (2019) | the same blocks; byte-pair encoding; no segments, no next-sentence prediction; much more text | for English classification; XLM-R for a hundred languages |
# | ALBERT (2019) | one block shared by all layers; narrow token embeddings | for a small file; it is not faster than BERT |
# | DistilBERT (2019) | half of BERT's layers, distilled from BERT; no pooler, no segments | for speed |
# | ELECTRA (2020) | for every token, predicts whether a small generator has replaced it | to pre-train a good small model yourself, if you can train for days |
# | MPNet (2020) | relative position bias in attention, shared by all layers; predicts tokens in a random order | for vectors of English sentences |
# | DeBERTa (2020, v3 2021) | separate attention scores for content and relative position; v3 uses ELECTRA's objective | for the best accuracy at the size of BERT-base, if speed matters less |
# | NomicBERT (2024) | BERT's blocks with rotary positions and gated feed-forward layers, 8,192 tokens; also GTE and jina-embeddings-v3 | for vectors of long texts |
# | ModernBERT (2024) | rotary positions, local attention, gated feed-forward layers, 8,192 tokens | for long texts, and for English in general |
#
# We trained small models of each family on the same books for half an hour:
# [a table](../../pretraining_ablations.md#which-family-learns-most) shows what each one learned.
#
# The code below builds a tiny model of each class and prints how they differ in inputs, outputs and
# size:

# %%
import numpy as np

import bert_keras

sizes = {"vocabulary_size": 100, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
rows = []
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
    rows.append(
        {
            "family": family,
            "has segments": backbone.num_segments > 1,
            "tokens (default)": backbone.max_sequence_length,
            "pooled output": "pooled_output" in outputs,
            "two more layers add": deeper.count_params() - backbone.count_params(),
        }
    )
for name in rows[0]:
    print(f"{name:20}", *(f"{row[name]!s:>11}" for row in rows))

# %% [markdown]
# More layers add no weights to ALBERT, because all layers share theirs. They still add compute
# time.
#
# ## The presets
#
# `bert_keras.presets()` lists the registered checkpoints. The first three need no network; the
# others are downloaded from the Hugging Face Hub on first use. For any other checkpoint of these
# families, pass its folder or `hf://owner/name`: see [checkpoints](../guides/checkpoints.md), and
# [the forty most used encoders](forty_encoders.md), each with the line that loads it.

# %%
bert_keras.presets()

# %% [markdown]
# ## Which one first?
#
# - **To learn, or to test a pipeline**: `bert_mini_en_gutenberg`, or
#   `modernbert_mini_en_gutenberg`. They are small and were trained on 19th-century novels only, so
#   do not judge BERT by them.
# - **English, on a laptop**: `minilm_l6_en_uncased`.
# - **Vectors of English sentences**: `mpnet_base_en_uncased`.
# - **English, with a GPU**: `modernbert_base_en_cased` or `roberta_base_en_cased`.
# - **Chinese, without a network**: `modernbert_mini_zh_classics`, which was trained on four classic
#   novels. Use it for lessons and tests only.
# - **Chinese**: `bert_base_zh`; then `hf://hfl/chinese-roberta-wwm-ext`, which has BERT's
#   architecture and was trained with whole-word masking.
# - **Several languages**: `xlm_roberta_base_multi_cased`.
#
# Start small. A small model reveals the bugs of a pipeline just as well, and much sooner.
