"""Times `embed` and `rank` beside sentence-transformers: the same weights, texts and thread.

    export OMP_NUM_THREADS=1 NPROC=1 TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1
    KERAS_BACKEND=torch python benchmarks/retrieval_speed.py
    KERAS_BACKEND=tensorflow python benchmarks/retrieval_speed.py
    KERAS_BACKEND=jax XLA_FLAGS=--xla_cpu_multi_thread_eigen=false \
        python benchmarks/retrieval_speed.py

Both sides are in one process and take turns, `--rounds` times after one that compiles. It prints
processor seconds and wall seconds; a ratio is the median over rounds, with its range. The texts are
sentences of SQuAD's paragraphs, of any length up to 128 tokens. Their vectors and scores must agree
to 1e-5.
"""

import pathlib
import statistics
import tempfile

import keras
import numpy as np
import sentence_transformers
import turns
from absl import app, flags
from result_tables import spread

import bert_keras
from bert_keras import corpora
from bert_keras.datasets import read_squad

DATA = flags.DEFINE_string(
    "data", "examples/data/squad/train-v1.1.json", "A file in SQuAD's format."
)
PRESET = flags.DEFINE_string("preset", "minilm_l6_en_uncased", "An embedder.")
NUM_TEXTS = flags.DEFINE_integer("num_texts", 256, "Texts to embed, and half of them to rank.")
ROUNDS = flags.DEFINE_integer("rounds", 5, "Rounds.")
MAX_LENGTH, BATCH = 128, 32


def jobs(folder, question, texts):
    """Yields a name and two functions, ours and theirs, that return arrays."""
    embedder = bert_keras.TextEmbedder.from_preset(PRESET.value, max_length=MAX_LENGTH)
    embedder.export_to_huggingface(folder / "embedder")
    theirs = sentence_transformers.SentenceTransformer(str(folder / "embedder"), device="cpu")
    options = {"batch_size": BATCH}
    yield "embed", lambda: embedder.embed(texts, **options), lambda: theirs.encode(texts, **options)
    start = {"pooling": "pooler", "max_length": MAX_LENGTH}
    bert_keras.Reranker.from_preset(PRESET.value, **start).export_to_huggingface(folder / "ranker")
    ranker = bert_keras.Reranker.from_preset(folder / "ranker", max_length=MAX_LENGTH)
    encoder = sentence_transformers.CrossEncoder(
        str(folder / "ranker"), max_length=MAX_LENGTH, device="cpu"
    )
    texts = texts[: len(texts) // 2]

    def our_scores():
        return in_order(ranker.rank(question, texts, **options), "index")

    def their_scores():
        return in_order(encoder.rank(question, texts, **options), "corpus_id")

    yield "rank", our_scores, their_scores


def in_order(hits, place):
    return np.array([hit["score"] for hit in sorted(hits, key=lambda hit: hit[place])])


def speed(clock, times):
    """Describes the times of one clock, `times[side][round][clock]`."""
    ours, theirs = ([each[clock] for each in side] for side in times)
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    return (
        f"{statistics.median(ours):.3f} s, sentence-transformers {statistics.median(theirs):.3f} s,"
        f" ratio {spread(ratios, '.2f')}"
    )


def main(argv):
    examples = read_squad(DATA.value).examples
    contexts = dict.fromkeys(example.context for example in examples)
    texts = [text for context in contexts for text in corpora.split_sentences(context)]
    texts = texts[: NUM_TEXTS.value]
    with tempfile.TemporaryDirectory() as folder:
        for name, *sides in jobs(pathlib.Path(folder), examples[0].question, texts):
            found = [side() for side in sides]
            np.testing.assert_allclose(*found, atol=1e-5)
            print(f"{name}: largest difference {np.abs(found[0] - found[1]).max():.1e}")
            times, _ = turns.alternate(sides, ROUNDS.value)
            for clock, kind in enumerate(("processor", "wall")):
                print(
                    f"{name}, {keras.backend.backend()}, {kind}: {speed(clock, times)}", flush=True
                )


if __name__ == "__main__":
    app.run(main)
