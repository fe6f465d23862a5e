# %% [markdown]
# # Pick the right one of several endings
#
# A checkpoint learns which of four endings follows from the beginning of a scene (SWAG).
#
# ```shell
# python examples/multiple_choice.py
# python examples/multiple_choice.py --train_file swag/train.csv --dev_file swag/val.csv \
#     --num_train 100000 --epochs 2
# ```
#
# Expected: accuracy 0.350 on 100 scenes (chance is 0.250); PyTorch, one seed, one minute.

# %%
import argparse
import sys

import keras
import numpy as np

import bert_keras
from bert_keras import datasets, plots

parser = argparse.ArgumentParser()
parser.add_argument(
    "--train_file",
    default="examples/data/swag/swag_val500.jsonl",
    help="SWAG, CommonsenseQA, CosmosQA or e-CARE",
)
parser.add_argument("--dev_file", default=None, help="by default a fifth of the training file")
parser.add_argument(
    "--preset", default="minilm_l6_en_uncased", help="name, folder or hf:// address"
)
parser.add_argument("--num_train", type=int, default=200, help="contexts to train on")
parser.add_argument("--epochs", type=int, default=1, help="passes over the training set")
parser.add_argument("--output_dir", default="output/multiple_choice", help="output folder")
parser.add_argument(
    "--devices", type=int, help="devices that share a batch; PyTorch needs torchrun"
)
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)
if flags.devices:
    bert_keras.distribution.initialize(flags.devices)

# %% [markdown]
# Data: contexts, the choices for each, and the index of the right one.

# %%
train = datasets.read_multiple_choice(flags.train_file)
if flags.dev_file:
    dev = datasets.read_multiple_choice(flags.dev_file)
else:
    kept, held_out = datasets.split_indices(train.contexts, 0.2)
    train, dev = train.take(kept), train.take(held_out)
train = train.take(range(min(flags.num_train, len(train))))
print(len(train), "to train on,", len(dev), "to measure on, of", train.num_choices, "choices")

# %% [markdown]
# Each choice is read together with its context and gets one score; the softmax is over the choices.

# %%
keras.utils.set_random_seed(0)
model = bert_keras.MultipleChoice.from_preset(flags.preset, max_length=80)
model.compile(learning_rate=1e-4)
history = model.fit(
    (train.contexts, train.choices),
    train.labels,
    batch_size=16,
    epochs=flags.epochs,
    validation_data=((dev.contexts, dev.choices), dev.labels),
    verbose=2,
)

# %%
answers = model.choose(dev.contexts, dev.choices)
right = np.array([answer["index"] for answer in answers]) == dev.labels
print(f"accuracy {right.mean():.3f}, chance {1 / dev.num_choices:.3f}")
model.save(f"{flags.output_dir}.keras")
loaded = keras.models.load_model(f"{flags.output_dir}.keras")
choices = ["eats the chair.", "sits down on it.", "flies to the moon.", "sings to the soup."]
print(loaded.choose("She pulls the chair back from the table.", [f"She {end}" for end in choices]))

# %%
plots.learning_curves(history, path=f"{flags.output_dir}/learning_curves.png")
