"""Embed sentences, measure how well their cosines tell likeness, and train them to tell it better.

    python examples/text_embedding.py --data_dir stsb --epochs 0
    python examples/text_embedding.py --data_dir stsb --learning_rate 2e-5
    python examples/text_embedding.py --data_dir mrpc --objective ranking --epochs 1
    python examples/text_embedding.py --data_dir afqmc --preset bert_base_zh --objective ranking

`--data_dir` takes STS-B, MRPC, AFQMC or another folder of sentence pairs that GLUE's reader knows.
Measured before and after training: the rank correlation of cosine and label, and semantic search,
where the second sentences of all pairs are the documents and each first sentence of a true pair
must find its own. `--objective similarity` brings each cosine to its score, `ranking` draws true
pairs together and away from all other pairs of the batch. `--epochs 0` only measures.

Expected: with --preset minilm_l6_en_uncased and --epochs 0, test_spearman 0.8203 on the 1,379 pairs
of STS-B's test file (original/sts-test.tsv) on every backend, as the model's card says.

Writes model.keras and metrics.json into `--output_dir`. KERAS_BACKEND chooses the backend.
"""

import numpy as np
import recipe
from absl import app, flags

import bert_keras
from bert_keras import datasets, metrics
from bert_keras.training import CosineRegression, MultipleNegativesRanking

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(recipe)  # for --help

flags.DEFINE_string("task", None, "Name of the dataset, where --data_dir does not tell.")
flags.DEFINE_enum("objective", "similarity", ["similarity", "ranking"], "What to train for.")
flags.DEFINE_float("scale", 20.0, "What ranking multiplies cosines by.")
flags.DEFINE_bool("symmetric", False, "Let positives look for their anchors too, in ranking.")
flags.DEFINE_enum("pooling", None, ["mean", "cls", "max"], "By default the preset's.")

# From this share of the highest score on, a pair counts as meaning the same.
TRUE_PAIR = 0.8


def main(argv):
    train, dev, test = load_data()
    recipe.check_labelled(train=train, dev=dev)
    train = recipe.sampled(train)
    print(f"{len(train)} pairs to train on, {len(dev)} to measure on.")

    def run(seed):
        embedder = make_embedder()
        before = scores(embedder, dev)
        print("Before training:", before)
        if not FLAGS.epochs:
            return embedder, before
        if FLAGS.objective == "ranking":
            true = train.take(np.flatnonzero(likeness(train) >= TRUE_PAIR))
            x, y = true.texts, None
            loss = MultipleNegativesRanking(FLAGS.scale, FLAGS.symmetric)
        else:
            x, y, loss = train.texts, likeness(train), CosineRegression()
        embedder.compile(loss=loss, learning_rate=FLAGS.learning_rate)
        history = embedder.fit(x, y, batch_size=FLAGS.batch_size, epochs=FLAGS.epochs)
        recipe.plot_learning_curves(history)
        before = {f"untrained_{name}": value for name, value in before.items()}
        return embedder, {**scores(embedder, dev), **before}

    embedder, rows = recipe.run_seeds(run)
    reloaded = recipe.save_and_load(embedder)
    query, documents = dev.texts[0][0], dev.texts[1]
    print(f"Loaded again, it finds for {query!r}:")
    for hit in reloaded.semantic_search(query, documents, top_k=3):
        print(f"  {hit['score']:.3f}  {hit['text']}")
    results = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    if test:
        results |= {f"test_{name}": value for name, value in scores(reloaded, test).items()}
    recipe.finish(results)


def make_embedder():
    arguments = {"objective": FLAGS.objective, "dtype": FLAGS.dtype}
    if FLAGS.pooling:
        arguments["pooling"] = FLAGS.pooling
    if FLAGS["max_length"].present:
        arguments["max_length"] = FLAGS.max_length
    return bert_keras.TextEmbedder.from_preset(FLAGS.preset, **arguments)


def likeness(pairs):
    """Returns the labels as floats from 0, different, to 1, the same: `(num_pairs,)`."""
    highest = 5.0 if pairs.problem_type == "regression" else 1.0
    return np.asarray(pairs.labels, "float32") / highest


def scores(embedder, pairs):
    """Returns the correlations of cosine and label, and how well true pairs find each other."""
    first, second = (embedder.embed(column, batch_size=FLAGS.batch_size) for column in pairs.texts)
    cosines = np.sum(unit(first) * unit(second), axis=-1)
    found = {
        "spearman": metrics.spearman(likeness(pairs), cosines),
        "pearson": metrics.pearson(likeness(pairs), cosines),
    }
    true = np.flatnonzero(likeness(pairs) >= TRUE_PAIR)
    # A document that occurs twice is one document.
    _, index, place = np.unique(pairs.texts[1], return_index=True, return_inverse=True)
    similarities = metrics.cosine_similarity_matrix(first[true], second[index])
    found["mrr"] = metrics.mean_reciprocal_rank(similarities, place[true])
    for k in (1, 5):
        found[f"recall_at_{k}"] = metrics.recall_at_k(similarities, place[true], k)
    return found


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def load_data():
    """Returns training, dev and labelled test pairs, the last `None` where there are none."""
    if not FLAGS.data_dir:
        raise app.UsageError("Pass --data_dir, the folder of a dataset of sentence pairs.")
    task = FLAGS.task or datasets.detect_glue_task(FLAGS.data_dir)
    parts = [datasets.load_glue(task, FLAGS.data_dir, part) for part in ("train", "dev")]
    if not isinstance(parts[0].texts, tuple) or len(parts[0].label_names) > 2:
        raise app.UsageError(f"{task} has no pairs that are like or unlike. Try STS-B or MRPC.")
    test = None
    if "test_labelled" in datasets.get_glue_task(task).files:
        try:
            test = datasets.load_glue(task, FLAGS.data_dir, "test_labelled")
        except FileNotFoundError:
            print("There is no test file with labels.")
    return *parts, test


if __name__ == "__main__":
    app.run(main)
