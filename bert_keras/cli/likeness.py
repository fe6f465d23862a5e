"""Pairs of more or less similar texts: reading, scores, and groups for ranking."""

import dataclasses

import numpy as np

from bert_keras import datasets
from bert_keras.checks import check_not_empty
from bert_keras.cli.training_files import Parts, read_named_files

# From this share of the highest score, a pair counts as having the same meaning.
TRUE_PAIR = 0.8


def read_pairs(flags):
    """Returns pairs whose labels are similarities from 0 to 1."""
    if flags.train_file:
        return read_named_files(flags, read_pair_file)
    name = flags.dataset or datasets.detect_glue_task(flags.data_dir)
    task = datasets.get_glue_task(name)
    if len(task.label_names) > 2 or any(len(layout.texts) < 2 for layout in task.layouts):
        rule = "--dataset must have pairs that are similar or not, such as stsb, mrpc or qqp"
        raise ValueError(f"{rule}. Received: {name}.")
    train, dev = (
        _of_known(datasets.load_glue(name, flags.data_dir, part), task) for part in ("train", "dev")
    )
    if flags.test_file:
        return Parts(train, dev, _of_known(datasets.read_examples(flags.test_file, task), task))
    try:
        labelled = "test_labelled" in task.files
        test = datasets.load_glue(name, flags.data_dir, "test_labelled") if labelled else None
    except FileNotFoundError:
        test = None
    if test is None:
        print("There is no test file with labels.")
    return Parts(train, dev, test and _of_known(test, task))


def read_pair_file(flags, path, label_names=None, may_lack_labels=False):
    """Returns the pairs of a file, of a known set or with the columns that the flags name."""
    if flags.dataset:
        task = datasets.get_glue_task(flags.dataset)
        return _of_known(datasets.read_examples(path, task), task)
    if not flags.pair_column:
        raise ValueError("Pairs need --pair_column, or --dataset for a known one.")
    pairs = datasets.read_texts(
        path,
        [flags.text_column, flags.pair_column],
        flags.label_column,
        problem_type="regression",
        score_range=(0.0, flags.highest_score),
        may_lack_labels=may_lack_labels,
        separator=flags.separator,
        quoting=flags.quoting,
        encoding=flags.encoding,
    )
    return _scaled(pairs, flags.highest_score)


def _of_known(pairs, task):
    """Returns pairs of a known dataset with labels from 0 (different) to 1 (the same)."""
    if pairs.label_names[:1] == ("entailment",) and pairs.labels is not None:
        pairs = dataclasses.replace(pairs, labels=1 - np.asarray(pairs.labels))
    return _scaled(pairs, task.score_range[1] if task.problem_type == "regression" else 1.0)


def _scaled(pairs, highest):
    if pairs.labels is None:
        return pairs
    return dataclasses.replace(pairs, labels=np.asarray(pairs.labels, "float32") / highest)


def evaluate_pairs(flags, embedder, pairs, further):
    """Returns the correlations of similarity and label, and retrieval scores of true pairs."""
    import scipy.stats
    from sklearn.metrics import label_ranking_average_precision_score

    first, second = (embedder.embed(column, batch_size=32) for column in pairs.texts)
    predicted = embedder.similarities_of_pairs(first, second)

    def files():
        return {"predictions.jsonl": [{"score": score} for score in predicted.tolist()]}

    if pairs.labels is None:
        return {}, files
    scores = {
        "spearman": float(scipy.stats.spearmanr(pairs.labels, predicted).statistic),
        "pearson": float(scipy.stats.pearsonr(pairs.labels, predicted).statistic),
    }
    true = np.flatnonzero(pairs.labels >= TRUE_PAIR)
    if not len(true):
        return scores, files
    # A repeated document counts once.
    _, rows, document_of = np.unique(pairs.texts[1], return_index=True, return_inverse=True)
    similarities = embedder.similarities(first[true], second[rows])
    # With one right document each, this is the mean reciprocal rank; ties count against the model.
    is_right = np.arange(len(rows)) == document_of[true][:, None]
    scores["mrr"] = float(label_ranking_average_precision_score(is_right, similarities))
    ranks = (similarities >= similarities[is_right][:, None]).sum(axis=1)
    for k in (1, 5):
        scores[f"recall_at_{k}"] = float((ranks <= k).mean())
    return scores, files


def true_pairs(pairs):
    """Returns the texts of the pairs with the same meaning, and their groups."""
    texts = pairs.take(np.flatnonzero(pairs.labels >= TRUE_PAIR)).texts
    check_not_empty(texts[0], "--objective ranking needs pairs with the same meaning")
    return texts, groups_of(*texts)


def groups_of(first, second):
    """Returns a number for each pair, the same for pairs that are connected by equal texts.

    Pairs (a, b), (c, b) and (c, d) are one group: as negatives of one another they would teach that
    a and d differ, although both mean the same as b and c.

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
        root, other_root = map(find_root, pair)
        parents[root] = other_root
    numbers = {}
    return np.array([numbers.setdefault(find_root(text), len(numbers)) for text in first], "int32")
