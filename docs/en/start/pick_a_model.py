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
# | ELECTRA (2020) | learns on every token which ones a small generator replaced | for a good small model of one's own |
# | ModernBERT (2024) | rotary positions, local attention, gated feed-forward, 8,192 tokens | for long texts, and for English in general |
#
# The differences that can be seen from outside, of tiny models of each class:

# %%
import bert_keras

sizes = {"vocabulary_size": 100, "num_layers": 2, "num_heads": 2, "hidden_dim": 8}
rows = []
for family in ("Bert", "Roberta", "Albert", "DistilBert", "Electra", "ModernBert"):
    backbone = getattr(bert_keras, f"{family}Backbone")(**sizes, intermediate_dim=16)
    outputs = backbone(backbone_inputs := {"token_ids": [[5, 6, 7]]})
    rows.append(
        {
            "family": family,
            "segments": backbone.num_segments,
            "tokens (default)": backbone.max_sequence_length,
            "pooled output": "pooled_output" in outputs,
            "weights of 2 layers": backbone.count_params(),
        }
    )
for name in rows[0]:
    print(f"{name:20}", *(f"{row[name]!s:>11}" for row in rows))

# %% [markdown]
# ALBERT has hardly more weights with 24 layers than with 2, since they are the same weights.
#
# ## The presets
#
# `bert_keras.presets()` lists what is registered. The first two need no network; the others are
# fetched from the Hugging Face Hub when they are first used. Any other checkpoint of these families
# is named by its folder or as `hf://owner/name`: see [checkpoints](../guides/checkpoints.md).

# %%
bert_keras.presets()

# %% [markdown]
# ## Which one first?
#
# - **To learn, or to test a pipeline**: `bert_mini_en_gutenberg`. It is small and knows 19th-century
#   novels; do not judge BERT by it.
# - **English, on a laptop**: `minilm_l6_en_uncased`, with `pooling="mean"`.
# - **English, with a GPU**: `modernbert_base_en_cased` or `roberta_base_en_cased`.
# - **Chinese**: `bert_base_zh`; then `hf://hfl/chinese-roberta-wwm-ext`, which has BERT's
#   architecture and was trained with whole words masked.
# - **Several languages**: `xlm_roberta_base_multi_cased`.
#
# Start small. What the pipeline does wrong, a large model does wrong more slowly.
