# %% [markdown]
# # Train a reranker
#
# A search compares vectors that were computed before the question was known. A reranker reads the
# question together with each text that the search found, and orders them anew. Here one learns
# that from 768 questions.
#
# ```shell
# python examples/train_a_reranker.py
# ```
#
# Expected: 0.766 of 124 questions find their answer first, 0.702 before; nDCG@10 0.878, before
# 0.847; PyTorch, one seed, 164 processor seconds after the imports.

# %%
import keras
import numpy as np

import bert_keras
from bert_keras import corpora, datasets, metrics, plots, search, training

# %% [markdown]
# ## Data
#
# Each question of SQuAD comes with a paragraph that contains the answer. The sentence of the answer
# is the text to find, among the sentences of all paragraphs.


# %%
def read_questions(path):
    """Returns questions, the sentence that answers each, and all sentences."""
    questions, answers, sentences = [], [], {}
    for example in datasets.read_squad(path).examples:
        of_paragraph = corpora.split_sentences(example.context)
        sentences |= dict.fromkeys(of_paragraph)
        right = [text for text in of_paragraph if example.answers[0].text in text]
        if right:
            questions.append(example.question)
            answers.append(right[0])
    return questions, answers, list(sentences)


train_questions, train_answers, train_sentences = read_questions(
    "examples/data/squad/train-v1.1.json"
)
questions, answers, sentences = read_questions("examples/data/squad/dev-v1.1.json")
print(len(questions), "questions,", len(sentences), "sentences to search")
print(questions[1])
print(answers[1])

# %% [markdown]
# ## What the search finds
#
# An embedder turns questions and sentences into vectors. For each question the index returns the
# ten nearest sentences with their cosines.

# %%
embedder = bert_keras.TextEmbedder.from_preset("minilm_l6_en_uncased", max_length=64)
index = search.Index()
index.add(embedder.embed(sentences), payloads=sentences)
hits = index.search(embedder.embed(questions), top_k=10)
found = [[hit["payload"] for hit in row] for row in hits]
cosines = np.array([[hit["score"] for hit in row] for row in hits])
is_right = np.array([np.equal(row, answer) for row, answer in zip(found, answers, strict=True)])


def measure(name, scores):
    first, ndcg = metrics.recall(scores, is_right, 1), metrics.ndcg(scores, is_right, 10)
    print(f"{name}: {first:.3f} of the answers first, nDCG@10 {ndcg:.3f}")


measure("embedder", cosines)

# %% [markdown]
# nDCG is 1 if every answer comes first; an answer in second place counts 0.63.
#
# ## Wrong answers to learn from
#
# A reranker learns by comparing a right text with wrong ones. Two kinds of wrong texts are needed:
#
# - **hard**: sentences that the embedder takes for the answer, and that the reranker has to put
#   behind it. `mine_hard_negatives` finds them.
# - **easy**: the answer to another question. They show a new head what to look at, before it can
#   tell a hard one from the answer.

# %%
columns = bert_keras.mine_hard_negatives(
    embedder, train_questions[:768], train_answers[:768], train_sentences
)
easy = columns[1][100:] + columns[1][:100]
columns = (*columns, easy)
for name, column in zip(("question", "right", "hard", "easy"), columns, strict=True):
    print(f"{name:9} {column[3]}")

# %% [markdown]
# ## Train
#
# The reranker starts from the same checkpoint, with a new head. `ListwiseCrossentropy` compares the
# three texts of a question: the right one shall score highest. One pass, and a high rate, since the
# model is small and the steps are few. `frozen=2` leaves the embeddings and the lower two of six
# layers as they are, which saves time. Guessing has a loss of 1.10, the logarithm of 3.

# %%
keras.utils.set_random_seed(0)
reranker = bert_keras.Reranker.from_preset(
    "minilm_l6_en_uncased", max_length=64, activation="linear", frozen=2
)
reranker.compile(loss=training.ListwiseCrossentropy(), learning_rate=5e-4)
reranker.fit(columns, batch_size=8, epochs=1, verbose=2)

# %% [markdown]
# ## Rank the hits
#
# `rank` orders the texts of one question. A score is any number here, and only the order counts.

# %%
print(questions[1])
for hit in reranker.rank(questions[1], found[1], top_k=3):
    print(f"{hit['score']:6.2f}", found[1][hit["index"]])

# %% [markdown]
# ## Measure
#
# None of these questions was trained on. A reranker that has seen few questions is about as good as
# the embedder, which has seen a billion pairs, but it makes other mistakes. So both scores
# together, with a small weight for the reranker's, are better than either.

# %%
pairs = [question for question, row in zip(questions, found, strict=True) for _ in row]
scores = reranker.score(pairs, [text for row in found for text in row])
scores = scores.reshape(cosines.shape)
measure("reranker", scores)
measure("both", cosines + 0.05 * scores)
plots.similarities(
    (cosines + 0.05 * scores).ravel(), is_right.ravel(), path="output/train_a_reranker/scores.png"
)

# %% [markdown]
# The picture shows the scores of right and of wrong sentences. Where they overlap, mistakes are
# made.
#
# ## Keep it
#
# The file holds weights and vocabulary. `export_to_huggingface` writes a folder that the
# `CrossEncoder` of sentence-transformers loads.

# %%
reranker.save("output/train_a_reranker/reranker.keras")
loaded = keras.models.load_model("output/train_a_reranker/reranker.keras")
print(np.abs(loaded.score(questions[1], found[1]) - scores[1]).max() < 1e-4)

# %% [markdown]
# ## With your own data
#
# You need questions and the text that answers each. Wrong answers come from your own texts.
# `relative_margin` leaves out texts that score nearly as high as the right one: these are often
# answers that nobody has labelled.
#
# ```python
# import pandas as pd
#
# frame = pd.read_csv("questions.csv")
# columns = bert_keras.mine_hard_negatives(
#     embedder, frame["question"], frame["answer"], texts, num_negatives=4, relative_margin=0.05
# )
# ```
#
# Choose the weight of 0.05 on questions that you hold out. With many thousands of questions the
# reranker's scores suffice. To begin with one that has read millions of questions, name it:
# `Reranker.from_preset("hf://cross-encoder/ms-marco-MiniLM-L6-v2")`. Degrees of relevance and the
# scores of a stronger reranker work too, see
# [search and retrieval](../docs/en/guides/retrieval.md).
