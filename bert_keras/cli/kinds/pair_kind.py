"""Pairs of more or less similar texts."""

import dataclasses
import functools

import numpy as np

from bert_keras import datasets, plots
from bert_keras.checks import check_not_empty
from bert_keras.cli.baseline import Verdict
from bert_keras.cli.kinds.kind import BATCH_SIZE, POOLING, Splits, task_of
from bert_keras.cli.kinds.text_kind import COLUMNS, TextFiles
from bert_keras.cli.options import Option
from bert_keras.training import CosineRegression, MultipleNegativesRanking

# From this share of the highest score, a pair counts as having the same meaning.
TRUE_PAIR = 0.8


class PairKind(TextFiles):
    """Pairs of texts whose labels are similarities from 0 to 1."""

    name = "text_embedding"
    model_class = task_of("embedding")
    data = (
        *COLUMNS,
        Option("highest_score", float, 1.0, "The score of equal meaning in files.", 1e-6),
    )
    model = (
        POOLING,
        Option("objective", ("similarity", "ranking"), "similarity", "What to train for."),
    )
    training = (
        Option("scale", float, 20.0, "Factor of the cosines in ranking."),
        Option("symmetric", bool, False, "Also rank the anchors for each positive."),
    )
    defaults = {"max_length": None}  # noqa: RUF012
    num_columns = 2, 2

    @functools.cached_property
    def task(self):
        """The known data set, else `None`."""
        return datasets.get_glue_task(self.known_set) if self.known_set else None

    def read(self):
        task = self.task
        if task and (len(task.label_names) > 2 or any(len(x.texts) < 2 for x in task.layouts)):
            rule = "--dataset must have pairs that are similar or not, such as stsb, mrpc or qqp"
            raise ValueError(f"{rule}. Received: {self.known_set}.")
        return Splits(*(pairs and self.similarities(pairs) for pairs in super().read()[:3]))

    def read_columns(self, path, **options):
        score_range = (0.0, self.flags.highest_score)
        options |= {"problem_type": "regression", "score_range": score_range}
        return super().read_columns(path, **options)

    def read_labelled(self, path, model):
        return self.similarities(self.read_file(path, "dev"))

    def similarities(self, pairs):
        """Returns pairs with labels from 0, different, to 1, the same."""
        if pairs.labels is None:
            return pairs
        labels, highest = np.asarray(pairs.labels, "float32"), self.flags.highest_score
        if self.task:
            highest = self.task.score_range[1] if self.task.problem_type == "regression" else 1.0
        if pairs.label_names[:1] == ("entailment",):
            labels = 1 - labels
        return dataclasses.replace(pairs, labels=labels / highest)

    def compile_options(self):
        if self.flags.objective == "ranking":
            return {"loss": MultipleNegativesRanking(self.flags.scale, self.flags.symmetric)}
        return {"loss": CosineRegression()}

    def fit_options(self, splits):
        pairs = splits.train
        if self.flags.objective == "similarity":
            return {"x": pairs.texts, "y": pairs.labels}
        texts = pairs.take(np.flatnonzero(pairs.labels >= TRUE_PAIR)).texts
        check_not_empty(texts[0], "--objective ranking needs pairs with the same meaning")
        return {"x": texts, "y": groups_of(*texts)}

    def before(self, make, splits):
        scores, _ = self.evaluate(make(), splits.dev)
        print("Before training:", scores)
        return {"untrained": scores}

    def evaluate(self, model, examples, tune=False):
        """Returns the correlations of similarity and label, and retrieval scores of true pairs."""
        import scipy.stats
        from sklearn.metrics import label_ranking_average_precision_score

        first, second = (model.embed(column, batch_size=BATCH_SIZE) for column in examples.texts)
        predicted = model.similarities_of_pairs(first, second)

        def files():
            return {"predictions.jsonl": [{"score": score} for score in predicted.tolist()]}

        if examples.labels is None:
            return {}, files
        scores = {
            "spearman": float(scipy.stats.spearmanr(examples.labels, predicted).statistic),
            "pearson": float(scipy.stats.pearsonr(examples.labels, predicted).statistic),
        }
        true = np.flatnonzero(examples.labels >= TRUE_PAIR)
        if not len(true):
            return scores, files
        # A repeated document counts once.
        _, rows, document_of = np.unique(examples.texts[1], return_index=True, return_inverse=True)
        similarities = model.similarities(first[true], second[rows])
        # With one right document each, this is the mean reciprocal rank; ties count against the
        # model.
        is_right = np.arange(len(rows)) == document_of[true][:, None]
        scores["mrr"] = float(label_ranking_average_precision_score(is_right, similarities))
        ranks = (similarities >= similarities[is_right][:, None]).sum(axis=1)
        for k in (1, 5):
            scores[f"recall_at_{k}"] = float((ranks <= k).mean())
        return scores, files

    def verdict(self, scores, examples):
        baseline, count = "one score for all pairs", len(examples.labels)
        return Verdict("Spearman", scores["spearman"], count, "pairs", 0.0, baseline, True)

    def draw(self, model, dev, folder):
        """Draws the cosines of similar pairs and of other pairs."""
        scores = model.similarities_of_pairs(*map(model.embed, dev.texts))
        plots.similarities(scores, dev.labels >= TRUE_PAIR, path=folder / "similarities.png")


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
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    texts, ids = np.unique([*first, *second], return_inverse=True)
    first_ids, second_ids = np.split(ids, 2)
    shape = (len(texts), len(texts))
    graph = coo_array((np.ones(len(first_ids)), (first_ids, second_ids)), shape)
    return connected_components(graph, directed=False)[1][first_ids].astype("int32")
