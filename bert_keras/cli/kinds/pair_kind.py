"""Pairs of more or less similar texts."""

import contextlib
import dataclasses

import numpy as np

from bert_keras import datasets, plots
from bert_keras.checks import check_not_empty
from bert_keras.cli.baseline import Verdict
from bert_keras.cli.kinds.kind import BATCH_SIZE, POOLING, Kind, Splits, task_of
from bert_keras.cli.kinds.text_kind import COLUMNS
from bert_keras.cli.options import LAYOUT, Option
from bert_keras.training import CosineRegression, MultipleNegativesRanking

# From this share of the highest score, a pair counts as having the same meaning.
TRUE_PAIR = 0.8


class PairKind(Kind):
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
    needs = ("sklearn", "scipy")

    def read(self):
        if self.flags.train_file:
            return super().read()
        name = self.flags.dataset or datasets.detect_glue_task(self.flags.data_dir)
        task, splits = datasets.get_glue_task(name), {}
        if len(task.label_names) > 2 or any(len(layout.texts) < 2 for layout in task.layouts):
            rule = "--dataset must have pairs that are similar or not, such as stsb, mrpc or qqp"
            raise ValueError(f"{rule}. Received: {name}.")
        for part in ("train", "dev", *(["test_labelled"] if "test_labelled" in task.files else [])):
            with contextlib.suppress(*([FileNotFoundError] if part == "test_labelled" else [])):
                found = datasets.load_glue(name, self.flags.data_dir, part)
                splits[part.partition("_")[0]] = _of_known(found, task)
        if self.flags.test_file:
            splits["test"] = self.read_known_file(self.flags.test_file, task)
        elif "test" not in splits:
            print("There is no test file with labels.")
        return Splits(**splits)

    def read_known_file(self, path, task):
        """Returns the pairs of a file of a known dataset."""
        return _of_known(datasets.read_examples(path, task), task)

    def read_file(self, path, part):
        """Returns the pairs of a file, of a known set or with the columns that the flags name."""
        flags = self.flags
        if flags.dataset:
            return self.read_known_file(path, datasets.get_glue_task(flags.dataset))
        if len(flags.columns) != 2:
            raise ValueError(
                "Pairs need two columns, --columns FIRST,SECOND, or --dataset for a known set. "
                f"Received: {', '.join(flags.columns)}."
            )
        pairs = datasets.read_texts(
            path,
            flags.columns,
            flags.label_column,
            problem_type="regression",
            score_range=(0.0, flags.highest_score),
            may_lack_labels=part == "test",
            **{option.name: flags[option.name].value for option in LAYOUT},
        )
        return _scaled(pairs, flags.highest_score)

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

    def example_lines(self, model, few):
        query, documents = few.texts[0][0], few.texts[1]
        yield f"nearest to {query!r}:"
        for hit in model.semantic_search(query, documents, top_k=3):
            yield f"{hit['score']:.3f}  {hit['text']}"

    def draw(self, model, dev, folder):
        """Draws the cosines of similar pairs and of other pairs."""
        scores = model.similarities_of_pairs(*map(model.embed, dev.texts))
        plots.similarities(scores, dev.labels >= TRUE_PAIR, path=folder / "similarities.png")


def _of_known(pairs, task):
    """Returns pairs of a known dataset with labels from 0 (different) to 1 (the same)."""
    if pairs.label_names[:1] == ("entailment",) and pairs.labels is not None:
        pairs = dataclasses.replace(pairs, labels=1 - np.asarray(pairs.labels))
    return _scaled(pairs, task.score_range[1] if task.problem_type == "regression" else 1.0)


def _scaled(pairs, highest):
    if pairs.labels is None:
        return pairs
    return dataclasses.replace(pairs, labels=np.asarray(pairs.labels, "float32") / highest)


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
