# %% [markdown]
# # Fill masks, and score how likely a sentence is
#
# With the small language model that comes with the package, without training.
#
# ```shell
# python examples/masked_lm.py
# python examples/masked_lm.py --preset bert_base_en_uncased
# ```
#
# Expected: `door` (0.19) as the first answer to "She opened the [MASK]"; a score of -13 for the
# sentence in order and -52 for the other. PyTorch, 6 seconds of one core.

# %%
import argparse
import sys

import bert_keras
from bert_keras import plots

parser = argparse.ArgumentParser()
parser.add_argument(
    "--preset", default="bert_mini_en_gutenberg", help="name, folder or hf:// address"
)
parser.add_argument("--output_dir", default="output/masked_lm", help="output folder")
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %%
model = bert_keras.MaskedLM.from_preset(flags.preset)
mask = model.tokenizer.mask_token
for text in (f"She opened the {mask} and went in.", f"The {mask} of England was dead."):
    (answers,) = model.fill_mask(text, top_k=5)
    print(text, ", ".join(f"{token} {probability:.2f}" for token, probability in answers))

# %% [markdown]
# `score` masks each token in turn and adds up the log probabilities that the model gives them. The
# sentence with its words in order scores higher.

# %%
sentences = ["He sat down by the fire.", "Fire down he by sat the."]
for sentence, score in zip(sentences, model.score(sentences), strict=True):
    print(f"{score:8.2f}", sentence)

# %%
plots.attention(model, "She opened the door and went in.", path=f"{flags.output_dir}/attention.png")
