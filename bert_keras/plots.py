"""Pictures of training runs and of models. Each function returns a matplotlib figure.

| function | shows |
|---|---|
| `learning_curves` | every value of a training run over its epochs |
| `training_log` | losses and rates of a pre-training run over its steps |
| `seeds`, `settings` | the scores of several runs, and of several settings |
| `confusion_matrix` | true classes against predicted ones |
| `similarities` | the cosines of similar pairs and of other pairs |
| `attention` | which token attends to which, by layers or by heads |
| `saliency` | texts, each token shaded by its contribution to the class's logit |
| `tags`, `answer` | coloured text for a notebook, as HTML |

matplotlib is imported when the first picture is drawn, with fonts that have the characters of its
texts. With `path` the figure is also written to a file. Figures are closed in pyplot, so that a
notebook shows them once.
"""

from __future__ import annotations

import contextlib
import html
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tokenizers
from keras import ops
from numpy.typing import ArrayLike

from bert_keras.checks import require
from bert_keras.engine.atomic_files import replacing
from bert_keras.tasks.saliency import Saliency
from bert_keras.tasks.task import Task
from bert_keras.types import Array, Path

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Training


def learning_curves(
    history: keras.callbacks.History | Mapping[str, Sequence[float]], path: Path | None = None
) -> Figure:
    """Draws every value of a training run over its epochs, four per row; bars for one epoch.

    Args:
        history: a Keras `History`, or a dict from names to lists of floats; `val_loss` is drawn
            with `loss`.
        path: str or path of a picture, or `None`.
    """
    values = getattr(history, "history", history)
    names = list(dict.fromkeys(name.removeprefix("val_") for name in values))
    with _drawing() as plt:
        width, height = min(4, len(names)), -(-len(names) // 4)
        figure, axes = plt.subplots(
            height, width, figsize=(3.6 * width, 3.2 * height), squeeze=False
        )
        for axis in axes.flat[len(names) :]:
            axis.remove()
        for axis, name in zip(axes.flat, names, strict=False):
            for label, key in (("train", name), ("dev", f"val_{name}")):
                found = values.get(key, ())
                epochs = range(1, len(found) + 1)
                if len(found) == 1:
                    bar = axis.bar(label, found[0], width=0.6)
                    axis.bar_label(bar, fmt="%.4g")
                elif found:
                    axis.plot(epochs, found, marker="o", label=label)
                    axis.set(xlabel="epoch", xticks=epochs)
                    axis.legend()
            axis.set_title(name)
        figure.tight_layout()
    return _finished(figure, path)


def training_log(lines: Sequence[Mapping[str, float]], path: Path | None = None) -> Figure:
    """Draws losses, accuracies and the learning rate of a pre-training run over its steps.

    Args:
        lines: list of dicts, the lines of a `training.TrainingLog`.
        path: str or path of a picture, or `None`.
    """
    titles = ("loss", "accuracy", "learning_rate")
    with _drawing() as plt:
        figure, axes = plt.subplots(1, len(titles), figsize=(4.5 * len(titles), 3.5))
        for axis, title in zip(axes, titles, strict=True):
            for key in sorted({key for line in lines for key in line if key.endswith(title)}):
                points = [(line["step"], line[key]) for line in lines if key in line]
                style = "o-" if key.startswith("heldout_") else "-"
                axis.plot(*zip(*points, strict=True), style, label=key, markersize=3)
            axis.set(xlabel="step", title=title)
            axis.legend(fontsize=6)
        figure.tight_layout()
    return _finished(figure, path)


def seeds(
    rows: Sequence[Mapping[str, float | None]], first_seed: int = 0, path: Path | None = None
) -> Figure:
    """Draws each metric for every seed, its mean, and one standard deviation around it.

    Args:
        rows: list of dicts from metric to float, one per seed; `None` if it is undefined.
        first_seed: int, the seed of the first row.
        path: str or path of a picture, or `None`.
    """
    with _drawing() as plt:
        figure, axes = plt.subplots(1, len(rows[0]), figsize=(2.6 * len(rows[0]), 3), squeeze=False)
        numbers = range(first_seed, first_seed + len(rows))
        for axis, name in zip(axes[0], rows[0], strict=True):
            values = np.array([row[name] for row in rows], float)
            mean, deviation = values.mean(), values.std(ddof=1)
            axis.axhspan(mean - deviation, mean + deviation, color="tab:blue", alpha=0.15)
            axis.axhline(mean, color="tab:blue")
            axis.plot(numbers, values, "o", color="black")
            axis.set(title=f"{name}\n{mean:.4f} ± {deviation:.4f}", xlabel="seed", xticks=numbers)
        figure.tight_layout()
    return _finished(figure, path)


def settings(rows: Mapping[str, Mapping[str, float | None]], path: Path | None = None) -> Figure:
    """Draws the first score of each setting, the best on top, with its spread over seeds.

    Args:
        rows: dict from a setting's name to a dict of floats; `name_std` is the spread of `name`.
        path: str or path of a picture, or `None`.
    """
    score = next(iter(next(iter(rows.values()))))
    with _drawing(*rows) as plt:
        figure, axis = plt.subplots(figsize=(8, 1.2 + 0.3 * len(rows)), layout="constrained")
        values = [np.nan if row[score] is None else row[score] for row in rows.values()]
        spread = [row.get(f"{score}_std", 0.0) for row in rows.values()]
        axis.errorbar(values, range(len(rows)), xerr=spread, fmt="o")
        axis.set(yticks=range(len(rows)), yticklabels=list(rows), xlabel=f"{score} on dev")
        axis.invert_yaxis()
    return _finished(figure, path)


# Answers


def confusion_matrix(
    true: Sequence[str | int] | Array,
    predicted: Sequence[str | int] | Array,
    label_names: Sequence[str],
    path: Path | None = None,
) -> Figure:
    """Draws how often each class was predicted as each other class.

    Args:
        true: sequence of labels, by name or by number.
        predicted: sequence of the same length, likewise.
        label_names: sequence of str, in the order of the numbers.
        path: str or path of a picture, or `None`.
    """
    numbers = {name: number for number, name in enumerate(label_names)}
    matrix = np.zeros((len(numbers), len(numbers)), int)
    for pair in zip(true, predicted, strict=True):
        matrix[tuple(numbers.get(label, label) for label in pair)] += 1
    with _drawing(*label_names) as plt:
        size = 2.2 + 0.7 * len(label_names)
        figure, axis = plt.subplots(figsize=(size + 0.6, size), layout="constrained")
        # The square root, since one class often has most of the examples.
        axis.imshow(np.sqrt(matrix), cmap="Blues")
        ticks = range(len(label_names))
        axis.set(xlabel="predicted", ylabel="true", xticks=ticks, yticks=ticks)
        axis.set_xticklabels(label_names, rotation=30, ha="right")
        axis.set_yticklabels(label_names)
        for row, column in np.ndindex(*matrix.shape):
            colour = "white" if matrix[row, column] > matrix.max() / 4 else "black"
            axis.text(column, row, matrix[row, column], ha="center", va="center", color=colour)
    return _finished(figure, path)


def similarities(cosines: ArrayLike, alike: ArrayLike, path: Path | None = None) -> Figure:
    """Draws the cosines of pairs: one histogram for similar pairs, one for the others.

    Args:
        cosines: float `(num_pairs,)`.
        alike: bool `(num_pairs,)`.
        path: str or path of a picture, or `None`.
    """
    cosines, alike = np.asarray(cosines), np.asarray(alike, bool)
    with _drawing() as plt:
        figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
        bins = np.linspace(min(-0.2, cosines.min()), 1, 40)
        for name, chosen in (("alike", alike), ("others", ~alike)):
            axis.hist(cosines[chosen], bins, alpha=0.6, density=True, label=name)
        axis.set(xlabel="cosine", ylabel="density")
        axis.legend()
    return _finished(figure, path)


# What a model looks at


def attention(
    task: Task,
    text: str,
    pair: str | None = None,
    layer: int | None = None,
    path: Path | None = None,
) -> Figure:
    """Draws heat maps of attention with tokens on both axes; each row attends to the columns.

    Args:
        task: a task with a preprocessor.
        text: str, up to about 25 tokens.
        pair: str, the second text, or `None`.
        layer: int from 0, negative from the last, the layer whose heads are drawn. By default each
            layer is drawn, with the mean over its heads.
        path: str or path of a picture, or `None`.
    """
    tokens, weights = attention_of(task, text, pair)
    if layer is None:
        maps, word, title = weights.mean(axis=1), "layer", "mean over the heads of each layer"
    else:
        maps, word = weights[layer], "head"
        title = f"heads of layer {layer % len(weights) + 1}"
    # As few empty places as possible.
    num_columns = min((3, 4, 2), key=lambda n: (-len(maps) % n, -n if len(maps) > n else 0))
    num_columns = min(num_columns, len(maps))
    size = 1.0 + 0.19 * len(tokens)
    with _drawing(*tokens) as plt:
        figure, axes = _panels(plt, len(maps), num_columns, size, (2.0, 1.5))
        # The square root, since the last token often has most of the weight.
        norm = plt.matplotlib.colors.PowerNorm(0.5, vmin=0, vmax=float(np.max(maps)))
        for number, axis in enumerate(axes):
            image = axis.imshow(maps[number], cmap="viridis", norm=norm)
            axis.set_title(f"{word} {number + 1}", fontsize=10)
            axis.set_xticks(range(len(tokens)), tokens, rotation=90, fontsize=9)
            axis.set_yticks(range(len(tokens)), tokens, fontsize=9)
        figure.colorbar(image, ax=axes, shrink=0.6, label="weight (colours by its square root)")
        figure.suptitle(f"Attention, {title} (rows attend to columns)")
    return _finished(figure, path)


def attention_of(task: Task, text: str, pair: str | None = None) -> tuple[list[str], Array]:
    """Returns a text's tokens, and their attention weights in each layer and head.

    Returns:
        A list of str, and a float array `(num_layers, num_heads, num_tokens, num_tokens)`; each row
        of the last two axes sums to 1.
    """
    packed = task.preprocessor([text], *([[pair]] if pair is not None else []))
    outputs = task.backbone(packed, return_attentions=True, training=False)
    tokenizer = task.preprocessor.tokenizer
    tokens = [tokenizer.id_to_token(int(number)) for number in packed["token_ids"][0]]
    weights = ops.concatenate([ops.cast(x, "float32") for x in outputs["attentions"]])
    return tokens, ops.convert_to_numpy(weights)


def saliency(
    found: Sequence[Saliency], labels: Sequence[str] | None = None, path: Path | None = None
) -> Figure:
    """Draws texts with each token shaded by its score: blue for the class, red against it.

    Args:
        found: list of `bert_keras.Saliency`.
        labels: list of str, the true labels, or `None`.
        path: str or path of a picture, or `None`.
    """
    labels = labels or [None] * len(found)
    words = [token for one in found for token in one.tokens]
    limit = max(float(np.abs(one.scores).max(initial=0)) for one in found) or 1.0
    width = 10.0
    with _drawing(*words, *(label for label in labels if label)) as plt:
        lines = [_lines(plt, one.tokens, width - 0.4) for one in found]
        height = sum(0.55 + 0.32 * len(rows) for rows in lines)
        total = height + 1.4
        figure = plt.figure(figsize=(width, total))
        figure.suptitle("Contribution of each token to a class's logit (integrated gradients)")
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
                    text, is_dark = as_written(one.tokens)[number][0], abs(score) > 0.6 * limit
                    options = {"ha": "center", "color": "white" if is_dark else "black"}
                    axis.text(place + size / 2, y, text, fontsize=11, **options)
            y -= 0.25
        bar = figure.add_axes((0.3, 0.4 / total, 0.4, 0.12 / total))
        figure.colorbar(colours, cax=bar, orientation="horizontal")
        bar.set_title("against the class                 for the class", fontsize=9)
    return _finished(figure, path)


def _lines(plt, tokens, width):
    """Returns lines of (place, width, number of the token), in inches, with the text wrapped."""
    figure = plt.figure(figsize=(1, 1))
    renderer = figure.canvas.get_renderer()
    lines, x = [[]], 0.0
    for number, (text, continues) in enumerate(as_written(tokens)):
        drawn = figure.text(0, 0, text, fontsize=11)
        size = drawn.get_window_extent(renderer).width / figure.dpi + 0.06
        between = 0.0 if continues or not lines[-1] else 0.06
        if x + between + size > width and lines[-1]:
            lines.append([])
            x, between = 0.0, 0.0
        lines[-1].append((x + between, size, number))
        x += between + size
    plt.close(figure)
    return lines


def as_written(tokens: Sequence[str]) -> list[tuple[str, bool]]:
    """Returns each token's text, and whether it continues the word of the previous token.

    WordPiece marks such tokens by `##`; byte pairs and Unigram mark all others by a space.
    """
    if any(token.startswith("Ġ") for token in tokens):  # Each letter is a byte.
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


def _panels(plt, count, num_columns, size, margins):
    """Returns a figure and `count` square axes in rows of `num_columns`; sizes are in inches."""
    num_rows = -(-count // num_columns)
    figsize = size * num_columns + margins[0], size * num_rows + margins[1]
    figure, axes = plt.subplots(
        num_rows, num_columns, figsize=figsize, squeeze=False, layout="constrained"
    )
    for axis in axes.flat[count:]:
        axis.set_axis_off()
    return figure, list(axes.flat[:count])


# Text in colours


class Html(str):
    """HTML that a notebook renders."""

    def _repr_html_(self):
        return str(self)


def tags(answers: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Html:
    """Returns sentences with their entities in colours, one colour per type.

    Args:
        answers: the result of `TokenClassifier.tag`, for one sentence or several.
    """
    answers = [answers] if isinstance(answers, dict) else answers
    types = sorted({found["type"] for answer in answers for found in answer["entities"]})
    lines = []
    for one in answers:
        spans = [(e["start"], e["end"], e["type"], types.index(e["type"])) for e in one["entities"]]
        lines.append(_marked(one["text"], spans))
    return Html("".join(f"<p>{line}</p>" for line in lines))


def answer(context: str, found: Mapping[str, Any]) -> Html:
    """Returns a context with the answer marked.

    Args:
        context: str.
        found: the result of `QuestionAnswering.answer`.
    """
    if found["start"] is None:
        return Html(f"<p>{html.escape(context)}</p><p>no answer</p>")
    span = found["start"], found["end"], f"{found['probability']:.2f}", 0
    return Html(f"<p>{_marked(context, [span])}</p>")


def _marked(text, spans):
    parts, place = [], 0
    for start, end, label, number in spans:
        colour = f"hsl({47 + 67 * number % 360} 90% 80%)"
        marked = f"{html.escape(text[start:end])} <small>{html.escape(label)}</small>"
        style = f"background:{colour};color:black;border-radius:3px;padding:0 2px"
        parts += [html.escape(text[place:start]), f'<mark style="{style}">{marked}</mark>']
        place = end
    return "".join([*parts, html.escape(text[place:])])


# Fonts


@contextlib.contextmanager
def _drawing(*texts):
    """Yields matplotlib's pyplot, with fonts that have the characters of these texts."""
    plt = require("matplotlib.pyplot", "draw pictures", extra="plots")
    with plt.rc_context({"font.family": _fonts_for(*texts)}):
        yield plt


def _fonts_for(*texts):
    """Returns the names of fonts that together have a glyph for each character, if possible.

    The default font is first. If it lacks characters, such as Chinese ones, the installed font with
    most of them is second. A warning names characters without a font.
    """
    import matplotlib
    from matplotlib import font_manager

    default = font_manager.FontProperties()
    fonts = [default.get_name()]
    needed = {character for text in texts for character in str(text) if not character.isspace()}
    missing = needed - _characters_of(font_manager.findfont(default), needed)
    if not missing:
        return fonts
    known = {entry.name: entry.fname for entry in font_manager.fontManager.ttflist}
    # A font of matplotlib has a box for every character.
    boxes = [known.pop(name) and name for name in [*known] if name.startswith("Last Resort")]
    has = {name: _characters_of(path, missing) for name, path in sorted(known.items())}
    best = max(has, key=lambda name: len(has[name]))
    if has[best]:
        fonts.append(best)
        missing -= has[best]
    if missing:
        shown = "".join(sorted(missing)[:10])
        warnings.warn(
            f"No installed font has the characters {shown!r}{' and others' * (len(missing) > 10)}:"
            " they are drawn as boxes. Install a font that has them, such as Noto Sans CJK for "
            f"Chinese, and delete {matplotlib.get_cachedir()}, matplotlib's list of fonts.",
            stacklevel=2,
        )
    return fonts + (boxes if missing else [])


def _characters_of(path, characters):
    """Returns the characters that a font file has, out of the given ones."""
    from matplotlib.ft2font import FT2Font

    try:
        known = FT2Font(path).get_charmap()
    except (OSError, RuntimeError):
        return set()
    return {character for character in characters if ord(character) in known}


def _finished(figure, path):
    """Closes a figure in pyplot, writes it if there is a path, and returns it."""
    import matplotlib.pyplot as plt

    if path is not None:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with replacing(path) as temporary:
            figure.savefig(temporary, dpi=120)
    plt.close(figure)
    return figure
