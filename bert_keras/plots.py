"""Pictures of training runs and of models. Each function returns a matplotlib figure.

| function | shows |
|---|---|
| `learning_curves` | every value of a training run over its epochs |
| `training_log` | losses and rates of a pre-training run over its steps |
| `confusion_matrix` | true classes against predicted ones |
| `similarities` | the cosines of similar pairs and of other pairs |
| `attention` | which token attends to which, by layers or by heads |
| `saliency` | texts, each token shaded by its contribution to the class's logit, as HTML |
| `tags`, `answer` | texts with marked entities or a marked answer, as HTML |

matplotlib is imported when the first picture is drawn. For characters that neither its font nor
`FONTS` have, set `rcParams["font.family"]`. With `path` the figure is also written to a
file. Figures are closed in pyplot, so that a notebook shows them once.
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
    with _drawing(path) as plt:
        figure, axes = _panels(plt, len(names), min(4, len(names)), (3.6, 3.2))
        for axis, name in zip(axes, names, strict=True):
            axis.set_title(name)
            for label, key in (("train", name), ("dev", f"val_{name}")):
                epochs = range(1, len(values.get(key, ())) + 1)
                if len(epochs) == 1:
                    axis.bar_label(axis.bar(label, values[key], width=0.6), fmt="%.4g")
                elif epochs:
                    axis.plot(epochs, values[key], marker="o", label=label)
                    axis.set(xlabel="epoch", xticks=epochs)
                    axis.legend()
    return figure


def training_log(lines: Sequence[Mapping[str, float]], path: Path | None = None) -> Figure:
    """Draws losses, accuracies and the learning rate of a pre-training run over its steps.

    Args:
        lines: list of dicts, the lines of a `training.TrainingLog`.
        path: str or path of a picture, or `None`.
    """
    titles = ("loss", "accuracy", "learning_rate")
    with _drawing(path) as plt:
        figure, axes = _panels(plt, len(titles), len(titles), (4.5, 3.5))
        for axis, title in zip(axes, titles, strict=True):
            for key in sorted({key for line in lines for key in line if key.endswith(title)}):
                points = [(line["step"], line[key]) for line in lines if key in line]
                style = "o-" if key.startswith("heldout_") else "-"
                axis.plot(*zip(*points, strict=True), style, label=key, markersize=3)
            axis.set(xlabel="step", title=title)
            axis.legend(fontsize=6)
    return figure


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
    ticks = {"ticks": range(len(numbers)), "labels": label_names}
    with _drawing(path) as plt:
        size = 2.2 + 0.7 * len(label_names)
        figure, axis = plt.subplots(figsize=(size + 0.6, size), layout="constrained")
        # The square root, since one class often has most of the examples.
        axis.imshow(np.sqrt(matrix), cmap="Blues")
        axis.set(xlabel="predicted", ylabel="true")
        axis.set_xticks(**ticks, rotation=30, ha="right")
        axis.set_yticks(**ticks)
        for row, column in np.ndindex(*matrix.shape):
            colour = "white" if matrix[row, column] > matrix.max() / 4 else "black"
            axis.text(column, row, matrix[row, column], ha="center", va="center", color=colour)
    return figure


def similarities(cosines: ArrayLike, alike: ArrayLike, path: Path | None = None) -> Figure:
    """Draws the cosines of pairs: one histogram for similar pairs, one for the others.

    Args:
        cosines: float `(num_pairs,)`.
        alike: bool `(num_pairs,)`.
        path: str or path of a picture, or `None`.
    """
    cosines, alike = np.asarray(cosines), np.asarray(alike, bool)
    with _drawing(path) as plt:
        figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
        bins = np.linspace(min(-0.2, cosines.min()), 1, 40)
        for name, chosen in (("alike", alike), ("others", ~alike)):
            if chosen.any():
                axis.hist(cosines[chosen], bins, alpha=0.6, density=True, label=name)
        axis.set(xlabel="cosine", ylabel="density")
        axis.legend()
    return figure


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
    maps, word, title = weights.mean(axis=1), "layer", "mean over the heads of each layer"
    if layer is not None:
        maps, word, title = weights[layer], "head", f"heads of layer {layer % len(weights) + 1}"
    # As few empty places as possible.
    num_columns = min((3, 4, 2), key=lambda n: (-len(maps) % n, -n if len(maps) > n else 0))
    num_columns = min(num_columns, len(maps))
    size = 1.0 + 0.19 * len(tokens)
    with _drawing(path) as plt:
        figure, axes = _panels(plt, len(maps), num_columns, (size, size), (2.0, 1.5))
        # The square root, since the last token often has most of the weight.
        norm = plt.matplotlib.colors.PowerNorm(0.5, vmin=0, vmax=float(np.max(maps)))
        for number, axis in enumerate(axes):
            image = axis.imshow(maps[number], cmap="viridis", norm=norm)
            axis.set_title(f"{word} {number + 1}", fontsize=10)
            axis.set_xticks(range(len(tokens)), tokens, rotation=90, fontsize=9)
            axis.set_yticks(range(len(tokens)), tokens, fontsize=9)
        figure.colorbar(image, ax=axes, shrink=0.6, label="weight (colours by its square root)")
        figure.suptitle(f"Attention, {title} (rows attend to columns)")
    return figure


def attention_of(task: Task, text: str, pair: str | None = None) -> tuple[list[str], Array]:
    """Returns a text's tokens, and their attention weights in each layer and head.

    Returns:
        A list of str, and a float array `(num_layers, num_heads, num_tokens, num_tokens)`; each row
        of the last two axes sums to 1.
    """
    packer = task.preprocessor
    # Without the padding of a call, which would be shown.
    packed = packer.pack(*packer.tokenize([text], None if pair is None else [pair]))
    outputs = task.backbone(packed, return_attentions=True, training=False)
    tokens = [packer.tokenizer.id_to_token(int(number)) for number in packed["token_ids"][0]]
    weights = ops.concatenate([ops.cast(x, "float32") for x in outputs["attentions"]])
    return tokens, ops.convert_to_numpy(weights)


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


def _panels(plt, count, num_columns, size, margins=(0.0, 0.0)):
    """Returns a figure and `count` axes in rows of `num_columns`; sizes are in inches."""
    grid = -(-count // num_columns), num_columns
    figsize = size[0] * grid[1] + margins[0], size[1] * grid[0] + margins[1]
    figure, axes = plt.subplots(*grid, figsize=figsize, squeeze=False, layout="constrained")
    for axis in axes.flat[count:]:
        axis.set_axis_off()
    return figure, list(axes.flat[:count])


# Text in colours


class Html(str):
    """HTML that a notebook renders."""

    def _repr_html_(self):
        return str(self)


def saliency(answers: Sequence[Saliency], labels: Sequence[str] | None = None) -> Html:
    """Returns texts with each token shaded by its score: blue for the class, red against it.

    Args:
        answers: list of `bert_keras.Saliency`.
        labels: list of str, the true labels, or `None`.
    """
    largest = max(float(np.abs(one.scores).max(initial=0)) for one in answers) or 1.0
    lines = []
    for number, one in enumerate(answers):
        true = f" (true label: {labels[number]})" if labels else ""
        line = (
            f"{one.target}{true}, logit {one.baseline_logit:.2f} where all is masked, "
            f"{one.logit:.2f} as read"
        )
        line = f"<small>{html.escape(line)}</small><br>"
        for (text, continues), score in zip(as_written(one.tokens), one.scores, strict=True):
            hue, share = 215 if score > 0 else 5, abs(float(score)) / largest
            style = f"background:hsl({hue} 80% 50% / {0.8 * share:.2f})"
            word = f'<span style="{style}" title="{score:.3f}">{html.escape(text)}</span>'
            line += word if continues else f" {word}"
        lines.append(line)
    return Html("".join(f"<p>{line}</p>" for line in lines))


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
    pieces, place = [], 0
    for start, end, label, number in spans:
        colour = f"hsl({47 + 67 * number % 360} 90% 80%)"
        marked = f"{html.escape(text[start:end])} <small>{html.escape(label)}</small>"
        style = f"background:{colour};color:black;border-radius:3px;padding:0 2px"
        pieces += [html.escape(text[place:start]), f'<mark style="{style}">{marked}</mark>']
        place = end
    return "".join([*pieces, html.escape(text[place:])])


# Fonts with Chinese, Japanese and Korean characters, of Linux, Windows and macOS.
FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Micro Hei", "Droid Sans Fallback"),
    *("WenQuanYi Zen Hei", "Noto Serif CJK SC", "Noto Serif CJK JP", "Source Han Sans SC"),
    *("Microsoft YaHei", "SimHei", "Malgun Gothic", "PingFang SC", "Arial Unicode MS"),
    *("Hiragino Sans GB", "Heiti TC", "AR PL UMing CN", "IPAGothic", "NanumGothic"),
)


@contextlib.contextmanager
def _drawing(path=None):
    """Yields matplotlib's pyplot, then closes its figure, and writes it if there is a path.

    Characters that the font lacks are taken from `FONTS`. If no font has some, one warning says so.
    """
    plt = require("matplotlib.pyplot", "draw pictures", extra="plots")
    installed = {x.name for x in plt.matplotlib.font_manager.fontManager.ttflist}
    families = [*plt.rcParams["font.family"], *(name for name in FONTS if name in installed)]
    with plt.rc_context({"font.family": families}):
        yield plt
        figure = plt.gcf()
    if path is not None:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with replacing(path) as temporary, warnings.catch_warnings(record=True) as caught:
            figure.savefig(temporary, dpi=120)
        lacking = f"No installed font has some characters of {path}. Install Noto Sans CJK, or "
        lacking += "set matplotlib's `font.family` to a font that has them."
        messages = (lacking if "missing from font" in str(x.message) else x.message for x in caught)
        for message in dict.fromkeys(messages):
            warnings.warn(message, stacklevel=4)
    plt.close(figure)
