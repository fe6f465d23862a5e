# %% [markdown]
# # Tag words: named entity recognition (NER)
#
# A checkpoint learns to find people, places and organisations in sentences of Wikipedia.
#
# ```shell
# python examples/token_classification.py
# python examples/token_classification.py --train_file train.conll --dev_file dev.conll \
#     --num_train 100000
# ```
#
# Expected: entity F1 0.427 on 212 sentences, after training on 500; PyTorch, one seed, up to four
# minutes.

# %%
import argparse
import sys

import keras

import bert_keras
from bert_keras import datasets, plots

parser = argparse.ArgumentParser()
parser.add_argument(
    "--train_file", default="examples/data/wikigold/wikigold.conll.txt", help="column file"
)
parser.add_argument("--dev_file", default=None, help="by default every eighth sentence")
parser.add_argument(
    "--preset", default="minilm_l6_en_uncased", help="name, folder or hf:// address"
)
parser.add_argument("--num_train", type=int, default=500, help="sentences to train on")
parser.add_argument("--epochs", type=int, default=2, help="passes over the training set")
parser.add_argument(
    "--output_dir",
    default="output/token_classification",
    help="output folder",
)
parser.add_argument(
    "--devices", type=int, help="devices that share a batch; PyTorch needs torchrun"
)
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)
if flags.devices:
    bert_keras.distribution.initialize(flags.devices)

# %% [markdown]
# Data: words, each with a tag. This set has no split of its own.

# %%
train = datasets.read_conll(flags.train_file)
if flags.dev_file:
    dev = datasets.read_conll(flags.dev_file)
else:
    rows = range(len(train))
    dev, train = train.take(rows[::8]), train.take([row for row in rows if row % 8])
tags = datasets.tag_names(train)
train = train.take(range(min(flags.num_train, len(train))))
print(len(train), "sentences to train on,", len(dev), "to measure on:", tags)

# %% [markdown]
# The head predicts a tag for the first piece of each word. It starts at random, and needs a higher
# learning rate than a text classifier.

# %%
keras.utils.set_random_seed(0)
tagger = bert_keras.TokenClassifier.from_preset(
    flags.preset, num_classes=len(tags), label_names=tags, max_length=96
)
tagger.compile(learning_rate=3e-4)
history = tagger.fit(
    train.words, train.tags, epochs=flags.epochs, validation_data=(dev.words, dev.tags), verbose=2
)

# %% [markdown]
# An entity is correct if its start, end and type are, as in conlleval.

# %%
scores = tagger.evaluate_tags(dev.words, dev.tags)
print({name: round(scores[name], 3) for name in ("f1", "precision", "recall", "accuracy")})
tagger.save(f"{flags.output_dir}.keras")
loaded = keras.models.load_model(f"{flags.output_dir}.keras")
answers = loaded.tag(["Ada Lovelace lived in London .", "He played for Arsenal until 1998 ."])
for answer in answers:
    print(answer["text"], [(e["text"], e["type"]) for e in answer["entities"]])

# %%
plots.tags(answers)

# %%
predicted = [tag for row in tagger.predict_tags(dev.words) for tag in row]
true = [tag for row in dev.tags for tag in row]
plots.confusion_matrix(true, predicted, tags, path=f"{flags.output_dir}/confusion_matrix.png")
