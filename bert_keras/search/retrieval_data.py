"""Data for measuring a search: a corpus, queries, and which documents answer them."""

import pathlib
import re
from collections.abc import Mapping
from typing import NamedTuple

from bert_keras.checks import check_not_empty
from bert_keras.datasets.files import check_at
from bert_keras.datasets.table import read_records
from bert_keras.types import Path

_JUDGEMENT = (
    "a judgement must be the id of a query in queries.jsonl, the id of a document and an int"
)


class RetrievalData(NamedTuple):
    """A corpus, queries, and judgements.

    Attributes:
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
    for place, record in read_records(path, "\t", quoting=False):
        fields = [*record.values()]
        fits = len(fields) == 3 and fields[0] in queries and re.fullmatch("-?[0-9]+", fields[2])
        check_at(f"{path}, {place}", fits, _JUDGEMENT, fields, "The first line is a header.")
        relevance.setdefault(fields[0], {})[fields[1]] = int(fields[2])
    check_not_empty(relevance, f"{path} must have judgements after its header")
    return RetrievalData(corpus, {id: queries[id] for id in relevance}, relevance)


def _read_texts(path):
    """Returns a dict from the ids of a file to the titles and texts."""
    texts = {}
    for place, record in read_records(path):
        id, parts = record.get("_id"), (record.get("title") or "", record.get("text"))
        fits = all(isinstance(part, str) for part in (id, *parts))
        place = f"{path}, {place}"
        check_at(place, fits, "`_id`, `text` and `title`, if there is one, must be str", record)
        check_at(place, id not in texts, "an id must occur once", id)
        texts[id] = " ".join(parts).strip()
    return check_not_empty(texts, f"{path} must have a JSON object on each line")
