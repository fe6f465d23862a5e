"""What the forerunners of BERT reach, and how each grows with the text it learns from.

    KERAS_BACKEND=torch python benchmarks/way_to_bert.py --words 20000,80000,320000 \
        --similarity_dir word_similarity dracula.txt.gz dorian_gray.txt.gz sherlock_holmes.txt.gz

Each chapter of docs/en/way_to_bert is run as far as its model is trained, with another text in
place of its own: the last so many words of the books, read in the order in which they are given. As
in the chapters the last tenth is for measuring, and a word that the rest has fewer than three times
(of vectors: the text, five times) is unknown. So the perplexities of one text can be held against
each other; those of a longer text count more words as known ones, which are harder to guess. The
tables have

- perplexity on the last tenth, of BERT of the masked words;
- analogies answered right, of those whose words the vectors have;
- Spearman's correlation with people's scores of pairs of words, for each file of
  `--similarity_dir`: a line each, two words and a score; of fewer than 40 pairs none.

Each chapter has a process of its own. `--output` gets a JSON line for each chapter and text; what
it holds already is not run again. The tables are printed in Markdown.
"""

import gzip
import json
import multiprocessing
import re
import tempfile
import time
from pathlib import Path

from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_list("words", ["20000", "80000", "320000"], "Words of the texts.")
flags.DEFINE_string("similarity_dir", None, "Folder of pairs of words with people's scores.")
flags.DEFINE_string("output", "output/way_to_bert.jsonl", "File of results, a JSON line each.")
CHAPTERS = Path(__file__).parents[1] / "docs" / "en" / "way_to_bert"
# Where in each chapter what is measured here is trained.
LAST = {
    "ngrams": "figure, axis =",
    "nnlm": "# ## Where the time goes",
    "word2vec": "# That is as good as nothing",
    "glove": "# The same text, the same few words",
    "elmo": "# ## Feature-based",
    "gpt": "# ## Without the mask",
    "bert": "# The perplexity is not that",
}
FEWEST = 1 << 12  # Words of a text.
FEWEST_PAIRS = 40


def main(books):
    books = [Path(book) for book in books[1:]]
    if not books:
        raise app.UsageError("Name the books: files of text, or of .txt.gz.")
    output = Path(FLAGS.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    lines = output.read_text(encoding="utf-8").splitlines() if output.exists() else []
    found = list(map(json.loads, lines))
    with tempfile.TemporaryDirectory() as folder:
        for count in map(int, FLAGS.words):
            text = write_text(books, count, Path(folder, "text.txt.gz"))
            for chapter in LAST:
                of = {"chapter": chapter, "words": count, "books": [book.name for book in books]}
                if any(row.items() >= of.items() for row in found):
                    continue
                found.append(of | measured(chapter, text))
                print(json.dumps(found[-1]), flush=True)
                lines = "".join(f"{json.dumps(row)}\n" for row in found)
                output.write_text(lines, encoding="utf-8")
    print(table(found))


def write_text(books, count, path):
    """Writes the last words of the books, with all that stands between them."""
    read = (gzip.decompress(b.read_bytes()) if b.suffix == ".gz" else b.read_bytes() for b in books)
    text = "\n".join(part.decode("utf-8") for part in read).replace("\u2019", "'")
    starts = [match.start() for match in re.finditer(r"[A-Za-z]+(?:'[a-z]+)?", text)]
    if not FEWEST <= count <= len(starts):
        raise app.UsageError(f"The books have {len(starts):,} words. Asked for: {count:,}.")
    path.write_bytes(gzip.compress(text[starts[-count] :].encode("utf-8")))
    return path


def measured(chapter, text):
    """Returns what a chapter reaches on a text: a dict. It runs in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(run, (chapter, str(text), FLAGS.similarity_dir))


def run(chapter, text, similarity_dir):
    code = (CHAPTERS / f"{chapter}.py").read_text(encoding="utf-8")
    code = code[: code.index(LAST[chapter])].replace("docs/data/sherlock_holmes.txt.gz", text)
    code = code.replace('"docs/data/', f'"{CHAPTERS.parents[1]}/data/')
    printed = []
    names = {"__name__": chapter, "print": lambda *said: printed.append(" ".join(map(str, said)))}
    started = time.perf_counter()
    exec(compile(code, chapter, "exec"), names)
    seconds = time.perf_counter() - started
    lines = "\n".join(printed)
    size = names.get("size") or len(names["vocabulary"])
    result = {"seconds": round(seconds), "vocabulary": size}
    if said := re.findall(r"perplexity.*? (\d[\d.]*)", lines):
        result["perplexity"] = float(said[-1])
    rights = re.findall(r"(\d+) (?:right )?of (?:the )?(\d+)", lines)
    tables = names.get("vectors") or ({"GloVe": names["table"]} if chapter == "glove" else {})
    for name, (right, asked) in zip(tables, rights[-len(tables) :], strict=False):
        result[name] = {"right": int(right), "asked": int(asked)}
        result[name] |= similarities(tables[name], names["number"], similarity_dir)
    return result


def similarities(vectors, number, folder):
    """Returns by the name of each file the correlation, and how many of its pairs have vectors."""
    import numpy as np
    from scipy.stats import spearmanr

    vectors, found = np.asarray(vectors), {}
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for path in sorted(Path(folder).glob("EN-*.txt")) if folder else ():
        rows = [line.split() for line in path.read_text(encoding="utf-8").lower().splitlines()]
        rows = [(a, b, float(score)) for a, b, score in rows if a in number and b in number]
        ours = [vectors[number[a]] @ vectors[number[b]] for a, b, _ in rows]
        rho = spearmanr(ours, [row[2] for row in rows])[0] if len(rows) > 2 else float("nan")
        found[path.stem.removeprefix("EN-")] = [round(float(rho), 3), len(rows)]
    return found


def table(found):
    """Returns two tables in Markdown, of perplexities and of vectors."""
    sizes = sorted({row["words"] for row in found})
    lines = ["| perplexity | " + " | ".join(f"{size:,} words" for size in sizes) + " |"]
    lines.append("|---" * (len(sizes) + 1) + "|")
    at = {(row["chapter"], row["words"]): row for row in found}
    for chapter in LAST:
        cells = [at.get((chapter, size), {}).get("perplexity") for size in sizes]
        if any(cells):
            told = " | ".join(f"{x:.0f}" if x else "" for x in cells)
            lines.append(f"| {chapter} | {told} |")
    known = " | ".join(f"{at.get(('ngrams', x), {}).get('vocabulary', 0):,}" for x in sizes)
    lines.append(f"| known words | {known} |")
    rows = [(name, row["words"], row[name]) for row in found for name in row if "," in name]
    rows += [("GloVe", row["words"], row["GloVe"]) for row in found if "GloVe" in row]
    names = dict.fromkeys(key for _, _, of in rows for key in of if key not in ("right", "asked"))
    sets = [name for name in names if any(enough(of, name) for _, _, of in rows)]
    lines += ["", "| vectors | words | analogies | " + " | ".join(sets) + " |"]
    lines.append("|---" * (3 + len(sets)) + "|")
    for name, words, of in sorted(rows, key=lambda row: (row[0], row[1])):
        cells = [f"{of[s][0]:.2f} of {of[s][1]}" if enough(of, s) else "" for s in sets]
        cells = [name, f"{words:,}", f"{of['right']} of {of['asked']}", *cells]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def enough(of, name):
    """Whether so many pairs of a set have vectors that their correlation says something."""
    return of.get(name, [0, 0])[1] >= FEWEST_PAIRS


if __name__ == "__main__":
    app.run(main)
