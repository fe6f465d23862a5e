r"""Embed sentences, measure how well their cosines tell likeness, and train them to tell it better.

    python examples/text_embedding.py --data_dir stsb --epochs 0
    python examples/text_embedding.py --data_dir stsb --learning_rate 2e-5
    python examples/text_embedding.py --data_dir mrpc --objective ranking --epochs 1
    python examples/text_embedding.py --data_dir afqmc --preset bert_base_zh --objective ranking
    python examples/text_embedding.py --train_file pairs.csv --text_column question \
        --pair_column answer --label_column good

`--data_dir` takes STS-B, MRPC, AFQMC or another folder of sentence pairs that GLUE's reader knows;
`--train_file` any TSV or CSV file with two columns of texts and one of numbers, from 0 for pairs
that mean something else to `--highest_score` for the same.
Measured before and after training: the rank correlation of cosine and label, and semantic search,
where the second sentences of all pairs are the documents and each first sentence of a true pair
must find its own. `--objective similarity` brings each cosine to its score, `ranking` draws true
pairs together and away from all other pairs of the batch, except those that share a sentence with
them, directly or by way of other pairs. `--epochs 0` only measures.

Expected: with --preset minilm_l6_en_uncased and --epochs 0, test_spearman 0.8203 on the 1,379 pairs
of STS-B's test file (original/sts-test.tsv) on every backend, as the model's card says.

Writes model.keras and metrics.json into `--output_dir`, and for `--test_file`
test_predictions.jsonl. KERAS_BACKEND chooses the backend.
"""

import dataclasses
import json
import os

import numpy as np
import recipe
import scipy.stats
import tables
from absl import flags
from sklearn.metrics import label_ranking_average_precision_score

import bert_keras
from bert_keras import datasets, metrics
from bert_keras.cli import mistakes
from bert_keras.files import writing
from bert_keras.training import CosineRegression, MultipleNegativesRanking

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(recipe)  # for --help

flags.DEFINE_string("task", None, "Name of the dataset, where --data_dir does not tell.")
flags.DEFINE_string("text_column", "text", "Name or number of the first text's column in files.")
flags.DEFINE_string("pair_column", None, "Name or number of the second text's column.")
flags.DEFINE_string("label_column", "label", "Name or number of the column of scores.")
flags.DEFINE_float("highest_score", 1.0, "In files, the score of pairs that mean the same.", 1e-6)
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
        recipe.check_vocabulary(embedder, train.texts)
        before = scores(embedder, dev)
        print("Before training:", before)
        if not FLAGS.epochs:
            return embedder, before
        if FLAGS.objective == "ranking":
            x = train.take(np.flatnonzero(train.labels >= TRUE_PAIR)).texts
            if not x[0]:
                raise SystemExit("--objective ranking needs pairs that mean the same.")
            y = groups_of(*x)
            loss = MultipleNegativesRanking(FLAGS.scale, FLAGS.symmetric)
        else:
            x, y, loss = train.texts, train.labels, CosineRegression()
        embedder.compile(loss=loss, learning_rate=FLAGS.learning_rate)
        history = embedder.fit(
            x,
            y,
            batch_size=FLAGS.batch_size,
            epochs=FLAGS.epochs,
            sort_window=FLAGS.sort_window,
        )
        recipe.plot_learning_curves(history, seed)
        before = {f"untrained_{name}": value for name, value in before.items()}
        return embedder, {**scores(embedder, dev), **before}

    embedder, rows = recipe.run_seeds(run)
    reloaded = recipe.save_and_load(embedder)
    query, documents = dev.texts[0][0], dev.texts[1]
    print(f"Loaded again, it finds for {query!r}:")
    for hit in reloaded.semantic_search(query, documents, top_k=3):
        print(f"  {hit['score']:.3f}  {hit['text']}")
    results = recipe.over_seeds(rows)
    if test and FLAGS.test_file:
        write_predictions(reloaded, test)
    if test and test.labels is not None:
        results |= {f"test_{name}": value for name, value in scores(reloaded, test).items()}
    recipe.finish(results)


def make_embedder():
    arguments = {"objective": FLAGS.objective, "dtype": FLAGS.dtype}
    arguments |= recipe.given("pooling")
    if FLAGS["max_length"].present:
        arguments["max_length"] = FLAGS.max_length
    return bert_keras.TextEmbedder.from_preset(FLAGS.preset, **arguments)


def scores(embedder, pairs):
    """Returns the correlations of cosine and label, and how well true pairs find each other."""
    first, second = embed_columns(embedder, pairs)
    found = {
        "spearman": float(scipy.stats.spearmanr(pairs.labels, cosines(first, second)).statistic),
        "pearson": float(scipy.stats.pearsonr(pairs.labels, cosines(first, second)).statistic),
    }
    true = np.flatnonzero(pairs.labels >= TRUE_PAIR)
    if not len(true):
        return found
    # A document that occurs twice is one document.
    _, index, place = np.unique(pairs.texts[1], return_index=True, return_inverse=True)
    similarities = metrics.cosine_similarity_matrix(first[true], second[index])
    # The mean reciprocal rank: each has one right document, and ties count against the model.
    is_right = np.arange(len(index)) == place[true][:, None]
    found["mrr"] = float(label_ranking_average_precision_score(is_right, similarities))
    ranks = (similarities >= similarities[is_right][:, None]).sum(axis=1)
    for k in (1, 5):
        found[f"recall_at_{k}"] = float((ranks <= k).mean())
    return found


def embed_columns(embedder, pairs):
    return [embedder.embed(column, batch_size=FLAGS.batch_size) for column in pairs.texts]


def cosines(first, second):
    """Returns the cosine of each row: `(num_pairs,)`."""
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    return np.sum(first * second, axis=-1) / lengths


def groups_of(first, second):
    """Returns a number for each pair, the same where equal texts connect pairs.

    Pairs (a, b), (c, b) and (c, d) are one group: as negatives of one another they would teach that
    a and b, which both mean what c means, differ.

    Args:
        first: list of str.
        second: list of str.

    Returns:
        int32 `(num_pairs,)`, the connected components of the graph of texts with pairs as edges.
    """
    parents = {}

    def find_root(text):
        while parents.setdefault(text, text) != text:
            parents[text] = parents[parents[text]]
            text = parents[text]
        return text

    for pair in zip(first, second, strict=True):
        one, other = map(find_root, pair)
        parents[one] = other
    numbers = {}
    return np.array([numbers.setdefault(find_root(text), len(numbers)) for text in first], "int32")


def load_data():
    """Returns training, dev and test pairs, whose labels are likeness from 0 to 1.

    The test pairs are `None` where there are none; their labels are where the file has none.
    """
    if FLAGS.train_file:
        train = read_file(FLAGS.train_file)
        test = read_file(FLAGS.test_file, may_lack_labels=True) if FLAGS.test_file else None
        if FLAGS.dev_file:
            return train, read_file(FLAGS.dev_file), test
        print(f"There is no dev file: a tenth of {FLAGS.train_file} is held out.")
        return *datasets.split_examples(train, test_size=max(2, len(train) // 10), seed=0), test
    if not FLAGS.data_dir:
        raise SystemExit("Pass --data_dir, a dataset of sentence pairs, or --train_file.")
    task = datasets.get_glue_task(FLAGS.task or datasets.detect_glue_task(FLAGS.data_dir))
    if len(task.label_names) > 2 or any(len(layout.texts) < 2 for layout in task.layouts):
        raise SystemExit("The dataset has no pairs that are like or unlike: see --help.")
    train, dev = (load_split(task, part) for part in ("train", "dev"))
    if FLAGS.test_file:
        return train, dev, as_likeness(datasets.read_examples(FLAGS.test_file, task), task)
    if "test_labelled" not in task.files:
        return train, dev, None
    try:
        return train, dev, load_split(task, "test_labelled")
    except FileNotFoundError:
        print("There is no test file with labels.")
        return train, dev, None


def load_split(task, part):
    return as_likeness(datasets.load_glue(FLAGS.task, FLAGS.data_dir, part), task)


def read_file(path, may_lack_labels=False):
    """Reads a file of a known dataset (`--task`), or one with the columns that the flags name."""
    if FLAGS.task:
        task = datasets.get_glue_task(FLAGS.task)
        return as_likeness(datasets.read_examples(path, task), task)
    if not FLAGS.pair_column:
        raise SystemExit("Pairs need --pair_column, or --task for a known dataset.")
    pairs = tables.read_texts(
        path,
        [FLAGS.text_column, FLAGS.pair_column],
        FLAGS.label_column,
        problem_type="regression",
        score_range=(0.0, FLAGS.highest_score),
        may_lack_labels=may_lack_labels,
    )
    return scaled(pairs, FLAGS.highest_score)


def as_likeness(pairs, task):
    """Returns pairs of a known dataset with labels from 0, different, to 1, the same."""
    if not isinstance(pairs.texts, tuple) or len(pairs.label_names) > 2:
        raise SystemExit("The dataset has no pairs that are like or unlike: see --help.")
    if pairs.label_names[:1] == ("entailment",) and pairs.labels is not None:
        pairs = dataclasses.replace(pairs, labels=1 - np.asarray(pairs.labels))
    return scaled(pairs, task.score_range[1] if task.score_range else 1.0)


def scaled(pairs, highest):
    if pairs.labels is None:
        return pairs
    return dataclasses.replace(pairs, labels=np.asarray(pairs.labels, "float32") / highest)


def write_predictions(embedder, pairs):
    """Writes the cosine of each pair as JSON lines."""
    path = os.path.join(FLAGS.output_dir, "test_predictions.jsonl")
    with writing(path) as file:
        for score in cosines(*embed_columns(embedder, pairs)).tolist():
            file.write(json.dumps({"score": score}) + "\n")
    print(f"Wrote {path}.")


if __name__ == "__main__":
    mistakes.run(main)
