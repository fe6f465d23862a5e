"""Indexes return the nearest vectors with their ids and payloads, on every engine."""

import sys
import tracemalloc
import unicodedata

import numpy as np
import pytest
import scipy.sparse
from checks import cases, refusals, refused
from scipy.spatial import distance

from bert_keras.answers.similarity import maxsim_matrix
from bert_keras.search import BM25Index, Index, QdrantIndex, SparseIndex, reciprocal_rank_fusion
from bert_keras.search.bm25_index import split_into_words
from bert_keras.search.saved_index import array_of

pytestmark = pytest.mark.once
# The first vectors of an index show the range of all, which int8 codes need.
VECTORS = np.random.default_rng(0).uniform(-1, 1, (300, 70)).astype("float32")
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)
QUERIES, IDS = VECTORS[:20] + 0.01, [f"text {n}" for n in range(300)]
# How to make an index, and the least share of the ten nearest that it finds.
KINDS = {
    "numpy": (Index, 1.0),
    "faiss": (lambda **options: Index(factory="Flat", **options), 1.0),
    "int8": (lambda **options: Index("int8", **options), 0.95),
    "binary": (lambda **options: Index("binary", **options), 0.9),
    "HNSW32": (lambda **options: Index(factory="HNSW32", **options), 0.95),
    "IVF4": (lambda **options: Index(factory="IVF4,Flat", **options), 0.3),
    "qdrant": (QdrantIndex, 1.0),
}


def ids_of(found):
    return [[hit["id"] for hit in hits] for hits in found]


@pytest.fixture
def small_training(monkeypatch):
    """Lets faiss learn its codes from fewer vectors than usual."""
    monkeypatch.setattr("bert_keras.search.index._TRAINING", 200)


# How to make an index of each kind, and its vectors of rows of numbers.
FORMS = {kind: (make, np.asarray) for kind, (make, _) in KINDS.items()} | {
    "sparse": (SparseIndex, scipy.sparse.csr_array),
    "qdrant sparse": (QdrantIndex, scipy.sparse.csr_array),
    "qdrant multi": (QdrantIndex, lambda rows: list(rows.reshape(len(rows), 2, 35))),
    "BM25": (BM25Index, lambda rows: [" ".join(map(str, np.flatnonzero(x > 0.1))) for x in rows]),
}


@pytest.mark.parametrize("kind", FORMS)
def test_fewer_hits_are_the_first_of_more(kind, small_training):
    """Each vector is there twice, so that scores are equal in the last places too.

    Not in Qdrant, where rounding decides between them.
    """
    make, form = FORMS[kind]
    index = make()
    index.add(form(VECTORS if "qdrant" in kind else np.concatenate([VECTORS, VECTORS])))
    queries = form(QUERIES[:5])
    most = ids_of(index.search(queries, 31))
    for top_k in (1, 2, 10, 30):
        assert ids_of(index.search(queries, top_k)) == [ids[:top_k] for ids in most]


# Two vectors before and two behind many equal ones.
TIES = np.float32([[1, 2], [1, 0], *[[0.6, 0.8]] * 100, [0.5, 1], [3, 4.0]])


@pytest.mark.parametrize("kind", ["numpy", "faiss", "int8", "binary", "BM25", "sparse"])
def test_equal_scores_keep_their_order_whatever_top_k_is(kind, small_training, monkeypatch):
    if kind == "faiss":
        monkeypatch.setattr("bert_keras.search.index._TRAINING", 1)
    if kind == "BM25":
        index, query = BM25Index(), ["a"]
        index.add(["b", *["a b"] * 102, "a", "b"])
    elif kind == "sparse":
        index, query = SparseIndex(), scipy.sparse.csr_array(np.float32([[0.6, 0.8]]))
        index.add(scipy.sparse.csr_array(TIES))
    else:
        index, query = KINDS[kind][0](similarity="dot"), np.float32([[0.6, 0.8]])
        index.add(TIES[:50])
        index.add(TIES[50:], payloads=["a", *[None] * (len(TIES) - 51)])
    [all_hits] = index.search(query, 200)
    keys = [(-hit["score"], hit["id"]) for hit in all_hits]
    assert keys == sorted(keys) and len(keys) > 100
    for top_k in (1, 2, 3, 31, 32, 60, 102):
        assert index.search(query, top_k) == [all_hits[:top_k]]
    if kind == "faiss":
        [hit] = [hit for hit in all_hits if "payload" in hit]
        assert hit == {"id": 50, "score": 1.0, "payload": "a"}


SIMILARITIES = {
    "cosine": lambda x, y: 1 - distance.cdist(x, y, "cosine"),
    "dot": lambda x, y: x @ y.T,
    "euclidean": lambda x, y: -distance.cdist(x, y),
    "manhattan": lambda x, y: -distance.cdist(x, y, "cityblock"),
}


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_index_ranks_by_its_similarity(kind, similarity, tmp_path, small_training):
    """The vectors differ in length, so that each similarity has another order."""
    make, least = KINDS[kind]
    if similarity == "manhattan" and kind not in ("numpy", "qdrant"):
        with pytest.raises(ValueError, match="searches by all"):
            make(similarity=similarity)
        return
    # The longest first: codes cut what is beyond the range of the first vectors.
    lengths = np.sort(np.random.default_rng(4).uniform(0.5, 2, (300, 1)), axis=0)[::-1]
    vectors = VECTORS * lengths.astype("float32")
    index = make(similarity=similarity)
    index.add(vectors[:200], IDS[:200], [{"page": n} for n in range(200)])
    index.add(vectors[200:], IDS[200:], [{"page": n} for n in range(200, 300)])
    exact = SIMILARITIES[similarity](QUERIES.astype("float64"), vectors.astype("float64"))
    found, shared = index.search(QUERIES, 10), []
    for row, hits in enumerate(found):
        pages = [hit["payload"]["page"] for hit in hits]
        assert [hit["id"] for hit in hits] == [f"text {page}" for page in pages]
        scores = [hit["score"] for hit in hits]
        assert scores == sorted(scores, reverse=True)
        # Codes are wrong by half of 255 steps in 0.9: 70 of them by 0.012 at most, and by more if a
        # later vector has a value beyond the range of the first ones.
        tolerance = 1e-5 if least == 1.0 else 0.08
        np.testing.assert_allclose(scores, exact[row, pages], atol=tolerance)
        shared.append(len({*pages} & {*np.argsort(-exact[row])[:10]}))
    assert np.mean(shared) / 10 >= least - 0.1 * (least < 1)
    assert len(index.search(QUERIES[:1], 1000)[0]) <= len(index) == 300
    if hasattr(index, "save"):
        index.save(tmp_path / "index")
        index = Index.load(tmp_path / "index")
        assert index.similarity == similarity and index.search(QUERIES, 10) == found
        index.add(vectors[:1], ["new"])
        assert len(index) == 301


@pytest.mark.parametrize("factory", ["HNSW32", "PCA64,HNSW32"])
def test_approximate_search_finds_the_nearest_of_many(factory, tmp_path):
    """Random vectors are hard: with faiss's own settings, 0.75 are found."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(6000, 64)).astype("float32")
    queries = rng.normal(size=(50, 64)).astype("float32")
    index, exact = Index(factory=factory, similarity="dot"), Index(similarity="dot")
    for each in (index, exact):
        each.add(vectors)
    index.save(tmp_path / "index")
    wanted = ids_of(exact.search(queries))
    for each in (index, Index.load(tmp_path / "index")):
        found = ids_of(each.search(queries))
        shared = [len({*a} & {*b}) / 10 for a, b in zip(found, wanted, strict=True)]
        assert np.mean(shared) >= 0.95


@pytest.mark.parametrize("precision", ["int8", "binary"])
def test_codes_are_learned_from_many_vectors(precision, small_training):
    """From one vector, or from a column that is constant so far, there is no range to learn."""
    index = Index(precision)
    index.add(VECTORS[:1])
    for start in range(1, 300, 50):
        index.add(VECTORS[start : start + 50])
        found = ids_of(index.search(VECTORS[: start + 50], 1))
        assert found == [[n] for n in range(min(300, start + 50))]
    index = Index(precision, similarity="dot")
    index.add(VECTORS * (np.arange(70) > 0))
    ends = np.zeros((2, 70), "float32")
    ends[:, 0] = [1, -1]
    index.add(ends, ["plus", "minus"])
    scores = {hit["id"]: hit["score"] for hit in index.search(ends[0], 302)}
    assert scores["plus"] == max(scores.values()) and scores["minus"] == min(scores.values())


def test_numpy_scores_queries_some_at_a_time(monkeypatch):
    index = Index()
    index.add(VECTORS)
    expected = ids_of(index.search(QUERIES))
    monkeypatch.setattr("bert_keras.search.exact_vectors._SCORES", 7 * 300)
    assert ids_of(index.search(QUERIES)) == expected


def test_without_faiss_numpy_searches_exactly(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "faiss", None)
    index = Index()
    index.add(VECTORS)
    index.save(tmp_path / "index")
    assert Index.load(tmp_path / "index").search(QUERIES) == index.search(QUERIES)
    with pytest.raises(ImportError, match="search"):
        Index("int8")


SPARSE = scipy.sparse.random_array((300, 50), density=0.1, rng=np.random.default_rng(1))
SPARSE = SPARSE.astype("float32").tocsr()


def change(path, **changes):
    """Replaces arrays in the file of an index."""
    with np.load(path) as file:
        arrays = {**file, **changes}
    with open(path, "wb") as file:
        np.savez(file, **arrays)


@pytest.mark.parametrize("make", [SparseIndex, QdrantIndex])
def test_sparse_vectors_are_found_by_their_inner_products(make, tmp_path):
    index, queries = make(), SPARSE[[0, 7, 7]] * 2
    index.add(SPARSE[:200], IDS[:200], IDS[:200])
    index.add(SPARSE[200:], IDS[200:], IDS[200:])
    exact = (queries @ SPARSE.T).toarray()
    found = index.search(queries, top_k=12)
    for row, hits in enumerate(found):
        best = np.argsort(-exact[row], kind="stable")[:12]
        np.testing.assert_allclose([hit["score"] for hit in hits], exact[row, best], rtol=1e-5)
        assert [hit["id"] for hit in hits] == [hit["payload"] for hit in hits]
        assert {hit["id"] for hit in hits[:3]} == {IDS[n] for n in best[:3]}
    alone = scipy.sparse.csr_array(np.eye(50, dtype="float32")[[3]])
    hits = index.search(alone, top_k=300)[0]
    assert len(hits) == (SPARSE[:, [3]] != 0).sum()
    for wrong, error, message in [
        (SPARSE.toarray(), TypeError, "a sparse matrix"),
        (SPARSE[:0], ValueError, "must not be empty"),
        (SPARSE[:, :40], ValueError, r"shape \(num_vectors, 50\)"),
        (SPARSE * np.float32(np.inf), ValueError, "must be finite"),
        (SPARSE[:1], ValueError, "must occur once"),
    ]:
        with pytest.raises(error, match=message):
            index.add(wrong, ids=IDS[: wrong.shape[0]])
    assert len(index) == 300 and index.search(queries, top_k=12) == found
    if make is SparseIndex:
        index.save(tmp_path / "index")
        loaded = SparseIndex.load(tmp_path / "index")
        assert loaded.search(queries, top_k=12) == found
        loaded.add(SPARSE[:1], ["new"])
        ids = [hit["id"] for hit in loaded.search(queries[[0]], top_k=301)[0]]
        assert ids.index("new") == ids.index("text 0") + 1
        change(tmp_path / "index", indices=np.full(SPARSE.nnz, 300, "int32"))
        with pytest.raises(ValueError, match="cannot be read"):
            SparseIndex.load(tmp_path / "index")


def test_qdrant_finds_vectors_of_tokens_by_maxsim():
    rng = np.random.default_rng(2)
    documents = [rng.normal(size=(rng.integers(1, 6), 8)).astype("float32") for _ in range(40)]
    queries = [rng.normal(size=(n, 8)).astype("float32") for n in (3, 5)]
    exact = maxsim_matrix(queries, documents)
    best = np.argsort(-exact, axis=1)[:, :4]
    index = QdrantIndex()
    index.add(documents, IDS[:40])
    found = index.search(queries, top_k=4)
    assert ids_of(found) == [[IDS[n] for n in row] for row in best]
    scores = [[hit["score"] for hit in hits] for hits in found]
    np.testing.assert_allclose(scores, np.take_along_axis(exact, best, axis=1), rtol=1e-5)
    assert index.search(queries[0], top_k=4) == found[0]
    with pytest.raises(ValueError, match=r"num_vectors, 8"):
        index.add([np.ones((2, 3))])


@pytest.mark.parametrize("kind", ["dense", "sparse", "multi"])
def test_qdrant_gets_vectors_in_batches_of_bounded_memory(kind, monkeypatch):
    """As lists of Python, all vectors at once would take 11 to 18 times their memory."""
    vectors = np.random.default_rng(3).normal(size=(2400, 128)).astype("float32")
    of_kind = {
        "dense": lambda: vectors,
        "sparse": lambda: scipy.sparse.csr_array(vectors),
        "multi": lambda: list(vectors.reshape(1200, 2, 128)),
    }[kind]()
    index, sizes = QdrantIndex(), []

    def noted(name, points, wait):
        sizes.append(len(points))

    monkeypatch.setattr(index._client, "upsert", noted)
    tracemalloc.start()
    index.add(of_kind)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (sum(sizes), max(sizes)) == ((1200, 4) if kind == "multi" else (2400, 256))
    assert most < 6 * vectors.nbytes


ADDITIONS = [
    ({"vectors": np.zeros((0, 2))}, "must not be empty"),
    ({"vectors": np.ones((1, 3))}, r"shape \(num_vectors, 2\)"),
    ({"vectors": np.ones(2)}, r"shape \(num_vectors, 2\)"),
    ({"vectors": np.ones((1, 2), int)}, "must be floats"),
    ({"vectors": np.array([[1.0, np.nan]])}, "must be finite"),
    ({"vectors": np.array([[1e300, 1.0]])}, "must be finite"),
    ({"vectors": np.ones((1, 2)), "ids": [0]}, "must occur once"),
    ({"vectors": np.ones((300, 2)), "ids": [*range(1, 300), 0]}, "must occur once"),
    ({"vectors": np.ones((2, 2)), "ids": ["a", "a"]}, "must occur once"),
    ({"vectors": np.ones((1, 2)), "ids": [1.5]}, "must be a str or an int"),
    ({"vectors": np.ones((1, 2)), "ids": [1, 2]}, r"one id.* Received: 1 row, 2 ids\.$"),
    ({"vectors": ["a"]}, "Embed texts first"),
    ({"vectors": np.ones((2, 2)), "payloads": ["a"]}, "Each row needs one id"),
    ({"vectors": np.ones((1, 2)), "payloads": [{1, 2}]}, "must fit into JSON"),
    ({"vectors": np.ones((1, 2)), "payloads": [float("nan")]}, "must fit into JSON"),
]


@pytest.mark.parametrize("make", [Index, QdrantIndex])
def test_refused_vectors_leave_an_index_as_it_was(make):
    index = make()
    with pytest.raises(ValueError, match=r"must have (vectors|rows) to search"):
        index.search(np.ones(2))
    index.add(np.ones((1, 2)))
    for arguments, message in ADDITIONS:
        with pytest.raises(ValueError, match=message):
            index.add(**arguments)
    for queries, top_k, message in (
        (np.zeros((0, 2)), 1, "must not be empty"),
        (np.ones(3), 1, "shape"),
        ("Which river?", 1, "Embed texts first"),
        (np.array([np.nan, 1.0]), 1, "finite"),
        (np.ones(2), 0, "`top_k`"),
    ):
        with pytest.raises(ValueError, match=message):
            index.search(queries, top_k)
    assert [hit["id"] for hit in index.search(np.ones(2))] == [0]


RANKING = [{"id": "a", "score": 9.0, "payload": 1}, {"id": "b", "score": 8.0}]
SERVER, ALONE = "http://127.0.0.1:9", {"check_compatibility": False, "timeout": 1}
test_what_cannot_be_searched_is_refused = refusals(
    (lambda: Index(precision="int4"), "precision"),
    (lambda: Index(similarity="angle"), "similarity"),
    (lambda: QdrantIndex(SERVER, **ALONE), ConnectionError, rf"must answer at {SERVER}"),
    (lambda: BM25Index().add([]), "at least one row"),
    (lambda: BM25Index().search("a"), "must have rows to search"),
    (lambda: reciprocal_rank_fusion(), "at least one"),
    (lambda: reciprocal_rank_fusion(RANKING, k=0), "`k` must be an int from 1"),
    (lambda: reciprocal_rank_fusion(RANKING, top_k=0), "`top_k` must be an int from 1"),
    (lambda: reciprocal_rank_fusion([RANKING], [RANKING, RANKING]), "same queries"),
)


def test_faiss_refuses_what_it_cannot_train(small_training):
    for factory, count in (("Nonsense", 2), ("IVF250,Flat", 240)):
        index = Index(factory=factory)
        with pytest.raises(ValueError, match="faiss must be able to make"):
            index.add(VECTORS[:count])
        assert len(index) == 0


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    index, path = Index("binary"), tmp_path / "new" / "index"
    with pytest.raises(ValueError, match="must have rows to be saved"):
        index.save(path)
    assert not path.parent.exists()
    index.add(VECTORS)
    index.save(path)
    before = path.read_bytes()
    index.add(VECTORS)

    def full_disk(file, **arrays):
        file.write(b"PK")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bert_keras.search.saved_index.np.savez", full_disk)
    with pytest.raises(OSError, match="What was there is still there"):
        index.save(path)
    assert path.read_bytes() == before
    assert [x.name for x in path.parent.iterdir()] == [path.name]


def test_damaged_files_are_refused(tmp_path, small_training):
    index, other, path = Index("int8"), Index("int8"), tmp_path / "index"
    index.add(VECTORS)
    other.add(VECTORS[:250])
    index.save(path)
    whole = path.read_bytes()
    for changes, message in (
        ({"faiss": np.zeros(300, "uint8")}, str(path)),
        ({"rows": array_of({"id": [0], "payload": [None]})}, str(path)),
        ({"config": array_of({})}, str(path)),
        (other._arrays(), r"shape \(300, 70\)"),
    ):
        path.write_bytes(whole)
        change(path, **changes)
        with pytest.raises(ValueError, match=message):
            Index.load(path)
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    with pytest.raises(ValueError, match="cannot be read"):
        Index.load(path)
    (tmp_path / "table.csv").write_text("a")
    rule = r"opens a file that `Index\.save` wrote\. Received: '.*', "
    with pytest.raises(FileNotFoundError, match="nothing"):
        Index.load(tmp_path / "nothing")
    np.savez(tmp_path / "arrays.npz", config=[1])
    for name in ("table.csv", "arrays.npz", "."):
        with pytest.raises(ValueError, match=f"{rule}which is something else"):
            Index.load(tmp_path / name)
        with pytest.raises(ValueError, match="replaces no file but a saved index"):
            index.save(tmp_path / name)
    assert (tmp_path / "table.csv").read_text() == "a"


TEXTS = ["The Nile is in Egypt.", "Rivers of Europe: the Rhine, the Rhine.", "尼罗河在埃及。"]


def test_bm25_equals_its_formula(tmp_path):
    index = BM25Index()
    index.add(TEXTS, ["nile", "rhine", "chinese"], TEXTS)
    hits = index.search("the Rhine")
    # bm25s (Lucene): idf = ln(1 + (n - df + 0.5) / (df + 0.5)), without the constant factor k1 + 1.
    lengths = np.array([5, 7, 6])
    norms = 0.9 * (0.6 + 0.4 * lengths / lengths.mean())
    the, rhine = np.log(1 + 1.5 / 2.5), np.log(1 + 2.5 / 1.5)
    expected = {
        "rhine": the * 2 / (2 + norms[1]) + rhine * 2 / (2 + norms[1]),
        "nile": the / (1 + norms[0]),
    }
    assert [hit["id"] for hit in hits] == list(expected)
    np.testing.assert_allclose([hit["score"] for hit in hits], list(expected.values()), rtol=1e-5)
    assert index.search(["埃及", "no such word"]) == [index.search("埃及"), []]
    assert index.search("埃及")[0]["payload"] == TEXTS[2]
    index.save(path := tmp_path / "texts.index")
    assert BM25Index.load(path).search("the Rhine") == hits
    assert BM25Index.load(path, tokenize=str.split).search("Nile")[0]["id"] == "nile"
    with pytest.raises(ValueError, match=r"of the kind Index. Received: BM25Index"):
        Index.load(path)


@cases(
    "आधुनिक मानक हिन्दी",  # Vowel signs and viramas.
    "ప్రధానమంత్రిని కలుసుకున్నారు",
    "தமிழ் மொழி",
    "ภาษาไทย กำลัง",
    "ພາສາລາວ ງ່າຍ",
    "မြန်မာ ဘာသာ",
    "ភាសា ខ្មែរ",
    "བོད ཡིག",
    "مُحَمَّد رَسُول",  # Vocalized.
    "שָׁלוֹם עולם",
    "צה״ל ג׳ירפה",
    "한국어 문장",
    "col·legi naïve",
)
def test_words_are_what_stands_between_spaces(text):
    words = unicodedata.normalize("NFKC", text).split()
    assert split_into_words(text) == words
    assert split_into_words(unicodedata.normalize("NFD", text)) == words


@cases(
    ("Chambéry", "Chambe\u0301ry"),
    ("STRASSE", "straße"),
    ("ΟΔΥΣΣΕΥΣ", "Οδυσσευς"),
    ("İstanbul", "istanbul"),
    ("می\u200cخواهم", "میخواهم"),  # A joiner without a glyph.
    ("Donau\xaddampf", "Donaudampf"),
    ("\ufeffa \u2068b\u2069", "a b"),
    ("ក\u200bខ", "ក ខ"),
    ("が", "か\u3099"),
    ("豈", "豈"),  # A compatibility ideograph.
    ("\uff2b-\uff12\uff10\uff10\uff84\uff9e", "K-200\u30c9"),
    ("\ufb01nance", "finance"),
    ("don’t", "don't"),
    ("a\u034fb 葛\U000e0100", "ab 葛"),  # Marks that change no word.
    ("I \u2764\ufe0f it", "I it"),
    ("\ud800 a", "a"),  # Half a pair of surrogates.
)
def test_words_that_read_the_same_are_the_same(one, other):
    assert split_into_words(one) == split_into_words(other) != []


def test_chinese_characters_and_kana_are_words():
    assert split_into_words("尼罗河𠮷がK-200") == ["尼", "罗", "河", "𠮷", "が", "k", "200"]


def test_an_index_with_a_tokenizer_of_its_own_is_loaded_with_it(tmp_path):
    index = BM25Index(str.split)
    index.add(["K-200", "K 200"])
    index.save(path := tmp_path / "texts.index")
    with pytest.raises(ValueError, match="with the `tokenize`"):
        BM25Index.load(path)
    loaded = BM25Index.load(path, tokenize=str.split)
    assert loaded.search("K-200") == index.search("K-200")


def test_texts_without_words_are_found_by_no_query():
    index = BM25Index()
    index.add(["", "?"])
    assert index.search(["a", "b c"]) == [[], []]
    index.add(["a b"])
    assert [hit["id"] for hit in index.search("a")] == [2] and index.search("c") == []


@refused(
    ("", "must have words"),
    ([], "at least one query"),
    ([" "], "words"),
    (["a", "?!"], "must have words. Received '\\?!' at the index 1"),
)
def test_bm25_refuses_empty_queries(query):
    index = BM25Index()
    index.add(["a"])
    index.search(query)


def test_fusion_adds_reciprocal_ranks():
    first = RANKING
    second = [{"id": "c", "score": 0.2}, {"id": "b", "score": 0.1}]
    fused = reciprocal_rank_fusion(first, second, k=1)
    assert fused == [
        {"id": "b", "score": 2 / 3},
        {"id": "a", "score": 1 / 2, "payload": 1},
        {"id": "c", "score": 1 / 2},
    ]
    assert reciprocal_rank_fusion([first], [second], k=1, top_k=2) == [fused[:2]]
    assert first[0]["score"] == 9.0
