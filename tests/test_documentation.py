"""The site's sources: both languages have the same pages, and the README's code compiles."""

import ast
import importlib
import pathlib
import re

import pytest

import bert_keras

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
