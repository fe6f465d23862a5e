"""Reads a script with `# %%` cells as a notebook: for the site, and for readers to download."""

import pathlib
import re
import runpy

import jupytext
import nbformat

ROOT = pathlib.Path(__file__).resolve().parent.parent
ADDRESS = runpy.run_path(str(ROOT / "setup.py"))["ADDRESS"] or "https://github.com/OWNER/bert_keras"
INSTALL = """\
# On Colab, first run this cell. It clones the repository, whose data this page reads.
!git clone --quiet --depth 1 {address} bert_keras
%pip install --quiet './bert_keras[torch,demo,examples,plots]' {packages}
%cd bert_keras
%env KERAS_BACKEND=torch"""
# Links and pictures of the site, which a notebook does not have beside it.
RELATIVE = re.compile(r"(!?)\[([^\]]+)\]\((?!\w+:)[^)]+\)")
# Module -> what a page that imports it needs beside the extras above.
PACKAGES = {
    "keras_hub": "keras-hub",
    "onnxruntime": "onnxruntime onnxscript",
    "transformers": "transformers",
}


def read(text):
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python"}
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    return notebook


def notebook(text):
    """Returns the text of an `.ipynb` that installs what the page needs, without relative links."""
    packages = [PACKAGES[name] for name in PACKAGES if f"import {name}" in text]
    cells = read(text)
    for cell in cells.cells:
        if cell.cell_type == "markdown":
            cell.source = RELATIVE.sub(lambda link: "" if link[1] else link[2], cell.source)
    install = INSTALL.format(address=ADDRESS, packages=" ".join(packages)).replace("' \n", "'\n")
    cells.cells.insert(1, nbformat.v4.new_code_cell(install))
    for number, cell in enumerate(cells.cells):
        cell["id"] = f"cell-{number}"
    cells.metadata.pop("jupytext", None)
    return nbformat.writes(cells) + "\n"
