# %% [markdown]
# # Fill masks, and score how likely a sentence is
#
# This is what a pre-trained language model can do without any fine-tuning. The model comes with the
# package and was trained on English novels of the 19th century.
#
# ```shell
# python examples/masked_lm.py
# ```
#
# Expected: `door` (0.19) as the first answer for "She opened the [MASK]"; a score of -13 for the
# sentence in the right order and -52 for the shuffled one; PyTorch, 6 seconds of one core.

# %%
import bert_keras
from bert_keras import plots

model = bert_keras.MaskedLM.from_preset("bert_mini_en_gutenberg")

# %% [markdown]
# ## Fill masks
#
# For each `[MASK]`, the model returns tokens with their probabilities. It uses the words on both
# sides.

# %%
for text in ("She opened the [MASK] and went in.", "The [MASK] of England was dead."):
    (answers,) = model.fill_mask(text, top_k=5)
    print(text, ", ".join(f"{token} {probability:.2f}" for token, probability in answers))

# %% [markdown]
# ## Score sentences
#
# `score` masks each token in turn and adds up the log probabilities of the true tokens. A score
# closer to 0 means a more likely sentence; here, the one whose words are in the right order. Divide
# by the number of tokens before you compare sentences of different lengths.

# %%
sentences = ["He sat down by the fire.", "Fire down he by sat the."]
for sentence, score in zip(sentences, model.score(sentences), strict=True):
    print(f"{score:8.2f}", sentence)

# %% [markdown]
# ## Look inside
#
# Each row of a map is a token. The colours show which tokens its vector is computed from.

# %%
plots.attention(model, "She opened the door and went in.", path="output/masked_lm/attention.png")

# %% [markdown]
# ## With your own checkpoint
#
# Any checkpoint with a masked language modelling head works: a registered name, a folder, or
# `hf://owner/name`. RoBERTa's mask is `<mask>`; `model.tokenizer.mask_token` returns it.
#
# ```python
# model = bert_keras.MaskedLM.from_preset("hf://google-bert/bert-base-uncased")
# ```
