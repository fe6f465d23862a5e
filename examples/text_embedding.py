# %% [markdown]
# # Embed texts so that a question is close to its answer
#
# Train sentence embeddings on pairs: each question moves towards the sentence that answers it, and
# away from all other sentences in the batch.
#
# ```shell
# python examples/text_embedding.py
# ```
#
# Expected: 0.853 and 0.873 of 300 questions find their sentence at rank 1 (0.830 before training);
# mean reciprocal rank 0.910 and 0.922 (0.894 before); PyTorch, two runs, between one and two
# minutes of one core each.

# %%
import csv
import os

import keras
import numpy as np
import pandas

import bert_keras
from bert_keras import metrics, plots

# %% [markdown]
# ## Data
#
# A table with two columns: a question, and a sentence that answers it.

# %%
options = {"sep": "\t", "quoting": csv.QUOTE_NONE, "keep_default_na": False}
train = pandas.read_csv("examples/data/qnli_pairs/train.tsv", nrows=500, **options)
dev = pandas.read_csv("examples/data/qnli_pairs/dev.tsv", **options).to_dict("list")
questions, sentences = train["question"].tolist(), train["sentence"].tolist()
print(questions[0])
print(sentences[0])

# %% [markdown]
# ## Model
#
# With `objective="ranking"`, the other sentences in a batch serve as wrong answers. No labels are
# needed. Larger batches make the task harder and the vectors better.

# %%
keras.utils.set_random_seed(0)
embedder = bert_keras.TextEmbedder.from_preset(
    "minilm_l6_en_uncased", objective="ranking", max_length=96
)

# %% [markdown]
# ## Measure
#
# We search for each question's sentence among the sentences of all pairs. `first` is the share of
# questions that find it at rank 1. The reciprocal rank is 1, 1/2, 1/3 ... for ranks 1, 2, 3 ...


# %%
def search(embedder):
    similarities = metrics.similarity_matrix(
        embedder.embed(dev["question"]), embedder.embed(dev["sentence"])
    )
    own = np.diag(similarities)
    ranks = (similarities >= own[:, None]).sum(axis=1)
    print(f"first {np.mean(ranks == 1):.3f}, reciprocal rank {np.mean(1 / ranks):.3f}")
    return similarities


search(embedder)

# %% [markdown]
# The checkpoint was trained on a billion pairs, so the score is high from the start.
#
# ## Train

# %%
embedder.compile(learning_rate=5e-5)
embedder.fit((questions, sentences), epochs=1, verbose=2)
similarities = search(embedder)

# %% [markdown]
# ## Use

# %%
os.makedirs("output", exist_ok=True)
embedder.save("output/text_embedding.keras")
loaded = keras.models.load_model("output/text_embedding.keras")
for hit in loaded.semantic_search("Who was the first emperor?", dev["sentence"], top_k=3):
    print(f"{hit['score']:.3f}", hit["text"])

# %% [markdown]
# The cosines of true pairs should lie to the right of all others.

# %%
own = np.eye(len(similarities), dtype=bool)
plots.similarities(similarities.ravel(), own.ravel(), path="output/text_embedding/similarities.png")

# %% [markdown]
# ## With your own data
#
# Use any pairs that belong together: questions and answers, titles and texts, paraphrases. For
# pairs with a score, such as 0 to 5 in STS-B, use `objective="similarity"`:
#
# ```python
# embedder = bert_keras.TextEmbedder.from_preset("minilm_l6_en_uncased", objective="similarity")
# embedder.fit((["A dog runs."], ["An animal moves."]), [0.8])
# ```
