# %% [markdown]
# # Does a sentence follow another?
#
# Next-sentence prediction is BERT's second pre-training task. We evaluate the package's small model
# on one book, train it on pairs from another, and evaluate it again.
#
# ```shell
# python examples/next_sentence.py
# ```
#
# Expected: accuracy 0.603 on 300 pairs before training and 0.588 ± 0.005 after (chance is 0.5);
# PyTorch, three seeds, 20 seconds of one core each. Training on 600 pairs from another book does
# not help. Many later models dropped this task.

# %%
import keras
import numpy as np

import bert_keras
from bert_keras import corpora, plots

# %% [markdown]
# ## Data
#
# Half of the pairs follow each other in the book; in the other half, the second sentence is random.
# The label is 0 if the second follows the first, as in BERT, and 1 if not.


# %%
def pairs_of(path, count):
    """Returns two lists of texts, and the labels."""
    passages = [passage for book in corpora.read_documents(path) for passage in book]
    rows = [corpora.split_sentences(passage) for passage in passages]
    rows = [row for row in rows if len(row) > 1][:count]
    rng = np.random.default_rng(0)
    labels = np.arange(len(rows)) % 2
    random = rng.integers(0, len(rows), len(rows))
    seconds = [rows[r][1] if x else row[1] for row, x, r in zip(rows, labels, random, strict=True)]
    return ([row[0] for row in rows], seconds), labels


train, train_labels = pairs_of("examples/data/books/tom_sawyer.txt.gz", 600)
dev, dev_labels = pairs_of("examples/data/books/alice.txt.gz", 300)
print(dev[0][0], "|", dev[1][0])

# %% [markdown]
# ## Before training
#
# For each pair, `is_next` returns whether the second text follows the first, and the probability.

# %%
keras.utils.set_random_seed(0)
model = bert_keras.NextSentencePrediction.from_preset("bert_mini_en_gutenberg")


def predict():
    predicted = np.array([not answer["is_next"] for answer in model.is_next(*dev)]).astype(int)
    print(f"accuracy {np.mean(predicted == dev_labels):.3f} on {len(dev_labels)} pairs, chance 0.5")
    return predicted


predict()

# %% [markdown]
# ## Train

# %%
model.compile(learning_rate=1e-4)
model.fit(train, train_labels, epochs=2, verbose=2)
predicted = predict()
print(model.is_next("Where do you live?", "I live in a small house by the sea."))

# %% [markdown]
# The loss falls, but the accuracy on the other book does not rise: the model learns the topics of
# one book, not what makes one sentence follow another.

# %%
plots.confusion_matrix(
    dev_labels,
    predicted,
    ["next", "random"],
    path="output/next_sentence/confusion_matrix.png",
)

# %% [markdown]
# ## With your own data
#
# `fit` takes a tuple of two columns of texts, and labels 0 and 1. `corpora.read_documents` reads
# plain text with a blank line between documents.
