"""The figures of the site: each file of this folder draws one, with its words in both languages.

`python docs/draw.py` writes them all.
"""

import importlib
import pathlib


def drawings(language):
    """Yields (name, SVG) of every picture."""
    for path in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        if path.stem not in ("__init__", "drawing"):
            module = importlib.import_module(f"figures.{path.stem}")
            yield path.stem, module.draw(language)
