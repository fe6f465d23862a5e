"""Sphinx's settings for both languages; `docs/build.py` passes the tag `zh` for the Chinese tree."""

import inspect
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

import latex2mathml.converter
from docutils import nodes
from search_words import words_of
from sphinx.search import SearchLanguage
from sphinx.util.inspect import stringify_signature

import bert_keras

IS_CHINESE = tags.has("zh")  # noqa: F821, Sphinx gives it

project = "bert_keras"
author = copyright = "The bert_keras authors"
version = release = bert_keras.__version__
language = "zh_CN" if IS_CHINESE else "en"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_heading_anchors = 3

nb_custom_formats = {".py": "percent_pages.read"}
exclude_patterns = ["**/*.ipynb"]  # Each is a page of code, to download.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 3600
nb_merge_streams = True
# Browsers show MathML by themselves: the site asks no other host for anything.
html_math_renderer = "mathml"
# Warnings of other packages are no part of a lesson; a cell that fails stops the build.
nb_output_stderr = "remove"

napoleon_custom_sections = [
    ("Call arguments", "params_style"),
    ("Fields", "params_style"),
    "Reference",
]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
maximum_signature_line_length = 100

html_theme = "furo"
html_title = "bert_keras 文档" if IS_CHINESE else "bert_keras"
html_show_sourcelink = False
# An index of every name has nothing that the pages of the API and the search do not have.
html_use_index = False
html_show_copyright = False
html_static_path = [str(ROOT / "docs" / "static")]
html_css_files = ["site.css"]
templates_path = [str(ROOT / "docs" / "templates")]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "language.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_context = {
    "other_language": "en" if IS_CHINESE else "zh",
    "other_language_name": "English" if IS_CHINESE else "中文",
    # The examples are tutorials in both languages; those on Chinese text have no English side.
    "only_here": {
        path.relative_to(ROOT / "docs" / "zh").with_suffix("").as_posix()
        for path in (ROOT / "docs" / "zh" / "tutorials").glob("*.py")
    },
}


class ChineseBigrams(SearchLanguage):
    """Finds Chinese by pairs of characters, so that the search needs no dictionary of words."""

    lang = "zh"
    language_name = "Chinese"
    js_splitter_code = """
function splitQuery(query) {
  return (query.match(/[\\u4e00-\\u9fff]+|[A-Za-z0-9_]+/g) || []).flatMap((run) =>
    /[\\u4e00-\\u9fff]/.test(run) && run.length > 2
      ? [...run].slice(1).map((character, i) => run[i] + character)
      : [run]);
}
"""

    def split(self, input):
        terms = []
        for run in re.findall(r"[\u4e00-\u9fff]+|[A-Za-z0-9_]+", input):
            if re.match(r"[\u4e00-\u9fff]", run):
                terms += [*run, *(run[i : i + 2] for i in range(len(run) - 1))]
            else:
                terms.append(run)
        return terms

    def word_filter(self, word):
        return True


def _inline(text):
    """Markdown's links and code, also over lines, as reStructuredText."""
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text)
    return re.sub(
        r"\[([^\]]+)\]\((https?://[^)]+)\)",
        lambda match: f"`{match[1].replace('`', '')} <{match[2]}>`__",
        text,
    )


def _table(match):
    rows = [row.strip().strip("|") for row in match[0].strip().splitlines()]
    indent = " " * (len(match[0]) - len(match[0].lstrip()))
    lines = ["", f"{indent}.. list-table::", f"{indent}   :header-rows: 1", ""]
    for row in rows[:1] + rows[2:]:  # The second is the line of dashes.
        # A bar inside code is no border.
        cells = re.findall(r"((?:`[^`]*`|[^`|])+)", row)
        for column, cell in enumerate(cells):
            bullet = "* -" if column == 0 else "  -"
            lines.append(f"{indent}   {bullet} {cell.strip()}")
    return "\n".join([*lines, "", ""])


def _lists_apart(text):
    """Markdown lets a list follow a paragraph at once, reStructuredText wants a line between."""
    lines, is_item, item_indent = [], False, 0
    for line in text.splitlines():
        starts = re.match(r" *- ", line) is not None
        indent = len(line) - len(line.lstrip())
        if (starts and not is_item) or (is_item and not starts and indent <= item_indent and line):
            lines.append("")
        if starts:
            item_indent = indent
        is_item = starts or (is_item and bool(line.strip()) and indent > item_indent)
        lines.append(line)
    return "\n".join(lines)


def markdown_docstring(app, what, name, value, options, lines):
    """Turns our docstrings, which are Markdown, into what autodoc reads."""
    parts = re.split(r"(?ms)^( *)```(\w*)\n(.*?)^ *```$", "\n".join(lines))
    result = []
    for number in range(0, len(parts), 4):
        text = re.sub(r"(?m)(^ *\|.*\n?)+", _table, parts[number])
        result += _inline(_lists_apart(text)).splitlines()
        if number + 1 < len(parts):
            indent, kind, code = parts[number + 1 : number + 4]
            result += ["", f"{indent}.. code-block:: {kind or 'text'}", ""]
            result += [f"   {line}" if line.strip() else "" for line in code.splitlines()]
            result.append("")
    lines[:] = [*result, ""]


def _short_types(text):
    """Arrays as the code names them: `NDArray[float32]`."""
    return text and re.sub(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)\]\]", r"NDArray[\1]", text)


def right_signature(app, what, name, value, options, signature, returned):
    """The constructor's own signature: Keras's metaclass hides it behind `(*args, **kwargs)`."""
    if what != "class":
        return None if signature is None else tuple(map(_short_types, (signature, returned)))
    try:
        found = inspect.signature(value.__init__)
    except (TypeError, ValueError):
        return None
    parameters = list(found.parameters.values())[1:]
    found = found.replace(parameters=parameters, return_annotation=found.empty)
    return _short_types(stringify_signature(found, unqualified_typehints=True)), None


def formula(display):
    """Returns a visitor that writes a formula as MathML."""

    def visit(translator, node):
        text = latex2mathml.converter.convert(node.astext(), display=display)
        translator.body.append(f'<div class="math">{text}</div>' if display == "block" else text)
        raise nodes.SkipNode

    return visit, None


def add_search_words(app):
    """Adds each page's phrases to the index, where the search looks first.

    An `index` directive on the page would do the same, but Sphinx forgets those of pages that it does
    not write again.
    """
    entries = app.builder.indexer._index_entries
    for page, phrases in words_of("zh" if IS_CHINESE else "en").items():
        entries[page] = [(phrase, "", "main") for phrase in phrases]
    return ()


def setup(app):
    app.connect("html-collect-pages", add_search_words)
    app.add_html_math_renderer("mathml", formula("inline"), formula("block"))
    app.add_search_language(ChineseBigrams)
    # Before napoleon, which reads the sections.
    app.connect("autodoc-process-docstring", markdown_docstring, priority=400)
    app.connect("autodoc-process-signature", right_signature)
