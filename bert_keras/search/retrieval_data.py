"""Data for measuring a search: a corpus, queries, and which documents answer them."""

import itertools
import pathlib
import re
from collections.abc import Mapping
from typing import NamedTuple

from bert_keras.checks import check_not_empty
from bert_keras.datasets.files import read_json_lines, read_lines
from bert_keras.types import Path


class RetrievalData(NamedTuple):
    """A corpus, queries, and judgements.

    Fields:
        corpus: dict, id -> text.
        queries: dict, id -> text; each has judgements.
        relevance: dict, id of a query -> dict, id of a document -> int; above 0 is relevant.
    """

    corpus: Mapping[str, str]
    queries: Mapping[str, str]
    relevance: Mapping[str, Mapping[str, int]]


def read_beir(folder: Path, split: str = "test") -> RetrievalData:
    """Reads a folder of BEIR: `corpus.jsonl`, `queries.jsonl` and `qrels/{split}.tsv`.

    A document's title comes before its text. Queries without a judgement in the split are left out.

    Args:
        folder: str or path.
        split: str, the name of a file in `qrels`.

    Returns:
        `RetrievalData`.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is empty or damaged, an id occurs twice, or a judgement is about an
            unknown query. The message names the file and the place.

    Reference:
        [Thakur et al., 2021](https://arxiv.org/abs/2104.08663).
    """
    folder = pathlib.Path(folder)
    corpus = _read_texts(folder / "corpus.jsonl")
    queries = _read_texts(folder / "queries.jsonl")
    path, relevance = folder / "qrels" / f"{split}.tsv", {}
    lines = enumerate(read_lines(path), start=1)
    for number, line in itertools.islice(filter(lambda item: item[1].strip(), lines), 1, None):
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) != 3 or fields[0] not in queries or not re.fullmatch("-?[0-9]+", fields[2]):
            raise ValueError(
                f"{path}, line {number}: a judgement must be the id of a query in queries.jsonl, "
                f"the id of a document and an int. Received: {fields!r:.200}. The first line is a "
                "header."
            )
        relevance.setdefault(fields[0], {})[fields[1]] = int(fields[2])
    check_not_empty(relevance, f"{path} must have judgements after its header")
    return RetrievalData(corpus, {id: queries[id] for id in relevance}, relevance)


def _read_texts(path):
    """Returns a dict from the ids of a file to the titles and texts."""
    texts = {}
    for line, record in read_json_lines(path):
        id, parts = record.get("_id"), (record.get("title") or "", record.get("text"))
        if not isinstance(id, str) or not all(isinstance(part, str) for part in parts):
            raise ValueError(
                f"{path}, line {line}: `_id`, `text` and, where there is one, `title` must be str. "
                f"Received: {record!r:.200}."
            )
        if id in texts:
            raise ValueError(f"{path}, line {line}: an id must occur once. Received: {id!r}.")
        texts[id] = " ".join(parts).strip()
    return check_not_empty(texts, f"{path} must have a JSON object on each line")
