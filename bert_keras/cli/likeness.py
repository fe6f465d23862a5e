"""Pairs of texts that are more or less alike: read, scored by cosines, and grouped for ranking."""

import dataclasses

import numpy as np

from bert_keras import datasets, metrics
from bert_keras.cli.training_files import Parts

# From this share of the highest score on, a pair counts as meaning the same.
TRUE_PAIR = 0.8


def read_pairs(given):
    """Returns pairs whose labels are likeness from 0 to 1."""
    if given.train_file:
        train = _read_file(given, given.train_file)
        test = _read_file(given, given.test_file, True) if given.test_file else None
        if given.dev_file:
            return Parts(train, _read_file(given, given.dev_file), test)
        print(f"There is no dev file: a tenth of {given.train_file} is held out.")
        size = max(2, len(train) // 10)
        return Parts(*datasets.split_examples(train, test_size=size, seed=0), test)
    name = given.dataset or datasets.detect_glue_task(given.data_dir)
    task = datasets.get_glue_task(name)
    if len(task.label_names) > 2 or any(len(layout.texts) < 2 for layout in task.layouts):
        raise ValueError("The dataset has no pairs that are like or unlike: see --help.")
    train, dev = (
        _of_known(datasets.load_glue(name, given.data_dir, p), task) for p in ("train", "dev")
    )
    if given.test_file:
        return Parts(train, dev, _of_known(datasets.read_examples(given.test_file, task), task))
    try:
        labelled = "test_labelled" in task.files
        test = datasets.load_glue(name, given.data_dir, "test_labelled") if labelled else None
    except FileNotFoundError:
        test = None
    if test is None:
        print("There is no test file with labels.")
    return Parts(train, dev, test and _of_known(test, task))


def _read_file(given, path, may_lack_labels=False):
    if given.dataset:
        task = datasets.get_glue_task(given.dataset)
        return _of_known(datasets.read_examples(path, task), task)
    if not given.pair_column:
        raise ValueError("Pairs need --pair_column, or --dataset for a known one.")
    pairs = datasets.read_texts(
        path,
        [given.text_column, given.pair_column],
        given.label_column,
        problem_type="regression",
        score_range=(0.0, given.highest_score),
        may_lack_labels=may_lack_labels,
        separator=given.separator,
    )
    return _scaled(pairs, given.highest_score)


def _of_known(pairs, task):
    """Returns pairs of a known dataset with labels from 0, different, to 1, the same."""
    if pairs.label_names[:1] == ("entailment",) and pairs.labels is not None:
        pairs = dataclasses.replace(pairs, labels=1 - np.asarray(pairs.labels))
    return _scaled(pairs, task.score_range[1] if task.score_range else 1.0)


def _scaled(pairs, highest):
    if pairs.labels is None:
        return pairs
    return dataclasses.replace(pairs, labels=np.asarray(pairs.labels, "float32") / highest)


def evaluate_pairs(given, embedder, pairs, further):
    """Returns the correlations of cosine and label, and how well true pairs find each other."""
    import scipy.stats
    from sklearn.metrics import label_ranking_average_precision_score

    first, second = (embedder.embed(column, batch_size=32) for column in pairs.texts)
    found = cosines(first, second)

    def files():
        return {"predictions.jsonl": [{"score": score} for score in found.tolist()]}

    if pairs.labels is None:
        return {}, files
    scores = {
        "spearman": float(scipy.stats.spearmanr(pairs.labels, found).statistic),
        "pearson": float(scipy.stats.pearsonr(pairs.labels, found).statistic),
    }
    true = np.flatnonzero(pairs.labels >= TRUE_PAIR)
    if not len(true):
        return scores, files
    # A document that occurs twice is one document.
    _, index, place = np.unique(pairs.texts[1], return_index=True, return_inverse=True)
    similarities = metrics.cosine_similarity_matrix(first[true], second[index])
    # The mean reciprocal rank: each has one right document, and ties count against the model.
    is_right = np.arange(len(index)) == place[true][:, None]
    scores["mrr"] = float(label_ranking_average_precision_score(is_right, similarities))
    ranks = (similarities >= similarities[is_right][:, None]).sum(axis=1)
    for k in (1, 5):
        scores[f"recall_at_{k}"] = float((ranks <= k).mean())
    return scores, files


def cosines(first, second):
    """Returns the cosine of each row: `(num_pairs,)`."""
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    return np.sum(first * second, axis=-1) / lengths


def true_pairs(pairs):
    """Returns the texts of the pairs that mean the same, and their groups."""
    x = pairs.take(np.flatnonzero(pairs.labels >= TRUE_PAIR)).texts
    if not x[0]:
        raise ValueError("--objective ranking needs pairs that mean the same.")
    return x, groups_of(*x)


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
