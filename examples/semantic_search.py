# %% [markdown]
# # Semantic search over 10,000 texts
#
# Turn each text into a vector once. The texts with the nearest vectors are the answers to a
# question.
#
# ```shell
# python examples/semantic_search.py
# ```
#
# Expected: questions find texts on the same topic; 9,610 vectors with 384 dimensions; PyTorch, up
# to five minutes.

# %%
import numpy as np

import bert_keras
from bert_keras import corpora, datasets, metrics, plots
from bert_keras.search import Index

# %% [markdown]
# ## Texts
#
# Sentences from two novels and from reviews, without duplicates.

# %%
books = [f"examples/data/books/{book}.txt.gz" for book in ("alice", "tom_sawyer")]
texts = [
    sentence
    for document in corpora.read_documents(books)
    for passage in document
    for sentence in corpora.split_sentences(passage)
]
for split in datasets.load_sentiment_sentences("examples/data/sentiment_labelled_sentences"):
    texts += split.texts
texts = list(dict.fromkeys(texts))[:10000]
print(len(texts), "texts:", texts[:2])

# %% [markdown]
# ## Vectors
#
# The vectors are computed once and saved in an index. Later, only new texts need to be embedded.

# %%
embedder = bert_keras.TextEmbedder.from_preset("minilm_l6_en_uncased", max_length=64)
vectors = embedder.embed(texts)
index = Index()
index.add(vectors, payloads=texts)
index.save("output/semantic_search/index")
print(vectors.shape)

# %% [markdown]
# ## Search
#
# The score is the cosine similarity: 1 means the same direction. The words of the question need not
# occur in the text.


# %%
def search(question):
    print(question)
    for hit in index.search(embedder.embed(question), top_k=3):
        print(f"  {hit['score']:.3f}  {hit['payload'][:90]}")


search("Who stole the tarts?")
search("The waiter was rude to us.")
search("painting a fence")

# %% [markdown]
# Most texts are unrelated to a question. The scores of the ten nearest are clearly higher than the
# rest:

# %%
similarities = metrics.similarity_matrix(embedder.embed(["painting a fence"]), vectors)[0]
plots.similarities(
    similarities,
    similarities > np.sort(similarities)[-10],
    path="output/semantic_search/cosines.png",
)

# %% [markdown]
# ## With your own data
#
# `texts` may be any list of strings, such as the lines of a file or a column of a table. For
# millions of vectors, vector databases, and search by words, see
# [search your documents](../docs/en/guides/search_your_documents.md).
