# %% [markdown]
# # From sentence-transformers and back
#
# A model saved by sentence-transformers loads with its pooling, dense layers, normalization and
# prompts. Line by line, with `import bert_keras`:
#
# | sentence-transformers | bert_keras |
# |---|---|
# | `model = SentenceTransformer(source)` | `model = bert_keras.TextEmbedder.from_preset(source)` |
# | `model.encode(texts)` | `vectors = model.embed(texts)` |
# | `model.encode_query(texts)` | `model.embed(texts, prompt="query")` |
# | `model.similarity(vectors, vectors)` | `model.similarities(vectors, vectors)` |
# | `util.semantic_search(model.encode(queries), model.encode(texts), top_k=1)` | `model.semantic_search(queries, texts, top_k=1)` |
# | `MultipleNegativesRankingLoss(model)` | `model = bert_keras.TextEmbedder.from_preset(source, objective="ranking")` |
# | `SentenceTransformerTrainingArguments(learning_rate=2e-5)` | `model.compile(learning_rate=2e-5)` |
# | `SentenceTransformerTrainer(model, ..., loss=loss).train()` | `model.fit((queries, texts), epochs=1, verbose=0)` |
# | `model.save_pretrained(output)` | `model.export_to_huggingface(output)` |
# | `model = CrossEncoder(name)` | `reranker = bert_keras.Reranker.from_preset(name)` |
# | `model.predict([(query, text)])` | `reranker.score(queries, texts)` |
# | `model.rank(query, texts)` | `reranker.rank(queries[0], texts)` |
#
# `SparseEncoder` is `SparseTextEmbedder`, and PyLate's `ColBERT` is `MultiVectorEmbedder`.
#
# ```shell
# python examples/migrating_from_sentence_transformers.py
# ```
#
# Expected: vectors that differ by at most 1e-6; PyTorch, half a minute of one core.

# %%
import numpy as np
import torch
import transformers

import bert_keras
from bert_keras import plots

# %% [markdown]
# ## Load and embed
#
# all-MiniLM-L6-v2, by its registered name; a folder, or `"hf://sentence-transformers/..."`, works
# the same way.

# %%
source = "minilm_l6_en_uncased"
model = bert_keras.TextEmbedder.from_preset(source)
queries = ["How do I cook rice?", "Where does the train stop?"]
texts = ["Boil it in twice its volume of water.", "At the station behind the church."]
vectors = model.embed(texts)
print(vectors.shape, model.similarities(vectors, vectors))
print(model.semantic_search(queries, texts, top_k=1))

# %% [markdown]
# This model has no prompts, so `"query"` changes nothing. With models such as E5 or BGE, it
# prepends the checkpoint's prompt to the text.

# %%
print(np.abs(model.embed(texts, prompt="query") - vectors).max())

# %% [markdown]
# ## The same numbers
#
# sentence-transformers computes the mean of the token vectors and divides it by its norm. It can
# load the exported folder. Here, transformers loads the encoder, and we compute the rest ourselves:

# %%
output = "output/migrating_from_sentence_transformers/exported"
model.export_to_huggingface(output)
tokenizer = transformers.AutoTokenizer.from_pretrained(output)
theirs = transformers.AutoModel.from_pretrained(output).eval()
inputs = tokenizer(texts, padding=True, return_tensors="pt")
with torch.no_grad():
    tokens = theirs(**inputs).last_hidden_state
mask = inputs["attention_mask"][..., None]
mean = ((tokens * mask).sum(1) / mask.sum(1)).numpy()
expected = mean / np.linalg.norm(mean, axis=1, keepdims=True)
print("largest difference", np.abs(vectors - expected).max())

# %% [markdown]
# ## Train
#
# The objective replaces the loss. Two pairs teach the model nothing; they only show the call.

# %%
model = bert_keras.TextEmbedder.from_preset(source, objective="ranking")
model.compile(learning_rate=2e-5)
history = model.fit((queries, texts), epochs=1, verbose=0)
model.export_to_huggingface(output)

# %% [markdown]
# ## Rank
#
# A cross-encoder reads the query and the text together. The head is new here, so the ranking means
# nothing yet; `"ms_marco_minilm_l6_en_uncased"` is a trained reranker.

# %%
name = source
reranker = bert_keras.Reranker.from_preset(name)
print(reranker.score(queries, texts))
print(reranker.rank(queries[0], texts))

# %%
similarities = model.similarities(model.embed(queries), model.embed(texts))
plots.similarities(
    similarities.ravel(),
    np.eye(2, dtype=bool).ravel(),
    path="output/migrating_from_sentence_transformers/similarities.png",
)

# %% [markdown]
# ## With your own checkpoint
#
# [Search and retrieval](../docs/en/guides/retrieval.md) describes losses, hard negatives and
# rerankers.
