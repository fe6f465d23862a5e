# %% [markdown]
# # Read beyond the position table
#
# A model with 128 positions gets a table of 512. The new rows start as copies of the old ones, and
# a little training on long texts adapts them.
#
# ```shell
# python examples/longer_positions.py
# python examples/longer_positions.py --preset bert_base_en_uncased --positions 2048
# ```
#
# Expected: perplexity 470.5 on 512 tokens before training and 377.3 ± 1.7 after, compared with 75.4
# on 128 tokens: so little training is only a start; PyTorch, three seeds, 12 seconds of one core
# each.

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
parser.add_argument("--positions", type=int, default=512, help="positions of the new table")
parser.add_argument("--num_texts", type=int, default=24, help="long texts to train on")
parser.add_argument("--output_dir", default="output/longer_positions", help="output folder")
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %%
(book,) = corpora.read_documents("examples/data/books/tom_sawyer.txt.gz")
words = " ".join(book).split()
texts = [" ".join(words[start : start + 250]) for start in range(0, len(words) - 250, 250)]
train, dev = texts[8:][: flags.num_texts], texts[:8]

# %% [markdown]
# The new backbone has the same weights, except for one table, whose rows repeat.

# %%
keras.utils.set_random_seed(0)
short = bert_keras.MaskedLM.from_preset(flags.preset)
config = {**short.backbone.get_config(), "max_sequence_length": flags.positions}
backbone = type(short.backbone).from_config(config)
for old, new in zip(short.backbone.variables, backbone.variables, strict=True):
    value = keras.ops.convert_to_numpy(old)
    if old.shape != new.shape:
        copies = -(-new.shape[0] // old.shape[0])
        value = np.tile(value, (copies, 1))[: new.shape[0]]
    new.assign(value)
preprocessor = bert_keras.TextPreprocessor(short.tokenizer, max_length=flags.positions)
long = bert_keras.MaskedLM(backbone, preprocessor=preprocessor)
long.head.set_weights(short.head.get_weights())

# %%
first = "She opened the [MASK] and went in."
assert short.fill_mask(first, top_k=1)[0][0][0] == long.fill_mask(first, top_k=1)[0][0][0]


def perplexity(model):
    return round(model.evaluate(dev, batch_size=4, verbose=0, return_dict=True)["perplexity"], 1)


print("of the first", short.backbone.max_sequence_length, "tokens:", perplexity(short))
print(f"of {flags.positions} before training:", perplexity(long))
long.compile(learning_rate=1e-4)
history = long.fit(train, batch_size=4, epochs=2, verbose=2)
print("after:", perplexity(long))
long.save_to_preset(flags.output_dir)

# %%
plots.learning_curves(history, path=f"{flags.output_dir}/learning_curves.png")
