"""Pictures of a run's best model, in the run's folder."""

import numpy as np

import bert_keras
from bert_keras import plots
from bert_keras.cli.likeness import TRUE_PAIR

NUM_TEXTS, NUM_POINTS = 6, 300


def of_classes(model, parts, folder):
    """Draws the confusion matrix of the classes."""
    dev = parts.dev
    if dev.problem_type == "single_label":
        predicted = model.predict(dev.texts, verbose=0).argmax(-1)
        path = folder / "confusion_matrix.png"
        plots.confusion_matrix(dev.labels, predicted, dev.label_names, path=path)


def of_texts(model, parts, folder):
    """Draws the confusion matrix, and attention, saliency and layer vectors of some texts."""
    of_classes(model, parts, folder)
    dev = parts.dev
    points = dev.take(np.random.default_rng(0).permutation(len(dev))[:NUM_POINTS])
    columns = points.texts if isinstance(points.texts, tuple) else (points.texts,)
    lengths = model.preprocessor(*columns)["padding_mask"].sum(axis=1)
    # Texts short enough for a picture, in the order drawn; if all are long, the shortest.
    ranks = np.where(lengths <= plots.MOST_TOKENS, 0, lengths)
    shown = points.take(np.argsort(ranks, kind="stable")[:NUM_TEXTS])
    first = shown.take([0]).texts
    texts = [column[0] for column in (first if isinstance(first, tuple) else (first,))]
    plots.attention(model, *texts, path=folder / "attention_layers.png")
    plots.attention(model, *texts, layer=-1, path=folder / "attention_heads.png")
    names = [label_in_words(label, dev.label_names) for label in shown.labels]
    saliencies = bert_keras.integrated_gradients(model, shown.texts)
    plots.saliency(saliencies, names, path=folder / "saliency.png")
    vectors = plots.layer_vectors(model, points.texts)
    names = [label_in_words(label, dev.label_names) for label in points.labels]
    scores = points.labels if points.problem_type == "regression" else None
    plots.projection(vectors, names, scores, path=folder / "projection.png")


def label_in_words(label, names):
    """Returns an example's true label in words: a name, several names, or a score."""
    if np.ndim(label):
        true = [name for name, is_true in zip(names, label, strict=True) if is_true]
        return ", ".join(true) or "none"
    return str(names[label]) if names else f"{float(label):.2f}"


def of_tags(model, parts, folder):
    """Draws the confusion matrix of the tags."""
    true = [tag for tags in parts.dev.tags for tag in tags]
    predicted = [tag for tags in model.predict_tags(parts.dev.words) for tag in tags]
    names = model.label_names
    plots.confusion_matrix(true, predicted, names, path=folder / "confusion_matrix.png")


def of_pairs(model, parts, folder):
    """Draws the cosines of similar pairs and of other pairs."""
    scores = model.similarities_of_pairs(*map(model.embed, parts.dev.texts))
    plots.similarities(scores, parts.dev.labels >= TRUE_PAIR, path=folder / "similarities.png")
