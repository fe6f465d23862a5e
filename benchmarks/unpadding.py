"""Speed of an encoder that computes texts in rows without padding, and the largest difference.

    KERAS_BACKEND=jax taskset -c 0 python benchmarks/unpadding.py --sst2_dir SST-2 --imdb_dir imdb \
        --books_dir gutenberg

MiniLM reads sentences of SST-2 and reviews of IMDB, up to 512 tokens. A ModernBERT of 3 layers, 256
wide, with random weights reads the beginnings of books, whose lengths are spread evenly up to 8,192
tokens. Padded and unpadded rounds take turns over the same batches. The first round of each
compiles and does not count; the fastest of the others does, in processor seconds. `predict` sorts
texts by length. Training sorts within windows, or not at all with `sort_window=1`. Prints a JSON
line for each set and job.
"""

import json
import time

import keras
import numpy as np
from absl import app, flags

import bert_keras
from bert_keras import corpora, datasets

FLAGS = flags.FLAGS
flags.DEFINE_string("sst2_dir", None, "Folder of SST-2.")
flags.DEFINE_string("imdb_dir", None, "Folder of IMDB.")
flags.DEFINE_string("books_dir", None, "Folder of books, .txt or .txt.gz.")
flags.DEFINE_integer("sentences", 256, "Of SST-2.", 1)
flags.DEFINE_integer("reviews", 48, "Of IMDB.", 1)
flags.DEFINE_integer("books", 8, "How many beginnings of books.", 1)
flags.DEFINE_integer("rounds", 3, "Times each way is measured.", 1)


def predict(task, texts, batch_size):
    """Returns the logits."""
    return task.predict(texts, batch_size=batch_size, verbose=0)


def fit(task, texts, batch_size, **options):
    """Trains an epoch, at a learning rate that changes nothing, and returns its loss."""
    labels = np.arange(len(texts)) % 2
    history = task.fit(texts, labels, batch_size=batch_size, verbose=0, **options)
    return history.history["loss"]


def fit_random(task, texts, batch_size):
    """Trains an epoch on batches in random order."""
    return fit(task, texts, batch_size, sort_window=1)


def main(argv):
    for name, folder, read in (
        ("SST-2", FLAGS.sst2_dir, sentences),
        ("IMDB", FLAGS.imdb_dir, reviews),
        ("books", FLAGS.books_dir, books),
    ):
        if folder is not None:
            keras.utils.set_random_seed(0)
            task, texts, batch_size = read(folder)
            task.compile(learning_rate=1e-30)
            for job in (predict, fit_random, fit):
                found = measured(job, task, texts, batch_size)
                print(json.dumps({"set": name, "job": job.__name__, **found}), flush=True)


def measured(job, task, texts, batch_size):
    """Returns the processor seconds of both ways, and the largest difference of their results."""
    seconds, given = {False: [], True: []}, {}
    for _ in range(1 + FLAGS.rounds):
        for way in seconds:
            task.preprocessor.unpadded = way
            started = time.process_time()
            given[way] = job(task, texts, batch_size)
            seconds[way].append(time.process_time() - started)
    padded, unpadded = (min(each[1:]) for each in seconds.values())
    return {
        "backend": keras.backend.backend(),
        "padded_s": round(padded, 3),
        "unpadded_s": round(unpadded, 3),
        "times": round(padded / unpadded, 2),
        "difference": float(np.abs(np.subtract(given[False], given[True])).max()),
    }


def mini_lm(max_length):
    # Dropout draws by position, so it differs between the two ways.
    return bert_keras.TextClassifier.from_preset(
        "minilm_l6_en_uncased",
        num_classes=2,
        dropout=0.0,
        pooling="pooler",
        max_length=max_length,
        backbone={"dropout": 0.0, "attention_dropout": 0.0},
    )


def sentences(folder):
    texts = datasets.load_glue("SST-2", folder, "dev").texts[: FLAGS.sentences]
    return mini_lm(128), texts, 32


def reviews(folder):
    texts = datasets.load_imdb(folder, "test").texts
    chosen = np.random.default_rng(0).permutation(len(texts))[: FLAGS.reviews]
    return mini_lm(512), [texts[i] for i in chosen], 8


def books(folder):
    length = 8192
    texts = [" ".join(paragraphs) for paragraphs in corpora.read_documents(folder)]
    tokenizer = bert_keras.Tokenizer.from_preset("bert_mini_en_gutenberg")
    # A token of these books has about 4.5 characters.
    texts = [text[: 36_000 * (i + 1) // FLAGS.books] for i, text in enumerate(texts)]
    backbone = bert_keras.ModernBertBackbone(
        vocabulary_size=tokenizer.vocabulary_size,
        num_layers=3,
        num_heads=4,
        hidden_dim=256,
        intermediate_dim=384,
        max_sequence_length=length,
    )
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=length)
    task = bert_keras.TextClassifier(backbone, 2, preprocessor, pooling="mean")
    return task, texts[: FLAGS.books], 8


if __name__ == "__main__":
    app.run(main)
