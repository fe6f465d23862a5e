"""The site's sources: both languages have the same pages, and the README's code compiles."""

import ast
import pathlib
import re
import sys

import pytest

import bert_keras

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# Tutorials in Chinese are texts of their own; the English ones are the files of examples/.
SHARED = ("index", "start", "way_to_bert", "guides", "results")

pytestmark = pytest.mark.once


def pages(language):
    folder = DOCS / language
    found = (
        path.relative_to(folder) for path in folder.rglob("*") if path.suffix in (".md", ".py")
    )
    return {path.with_suffix("").as_posix() for path in found if path.parts[0] != "tutorials"}


def test_each_page_stands_in_both_languages():
    assert pages("en") == pages("zh")
    assert {page.split("/")[0] for page in pages("en")} == set(SHARED)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pages_lead_to_pages_and_pictures_that_are_there(language):
    sys.path.insert(0, str(DOCS))
    try:
        import build

        shared = {page for _, page in build.shared_pages()}
        pictures = {f"figures/{name}.svg" for name, _ in build.figures.drawings(language)}
    finally:
        sys.path.remove(str(DOCS))
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
