# %% [markdown]
# # Does a sentence follow another?
#
# BERT's second pre-training task: the small model of the package is evaluated on one book, before
# and after some training on pairs from another.
#
# ```shell
# python examples/next_sentence.py
# python examples/next_sentence.py --text my_book.txt
# ```
#
# Expected: accuracy 0.603 on 300 pairs before training and 0.588 ± 0.005 after; PyTorch, three
# seeds, 20 seconds of one core each.

# %%
import argparse
import sys

import keras
import numpy as np

import bert_keras
from bert_keras import corpora, plots

parser = argparse.ArgumentParser()
parser.add_argument(
    "--preset", default="bert_mini_en_gutenberg", help="name, folder or hf:// address"
)
parser.add_argument("--text", default="examples/data/books/alice.txt.gz", help="plain text")
parser.add_argument("--output_dir", default="output/next_sentence", help="output folder")
parser.add_argument("--num_train", type=int, default=600, help="pairs to train on")
parser.add_argument("--epochs", type=int, default=2, help="passes over the training set")
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %% [markdown]
# Pairs of sentences: half follow each other in the book, half are random.


# %%
def pairs_of(path, count):
    """Returns two lists of texts; labels are 0 if the second text follows the first, else 1."""
    passages = [passage for book in corpora.read_documents(path) for passage in book]
    rows = [corpora.split_sentences(passage) for passage in passages]
    rows = [row for row in rows if len(row) > 1][:count]
    rng = np.random.default_rng(0)
    labels = np.arange(len(rows)) % 2
    random = rng.integers(0, len(rows), len(rows))
    seconds = [rows[r][1] if x else row[1] for row, x, r in zip(rows, labels, random, strict=True)]
    return ([row[0] for row in rows], seconds), labels


train, labels = pairs_of("examples/data/books/tom_sawyer.txt.gz", flags.num_train)
dev, right = pairs_of(flags.text, 300)
keras.utils.set_random_seed(0)
model = bert_keras.NextSentencePrediction.from_preset(flags.preset)


# %%
def predict():
    predicted = np.array([not answer["is_next"] for answer in model.is_next(*dev)]).astype(int)
    print(f"accuracy {np.mean(predicted == right):.3f} on {len(right)} pairs, chance 0.5")
    return predicted


predict()
model.compile(learning_rate=1e-4)
model.fit(train, labels, epochs=flags.epochs, verbose=2)
predicted = predict()
print(model.is_next("Where do you live?", "I live in a small house by the sea."))

# %%
names = ["next", "random"]
plots.confusion_matrix(right, predicted, names, path=f"{flags.output_dir}/confusion_matrix.png")
