"""Builds the site in English and in Chinese: `python docs/build.py`, or `make docs`.

A language is a folder, docs/en or docs/zh. What both share, or what has its place elsewhere in the
repository, is put beside its pages in output/docs/source: the notes docs/*.md and docs/design/*.md
with their pictures, docs/guides/*.py, the recipes' table, and pages of the API and of the families.
Every page that holds code is then run, see `run_pages`, or its results are taken from the cache.
Each warning of Sphinx is an error.

Of a shared page in Chinese there are three kinds: docs/zh has a page of that name, which takes its
place; of a page of code it has a file of texts, see `with_texts`; or it is shown in English, and
says so.
"""

import argparse
import multiprocessing
import os
import pathlib
import re
import shutil
import sys
import time
from concurrent import futures

DOCS = pathlib.Path(__file__).resolve().parent
ROOT = DOCS.parent
OUTPUT = ROOT / "output" / "docs"
# The kernels of the pages inherit these. As many pages run as there are processors, so each page
# has one thread.
os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
sys.path[:0] = [str(ROOT), str(DOCS)]

import api_pages
import family_pages
import percent_pages
from run_pages import run_pages
from sphinx.cmd.build import main as sphinx_build

LANGUAGES = ("en", "zh")
ROOMS = (
    "tutorials",
    "families",
    "guides",
    "results",
)  # Their indexes end with a list of their pages.
RESULTS = ("benchmarks", "fine_tuning_ablations", "pretraining_ablations")
NOTEBOOK = {
    "en": "This page as a notebook, also for Colab",
    "zh": "把这一页下载成 notebook，也能在 Colab 里运行",
}
NO_CHINESE = "\n\n:::{note}\n这一页还没有中文版，下面是英文原文。\n:::\n"


def shared_pages():
    """Yields (file of the repository, its page): what stands outside docs/en and docs/zh."""
    for path in sorted((*DOCS.glob("*.md"), *DOCS.glob("design/*.md"))):
        room = "results" if path.stem in RESULTS else "guides"
        yield path, f"{room}/{path.name}"
    for path in sorted((DOCS / "guides").glob("*.py")):
        yield path, f"guides/{path.name}"
    yield ROOT / "examples" / "README.md", "results/recipes.md"
    for path in sorted((ROOT / "examples").glob("*.py")):
        if path.read_text(encoding="utf-8").startswith("# %% [markdown]"):
            yield path, f"tutorials/{path.name}"


def shared_pictures():
    """Yields (picture of a note, its place on the site)."""
    for path, page in shared_pages():
        if path.suffix == ".md":
            for picture in re.findall(r"!\[[^\]]*\]\(([^):]+)\)", path.read_text(encoding="utf-8")):
                yield (
                    path.parent / picture,
                    (pathlib.PurePosixPath(page).parent / picture).as_posix(),
                )


def is_page(path):
    return path.suffix in (".md", ".py")


def is_index(path):
    return path.name == "index.md" and path.parent.name in ROOMS


def write(path, content):
    """Writes what changed only, so that Sphinx reads no page twice."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = content.encode() if isinstance(content, str) else content
    if not path.is_file() or path.read_bytes() != content:
        path.write_bytes(content)
    return path


def with_notebook(path, text, language):
    """Writes a page of code, and beside it the notebook that its first cell links to."""
    link = f"# {{download}}`{NOTEBOOK[language]} <{path.stem}.ipynb>`"
    first, rest = re.split(r"\n(?=\n*# %%)", text, maxsplit=1)
    notebook = write(path.with_suffix(".ipynb"), percent_pages.notebook(text))
    return {notebook, write(path, f"{first}\n#\n{link}\n{rest}")}


def said_in_chinese(text, suffix):
    """An English page that says, below its title, that it has no Chinese version yet."""
    note = NO_CHINESE if suffix == ".md" else NO_CHINESE.rstrip().replace("\n", "\n# ")
    return re.sub(r"(?m)^(# # .*|# .*)$(?<!%% \[markdown\])", lambda m: m[0] + note, text, count=1)


def without_gaps(text):
    """Chinese prose without its line breaks, which a browser would show as spaces."""
    text = re.sub(r"(?m)(?<=[\u3001-\uffef])\n(?:# )?(?=[\u3001-\uffef])", "", text)
    # Nor is there a space between a wide mark and a word in Latin letters; lists and code stay.
    margin = "# " if text.startswith("# %%") else ""
    return re.sub(rf"(?<=[，。；：、！？）》”])\n{margin}(?=[A-Za-z\[`])(?!```)", "", text)


def with_texts(code, texts):
    """A page of code whose prose is that of `texts`: its parts stand between lines `+++`."""
    parts = texts.strip().split("\n+++\n")
    cells = re.compile(r"(?m)^# %% \[markdown\]\n(?:#.*\n?)+")
    if len(parts) != len(cells.findall(code)):
        raise ValueError(
            f"Each cell of prose needs a text. Received: {len(parts)} texts for "
            f"{len(cells.findall(code))} cells, the first {parts[0]!r}."
        )
    commented = (
        "\n".join(f"# {line}".rstrip() for line in part.strip().splitlines()) for part in parts
    )
    return cells.sub(lambda cell: f"# %% [markdown]\n{next(commented)}\n", code)


def with_links(text, path, page, pages):
    """Turns links to files of the repository, which work in a clone, into links between pages.

    `pages` maps files to their places on the site, pictures too. Where a note links to a file that
    has no page, its path remains.
    """
    has_language = bool({DOCS / x for x in LANGUAGES} & {*path.parents})

    def replaced(match):
        picture, label, target, anchor = match[1], match[2], match[3], match[4] or ""
        if "://" in target:
            return match[0]
        there = (path.parent / target).resolve()
        to_root = "../" * page.count("/")
        if there in pages:
            return f"{picture}[{label}]({to_root}{pages[there]}{anchor})"
        if has_language:
            return match[0]
        if DOCS / "en" in there.parents:
            place = there.relative_to(DOCS / "en").as_posix()
            return f"{picture}[{label}]({to_root}{place}{anchor})"
        if path.suffix == ".py":
            return match[0]
        return f"`{there.relative_to(ROOT)}`"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)", replaced, text)


def in_language(language, path, page, pages):
    """A shared page as this language shows it, or `None` where that has one of its own."""
    own = DOCS / language / page
    if own.is_file():
        return None
    text = with_links(path.read_text(encoding="utf-8"), path, page, pages)
    texts = own.with_suffix(".md")
    if texts.is_file():
        own_texts = with_links(texts.read_text(encoding="utf-8"), texts, page, pages)
        return without_gaps(with_texts(text, own_texts))
    return said_in_chinese(text, path.suffix) if language == "zh" else text


def gather(language):
    """Puts the sources of one language together; returns their folder."""
    source = OUTPUT / "source" / language
    written, texts = set(), set()

    def put(path, content):
        is_code = path.suffix == ".py"
        return with_notebook(path, content, language) if is_code else {write(path, content)}

    shared = {path.resolve(): page for path, page in shared_pages()}
    pictures = {path.resolve(): place for path, place in shared_pictures()}
    pages = {**shared, **pictures}
    for path, place in pictures.items():
        written.add(write(source / place, path.read_bytes()))
    for path, page in shared.items():
        if path.suffix == ".py":
            texts.add(DOCS / language / pathlib.Path(page).with_suffix(".md"))
        text = in_language(language, path, page, pages)
        if text is not None:
            written |= put(source / page, text)
    for path in sorted(set((DOCS / language).rglob("*")) - texts):
        if path.is_file() and "__pycache__" not in path.parts:
            target = source / path.relative_to(DOCS / language)
            content = path.read_bytes()
            if is_page(path):
                page = path.relative_to(DOCS / language).as_posix()
                content = with_links(content.decode(), path, page, pages)
                content = without_gaps(content) if language == "zh" else content
            written |= {target} if is_index(target) else put(target, content)
    for page, text in api_pages.pages(language):
        written.add(write(source / page, text))
    for page, text in family_pages.pages(language):
        text = with_links(text, DOCS / language / page, page, pages)
        written.add(write(source / page, without_gaps(text) if language == "zh" else text))
    for room in ROOMS:
        index = source / room / "index.md"
        found = {path.stem for path in written if path.parent == index.parent and is_page(path)}
        own = DOCS / language / room / "index.md"
        own = with_links(own.read_text(encoding="utf-8"), own, f"{room}/index.md", pages)
        own = without_gaps(own) if language == "zh" else own
        # In the order of the links, then the others.
        linked = [*re.findall(r"[(/]([\w.]+)\.(?:md|py)\)", own), *sorted(found)]
        names = "\n".join(name for name in dict.fromkeys(linked) if name in found - {"index"})
        # An index that lists its pages itself has the list in the sidebar alone.
        options = ":hidden:\n\n" if "](" in own else ""
        write(index, f"{own}\n```{{toctree}}\n{options}{names}\n```\n")
    for path in source.rglob("*"):
        if path.is_file() and path not in written and "__pycache__" not in path.parts:
            path.unlink()
    return source


def start_kernels_at_root():
    """Pages name files from the repository's root on, as their commands do."""
    folder = OUTPUT / "ipython"
    startup = f"import os\n\nos.chdir({str(ROOT)!r})\n"
    write(folder / "profile_default" / "startup" / "root.py", startup)
    os.environ["IPYTHONDIR"] = str(folder)


def build_html(sources, output, is_prose):
    """Runs Sphinx for all languages at once, in a process each; returns 0 or a failure's code."""
    every = ["-c", DOCS, "-b", "html", "-W", "--keep-going", "-q"]
    every += ["-D", f"nb_execution_cache_path={OUTPUT / 'cache'}"]
    every += ["-D", "nb_execution_mode=off"] if is_prose else []
    calls = []
    for language, source in sources.items():
        folders = ("-d", f"{output}_trees/{language}", source, output / language)
        calls.append([str(argument) for argument in (*every, "-t", language, *folders)])
    # A forked process has imported the package already.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with futures.ProcessPoolExecutor(len(calls), context) as executor:
        return max(executor.map(sphinx_build, calls))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("languages", nargs="*", default=LANGUAGES, help="en, zh; both by default.")
    parser.add_argument("--prose", action="store_true", help="Runs no code, into a folder apart.")
    flags = parser.parse_args(arguments)
    start_kernels_at_root()
    output = OUTPUT / ("prose" if flags.prose else "html")
    started = time.monotonic()
    sources = {language: gather(language) for language in flags.languages}
    if not flags.prose:
        paths = [path for source in sources.values() for path in source.rglob("*.py")]
        if failures := run_pages(paths, OUTPUT / "cache"):
            print("\n".join(failures), file=sys.stderr)
            return 1
    if code := build_html(sources, output, flags.prose):
        return code
    shutil.copyfile(DOCS / "templates" / "index.html", output / "index.html")
    pages = [path for language in flags.languages for path in (output / language).rglob("*.html")]
    cells = sum(path.read_text(encoding="utf-8").count("cell_input docutils") for path in pages)
    seconds = time.monotonic() - started
    print(f"{len(pages)} pages, {cells} cells of code, {seconds:.0f} s: {output / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
