"""Draws docs/benchmarks.png from tables of docs/benchmarks.md: `python benchmarks/charts.py`."""

import pathlib
import re

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
# The heading above a table, its column, and the chart's title.
CHARTS = (
    ("Text to answers", 1, "SST-2's dev set, text to answers, MiniLM"),
    ("Inference", 1, "Inference, bert-base, 8 × 128 tokens"),
    ("Training", 1, "Training step, MiniLM, 32 × 32 tokens"),
)


def rows(text, heading, column):
    """Yields (library, seconds) of the first table below a heading."""
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = re.search(r"(?m)(?:^\|.*\n)+", section)[0].splitlines()[2:]
    for line in table:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name, *backends = re.split(r": |, ", cells[0])
        seconds = [float(x) for x in re.findall(r"\d+\.\d{3}", cells[column])]
        if len(backends) > 1:  # One row for three backends.
            yield from ((f"{name}, {x}", y) for x, y in zip(backends, seconds, strict=True))
        elif seconds:
            yield cells[0], seconds[0]


def main():
    text = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    figure, axes = plt.subplots(len(CHARTS), figsize=(8, 10.5), layout="constrained")
    for axis, (heading, column, title) in zip(axes, CHARTS, strict=True):
        names, seconds = zip(*rows(text, heading, column), strict=True)
        ours = ["#1f77b4" if name.startswith("ours") else "#bbbbbb" for name in names]
        names = [re.sub("^ours", "bert_keras", name).replace("`", "") for name in names]
        bars = axis.barh(names, seconds, color=ours)
        axis.bar_label(bars, [f"{x:.2f} s" for x in seconds], padding=3)
        axis.set(title=title, xlabel="seconds on two CPU cores, less is better")
        axis.set_xlim(0, 1.12 * max(seconds))
        axis.invert_yaxis()
    figure.savefig(DOCS / "benchmarks.png", dpi=110)


if __name__ == "__main__":
    main()
