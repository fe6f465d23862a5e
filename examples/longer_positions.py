# %% [markdown]
# # Extend the position embeddings
#
# A model with 128 position embeddings gets 512. The new ones start as copies of the old ones, and a
# little training on long texts adapts them.
#
# ```shell
# python examples/longer_positions.py
# ```
#
# Expected: perplexity 470.5 on 512 tokens before training and 377.3 ± 1.7 after, compared with 75.4
# on 128 tokens, so this little training is only a start; PyTorch, three seeds, 12 seconds of one
# core each.

# %%
import keras
import numpy as np

import bert_keras
from bert_keras import corpora, plots

# %% [markdown]
# ## Data
#
# Passages of 250 words from a novel, which are longer than 128 tokens.

# %%
(book,) = corpora.read_documents("examples/data/books/tom_sawyer.txt.gz")
words = " ".join(book).split()
texts = [" ".join(words[start : start + 250]) for start in range(0, len(words) - 250, 250)]
train, dev = texts[8:32], texts[:8]

# %% [markdown]
# ## Model
#
# The new backbone has the same weights, except for the position table, whose rows repeat.

# %%
keras.utils.set_random_seed(0)
short = bert_keras.MaskedLM.from_preset("bert_mini_en_gutenberg")
config = {**short.backbone.get_config(), "max_sequence_length": 512}
backbone = type(short.backbone).from_config(config)
for old, new in zip(short.backbone.variables, backbone.variables, strict=True):
    value = keras.ops.convert_to_numpy(old)
    if old.shape != new.shape:
        copies = -(-new.shape[0] // old.shape[0])
        value = np.tile(value, (copies, 1))[: new.shape[0]]
    new.assign(value)
preprocessor = bert_keras.TextPreprocessor(short.tokenizer, max_length=512)
long = bert_keras.MaskedLM(backbone, preprocessor=preprocessor)
long.head.set_weights(short.head.get_weights())

# %% [markdown]
# Short texts are not affected: both models fill the mask in a short sentence in the same way.

# %%
for model in (short, long):
    print(model.fill_mask("She opened the [MASK] and went in.", top_k=1))

# %% [markdown]
# ## Train
#
# Perplexity is measured before and after training, on held-out passages.


# %%
def perplexity(model):
    return round(model.evaluate(dev, batch_size=4, verbose=0, return_dict=True)["perplexity"], 1)


print("of the first 128 tokens:", perplexity(short))
print("of 512 before training:", perplexity(long))
long.compile(learning_rate=1e-4)
history = long.fit(train, batch_size=4, epochs=2, verbose=2)
print("of 512 after:", perplexity(long))
long.save_to_preset("output/longer_positions")

# %%
plots.learning_curves(history, path="output/longer_positions/learning_curves.png")

# %% [markdown]
# ## With your own data
#
# Use your own checkpoint and texts, and train for as long as you can afford. If sentences do not
# depend on others that are far away, use [windows](long_text_classification.py), which need no such
# training.
