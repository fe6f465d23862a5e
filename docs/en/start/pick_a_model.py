# %% [markdown]
# # Pick a model
#
# A **family** is an architecture, one class a paper; a **preset** is a checkpoint of one, with its
# tokenizer, under a name. Every task works with every family; `from_preset` sees in the files which
# one it is.
#
# ## The families
#
# | family | what it changed | choose it |
# |---|---|---|
# | BERT (2018) | masks and next sentences, absolute learned positions, word pieces | as the one that is best understood, and for Chinese |
# | RoBERTa (2019) | the same blocks; byte pairs; no segments, no next sentence; much more text | for English classification, before larger models; XLM-R for a hundred languages |
# | ALBERT (2019) | one block shared by all layers, a narrow token table | where the file must be small; it is no faster |
# | DistilBERT (2019) | half of BERT's layers, learned from BERT's answers; no pooler, no segments | where time matters |
# | ELECTRA (2020) | learns on every token which ones a small generator replaced | for a good small model of one's own, where it can be trained for days |
# | MPNet (2020) | a bias by distance, shared by all layers; guesses tokens in a random order | for the vectors of English sentences |
# | DeBERTa (2020, v3 2021) | scores content and distance apart; v3 learns as ELECTRA does | for the best accuracy at the size of a base model, where time matters less |
# | NomicBERT (2024) | rotary positions in BERT's blocks, gates, 8,192 tokens; also GTE and Jina's third encoder | for the vectors of long texts |
# | ModernBERT (2024) | rotary positions, local attention, gated feed-forward, 8,192 tokens | for long texts, and for English in general |
#
# What each learned from the same books in the same half hour, at the size of a laptop, stands in a
# [table](../guides/pretraining.md#which-family-learns-most).
#
# The differences that can be seen from outside, of tiny models of each class:

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
# More layers add no weights to ALBERT, since they are the same weights; the time they take all the same.
#
# ## The presets
#
# `bert_keras.presets()` lists what is registered. The first three need no network; the others are
# fetched from the Hugging Face Hub when they are first used. Any other checkpoint of these families
# is named by its folder or as `hf://owner/name`: see [checkpoints](../guides/checkpoints.md), and
# [the forty most used encoders](forty_encoders.md), each with the line that loads it.

# %%
bert_keras.presets()

# %% [markdown]
# ## Which one first?
#
# - **To learn, or to test a pipeline**: `bert_mini_en_gutenberg`, or
#   `modernbert_mini_en_gutenberg`. They are small and know 19th-century novels; do not judge BERT by
#   them.
# - **English, on a laptop**: `minilm_l6_en_uncased`.
# - **Vectors of English sentences**: `mpnet_base_en_uncased`.
# - **English, with a GPU**: `modernbert_base_en_cased` or `roberta_base_en_cased`.
# - **Chinese**: `bert_base_zh`; then `hf://hfl/chinese-roberta-wwm-ext`, which has BERT's
#   architecture and was trained with whole words masked.
# - **Several languages**: `xlm_roberta_base_multi_cased`.
#
# Start small. What the pipeline does wrong, a large model does wrong more slowly.
