# %% [markdown]
# # Train a reranker
#
# Vector search compares vectors that were computed before the question was known. A reranker reads
# the question together with each text that the search found, and reorders them. Here, we train one
# on 768 questions.
#
# ```shell
# python examples/train_a_reranker.py
# ```
#
# Expected: 0.742 and 0.766 of 124 questions find their answer at rank 1 (0.702 before reranking);
# nDCG@10 0.865 and 0.878 (0.847 before); PyTorch, two runs, 164 CPU seconds each after the imports.

# %%
import keras
import numpy as np

import bert_keras
from bert_keras import corpora, datasets, metrics, plots, search, training

# %% [markdown]
# ## Data
#
# Each SQuAD question comes with a paragraph that contains the answer. The text to find is the
# sentence with the answer, among the sentences of all paragraphs.


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
# An embedder turns questions and sentences into vectors. For each question, the index returns the
# ten nearest sentences with their cosine similarities.

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
# nDCG is 1 if every answer is at rank 1; an answer at rank 2 counts 0.63.
#
# ## Wrong answers for training
#
# A reranker learns by comparing the right text with wrong ones. It needs two kinds of wrong texts:
#
# - **hard**: sentences that the embedder mistakes for the answer, and that the reranker must rank
#   below it. `mine_hard_negatives` finds them.
# - **easy**: answers to other questions. They teach a new head what matters before it can tell hard
#   ones from the answer.

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
# three texts of a question: the right one should score highest. We train for one epoch with a high
# learning rate, because the model is small and the steps are few. `frozen=2` freezes the embeddings
# and the lower two of six layers, which saves time. A random guess has a loss of log 3 = 1.10.

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
# `rank` sorts the texts for one question. The scores are logits, so only their order matters.

# %%
print(questions[1])
for hit in reranker.rank(questions[1], found[1], top_k=3):
    print(f"{hit['score']:6.2f}", found[1][hit["index"]])

# %% [markdown]
# ## Measure
#
# None of these questions was used for training. A reranker trained on few questions is about as
# good as the embedder, which was trained on a billion pairs, but it makes different mistakes. So
# the sum of both scores, with a small weight for the reranker's, is better than either.

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
# The plot shows the scores of right and wrong sentences. Mistakes happen where they overlap.
#
# ## Save it
#
# The file contains the weights and the vocabulary. `export_to_huggingface` writes a folder that
# sentence-transformers' `CrossEncoder` loads.

# %%
reranker.save("output/train_a_reranker/reranker.keras")
loaded = keras.models.load_model("output/train_a_reranker/reranker.keras")
print(np.abs(loaded.score(questions[1], found[1]) - scores[1]).max() < 1e-4)

# %% [markdown]
# ## With your own data
#
# You need questions and the text that answers each. Wrong answers come from your own texts.
# `relative_margin` excludes texts that score nearly as high as the right one: these are often
# correct answers that are not labelled.
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
# Choose the weight of 0.05 on held-out questions. With many thousands of training questions, the
# reranker's scores are enough. To start from a reranker trained on millions of questions, load it:
# `Reranker.from_preset("hf://cross-encoder/ms-marco-MiniLM-L6-v2")`. You can also train on graded
# relevance or on the scores of a stronger reranker: see
# [search and retrieval](../docs/en/guides/retrieval.md).
