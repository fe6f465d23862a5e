"""What the recipes draw with --plot_dir: each function takes arrays and returns a figure.

    learning_curves     every value of a training run over its epochs
    confusion_matrix    true classes against predicted ones
    search              what each batch size, learning rate and number of epochs reached
    attention           which token looks at which, tokens on both axes
    saliency            texts, each token shaded by what it adds to the class's logit
    projection          the texts as points, layer by layer, coloured by their labels

`of_classifier` draws the last three of a trained `TextClassifier`. matplotlib is imported when the
first picture is drawn.
"""

import contextlib
import warnings

import keras
import numpy as np
import tokenizers
from keras import ops

import bert_keras

# Longer texts make pictures that nobody can read.
MOST_TOKENS = 28
MOST_COLOURS = 10


def of_classifier(classifier, examples, num_texts=6, num_points=300):
    """Yields names and figures: attention, saliency and projection of some examples.

    Args:
        classifier: a `TextClassifier` with a preprocessor.
        examples: labelled examples, such as a dev set.
        num_texts: int, texts whose tokens are shaded; the attention of the first is drawn.
        num_points: int, texts that are projected.
    """
    order = np.random.default_rng(0).permutation(len(examples))
    points = examples.take(order[:num_points])
    packed = classifier.preprocessor(*columns_of(points.texts))
    lengths = packed["padding_mask"].sum(axis=1)
    # Those that can be read, in the order drawn; where all are long, the shortest.
    readable = np.argsort(np.where(lengths <= MOST_TOKENS, 0, lengths), kind="stable")[:num_texts]
    texts = points.take(readable)

    tokens, weights = attention_of(classifier, texts)
    names = [f"layer {number + 1}" for number in range(len(weights))]
    title = "Attention, mean over the heads of each layer (row looks at column)"
    yield "attention_layers.png", attention(weights.mean(axis=1), tokens, names, title)
    names = [f"head {number + 1}" for number in range(weights.shape[1])]
    title = "Attention of the last layer's heads (row looks at column)"
    yield "attention_heads.png", attention(weights[-1], tokens, names, title)

    found = bert_keras.integrated_gradients(classifier, texts.texts)
    labels = [label_of(texts, row) for row in range(len(texts))]
    yield "saliency.png", saliency(found, labels)

    vectors = layer_vectors(classifier, packed)
    label_names = [label_of(points, row) for row in range(len(points))]
    scores = points.labels if points.problem_type == "regression" else None
    yield "projection.png", projection(vectors, label_names, scores)


def columns_of(texts):
    """Returns a tuple of one column of texts, or of two for pairs."""
    return texts if isinstance(texts, tuple) else (texts,)


def label_of(examples, row):
    """Returns an example's true label as people write it."""
    label = examples.labels[row]
    if examples.problem_type == "regression":
        return f"{float(label):.2f}"
    if np.ndim(label):
        names = zip(examples.label_names, label, strict=True)
        return ", ".join(name for name, is_true in names if is_true) or "none"
    return str(examples.label_names[label]) if examples.label_names else str(label)


# Numbers


def backbone_inputs(backbone):
    """Returns symbolic inputs of a backbone."""
    return {name: keras.Input((None,), dtype="int32", name=name) for name in backbone.input_names}


def attention_of(classifier, examples):
    """Returns the tokens of the first example, and who looks at whom.

    Returns:
        A list of str, and a float array `(num_layers, num_heads, num_tokens, num_tokens)`; each row
        of its last two axes sums to 1.
    """
    packed = classifier.preprocessor(*columns_of(examples.take(np.array([0])).texts))
    inputs = backbone_inputs(classifier.backbone)
    outputs = classifier.backbone(inputs, return_attentions=True)
    model = keras.Model(inputs, ops.stack(outputs["attentions"], axis=1))
    tokenizer = classifier.preprocessor.tokenizer
    tokens = [tokenizer.id_to_token(int(number)) for number in packed["token_ids"][0]]
    return tokens, np.asarray(model.predict_on_batch(packed), "float32")[0]


def layer_vectors(classifier, packed):
    """Returns each text's mean vector after each layer, `(num_texts, num_layers + 1, hidden_dim)`.

    Args:
        classifier: a `TextClassifier`.
        packed: dict of int arrays `(num_texts, seq_len)`.
    """
    inputs = backbone_inputs(classifier.backbone)
    states = classifier.backbone(inputs, return_hidden_states=True)["hidden_states"]
    mask = ops.cast(inputs["padding_mask"], "float32")[..., None]
    sums = [ops.sum(ops.cast(state, "float32") * mask, axis=1) for state in states]
    model = keras.Model(inputs, ops.stack(sums, axis=1) / ops.sum(mask, axis=1)[:, None])
    return np.asarray(model.predict(packed, verbose=0))


def principal_components(vectors, count=2):
    """Returns where vectors lie along the directions in which they differ most.

    Args:
        vectors: float `(num_vectors, dim)`.
        count: int.

    Returns:
        float `(num_vectors, count)`, and the share of the variance that each direction explains.
    """
    centred = vectors - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    variances = sizes**2
    places = np.zeros((len(vectors), count))
    shares = np.zeros(count)
    found = min(count, len(sizes))
    places[:, :found] = left[:, :found] * sizes[:found]
    shares[:found] = variances[:found] / max(variances.sum(), 1e-12)
    return places, shares


# Pictures


def learning_curves(history):
    """Draws every value of a Keras `History` over the epochs."""
    names = [key for key in history.history if not key.startswith("val_")]
    with drawing() as plt:
        figure, axes = plt.subplots(1, len(names), figsize=(4.5 * len(names), 3.5), squeeze=False)
        epochs = [epoch + 1 for epoch in history.epoch]
        for axis, key in zip(axes[0], names, strict=True):
            axis.plot(epochs, history.history[key], marker="o", label="train")
            if f"val_{key}" in history.history:
                axis.plot(epochs, history.history[f"val_{key}"], marker="o", label="dev")
            axis.set(xlabel="epoch", title=key, xticks=epochs)
            axis.legend()
        figure.tight_layout()
    return figure


def seeds(rows, first_seed=0):
    """Draws each metric's value for every seed, their mean, and a standard deviation around it.

    Args:
        rows: list of dicts from metric to float, one a seed.
        first_seed: int, the seed of the first row.
    """
    with drawing() as plt:
        figure, axes = plt.subplots(1, len(rows[0]), figsize=(2.6 * len(rows[0]), 3), squeeze=False)
        numbers = range(first_seed, first_seed + len(rows))
        for axis, name in zip(axes[0], rows[0], strict=True):
            values = np.array([row[name] for row in rows])
            mean, deviation = values.mean(), values.std(ddof=1)
            axis.axhspan(mean - deviation, mean + deviation, color="tab:blue", alpha=0.15)
            axis.axhline(mean, color="tab:blue")
            axis.plot(numbers, values, "o", color="black")
            axis.set(title=f"{name}\n{mean:.4f} ± {deviation:.4f}", xlabel="seed", xticks=numbers)
        figure.tight_layout()
    return figure


def confusion_matrix(matrix, label_names):
    """Draws a confusion matrix, rows the true classes."""
    with drawing(*label_names) as plt:
        size = 2.2 + 0.7 * len(label_names)
        figure, axis = plt.subplots(figsize=(size + 0.6, size))
        axis.imshow(matrix, cmap="Blues")
        ticks = range(len(label_names))
        axis.set(xlabel="predicted", ylabel="true", xticks=ticks, yticks=ticks)
        axis.set_xticklabels(label_names, rotation=30, ha="right")
        axis.set_yticklabels(label_names)
        for row in ticks:
            for column in ticks:
                dark = matrix[row][column] > matrix.max() / 2
                axis.text(
                    column,
                    row,
                    int(matrix[row][column]),
                    ha="center",
                    va="center",
                    color="white" if dark else "black",
                )
        figure.tight_layout()
    return figure


def search(scores, metric):
    """Draws what each setting reached, one panel a batch size.

    Args:
        scores: dict of batch size, learning rate and epochs to a float.
        metric: str, what the floats are.
    """
    sizes, rates, epochs = (sorted({key[place] for key in scores}) for place in range(3))
    panel = 1.6 + 0.8 * len(epochs)
    with drawing() as plt:
        figure, axes = plt.subplots(
            1,
            len(sizes),
            figsize=(panel * len(sizes) + 1.2, 1.9 + 0.6 * len(rates)),
            squeeze=False,
            layout="constrained",
        )
        norm = plt.Normalize(min(scores.values()), max(scores.values()))
        for axis, size in zip(axes[0], sizes, strict=True):
            values = [[scores.get((size, rate, n), np.nan) for n in epochs] for rate in rates]
            image = axis.imshow(values, cmap="viridis", norm=norm, aspect="auto")
            axis.set(title=f"batch size {size}", xlabel="epochs")
            axis.set_xticks(range(len(epochs)), epochs)
            axis.set_yticks(range(len(rates)), [f"{rate:g}" for rate in rates])
            for row, column in np.ndindex(len(rates), len(epochs)):
                value = values[row][column]
                colour = "black" if norm(value) > 0.6 else "white"
                axis.text(column, row, f"{value:.3f}", ha="center", va="center", color=colour)
        axes[0][0].set_ylabel("learning rate")
        figure.colorbar(image, ax=axes, label=metric)
        figure.suptitle(f"{metric} on the dev set after fine-tuning with each setting")
    return figure


def attention(maps, tokens, titles, title):
    """Draws heat maps of attention, tokens on both axes, one beside the other.

    Args:
        maps: float `(num_maps, num_tokens, num_tokens)`, row looks at column.
        tokens: list of str.
        titles: list of str, one a map.
        title: str, over all.
    """
    num_columns = min(3, len(maps))
    num_rows = -(-len(maps) // num_columns)
    size = 1.0 + 0.19 * len(tokens)
    with drawing(*tokens, *titles) as plt:
        figure, axes = plt.subplots(
            num_rows,
            num_columns,
            figsize=(size * num_columns + 2.0, size * num_rows + 1.5),
            squeeze=False,
            sharex=True,
            sharey=True,
            layout="constrained",
        )
        # The root, since most of the weight often goes to the last token.
        norm = plt.matplotlib.colors.PowerNorm(0.5, vmin=0, vmax=float(np.max(maps)))
        for axis, weights, name in zip(axes.flat, maps, titles, strict=False):
            image = axis.imshow(weights, cmap="viridis", norm=norm)
            axis.set_title(name, fontsize=10)
            axis.set_xticks(range(len(tokens)), tokens, rotation=90, fontsize=9)
            axis.set_yticks(range(len(tokens)), tokens, fontsize=9)
        for axis in axes.flat[len(maps) :]:
            axis.set_axis_off()
        figure.colorbar(image, ax=axes, shrink=0.6, label="weight (colours by its root)")
        figure.suptitle(title)
    return figure


def saliency(found, labels=None):
    """Draws texts with each token shaded by its score, blue for the class and red against it.

    Args:
        found: list of `bert_keras.Saliency`.
        labels: list of str, the true labels, or `None`.
    """
    labels = labels or [None] * len(found)
    words = [token for one in found for token in one.tokens]
    limit = max(float(np.abs(one.scores).max(initial=0)) for one in found) or 1.0
    width = 10.0
    with drawing(*words, *(label for label in labels if label)) as plt:
        lines = [_lines(plt, one.tokens, width - 0.4) for one in found]
        height = sum(0.55 + 0.32 * len(rows) for rows in lines)
        total = height + 1.4
        figure = plt.figure(figsize=(width, total))
        figure.suptitle("What each token adds to the logit of a class (integrated gradients)")
        axis = figure.add_axes((0.02, 0.85 / total, 0.96, height / total))
        axis.set(xlim=(0, width - 0.4), ylim=(-height, 0))
        axis.set_axis_off()
        colours = plt.cm.ScalarMappable(plt.Normalize(-limit, limit), "RdBu")
        y = 0.0
        for one, label, rows in zip(found, labels, lines, strict=True):
            moved = f"logit {one.baseline_logit:.2f} where all is masked, {one.logit:.2f} as read"
            right = "" if label is None else f" (right: {label})"
            y -= 0.3
            axis.text(0, y, f"{one.target}{right}, {moved}", fontsize=9, color="dimgray")
            for row in rows:
                y -= 0.32
                for place, size, number in row:
                    score = float(one.scores[number])
                    colour = colours.to_rgba(score)
                    box = plt.Rectangle((place, y - 0.09), size, 0.29, color=colour, linewidth=0)
                    axis.add_patch(box)
                    dark = abs(score) > 0.6 * limit
                    axis.text(
                        place + size / 2,
                        y,
                        as_written(one.tokens)[number][0],
                        fontsize=11,
                        ha="center",
                        color="white" if dark else "black",
                    )
            y -= 0.25
        bar = figure.add_axes((0.3, 0.4 / total, 0.4, 0.12 / total))
        figure.colorbar(colours, cax=bar, orientation="horizontal")
        bar.set_title("against the class                 for the class", fontsize=9)
    return figure


def _lines(plt, tokens, width):
    """Returns lines of (place, width, number of the token), in inches, as the text wraps."""
    figure = plt.figure(figsize=(1, 1))
    renderer = figure.canvas.get_renderer()
    lines, x = [[]], 0.0
    for number, (text, goes_on) in enumerate(as_written(tokens)):
        drawn = figure.text(0, 0, text, fontsize=11)
        size = drawn.get_window_extent(renderer).width / figure.dpi + 0.06
        between = 0.0 if goes_on or not lines[-1] else 0.06
        if x + between + size > width and lines[-1]:
            lines.append([])
            x, between = 0.0, 0.0
        lines[-1].append((x + between, size, number))
        x += between + size
    plt.close(figure)
    return lines


def as_written(tokens):
    """Returns of each token its text, and whether it goes on with the word of the one before.

    A token says so by `##`, as those of WordPiece, or by the sign of a space that it lacks.
    """
    if any(token.startswith("Ġ") for token in tokens):  # bytes, each as a letter
        decode = tokenizers.decoders.ByteLevel().decode
        tokens = [decode([token]).replace(" ", "▁") for token in tokens]
    if not any(token.startswith("▁") for token in tokens):
        return [(token.removeprefix("##"), token.startswith("##")) for token in tokens]
    is_special = [token.startswith("<") and token.endswith(">") for token in tokens]
    apart = [a or b for a, b in zip(is_special, [True, *is_special], strict=False)]
    return [
        (token.lstrip("▁"), not (is_apart or token.startswith("▁")))
        for token, is_apart in zip(tokens, apart, strict=True)
    ]


def projection(vectors, labels, scores=None):
    """Draws texts as points, layer by layer: the first two principal components.

    Args:
        vectors: float `(num_texts, num_layers + 1, hidden_dim)`, embeddings first.
        labels: list of str, by which the points are coloured.
        scores: float `(num_texts,)`, to colour by in the place of labels, or `None`.
    """
    num_layers = vectors.shape[1]
    num_columns = min(4, num_layers)
    num_rows = -(-num_layers // num_columns)
    names, counts = np.unique(labels, return_counts=True)
    shown = sorted(names[np.argsort(-counts, kind="stable")][:MOST_COLOURS].tolist())
    with drawing(*shown) as plt:
        figure, axes = plt.subplots(
            num_rows,
            num_columns,
            figsize=(3.1 * num_columns, 3.1 * num_rows + 1.0),
            squeeze=False,
            layout="constrained",
        )
        for number, axis in enumerate(axes.flat):
            if number >= num_layers:
                axis.set_axis_off()
                continue
            places, shares = principal_components(vectors[:, number])
            if scores is not None:
                points = axis.scatter(*places.T, c=scores, s=10, cmap="viridis")
            else:
                _scatter(axis, places, np.asarray(labels), shown)
            name = f"layer {number}" if number else "embeddings"
            axis.set_title(f"{name} ({shares.sum():.0%} of the variance)", fontsize=10)
            axis.set(xticks=[], yticks=[])
        if scores is not None:
            figure.colorbar(points, ax=axes, shrink=0.6, label="true score")
        else:
            handles, texts = axes.flat[0].get_legend_handles_labels()
            figure.legend(handles, texts, loc="outside lower center", ncols=6, fontsize=9)
        figure.suptitle("Mean vectors of the texts, first two principal components of each layer")
    return figure


def _scatter(axis, places, labels, shown):
    for name in [None, *shown]:
        is_one = ~np.isin(labels, shown) if name is None else labels == name
        if is_one.any():
            options = {"color": "lightgray", "label": "others"} if name is None else {"label": name}
            axis.scatter(*places[is_one].T, s=10, alpha=0.7, **options)


# Fonts


@contextlib.contextmanager
def drawing(*texts):
    """Imports matplotlib, with fonts that have the characters of these texts."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("--plot_dir needs matplotlib: pip install matplotlib") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context({"font.family": fonts_for(*texts)}):
        yield plt


def fonts_for(*texts):
    """Returns names of fonts that together have a glyph for each character, as far as there are.

    The default font comes first; where it lacks characters, as it does the Chinese ones, the
    installed font that has most of them follows. A warning tells of characters that none has.
    """
    import matplotlib
    from matplotlib import font_manager

    default = font_manager.FontProperties()
    fonts = [default.get_name()]
    needed = {character for text in texts for character in str(text) if not character.isspace()}
    missing = needed - characters_of(font_manager.findfont(default), needed)
    if not missing:
        return fonts
    known = {entry.name: entry.fname for entry in font_manager.fontManager.ttflist}
    # matplotlib brings one that has a box for every character.
    boxes = [known.pop(name) and name for name in [*known] if name.startswith("Last Resort")]
    has = {name: characters_of(path, missing) for name, path in sorted(known.items())}
    best = max(has, key=lambda name: len(has[name]))
    if has[best]:
        fonts.append(best)
        missing -= has[best]
    if missing:
        shown = "".join(sorted(missing)[:10])
        warnings.warn(
            f"No installed font has the characters {shown!r}{' and others' * (len(missing) > 10)}:"
            " they are drawn as boxes. Install a font that has them, such as Noto Sans CJK for "
            f"Chinese, and delete {matplotlib.get_cachedir()}, where matplotlib keeps its list.",
            stacklevel=2,
        )
    return fonts + (boxes if missing else [])


def characters_of(path, characters):
    """Returns which of some characters a font file has."""
    from matplotlib.ft2font import FT2Font

    try:
        known = FT2Font(path).get_charmap()
    except (OSError, RuntimeError):
        return set()
    return {character for character in characters if ord(character) in known}
