# %% [markdown]
# # Pre-train a BERT, from raw text to a preset
#
# This example goes through all the steps on two books: a vocabulary, examples with masked tokens
# and sentence pairs, a model, and a preset.
#
# ```shell
# python examples/pretraining.py
# ```
#
# Expected: during training, the perplexity of masked tokens falls from 827 ± 9 to 419 ± 1, and the
# model predicts frequent tokens, because so few steps teach it little else; PyTorch, three seeds,
# 23 seconds of one core each.

# %%
import glob

import keras

import bert_keras
from bert_keras import corpora, plots
from bert_keras.preprocessing import Masking

# %% [markdown]
# ## Vocabulary
#
# The vocabulary contains word pieces that are frequent in these books. Rare words are split:
# `beginning` may become `begin` and `##ning`.

# %%
files = sorted(glob.glob("examples/data/books/*.txt.gz"))
texts = [passage for book in corpora.read_documents(files) for passage in book]
vocabulary = bert_keras.train_wordpiece(texts=texts, vocabulary_size=2000)
tokenizer = bert_keras.WordPieceTokenizer(vocabulary)
print(tokenizer.tokenize("Alice was beginning to get very tired."))

# %% [markdown]
# ## Examples
#
# Each example is a pair of texts with up to 64 tokens in total; the second follows the first or is
# random. The examples are written to shards on disk. `Masking` masks 15 % of the tokens, with new
# masks in each epoch.

# %%
corpora.create_pretraining_data(
    files,
    tokenizer,
    "output/pretraining/data",
    sequence_length=64,
    documents="file",
    duplicates=2,
)
batches = corpora.PretrainingBatches("output/pretraining/data", batch_size=32, masking=Masking())

# %% [markdown]
# ## Model
#
# This BERT has 2 layers and a width of 128; BERT-base has 12 layers and a width of 768.
# `Pretraining` adds both heads.

# %%
keras.utils.set_random_seed(0)
backbone = bert_keras.BertBackbone(
    tokenizer.vocabulary_size,
    num_layers=2,
    num_heads=4,
    hidden_dim=128,
    intermediate_dim=512,
    max_sequence_length=64,
)
preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=64)
model = bert_keras.Pretraining(backbone, preprocessor=preprocessor)

# %% [markdown]
# ## Train
#
# We train for 200 steps of 32 examples. Perplexity is the exponential of the loss: 419 means that
# the model is as uncertain as if it chose among 419 equally likely tokens.

# %%
model.compile(learning_rate=1e-3)
history = model.fit(batches, steps_per_epoch=50, epochs=4, shuffle=False, verbose=2)

# %%
plots.learning_curves(history, path="output/pretraining/learning_curves.png")

# %% [markdown]
# ## Use
#
# You can fine-tune any task from this preset.

# %%
model.save_to_preset("output/pretraining/preset")
loaded = bert_keras.MaskedLM.from_preset("output/pretraining/preset")
print(loaded.fill_mask("said the [MASK] to alice.", top_k=3))

# %% [markdown]
# ## With your own data
#
# Put plain text files in a folder, with a blank line between documents, and change the pattern. If
# training takes more than an hour, use the command line, which can resume a killed run: see
# [pre-training](../docs/pretraining.md).
