"""Draws the site's figures in both languages, docs/en/figures and docs/zh/figures: `python docs/draw.py`."""

import pathlib

import figures

DOCS = pathlib.Path(__file__).resolve().parent


def main():
    for language in ("en", "zh"):
        folder = DOCS / language / "figures"
        folder.mkdir(exist_ok=True)
        for name, drawing in figures.drawings(language):
            (folder / f"{name}.svg").write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
