"""Search by words: BM25, computed by bm25s."""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tokenizers

from bert_keras.checks import as_texts, check_not_empty, raise_at_first, require
from bert_keras.search.exact_vectors import best_of
from bert_keras.search.saved_index import SavedIndex, array_of, value_of
from bert_keras.tokenizers.text_encoder import replace_surrogates
from bert_keras.types import Texts

# Each of these is a word.
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_LETTERS = f"(?:[\\p{{L}}\\p{{N}}_&&[^{_IDEOGRAPHS}]]|\\p{{M}})+"
# A middle dot, and Hebrew's geresh and gershayim, join letters.
_WORD = f"[{_IDEOGRAPHS}]\\p{{M}}*|{_LETTERS}(?:[\u00b7\u05f3\u05f4]{_LETTERS})*"
_WORDS = tokenizers.pre_tokenizers.Split(tokenizers.Regex(_WORD), "removed", invert=True)
# Characters without a glyph: they change no word, except a space of no width, which ends one. The
# last are variation selectors, as after a heart.
_INVISIBLE = "[\\p{Cf}\u034f\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef&&[^\u200b]]"
_VISIBLE = tokenizers.normalizers.Replace(tokenizers.Regex(_INVISIBLE), "")


def split_into_words(text: str) -> list[str]:
    """Returns the words of a text, as a reader sees them, in a form in which equal words are equal.

    Accents and vowel signs belong to their word, whether they are characters of their own or not.
    Case and width are folded: `STRASSE` is `straße`, and full-width letters are plain ones. Each
    Chinese character and Japanese kana is a word. A text without spaces, such as Thai, needs a
    `tokenize` of its language.

    Example:
        >>> split_into_words("The Nile, 尼罗河")
        ['the', 'nile', '尼', '罗', '河']
    """
    text = unicodedata.normalize("NFKC", replace_surrogates(text))
    # The small form of a Turkish I with its dot.
    text = _VISIBLE.normalize_str(text).casefold().replace("i\u0307", "i")
    words = _WORDS.pre_tokenize_str(unicodedata.normalize("NFKC", text))
    return [word for word, _ in words]


class BM25Index(SavedIndex):
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

    saved = ("k1", "b")

    def __init__(
        self, tokenize: Callable[[str], list[str]] | None = None, k1: float = 0.9, b: float = 0.4
    ) -> None:
        super().__init__()
        self._bm25s = require("bm25s", "search by words", "search")
        self.tokenize, self.k1, self.b = tokenize or split_into_words, k1, b
        self._texts, self._scorer = [], None

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
        ids, payloads = self._check_rows(len(texts), ids, payloads)
        self._add_rows(ids, payloads)
        self._texts += texts
        self._scorer = None

    def search(self, queries: str | Texts, top_k: int = 10) -> Any:
        """Returns the best texts for each query; texts without any of its words are left out.

        Args:
            queries: a str, or a column of str.
            top_k: int, hits for each query at most, see `Index.search`.

        Returns:
            For each query a list of `{"id", "score", "payload"}`, best first, see `Index.search`;
            for a str that list alone.

        Raises:
            TypeError: something is not text.
            ValueError: the index is empty, there are no queries, a query has no words, or `top_k`
                is below 1.
        """
        if isinstance(queries, str):
            return self.search([queries], top_k)[0]
        queries = check_not_empty(as_texts(queries, "queries"), "A search needs at least one query")
        words = [self.tokenize(query) for query in queries]
        raise_at_first([not found for found in words], queries, "A query must have words")
        # By default bm25s sorts with JAX where that is installed, which would take a device.
        options = {"show_progress": False, "backend_selection": "numpy"}

        def search(k):
            found = self._indexed().retrieve(words, k=k, **options)
            return found.scores, np.where(found.scores > 0, found.documents, -1)

        return self._hits(*best_of(search, len(self), top_k))

    def _indexed(self):
        if self._scorer is None:
            words = [self.tokenize(text) for text in self._texts]
            scorer = self._bm25s.BM25(k1=self.k1, b=self.b)
            # bm25s needs a word in the corpus: this one is in no query.
            scorer.index(words if any(words) else [[""]] * len(words), show_progress=False)
            self._scorer = scorer
        return self._scorer

    def _arrays(self):
        return {"texts": array_of([self.tokenize is not split_into_words, self._texts])}

    def _set_arrays(self, arrays):
        has_own_tokenize, self._texts = value_of(arrays["texts"])
        if has_own_tokenize and self.tokenize is split_into_words:
            raise ValueError(
                "An index is loaded with the `tokenize` that it was made with, or other texts "
                "would be found. Received: None. Pass it to `load`."
            )
