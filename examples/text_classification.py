# %% [markdown]
# # Classify texts
#
# A checkpoint learns to tell positive sentences of reviews from negative ones.
#
# ```shell
# python examples/text_classification.py
# python examples/text_classification.py --data_dir glue_data/SST-2 --num_train 100000
# ```
#
# Expected: accuracy 0.896 ± 0.004 on 600 sentences; PyTorch, three seeds, 34 seconds of one core
# each.

# %%
import argparse
import sys

import keras

import bert_keras
from bert_keras import datasets, plots

parser = argparse.ArgumentParser()
parser.add_argument(
    "--data_dir", default=None, help="a GLUE folder; by default 2,400 sentences of reviews"
)
parser.add_argument(
    "--preset", default="minilm_l6_en_uncased", help="name, folder or hf:// address"
)
parser.add_argument("--num_train", type=int, default=800, help="sentences to train on")
parser.add_argument("--epochs", type=int, default=1, help="passes over the training set")
parser.add_argument("--output_dir", default="output/text_classification", help="output folder")
parser.add_argument(
    "--devices", type=int, help="devices that share a batch; PyTorch needs torchrun"
)
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)
if flags.devices:
    bert_keras.distribution.initialize(flags.devices)

# %% [markdown]
# Data: texts and labels, in two parts that share no text.

# %%
if flags.data_dir:
    train, dev = (datasets.load_glue(None, flags.data_dir, part) for part in ("train", "dev"))
else:
    folder = "examples/data/sentiment_labelled_sentences"
    train, dev = datasets.load_sentiment_sentences(folder)
train = train.take(range(min(flags.num_train, len(train))))
print(len(train), "to train on,", len(dev), "to measure on:", train.label_names)

# %% [markdown]
# The model is the checkpoint's encoder with a new head. By default, `compile` uses the recipe of
# the BERT paper. The mean of the token vectors suits this checkpoint, which was trained with it.

# %%
keras.utils.set_random_seed(0)
classifier = bert_keras.TextClassifier.from_preset(
    flags.preset, label_names=train.label_names, pooling="mean", max_length=128
)
classifier.compile(learning_rate=2e-4)
history = classifier.fit(
    train.texts,
    train.labels,
    epochs=flags.epochs,
    validation_data=(dev.texts, dev.labels),
    verbose=2,
)

# %% [markdown]
# Evaluate on unseen sentences, save, load again, and classify new texts.

# %%
print(classifier.evaluate(dev.texts, dev.labels, verbose=0, return_dict=True))
classifier.save(f"{flags.output_dir}.keras")
loaded = keras.models.load_model(f"{flags.output_dir}.keras")
for text in ("The plot is a joy from start to finish.", "The battery died after two days."):
    print(text, loaded.classify(text))

# %%
chosen = classifier.predict(dev.texts, verbose=0).argmax(axis=-1)
plots.confusion_matrix(
    dev.labels, chosen, dev.label_names, path=f"{flags.output_dir}/confusion_matrix.png"
)
