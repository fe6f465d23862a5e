# %% [markdown]
# # Semantic search over 10,000 texts
#
# Each text becomes a vector once. The answers to a question are the texts with the nearest vectors.
#
# ```shell
# python examples/semantic_search.py
# python examples/semantic_search.py --texts my_lines.txt --num_texts 100000
# ```
#
# Expected: questions find texts on their subject; 9,610 texts of 384 numbers each; PyTorch, up to
# five minutes.

# %%
import argparse
import os
import sys
import time

import numpy as np

import bert_keras
from bert_keras import corpora, datasets, metrics, plots

parser = argparse.ArgumentParser()
parser.add_argument(
    "--texts", default=None, help="one text per line; by default sentences of books and reviews"
)
parser.add_argument("--num_texts", type=int, default=10000, help="texts to search among")
parser.add_argument(
    "--preset", default="minilm_l6_en_uncased", help="name, folder or hf:// address"
)
parser.add_argument("--output_dir", default="output/semantic_search", help="output folder")
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %%
if flags.texts:
    files = [flags.texts]
else:
    files = [f"examples/data/books/{book}.txt.gz" for book in ("alice", "tom_sawyer")]
texts = [
    sentence
    for document in corpora.read_documents(files)
    for passage in document
    for sentence in corpora.split_sentences(passage)
]
if not flags.texts:
    splits = datasets.load_sentiment_sentences("examples/data/sentiment_labelled_sentences")
    texts += [text for split in splits for text in split.texts]
texts = list(dict.fromkeys(texts))[: flags.num_texts]

# %% [markdown]
# The vectors are computed once and saved; later, only new texts need to be embedded.

# %%
embedder = bert_keras.TextEmbedder.from_preset(flags.preset, max_length=64)
started = time.time()
vectors = embedder.embed(texts)
print(f"{len(texts)} texts in {time.time() - started:.0f} s, {vectors.shape[1]} numbers each")
os.makedirs(flags.output_dir, exist_ok=True)
np.save(f"{flags.output_dir}/vectors.npy", vectors)


# %%
def search(question, count=3):
    """Prints the nearest texts."""
    started = time.time()
    similarities = metrics.cosine_similarity_matrix(embedder.embed([question]), vectors)[0]
    best = np.argsort(-similarities)[:count]
    print(f"{question}  ({1000 * (time.time() - started):.0f} ms)")
    for number in best:
        print(f"  {similarities[number]:.3f}  {texts[number][:90]}")
    return similarities


search("Who stole the tarts?")
search("The waiter was rude to us.")
similarities = search("painting a fence")

# %%
plots.similarities(
    similarities, similarities > np.sort(similarities)[-10], path=f"{flags.output_dir}/cosines.png"
)
