"""Uses the server's page as a reader would, in a headless Chromium: `python docs/check_page.py`.

Each instrument of each task is used once, by the keyboard where it can be, on a phone and in the dark, in
English and Chinese, and every field, label, name and file holds text that would be a script if it
were read as HTML. Tiny models are served for it. Needs a Chromium on the path; `--address URL
--screenshots FOLDER` keeps pictures of a server that runs already.
"""

import argparse
import contextlib
import pathlib
import socket
import string
import subprocess
import sys
import tempfile
import time
import urllib.request

from check import CONTRAST, DESK, LEAST_CONTRAST, PHONE, launched
from playwright.sync_api import sync_playwright

import bert_keras

DOCS = pathlib.Path(__file__).resolve().parent
HOSTILE = "<img src=x onerror='window.hacked=1'><b>x</b>"
# What an answer leaves in the page, by the task's method.
DRAWN = {
    "fill_mask": ".group .bar",
    "classify": ".bar",
    "tag": ".marked",
    "answer": ".marked mark, .marked",
    "choose": ".bar",
    "is_next": ".bar",
    "is_replaced": ".marked span, .marked mark",
    "embed": ".map td",
}
TEXTS = "main p, main span, main small, main mark, main td, main th, main button, main summary"
NO_HTML = "window.hacked === undefined && !document.querySelector('main img, main b, main script')"


def tiny_models(folder):
    """Writes a model of each task; returns the arguments of `serve`."""
    marks = string.ascii_lowercase + string.digits + string.punctuation
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *marks]
    words += ["##" + letter for letter in string.ascii_lowercase]

    def parts(**options):
        tokenizer = bert_keras.WordPieceTokenizer(words)
        preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=128)
        backbone = bert_keras.BertBackbone(len(words), 2, 2, 16, 32, max_sequence_length=128)
        return {"backbone": backbone, "preprocessor": preprocessor, **options}

    names = [HOSTILE, "yes"]
    tasks = {
        "classifier": bert_keras.TextClassifier(**parts(label_names=names)),
        "scores": bert_keras.TextClassifier(**parts(num_classes=3, problem_type="regression")),
        "tagger": bert_keras.TokenClassifier(
            **parts(num_classes=3, label_names=["O", f"B-{HOSTILE}", f"I-{HOSTILE}"])
        ),
        "reader": bert_keras.QuestionAnswering(**parts(stride=16)),
        "filler": bert_keras.MaskedLM(**parts()),
        "<b>embedder</b>": bert_keras.TextEmbedder(**parts()),
        "chooser": bert_keras.MultipleChoice(**parts()),
        "follower": bert_keras.NextSentencePrediction(**parts()),
        "judge": bert_keras.ReplacedTokenDetector(**parts()),
    }
    sources = []
    for number, (name, task) in enumerate(tasks.items()):
        task.save_to_preset(folder / str(number))
        sources.append(f"{name}={folder / str(number)}")
    tasks["classifier"].export(folder / "program", format="onnx", verbose=False)
    return [*sources, f"program={folder / 'program'}"]


@contextlib.contextmanager
def serving(sources):
    """Runs the command `serve`; yields the address when it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bert_keras", "serve", *sources, f"--port={port}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
                break
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def until(page, expression, arg=None):
    """Waits for what is true in the page, whose policy forbids Playwright's own way to."""
    for _ in range(600):
        if page.evaluate(expression, arg):
            return
        page.wait_for_timeout(50)
    raise TimeoutError(expression)


def ask(page, number, text=None):
    """Asks the model of a number, by the keyboard, with a text in each of its fields."""
    page.select_option("#model", index=number)
    areas = page.query_selector_all("#fields textarea")
    mask = page.evaluate("model().mask") or ""
    for area in areas if text else ():
        area.fill(f"{text} {mask}\n{text}" if area.get_attribute("rows") == "5" else text + mask)
    areas[-1].press("Control+Enter")
    until(page, "question || document.querySelector('#answers .error')")


def open_by_key(page, name):
    if page.evaluate(f"!get('{name}').open"):
        page.focus(f"#{name} summary")
        page.keyboard.press("Enter")


def use_saliency(page):
    open_by_key(page, "saliency")
    page.wait_for_selector("#saliency .words small")
    before = page.inner_text("#saliency .words")
    page.select_option("#saliency select", index=1)
    until(page, "before => get('saliency').querySelector('.words').innerText !== before", before)


def use_attention(page):
    open_by_key(page, "attention")
    page.wait_for_selector("#attention line", state="attached")
    for select in page.query_selector_all("#attention select"):
        select.select_option(index=1)
        page.wait_for_load_state("networkidle")
    page.hover("#attention .looks button >> nth=1")
    pointed = page.inner_text("#attention .told")
    page.keyboard.press("Tab")
    page.focus("#attention .looks button")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    until(
        page, "before => document.querySelector('#attention .told').innerText !== before", pointed
    )


def use_search(page, name, lines, query):
    open_by_key(page, "search")
    file = {"name": name, "mimeType": "text/plain", "buffer": "\n".join(lines).encode()}
    page.set_input_files("#file", file)
    page.wait_for_selector("#find:enabled")
    page.fill("#query", query)
    page.press("#query", "Enter")
    page.wait_for_selector("#nearest .bar")


def reading(page, name):
    """Yields a line for each way in which what is shown is hard to read."""
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size(PHONE)
        if page.evaluate("document.scrollingElement.scrollWidth > innerWidth + 1"):
            yield f"{name}: wider than a phone"
        if (contrast := page.evaluate(CONTRAST, TEXTS)) < LEAST_CONTRAST:
            yield f"{name}: a contrast of {contrast:.1f} in {theme} mode"
    page.set_viewport_size(DESK)


def using(page, address):
    """Yields a line for each instrument that fails, and for each text that became HTML."""
    page.goto(address)
    until(page, "models.length")
    if page.evaluate("Object.keys(WORDS.en).sort() + '' !== Object.keys(WORDS.zh).sort() + ''"):
        yield "The languages have other words."
    for number, model in enumerate(page.evaluate("models")):
        name, has = model["name"], {**model["instruments"], "tokens": {}}
        if model["method"] == "embed":
            has["search"] = {}
        ask(page, number, HOSTILE)
        if not page.query_selector(f"#answers :is({DRAWN[model['method']]})"):
            yield f"{name}: no answer: {page.inner_text('#answers')}"
        open_by_key(page, "tokens")
        page.wait_for_selector("#tokens .pieces small")
        uses = {"saliency": use_saliency, "attention": use_attention}
        for instrument in has.keys() & uses.keys():
            uses[instrument](page)
        if "search" in has:
            lines = [HOSTILE, "", *(f"{HOSTILE} {number}" for number in range(40))]
            use_search(page, HOSTILE.replace("/", ""), lines, HOSTILE)
            if len(page.query_selector_all("#nearest .bar")) != 10:
                yield f"{name}: not ten neighbours"
        for panel in ("saliency", "attention", "search", "tokens"):
            if page.is_visible(f"#{panel}") != (panel in has):
                yield f"{name}: {panel} is {'not ' * (panel in has)}there"
        if not page.evaluate(NO_HTML):
            yield f"{name}: a text became HTML"
        page.click("#language")
        yield from reading(page, name)
        yield from (
            f"{name}: {each.inner_text()}" for each in page.query_selector_all("main .error")
        )


def screenshots(page, address, folder):
    """Keeps a picture of each model with its instruments used: a desk in light, a phone in dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for size, theme, language in ((DESK, "light", "en"), (PHONE, "dark", "zh")):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size(size)
        page.goto(address)
        until(page, "models.length")
        if page.evaluate("language") != language:
            page.click("#language")
        for number, model in enumerate(page.evaluate("models")):
            ask(page, number)
            for panel in model["instruments"]:
                open_by_key(page, panel)
                page.wait_for_selector(f"#{panel} :is(.words small, .looks line)", state="attached")
            if "attention" in model["instruments"]:
                page.select_option("#attention select[name=layer]", index=1)
                page.wait_for_load_state("networkidle")
                page.hover("#attention .looks button >> nth=4")
            if model["method"] == "embed":
                lines = (DOCS.parent / "README.md").read_text(encoding="utf-8").splitlines()
                use_search(page, "README.md", lines, "How do I train on many texts?")
            page.screenshot(path=folder / f"{model['name']}_{theme}.png", full_page=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--address", help="of a server that runs")
    parser.add_argument("--screenshots", type=pathlib.Path)
    flags = parser.parse_args()
    wrong = []
    with contextlib.ExitStack() as stack:
        address = flags.address
        if address is None:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            address = stack.enter_context(serving(tiny_models(folder)))
        browser = launched(stack.enter_context(sync_playwright()))
        page = browser.new_page(locale="en")
        page.on("pageerror", lambda error: wrong.append(f"a script failed: {error}"))
        page.on("console", lambda told: wrong.append(told.text) if told.type == "error" else None)
        page.on(
            "request",
            lambda sent: (
                None if sent.url.startswith((address, "data:")) else wrong.append(sent.url)
            ),
        )
        if flags.screenshots:
            screenshots(page, address, flags.screenshots)
        else:
            wrong += using(page, address)
        browser.close()
    print("\n".join(wrong) or "Nothing wrong.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
