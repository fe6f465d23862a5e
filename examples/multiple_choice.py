# %% [markdown]
# # Choose the right ending
#
# Fine-tune a checkpoint to choose which of four endings fits the beginning of a scene (SWAG).
#
# ```shell
# python examples/multiple_choice.py
# ```
#
# Expected: accuracy 0.370 on 100 scenes, after training on 200 (chance is 0.250); PyTorch, one
# seed, one minute. Commonsense reasoning needs more data than this sample: e-CARE, with two choices
# and 2,000 questions, reaches 0.672.

# %%
import os

import keras
import numpy as np

import bert_keras
from bert_keras import datasets, plots

# %% [markdown]
# ## Data
#
# Each example has a context, its choices, and the index of the right choice. A fifth is held out;
# no context occurs in both parts.

# %%
scenes = datasets.read_multiple_choice("examples/data/swag/swag_val500.jsonl")
kept, held_out = datasets.split_indices(scenes.contexts, 0.2)
train, dev = scenes.take(kept[:200]), scenes.take(held_out)
print(train.contexts[0], train.choices[0], train.labels[0])

# %% [markdown]
# ## Model
#
# The model reads each choice together with its context and gives it one score. The softmax is over
# the choices. Four choices take four times as long as one text.

# %%
keras.utils.set_random_seed(0)
model = bert_keras.MultipleChoice.from_preset("minilm_l6_en_uncased", max_length=80)

# %% [markdown]
# ## Train

# %%
model.compile(learning_rate=1e-4)
history = model.fit(
    (train.contexts, train.choices),
    train.labels,
    batch_size=16,
    epochs=1,
    validation_data=((dev.contexts, dev.choices), dev.labels),
    verbose=2,
)

# %% [markdown]
# ## Evaluate
#
# `choose` returns the index of the best choice and the probability of each. Compare the accuracy
# with chance.

# %%
answers = model.choose(dev.contexts, dev.choices)
right = np.array([answer["index"] for answer in answers]) == dev.labels
print(f"accuracy {right.mean():.3f}, chance {1 / dev.num_choices:.3f}")

# %% [markdown]
# ## Use

# %%
os.makedirs("output", exist_ok=True)
model.save("output/multiple_choice.keras")
loaded = keras.models.load_model("output/multiple_choice.keras")
choices = ["eats the chair.", "sits down on it.", "flies to the moon.", "sings to the soup."]
print(loaded.choose("She pulls the chair back from the table.", [f"She {end}" for end in choices]))

# %%
plots.learning_curves(history, path="output/multiple_choice/learning_curves.png")

# %% [markdown]
# ## With your own data
#
# `fit` takes two lists, the contexts and their choices, and the indices of the right choices.
# `read_multiple_choice` reads SWAG, HellaSwag, ARC, RACE and others, and JSON lines such as
# `{"context": ..., "choices": [...], "label": 0}`.
#
# ```shell
# bert-keras train multiple_choice --train_file train.jsonl --dev_file dev.jsonl
# ```
