# %% [markdown]
# # Classify documents that are longer than the model reads
#
# Passages of two books are either cut to their first tokens, or read in windows and combined.
#
# ```shell
# python examples/long_text_classification.py
# python examples/long_text_classification.py --data_dir aclImdb --preset minilm_l6_en_uncased
# ```
#
# Expected: accuracy 0.988 with the beginning and 1.000 with six windows, on 82 passages; PyTorch,
# one seed, two minutes.

# %%
import argparse
import sys

import keras

import bert_keras
from bert_keras import corpora, datasets, plots

parser = argparse.ArgumentParser()
parser.add_argument(
    "--data_dir", default=None, help="folder of the IMDB reviews; by default passages of two books"
)
parser.add_argument(
    "--preset", default="bert_mini_en_gutenberg", help="name, folder or hf:// address"
)
parser.add_argument("--epochs", type=int, default=3, help="passes over the training set")
parser.add_argument(
    "--output_dir",
    default="output/long_text_classification",
    help="output folder",
)
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %%
if flags.data_dir:
    train, dev = (datasets.load_imdb(flags.data_dir, part) for part in ("train", "test"))
else:
    texts, labels = [], []
    for label, book in enumerate(("alice", "tom_sawyer")):
        (document,) = corpora.read_documents(f"examples/data/books/{book}.txt.gz")
        words = " ".join(document).split()
        passages = [" ".join(words[i : i + 300]) for i in range(0, len(words), 300)]
        texts += passages
        labels += [label] * len(passages)
    examples = datasets.LabelledTexts(texts, keras.ops.convert_to_numpy(labels), ("Alice", "Tom"))
    train, dev = datasets.split_examples(examples, 0.25)
print(len(train), "documents to train on,", len(dev), "to measure on")

# %% [markdown]
# Two ways: only the first 64 tokens, or up to six windows of 64 tokens, which attention learns to
# weigh.

# %%
options = {"label_names": train.label_names, "max_length": 64}
for name, task, how in (
    ("the beginning", bert_keras.TextClassifier, {"truncation": "head"}),
    ("six windows", bert_keras.LongTextClassifier, {"combine": "self_attention", "num_windows": 6}),
):
    keras.utils.set_random_seed(0)
    classifier = task.from_preset(flags.preset, **options, **how)
    classifier.compile(learning_rate=2e-4)
    classifier.fit(train.texts, train.labels, batch_size=16, epochs=flags.epochs, verbose=0)
    scores = classifier.evaluate(dev.texts, dev.labels, verbose=0, return_dict=True)
    print(f"{name}: accuracy {scores['accuracy']:.3f}")

# %%
classifier.save(f"{flags.output_dir}.keras")
loaded = keras.models.load_model(f"{flags.output_dir}.keras")
print(loaded.classify(dev.texts[0]), dev.label_names[dev.labels[0]])

# %%
chosen = classifier.predict(dev.texts, verbose=0).argmax(axis=-1)
plots.confusion_matrix(
    dev.labels, chosen, dev.label_names, path=f"{flags.output_dir}/confusion_matrix.png"
)
