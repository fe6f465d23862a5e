"""The site has the same pages in both languages, and the code of docs and docstrings is right."""

import ast
import configparser
import contextlib
import doctest
import functools
import importlib
import importlib.util
import itertools
import pathlib
import re
import runpy
import shlex
import subprocess
import tempfile

import nbformat
import pytest
from checks import TINY, make_backbones_once
from IPython.core.inputtransformer2 import TransformerManager
from tiny import tiny_backbone, tiny_preprocessor

from bert_keras.cli import main, train
from bert_keras.cli.kinds import TASKS
from bert_keras.presets.resolve import PRESETS

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# Tables of results, which the Chinese site shows in English.
IN_ENGLISH = {"results/benchmarks", "results/recipes"}
IN_ENGLISH |= {f"results/{name}_ablations" for name in ("fine_tuning", "pretraining")}
# Tutorials on Chinese text, which have no English page.
IN_CHINESE = {f"tutorials/{x}" for x in ("matching", "named_entities", "reading", "sentiment")}


def text_of(path):
    return path.read_text(encoding="utf-8")


# Modules with examples in docstrings.
DOCTESTS = [
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    for path in sorted((ROOT / "bert_keras").rglob("*.py"))
    if ">>> " in text_of(path)
]

pytestmark = pytest.mark.once


@pytest.mark.parametrize("name", DOCTESTS)
def test_examples_in_docstrings_hold(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0 < results.attempted


@pytest.fixture(params=["en", "zh"])
def language(request):
    return request.param


@pytest.fixture
def build(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("build")


@pytest.fixture
def shared(build):
    """The pages of code that both languages have, by their paths."""
    return {path.resolve(): page for path, page in build.shared_pages() if path.suffix == ".py"}


def pages(language):
    folder = DOCS / language
    found = [*folder.rglob("*.md"), *folder.rglob("*.py")]
    return {path.relative_to(folder).with_suffix("").as_posix() for path in found}


def code_of(text):
    return [line for line in text.splitlines() if line[:1] != "#"]


def blocks_of_python(text):
    return re.findall(r"(?ms)^```python\n(.*?)^```", text)


def test_each_page_exists_in_both_languages(build):
    english = pages("en") | {page.rpartition(".")[0] for _, page in build.shared_pages()}
    assert (english - pages("zh"), pages("zh") - english) == (IN_ENGLISH, IN_CHINESE)


def test_each_cell_of_a_shared_page_of_code_has_a_chinese_text(build, shared):
    for path, page in shared.items():
        text = build.in_language("zh", path, page, shared)
        assert code_of(text) == code_of(text_of(path))
        assert re.search("# # .*[\u4e00-\u9fff]", text)
    for text in map(text_of, (DOCS / "zh").rglob("*.py")):
        assert code_of(build.without_gaps(text)) == code_of(text)
    with pytest.raises(ValueError, match="Each cell of prose needs a text"):
        build.with_texts("# %% [markdown]\n# # A page\n", "# 甲\n+++\n乙")


def test_each_page_of_code_is_a_notebook_whose_cells_compile(language, build, shared):
    manager = TransformerManager()
    texts = {page: build.in_language(language, path, page, shared) for path, page in shared.items()}
    texts |= {str(path): text_of(path) for path in (DOCS / language).rglob("*.py")}
    assert len(texts) > 30
    for page, text in texts.items():
        notebook = nbformat.reads(build.percent_pages.notebook(text), as_version=4)
        nbformat.validate(notebook)
        title, install, *cells = notebook.cells
        assert title.source.startswith("# ") and "git clone" in install.source
        assert "pip install" in install.source and cells, page
        for cell in (install, *cells):
            if cell.cell_type == "code":
                compile(manager.transform_cell(cell.source), page, "exec")


RUN = subprocess.run


@functools.cache
def process_of(python, flag, code, **options):
    """Runs code in one process, first as it is and then with the import that it lacks.

    It does without what Keras would import for its plots, wrappers and tables, half of the time.
    """
    unused = "matplotlib=None, pandas=None, sklearn=None"
    without = f"import sys, traceback; sys.modules.update({unused})\n"
    tried = f"try: exec({code!r})\nexcept Exception: traceback.print_exc()\n"
    return RUN((python, flag, f"{without}{tried}import bert_keras; {code}"), **options)


def test_each_common_error_is_still_an_error(language, capsys, monkeypatch, tmp_path):
    def run(arguments, **_):
        python, flag, code = arguments
        # Both pages start the same two processes, which take most of the time: one runs, once.
        code = code.removeprefix("import bert_keras; ")
        return process_of(python, flag, code, capture_output=True, text=True)

    make_backbones_once(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_BACKEND", "jax")  # Which processes import soonest.
    monkeypatch.setattr(tempfile, "TemporaryDirectory", lambda: contextlib.nullcontext("."))
    monkeypatch.setattr(subprocess, "run", run)
    runpy.run_path(DOCS / language / "start/common_errors.py")  # It raises if one is not.
    printed = capsys.readouterr().out
    assert printed.count("Error: ") >= 17
    assert "Could not locate class 'TextClassifier'" in printed and "\n0\n" in printed


def test_each_phrase_of_the_search_leads_to_one_page_that_exists(language, build):
    words = importlib.import_module("search_words").words_of(language)
    existing = pages(language) | {page.rpartition(".")[0] for _, page in build.shared_pages()}
    assert words.keys() <= existing
    phrases = [phrase.lower() for page in words.values() for phrase in page]
    assert len(phrases) == len(set(phrases)) > 80


LINKS = re.compile(r"\]\((?!https?:)([^)#\s]+)")


def prose_of(path):
    lines = text_of(path).splitlines()
    return "\n".join(line for line in lines if path.suffix == ".md" or line[:2] == "# ")


def test_links_and_pictures_of_all_pages_are_in_the_clone():
    folders = [ROOT / name for name in ("benchmarks", "bert_keras", "docs", "examples", "tests")]
    paths = [*ROOT.glob("*.md"), *DOCS.rglob("*.py")]
    paths += [path for folder in folders for path in folder.rglob("*.md")]
    links = [(path, x) for path in paths for x in LINKS.findall(prose_of(path))]
    assert len(links) > 200
    for path, target in links:
        # Only the API's pages are made by the build.
        there = path.parent / target
        assert there.exists() or "api" in there.parts, f"{path.relative_to(ROOT)}: {target}"


def test_links_lead_to_pages_and_pictures_of_the_site(language, build, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "OUTPUT", tmp_path)
    # What a family's page counts in models is no link.
    monkeypatch.setattr(build.family_pages, "models_of", lambda cls: (x := cls(**TINY), {}, x))
    source = build.gather(language)
    links = [
        (path, x) for path in source.rglob("*.[mp][dy]") for x in LINKS.findall(prose_of(path))
    ]
    assert len(links) > 400
    for path, target in links:
        assert (path.parent / target).exists(), f"{path.relative_to(source)}: {target}"


def test_figures_are_as_docs_draw_writes_them(language, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    drawn = {f"{name}.svg": x for name, x in importlib.import_module("figures").drawings(language)}
    folder = DOCS / language / "figures"
    assert drawn == {path.name: text_of(path) for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_readmes_code_compiles(name):
    blocks = blocks_of_python(text_of(ROOT / name))
    assert len(blocks) >= 2
    for block in blocks:
        ast.parse(block)


def test_a_preset_is_in_the_readme_with_its_weights_in_the_guides_or_among_the_forty_encoders():
    guides = [DOCS / language / "guides" / "checkpoints.md" for language in ("en", "zh")]
    paths = (ROOT / "README.md", ROOT / "README.zh.md", *guides)
    readme, _, *tables = texts = [text_of(path) for path in paths]
    forty = text_of(DOCS / "en" / "start" / "forty_encoders.md")
    listed = [name for name in PRESETS if f"`{name}`" in readme]
    assert len(listed) > 20
    assert all(re.search(rf"(all|全部) {len(PRESETS)} ", text) for text in texts)
    for name, preset in PRESETS.items():
        if name not in listed:
            assert preset["places"][-1].rpartition("/")[2] in forty, name
        for table in tables if name in listed else ():
            assert f"`{name}`" in table and f"{preset['parameters']:,}" in table


def test_each_extra_that_is_named_exists_and_is_described():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    extras = set(config["options.extras_require"])
    folders = [ROOT / name for name in ("bert_keras", "docs", "examples")]
    paths, named = [*ROOT.glob("*.md")], set()
    paths += [path for folder in folders for path in folder.rglob("*.[mp][dy]")]
    for text in map(text_of, paths):
        for names in re.findall(r"(?:'\.|bert_keras)\[([a-z0-9,_]+)\]'", text):
            named |= set(names.split(","))
        named |= set(re.findall(r"(?:extra |可选依赖 )`(\w+)`", text))
    assert len(named) > 8 and named <= extras
    for language in ("en", "zh"):
        text = text_of(DOCS / language / "start" / "install.md")
        assert extras <= set(re.findall(r"`(\w+)`", text))


def test_the_readme_on_a_package_index_has_no_relative_links():
    spec = importlib.util.spec_from_file_location("bert_keras_setup", ROOT / "setup.py")
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    text = text_of(ROOT / "README.md")
    links = re.compile(r"\]\(([^)]+)\)")
    address = "https://example.org/owner/bert_keras"
    published, plain = (setup.for_package_index(text, address=x) for x in (address, ""))
    assert len(links.findall(published)) == len(links.findall(text)) > 20
    for target in links.findall(published + plain):
        assert target.startswith("https://")


# Libraries, data and weights that the tests do without.
NOT_AT_HAND = re.compile(
    r"^(?:import|from) (?:wandb|mlflow|keras_tuner|mteb)|TensorBoard\(|load_dataset\(|colbert\.",
    re.MULTILINE,
)


GUIDES = ("callbacks", "class_imbalance", "gpu", "multi_label", "save_load_resume")


@pytest.mark.parametrize("name", [*GUIDES, "search_your_documents"])
def test_the_code_of_a_guide_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of_python(text_of(DOCS / "en" / "guides" / f"{name}.md"))
    code = "\n".join(block for block in blocks if not NOT_AT_HAND.search(block))
    tiny_backbone().save_to_preset("tiny")
    tiny_preprocessor().save_assets("tiny")
    code, count = re.subn('"(bert_mini_en_gutenberg|minilm_l6_en_uncased)"', '"tiny"', code)
    assert count
    exec(compile(code, name, "exec"), {"__name__": name})
    for block in blocks:
        ast.parse(block)


# What ends a command; variables, and commands that start another one.
ENDS, BEFORE = {"|", "&&", ";", "&"}, re.compile(r"[A-Z_]+=.*|do|time|nohup")


def shell_commands():
    """Yields the page and the words of each command in a block of shell, in prose or code."""
    examples = ROOT / "examples"
    paths = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *DOCS.rglob("*.py")]
    for path in (*paths, *examples.glob("*.py"), *examples.rglob("*.md")):
        text = re.sub(r"(?m)^# ?", "", text_of(path))
        for block in re.findall(r"(?ms)^```(?:shell|bash)\n(.*?)^```", text):
            block = re.sub(r"\\\n|\s# .*", " ", block)
            # A quoted text may have several lines.
            for line in re.findall(r"(?:\"[^\"]*\"|'[^']*'|[^\n\"'])+", block):
                for _, words in itertools.groupby(shlex.split(line), ENDS.__contains__):
                    command = [*itertools.dropwhile(BEFORE.fullmatch, words)]
                    yield path, command[3:] if command[:2] == ["taskset", "-c"] else command


def flags_of(command):
    """Returns the names of the flags that a command of this repository takes, or `None`."""
    program, name, *arguments = [*command, "", ""]
    if program in ("python", "python3", ".venv/bin/python"):
        if name == "-m" and arguments[0] == "bert_keras":
            return flags_of(["bert-keras", *arguments[1:]])
        path = ROOT / name
        if path.suffix != ".py" or not path.is_file():
            return None  # A file of the reader's.
        names = re.findall(r"(?m)^(?:from|import) (\w+)", text_of(path))
        imported = (path.with_name(f"{name}.py") for name in names)
        return defined_by(path, *filter(pathlib.Path.is_file, imported))
    if program != "bert-keras" or not name:
        return None
    if name == "train":
        groups = train.groups(TASKS[arguments[0]])
    elif name in main.WITH_OWN_FLAGS:
        groups = importlib.import_module(f"bert_keras.cli.{main.WITH_OWN_FLAGS[name]}").GROUPS
    else:
        _, groups = main.help_of(name)
    return {option.name for options in groups.values() for option in options}


def defined_by(*paths):
    text = "\n".join(map(text_of, paths))
    return set(re.findall(r"(?:DEFINE_\w+|add_argument)\(\s*\"-*([\w-]+)\"", text))


def test_commands_on_all_pages_use_flags_that_exist():
    seen = 0
    for path, command in shell_commands():
        known = flags_of(command)
        if known is None:
            continue
        words = command[: command.index("--")] if "--" in command else command
        used = {name for word in words for name in re.findall(r"^--?([a-z]\w[\w-]*)", word)}
        unknown = used - known - {f"no{name}" for name in known} - {"help"}
        assert not unknown, f"{path.relative_to(ROOT)}: {shlex.join(command)}: {unknown}"
        seen += 1
    assert seen > 150
