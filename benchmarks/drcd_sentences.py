"""Cuts DRCD's paragraphs to the sentence that holds the answer: `drcd_sentences.py DRCD OUTPUT`.

On whole paragraphs a small model reaches F1 9 after 1,000 questions (examples/README.md), too
little to compare anything. The first question of each paragraph is kept: 1,000 of the dev file to
train on, and 500 of the test file.
"""

import json
import pathlib
import re
import sys


def sentences(paragraphs):
    """Yields a paragraph of one sentence for each whose first answer lies within one."""
    for paragraph in paragraphs:
        question = paragraph["qas"][0]
        text, start = question["answers"][0]["text"], question["answers"][0]["answer_start"]
        for sentence in re.finditer(r"[^。！？]+[。！？]?", paragraph["context"]):
            if sentence.start() <= start and start + len(text) <= sentence.end():
                answers = [{"text": text, "answer_start": start - sentence.start()}]
                yield {"context": sentence[0], "qas": [{**question, "answers": answers}]}


def main(folder, output):
    for name, most in (("dev", 1000), ("test", 500)):
        articles = json.loads((folder / f"DRCD_{name}.json").read_text(encoding="utf-8"))["data"]
        paragraphs = (paragraph for article in articles for paragraph in article["paragraphs"])
        data = {"data": [{"title": name, "paragraphs": [*sentences(paragraphs)][:most]}]}
        text = json.dumps(data, ensure_ascii=False)
        (output / f"drcd_{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
