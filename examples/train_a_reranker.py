# %% [markdown]
# # Train a reranker
#
# A search returns texts that are about the question. A reranker reads the question together with
# each of these texts, and puts the one that answers it first. Here it learns that from 320
# questions.
#
# Expected: EXPECTED Run it as `python examples/train_a_reranker.py`.

# %%
import keras
import numpy as np

import bert_keras
from bert_keras import corpora, datasets, plots

# %% [markdown]
# ## Data
#
# Each question of SQuAD comes with a paragraph and the answer in it. The sentence that contains the
# answer is the right one; the other sentences of the paragraph are about the same subject, but do
# not answer the question.


# %%
def read_questions(path):
    """Returns a list of (question, sentences of its paragraph, place of the right one)."""
    found = []
    for example in datasets.read_squad(path).examples:
        sentences = corpora.split_sentences(example.context)
        right = [n for n, text in enumerate(sentences) if example.answers[0].text in text]
        if right and len(sentences) > 1:
            found.append((example.question, sentences, right[0]))
    return found


train = read_questions("examples/data/squad/train-v1.1.json")[::3][:320]
dev = read_questions("examples/data/squad/dev-v1.1.json")
question, sentences, right = dev[1]
print(question)
for place, sentence in enumerate(sentences):
    print("->" if place == right else "  ", sentence)

# %% [markdown]
# ## What search does without a reranker
#
# An embedder turns the question and each sentence into a vector, and the nearest sentence comes
# first. It compares what texts are about.

# %%
embedder = bert_keras.TextEmbedder.from_preset("minilm_l6_en_uncased", max_length=64)


def share_of_right(score):
    """Returns how often the sentence with the best score is the right one."""
    return np.mean([np.argmax(score(query, texts)) == right for query, texts, right in dev])


def cosines(query, texts):
    return embedder.embed(texts) @ embedder.embed(query)


print(f"The embedder's first sentence answers {share_of_right(cosines):.3f} of the questions.")

# %% [markdown]
# ## Hard negatives
#
# A reranker learns from right and wrong texts. A random wrong text is too easy: its words alone
# give it away. `mine_hard_negatives` finds the sentences that the embedder takes for the answer.
# These are the mistakes that the reranker has to correct.

# %%
queries = [question for question, _, _ in train]
positives = [sentences[right] for _, sentences, right in train]
corpus = [sentence for _, sentences, _ in train for sentence in sentences]
columns = bert_keras.mine_hard_negatives(embedder, queries, positives, corpus, num_negatives=1)
for name, column in zip(("question", "right", "wrong"), columns, strict=True):
    print(f"{name:10}{column[3]}")

# %% [markdown]
# ## Model
#
# The reranker starts from the same checkpoint. Its head is new, so its scores say nothing yet: all
# are about the same.

# %%
keras.utils.set_random_seed(0)
reranker = bert_keras.Reranker.from_preset("minilm_l6_en_uncased", max_length=96)
print(reranker.score(question, sentences).round(2))

# %% [markdown]
# ## Train
#
# `fit` takes the three columns: a question, a text that answers it, a text that does not. The loss
# is binary cross-entropy of each pair. The accuracy is the share of pairs that are judged
# correctly; guessing gives one half.

# %%
reranker.compile(learning_rate=2e-4)
reranker.fit(columns, batch_size=16, epochs=1, verbose=2)

# %% [markdown]
# ## Use
#
# `rank` returns the places of the best texts with their scores, best first. A score is the
# probability that the text answers the question. It may be low for all of them: then none does.

# %%
for hit in reranker.rank(question, sentences, top_k=2):
    print(f"{hit['score']:.3f}", sentences[hit["index"]])
print(reranker.rank("How do I bake bread?", sentences, top_k=1))

# %% [markdown]
# ## Measure
#
# The same count as above, on the same questions, none of which was trained on.

# %%
scores = [reranker.score(query, texts) for query, texts, _ in dev]
found = np.mean([row.argmax() == right for row, (_, _, right) in zip(scores, dev, strict=True)])
print(f"The reranker's first sentence answers {found:.3f} of the questions.")
is_right = [place == right for _, texts, right in dev for place in range(len(texts))]
plots.similarities(
    np.concatenate(scores), np.array(is_right), path="output/train_a_reranker/scores.png"
)

# %% [markdown]
# The picture shows the scores of right and of wrong sentences. Where they overlap, the reranker
# makes mistakes.
#
# ## Keep it
#
# The file holds weights and vocabulary. `export_to_huggingface` writes a folder that the
# `CrossEncoder` of sentence-transformers loads.

# %%
reranker.save("output/train_a_reranker/reranker.keras")
loaded = keras.models.load_model("output/train_a_reranker/reranker.keras")
print(np.abs(loaded.score(question, sentences) - scores[1]).max())

# %% [markdown]
# ## With your own data
#
# You need questions and the text that answers each. Negatives come from your own collection of
# texts. `relative_margin` leaves out texts that score nearly as high as the positive: these are
# often answers that nobody has labelled.
#
# ```python
# import pandas as pd
#
# frame = pd.read_csv("questions.csv")
# columns = bert_keras.mine_hard_negatives(
#     embedder, frame["question"], frame["answer"], corpus, num_negatives=4, relative_margin=0.05
# )
# reranker.fit(columns)
# ```
#
# Without `epochs` and a rate, `fit` chooses both by the number of examples. Relevance in degrees,
# lists of texts for each question and the scores of a stronger reranker work too, see
# [search and retrieval](../guides/retrieval.md). To begin with a reranker that has read millions of
# questions, name it: `Reranker.from_preset("hf://cross-encoder/ms-marco-MiniLM-L6-v2")`.
