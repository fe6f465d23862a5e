"""The site's sources: both languages have the same pages, and the README's code compiles."""

import ast
import importlib
import pathlib
import re
import shlex

import pytest

import bert_keras
from bert_keras.cli import main, train
from bert_keras.cli.tasks import TASKS

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# Tables of results, which Chinese readers are shown in English, with a line above that says so.
IN_ENGLISH = {f"results/{name}" for name in ("benchmarks", "fine_tuning_ablations", "recipes")}
# Tutorials on Chinese text, which have no English side.
IN_CHINESE = {
    f"tutorials/{name}" for name in ("matching", "named_entities", "reading", "sentiment")
}

pytestmark = pytest.mark.once


@pytest.fixture
def build(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("build")


def pages(language):
    folder = DOCS / language
    found = (
        path.relative_to(folder) for path in folder.rglob("*") if path.suffix in (".md", ".py")
    )
    return {path.with_suffix("").as_posix() for path in found}


def test_each_page_stands_in_both_languages(build):
    shared = {page.rpartition(".")[0] for _, page in build.shared_pages()}
    english, chinese = pages("en") | shared, pages("zh")
    assert english - chinese == IN_ENGLISH
    assert chinese - english == IN_CHINESE


def test_each_page_of_code_that_is_shared_has_a_text_for_each_of_its_cells(build):
    shared = {path.resolve(): page for path, page in build.shared_pages() if path.suffix == ".py"}
    for path, page in shared.items():
        text = build.in_language("zh", path, page, shared)
        code = [line for line in path.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
        assert [line for line in text.splitlines() if line[:1] != "#"] == code
        assert re.search("# # .*[\u4e00-\u9fff]", text)
    for path in (DOCS / "zh").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        code, joined = (
            [line for line in one.splitlines() if line[:1] != "#"]
            for one in (text, build.without_gaps(text))
        )
        assert joined == code
    with pytest.raises(ValueError, match="Each cell of prose needs a text"):
        build.with_texts("# %% [markdown]\n# # A page\n", "# 甲\n+++\n乙")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pages_lead_to_pages_and_pictures_that_are_there(language, build):
    shared = {page for _, page in build.shared_pages()}
    pictures = {f"figures/{name}.svg" for name, _ in build.figures.drawings(language)}
    pictures |= {"guides/pictures/serving_page_zh.png"}
    folder = DOCS / language
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*")} | shared | pictures
    there |= {"api/index.md", "results/benchmarks.png"}
    num_links = 0
    for path in folder.rglob("*.[mp][dy]"):
        lines = path.read_text(encoding="utf-8").splitlines()
        prose = "\n".join(line for line in lines if path.suffix == ".md" or line[:2] == "# ")
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", prose):
            leads = (path.parent / target).resolve().relative_to(folder).as_posix()
            assert leads in there, f"{path.relative_to(DOCS)}: {target}"
            num_links += 1
    assert num_links > 40


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_code_of_the_readme_compiles_and_its_files_are_there(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```", text)
    assert len(blocks) >= 2
    for block in blocks:
        ast.parse(block)
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / target).exists(), target


def test_the_readme_lists_every_preset_with_its_weights():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for row in bert_keras.presets():
        assert f"`{row['name']}`" in text and f"{row['parameters']:,}" in text


def shell_commands():
    """Yields (page, command as words) of every block of shell on a page, in prose or code."""
    examples = ROOT / "examples"
    found = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *DOCS.rglob("*.py")]
    for path in (*found, *examples.glob("*.py"), *examples.rglob("*.md")):
        text = re.sub(r"(?m)^# ?", "", path.read_text(encoding="utf-8"))
        for block in re.findall(r"(?ms)^```(?:shell|bash)\n(.*?)^```", text):
            block = re.sub(r"\\\n|\s# .*", " ", block)
            # A text in quotes may have several lines.
            for line in re.findall(r"(?:\"[^\"]*\"|'[^']*'|[^\n\"'])+", block):
                words = shlex.split(line)
                ends = [place for place, word in enumerate(words) if word in ("|", "&&", ";", "&")]
                for start, end in zip([-1, *ends], [*ends, len(words)], strict=True):
                    command = words[start + 1 : end]
                    # Variables, and what starts another program.
                    while command and re.fullmatch(r"[A-Z_]+=.*|do|time|nohup", command[0]):
                        del command[0]
                    yield path, command[3:] if command[:2] == ["taskset", "-c"] else command


def flags_of(command):
    """Returns the names of the flags that a command of this repository takes, or `None`."""
    program, *arguments = [*command, ""]
    if program in ("python", "python3", ".venv/bin/python"):
        if arguments[:2] == ["-m", "bert_keras"]:
            return flags_of(["bert-keras", *arguments[2:]])
        path = ROOT / arguments[0]
        if path.suffix != ".py" or not path.is_file():
            return None  # The reader's.
        text = path.read_text(encoding="utf-8")
        names = re.findall(r"(?m)^(?:from|import) (\w+)", text)
        beside = (path.with_name(f"{name}.py") for name in names)
        return defined_by(path, *(other for other in beside if other.is_file()))
    if program != "bert-keras" or not arguments[0]:
        return None
    name = arguments[0]
    if name == "train":
        groups = train.groups(TASKS[arguments[1]])
    elif name in main.WITH_OWN_FLAGS:
        groups = importlib.import_module(f"bert_keras.cli.{main.WITH_OWN_FLAGS[name]}").GROUPS
    else:
        groups = {"taken": main.TAKEN[name], "all": main.GROUPS["All commands"]}
    return {option.name for options in groups.values() for option in options}


def defined_by(*paths):
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    found = re.findall(r"DEFINE_\w+\(\s*\"(\w+)\"|add_argument\(\s*\"--([\w-]+)\"", text)
    return {one or other for one, other in found}


def test_commands_on_all_pages_have_the_flags_that_they_are_given():
    seen = 0
    for path, command in shell_commands():
        known = flags_of(command)
        if known is None:
            continue
        words = command[: command.index("--")] if "--" in command else command
        given = {
            re.match(r"--?([\w-]+)", word)[1] for word in words if re.match(r"--?[a-z]\w", word)
        }
        unknown = given - known - {f"no{name}" for name in known} - {"help"}
        assert not unknown, f"{path.relative_to(ROOT)}: {shlex.join(command)}: {unknown}"
        seen += 1
    assert seen > 150
