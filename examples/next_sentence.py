# %% [markdown]
# # Does a sentence follow another?
#
# BERT's second pre-training task, as the small model of the package learned it, on a book.
#
# ```shell
# python examples/next_sentence.py
# python examples/next_sentence.py --text my_book.txt
# ```
#
# EXPECTED

# %%
import argparse
import sys

import numpy as np

import bert_keras
from bert_keras import datasets, plots

parser = argparse.ArgumentParser()
parser.add_argument(
    "--preset", default="bert_mini_en_gutenberg", help="name, folder or hf:// address"
)
parser.add_argument("--text", default="examples/data/books/alice.txt.gz", help="plain text")
parser.add_argument(
    "--output_dir", default="output/next_sentence", help="folder of the model and the picture"
)
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %% [markdown]
# Pairs of passages, half of which follow one another in the book.

# %%
passages = [passage for document in datasets.read_documents(flags.text) for passage in document]
passages = [passage for passage in passages if len(passage) > 80][:401]
rng = np.random.default_rng(0)
follows = np.arange(len(passages) - 1) % 2 == 0
others = rng.integers(0, len(passages), len(follows))
seconds = [
    passages[i + 1 if f else o] for i, (f, o) in enumerate(zip(follows, others, strict=True))
]
firsts = passages[:-1]

# %%
model = bert_keras.NextSentencePrediction.from_preset(flags.preset)
answers = model.is_next(firsts, seconds)
found = np.array([answer["is_next"] for answer in answers])
print(f"accuracy {np.mean(found == follows):.3f} of {len(found)}, where guessing has 0.5")
print(model.is_next("Where do you live?", "I live in a small house by the sea."))

# %%
names = ["random", "next"]
plots.confusion_matrix(
    follows.astype(int), found.astype(int), names, path=f"{flags.output_dir}/confusion_matrix.png"
)
