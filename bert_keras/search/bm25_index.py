"""Search by words: BM25, computed by bm25s."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from bert_keras.checks import as_texts, check_int, check_not_empty, refuse_first, require
from bert_keras.engine.atomic_files import of_one_state, reading
from bert_keras.search.records import Records, check_kind, read_records, save_folder
from bert_keras.types import Path, Texts

KIND = "bert_keras.search.BM25Index"
# A Chinese character or Japanese kana is a word of its own.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")


def split_into_words(text: str) -> list[str]:
    """Returns the words of a text in lower case; each Chinese character is a word.

    Example:
        >>> split_into_words("The Nile, 尼罗河")
        ['the', 'nile', '尼', '罗', '河']
    """
    return _WORD.findall(text.lower())


class BM25Index:
    """Texts with their ids and payloads, searched by the words they share with a query.

    A text scores high for words of the query that it has often and that few other texts have:
    `sum over words of idf * tf / (tf + k1 * (1 - b + b * length / mean length))`. BM25 needs no
    training, and adds to vectors what they miss, such as names and numbers; see
    `reciprocal_rank_fusion`.

    Args:
        tokenize: function from a str to a list of str; `None` for `split_into_words`.
        k1: float; the larger it is, the more repeated words count.
        b: float from 0 to 1; the larger it is, the lower long texts score.

    Raises:
        ImportError: bm25s is not installed.

    Example:
    ```python
    index = bert_keras.search.BM25Index()
    index.add(texts, payloads=texts)
    index.search("Who eats?", top_k=3)
    ```

    Reference:
        [Robertson and Zaragoza, 2009](https://doi.org/10.1561/1500000019),
        [bm25s](https://arxiv.org/abs/2407.03618).
    """

    def __init__(
        self, tokenize: Callable[[str], list[str]] | None = None, k1: float = 0.9, b: float = 0.4
    ) -> None:
        self._bm25s = require("bm25s", "search by words", "search")
        self.tokenize, self.k1, self.b = tokenize or split_into_words, k1, b
        self._records, self._texts, self._scorer = Records(), [], None

    def __len__(self) -> int:
        return len(self._records)

    def add(
        self,
        texts: Texts,
        ids: Iterable[str | int] | None = None,
        payloads: Sequence[Any] | None = None,
    ) -> None:
        """Adds texts. The next search computes the statistics of all words again.

        Args:
            texts: a column of str.
            ids, payloads: see `Index.add`.

        Raises:
            TypeError: something is not text.
            ValueError: there are no texts, an id exists already, or a payload does not fit into
                JSON. The index is as it was.
        """
        texts = as_texts(texts)
        ids, payloads = self._records.check(len(texts), ids, payloads)
        self._records.add(ids, payloads)
        self._texts += texts
        self._scorer = None

    def search(self, queries: str | Texts, top_k: int = 10) -> Any:
        """Returns the best texts for each query; texts without any of its words are left out.

        Args:
            queries: a str, or a column of str.
            top_k: int, hits for each query at most.

        Returns:
            For each query a list of `{"id", "score", "payload"}`, best first, see `Index.search`;
            for a str that list alone.

        Raises:
            TypeError: something is not text.
            ValueError: the index is empty, there are no queries, a query is empty, or `top_k` is
                below 1.
        """
        if isinstance(queries, str):
            return self.search([queries], top_k)[0]
        check_int("top_k", top_k)
        check_not_empty(self._records, "An index must have texts to search", "Call `add`.")
        queries = check_not_empty(as_texts(queries, "queries"), "A search needs at least one query")
        refuse_first([not query.strip() for query in queries], queries, "A query must have words")
        words = [self.tokenize(query) or [""] for query in queries]
        k = min(top_k, len(self))
        # By default bm25s sorts with JAX where that is installed, which would take a device.
        options = {"show_progress": False, "backend_selection": "numpy"}
        results = self._indexed().retrieve(words, k=k, **options)
        return self._records.hits(results.scores, results.documents, results.scores > 0)

    def _indexed(self):
        if self._scorer is None:
            scorer = self._bm25s.BM25(k1=self.k1, b=self.b)
            scorer.index([self.tokenize(text) for text in self._texts], show_progress=False)
            self._scorer = scorer
        return self._scorer

    def save(self, folder: Path) -> None:
        """Writes the texts with their ids and payloads into a folder, see `Index.save`."""
        config = {"kind": KIND, "k1": self.k1, "b": self.b}
        save_folder(folder, config, self._records, texts=self._texts)

    @classmethod
    @of_one_state
    def load(cls, folder: Path, tokenize: Callable[[str], list[str]] | None = None) -> Self:
        """Returns an index that `save` wrote; a `tokenize` of your own is passed again."""
        config = check_kind(folder, KIND)
        with reading(folder):
            index = cls(tokenize, config["k1"], config["b"])
            index._records, texts = read_records(folder, config)
            index._texts = as_texts(texts)
        return index
