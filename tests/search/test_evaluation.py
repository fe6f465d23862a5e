"""BEIR's folders, and the scores of a search on them."""

import numpy as np
import pytest
from checks import refused

from bert_keras.metrics import mean_average_precision, mrr, ndcg, recall
from bert_keras.search import RetrievalData, evaluate_retrieval, read_beir

pytestmark = pytest.mark.once
CORPUS = [{"_id": "d1", "title": "Nile", "text": "A river."}, {"_id": "d2", "text": "A lake."}]
QUERIES = [{"_id": "q1", "text": "Which river?"}, {"_id": "q2", "text": "of another split"}]
HEADER = "query-id\tcorpus-id\tscore\n"


def write_folder(write, corpus=CORPUS, queries=QUERIES, judgements="q1\td1\t2\nq1\td2\t0\n"):
    write("corpus.jsonl", corpus)
    write("queries.jsonl", queries)
    return write("qrels/test.tsv", HEADER + judgements).parent.parent


def test_a_folder_of_beir_is_read(write):
    data = read_beir(write_folder(write))
    assert data.corpus == {"d1": "Nile A river.", "d2": "A lake."}
    assert data.queries == {"q1": "Which river?"}
    assert data.relevance == {"q1": {"d1": 2, "d2": 0}}
    with pytest.raises(FileNotFoundError):
        read_beir(write_folder(write), "dev")


@refused(
    ({"corpus": []}, "corpus.jsonl must have"),
    ({"corpus": CORPUS[:1] * 2}, "line 2: an id must occur once"),
    ({"queries": [{"_id": 1, "text": "a"}]}, "queries.jsonl, line 1: `_id`"),
    ({"judgements": ""}, "must have judgements"),
    ({"judgements": "q3\td1\t1\n"}, "line 2: a judgement must be"),
    ({"judgements": "q1\td1\tyes\n"}, "line 2: a judgement must be"),
    ({"judgements": "q1\td1\t--1\n"}, "line 2: a judgement must be"),
)
def test_damaged_folders_name_the_place(write, damage):
    read_beir(write_folder(write, **damage))


def test_a_search_scores_as_its_whole_matrix_does():
    rng = np.random.default_rng(0)
    scores, relevance = rng.random((6, 30)), rng.integers(0, 3, (6, 30))
    judgements = {f"q{n}": {f"d{m}": int(r) for m, r in enumerate(relevance[n])} for n in range(6)}
    queries = {name: name[1:] for name in judgements}
    data = RetrievalData(dict.fromkeys(judgements["q0"], ""), queries, judgements)

    def search(queries, top_k):
        best = np.argsort(-scores[[int(query) for query in queries]], axis=1)[:, :top_k]
        return [
            [{"id": f"d{n}", "score": scores[row, n]} for n in hits]
            for row, hits in enumerate(best)
        ]

    found = evaluate_retrieval(search, data, (3, 10))
    metrics = {"ndcg": ndcg, "mrr": mrr, "map": mean_average_precision, "recall": recall}
    expected = {f"{n}@{k}": f(scores, relevance, k) for n, f in metrics.items() for k in (3, 10)}
    assert found == pytest.approx(expected)


def test_a_query_of_the_corpus_is_no_hit_of_its_own():
    """As in BEIR: the other documents move up."""
    corpus = {f"d{n}": str(n) for n in range(4)}
    data = RetrievalData(
        corpus, {"d0": "0", "q": "1"}, {"d0": {"d0": 0, "d2": 1}, "q": {"d0": 1, "d1": -1}}
    )
    ranking = [{"id": f"d{n}", "score": -n} for n in range(4)]
    for ignores, scores in ((True, (0.75, 1.0)), (False, (0.5, 0.5))):
        found = evaluate_retrieval(lambda queries, k: [ranking[:k]] * 2, data, 2, ignores)
        assert (found["mrr@2"], found["recall@2"]) == scores


def test_judged_documents_that_are_missing_count_as_not_found():
    data = RetrievalData({"d": "a"}, {"q": "a"}, {"q": {"d": 1, "e": 1}})
    hits = [[{"id": "d", "score": 1.0}]]
    with pytest.warns(UserWarning, match="1 of 2 that are not, such as 'e'"):
        assert evaluate_retrieval(lambda queries, top_k: hits, data)["recall@10"] == 0.5


NAN = [[{"id": "d", "score": np.nan}]]


@refused(
    (({}, {"q": "a"}, {}), [[]], "needs a corpus"),
    (({"d": "a"}, {}, {}), [], "needs queries"),
    (({"d": "a"}, {"q": "a"}, {"q": {"d": 1}}), [], "for each query"),
    (({"d": "a"}, {"q": "a"}, {"q": {"d": 1}}), NAN, "must be finite"),
    (({"d": "a"}, {"q": "a"}, {}), [[]], "Each query must have judgements"),
    (({"d": "a"}, {1: "a"}, {"1": {"d": 1}}), [[]], "Each query must have judgements"),
    (({1: "a"}, {"q": "a"}, {"q": {"1": 1}}), [[]], "Judged documents must be in the corpus"),
    (({"1": "a"}, {"q": "a"}, {"q": {"1": 1}}), [[{"id": 1, "score": 1.0}]], "id of a hit"),
    (({"q": "a"}, {"q": "a"}, {"q": {"q": 1}}), [[]], "ignore_identical_ids=False"),
    (({"1": "a", "2": "b"}, {1: "a"}, {1: {"2": 1}}), [[]], "share ids.*1 is not '1'"),
)
def test_evaluation_refuses_what_it_cannot_score(data, hits):
    evaluate_retrieval(lambda queries, top_k: hits, RetrievalData(*data))
