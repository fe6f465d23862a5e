"""Looks at the built site as a reader would, in a headless Chromium: `python docs/check.py`.

Every link of every page leads to a page and to a place in it, every picture is there, each tutorial
and chapter has one, nothing is asked of another host, each search finds its page first, no page but
those of the API is higher than 12,000 pixels, and text can be read on a phone and in the dark.
Needs a Chromium on the path; `--screenshots FOLDER` keeps pictures of some pages.
"""

import argparse
import functools
import http.server
import pathlib
import re
import shutil
import sys
import threading
from urllib.parse import unquote, urldefrag, urljoin

from playwright.sync_api import sync_playwright

HTML = pathlib.Path(__file__).resolve().parent.parent / "output" / "docs" / "html"
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
# What WCAG 2.1 asks of text.
LEAST_CONTRAST = 4.5
# In pixels, on a desk.
HIGHEST = 12_000
TEXTS = "article p, article li, article td, article h1"
SHOWN = (
    "index",
    "start/pick_a_model",
    "way_to_bert/bert",
    "way_to_bert/glove",
    "tutorials/index",
    "tutorials/text_classification",
    "families/albert",
    "guides/serving",
)
# Rooms whose pages have a picture each.
WITH_PICTURES = ("tutorials/", "way_to_bert/")
# What readers type, and the page that should come first.
QUERIES = (
    ("en", "TextClassifier", "api/tasks/TextClassifier"),
    ("en", "perplexity", "way_to_bert/ngrams"),
    ("en", "named entity recognition", "tutorials/token_classification"),
    ("en", "NER", "tutorials/token_classification"),
    ("en", "sentiment analysis", "tutorials/text_classification"),
    ("en", "save model", "guides/save_load_resume"),
    ("en", "resume training", "guides/save_load_resume"),
    ("en", "multi-label", "guides/multi_label"),
    ("en", "class imbalance", "guides/class_imbalance"),
    ("en", "class weight", "guides/class_imbalance"),
    ("en", "early stopping", "guides/callbacks"),
    ("en", "TensorBoard", "guides/callbacks"),
    ("en", "GPU", "guides/gpu"),
    ("en", "out of memory", "guides/gpu"),
    ("en", "multi-gpu", "guides/several_devices"),
    ("en", "LoRA", "guides/toolbox"),
    ("en", "deploy", "guides/deploy"),
    ("en", "onnx", "guides/export"),
    ("en", "CSV", "guides/your_own_data"),
    ("en", "semantic search", "tutorials/semantic_search"),
    ("en", "question answering", "tutorials/question_answering"),
    ("en", "install", "start/install"),
    ("zh", "TextClassifier", "api/tasks/TextClassifier"),
    ("zh", "命名实体识别", "tutorials/named_entities"),
    ("zh", "情感分析", "tutorials/sentiment"),
    ("zh", "阅读理解", "tutorials/reading"),
    ("zh", "文本分类", "tutorials/sentiment"),
    ("zh", "保存模型", "guides/save_load_resume"),
    ("zh", "断点续训", "guides/save_load_resume"),
    ("zh", "多标签", "guides/multi_label"),
    ("zh", "类别不平衡", "guides/class_imbalance"),
    ("zh", "早停", "guides/callbacks"),
    ("zh", "显存", "guides/gpu"),
    ("zh", "显存不够", "guides/gpu"),
    ("zh", "混合精度", "guides/gpu"),
    ("zh", "多卡训练", "guides/several_devices"),
    ("zh", "冻结", "guides/toolbox"),
    ("zh", "部署", "guides/deploy"),
    ("zh", "导出", "guides/export"),
    ("zh", "自己的数据", "guides/your_own_data"),
    ("zh", "镜像", "start/install"),
    ("zh", "句向量", "tutorials/text_embedding"),
    ("zh", "长文本", "guides/long_texts"),
)
# Of the texts that a selector finds the least.
CONTRAST = """(selector) => {
  const parse = (color) => {
    const parts = (color.match(/[\\d.]+/g) || []).map(Number);
    return color.startsWith("color(") ? parts.map((x, i) => (i < 3 ? x * 255 : x)) : parts;
  };
  const luminance = (color) => {
    const parts = parse(color).slice(0, 3).map((part) => {
      const x = part / 255;
      return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color.length === 3 || color[3] === 1) return getComputedStyle(e).backgroundColor;
    }
    return "rgb(255, 255, 255)";
  };
  let least = 21;
  for (const e of document.querySelectorAll(selector)) {
    if (!e.innerText?.trim() || e.disabled) continue;
    const [a, b] = [luminance(getComputedStyle(e).color), luminance(behind(e))];
    least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return least;
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def broken_links(folder):
    """Yields a line for each link or picture that leads nowhere."""
    pages = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.html")}
    texts = {name: path.read_text(encoding="utf-8") for name, path in pages.items()}
    places = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in texts.items()}
    for name, text in texts.items():
        text = re.sub(r"(?s)<script.*?</script>", "", text)
        for target in re.findall(r'\b(?:href|src)="([^"]*)"', text):
            if re.match(r"[a-z]+:|//", target):
                continue
            file, place = urldefrag(urljoin(name, target))
            file, place = unquote(file.partition("?")[0]), unquote(place)
            if not (folder / file).is_file():
                yield f"{name}: {target}: no such file"
            elif place and file in places and place not in places[file]:
                yield f"{name}: {target}: no such place"


def reading(page, address, names):
    """Yields a line for each page that is hard to read on a phone or in the dark, or too high."""
    for name in names:
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.set_viewport_size(PHONE)
            page.goto(f"{address}/{name}")
            if page.evaluate("document.scrollingElement.scrollWidth > innerWidth + 1"):
                yield f"{name}: wider than a phone"
            if (contrast := page.evaluate(CONTRAST, TEXTS)) < LEAST_CONTRAST:
                yield f"{name}: a contrast of {contrast:.1f} in {theme} mode"
            lost = "[...document.images].filter(i => i.complete && !i.naturalWidth).length"
            if page.evaluate(lost):
                yield f"{name}: a picture that does not load"
        room, file = name.split("/", 1)[1], name.rsplit("/", 1)[1]
        page.set_viewport_size(DESK)
        height = page.evaluate("document.scrollingElement.scrollHeight")
        if height > HIGHEST and not room.startswith("api/"):
            yield f"{name}: {height:,} pixels high"
        needs_one = room.startswith(WITH_PICTURES) and file != "index.html"
        if needs_one and not page.query_selector("article :is(img, svg, mark)"):
            yield f"{name}: no picture"


def searching(page, address):
    """Yields a line for each search whose first result is not its page."""
    for language, query, found in QUERIES:
        page.goto(f"{address}/{language}/search.html?q={query}")
        page.wait_for_selector("#search-results li a", timeout=20_000)
        page.wait_for_timeout(1000)
        first = page.eval_on_selector("#search-results li a", "a => a.href")
        if found not in first:
            yield f"{language}: the search for {query} finds {first} before {found}"


def launched(playwright):
    """Returns the Chromium of the path, without a window."""
    names = ("chromium", "chromium-browser", "chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])


def screenshots(page, address, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for language in ("en", "zh"):
        for name in SHOWN:
            for size, theme in ((DESK, "light"), (PHONE, "dark")):
                page.emulate_media(color_scheme=theme)
                page.set_viewport_size(size)
                page.goto(f"{address}/{language}/{name}.html")
                page.screenshot(path=folder / f"{language}_{name.replace('/', '_')}_{theme}.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--html", type=pathlib.Path, default=HTML)
    parser.add_argument("--screenshots", type=pathlib.Path)
    flags = parser.parse_args()
    wrong = list(broken_links(flags.html))
    handler = functools.partial(Quiet, directory=flags.html)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    names = sorted(
        path.relative_to(flags.html).as_posix() for path in flags.html.glob("*/**/*.html")
    )
    names = [name for name in names if "_static" not in name]
    with sync_playwright() as playwright:
        browser = launched(playwright)
        page = browser.new_page()
        foreign = set()
        page.on("request", lambda asked: foreign.add(asked.url))
        wrong += [*reading(page, address, names), *searching(page, address)]
        if flags.screenshots:
            screenshots(page, address, flags.screenshots)
        wrong += [
            f"{url}: of another host" for url in foreign if not url.startswith((address, "data:"))
        ]
        browser.close()
    print("\n".join(wrong) or f"{len(names)} pages, nothing wrong.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
