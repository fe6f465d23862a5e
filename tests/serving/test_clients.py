"""Answers are those that clients expect: transformers' pipelines, text-embeddings-inference."""

import contextlib
import functools

import httpx
import keras
import numpy as np
import openai
import pytest
from checks import cases
from files import read_json, write_json
from huggingface_hub import InferenceClient
from small_tokenizers import byte_pair_tokenizer, sentence_pieces
from test_server import close, online, serving  # noqa: F401
from tiny import tiny_backbone, tiny_preprocessor

import bert_keras
from bert_keras.cli import serve

TEXT, OTHER = "a b cab", "d e"
TAGS = ["O", "B-X", "I-X", "B-Y", "E-Y"]
LINES = ["a b cab", "cabbed a dab, h", "the bad cab"]


def task_of(name, *arguments, tokenizer=None, **options):
    keras.utils.set_random_seed(1)
    # With larger weights the pooler's tanh is 1 or -1, and texts have equal scores.
    size = {} if tokenizer is None else {"vocabulary_size": tokenizer.vocabulary_size}
    backbone = tiny_backbone(initializer_range=0.5, max_sequence_length=32, **size)
    preprocessor = tiny_preprocessor()
    if tokenizer is not None:
        preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=32)
    task = getattr(bert_keras, name)(backbone, *arguments, preprocessor=preprocessor, **options)
    for weight in task.head.weights:
        if len(weight.shape) > 1:
            weight.assign(np.random.default_rng(1).normal(0, 1, weight.shape))
    return task


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of checkpoints as other libraries publish them."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "spm.model").write_bytes(sentence_pieces(LINES, vocab_size=30))
    unigrams = bert_keras.UnigramTokenizer(folder / "spm.model")
    byte_pairs = byte_pair_tokenizer(LINES, 300)
    (folder / "spm.model").unlink()
    published = {
        "classifier": task_of("TextClassifier", 3, label_names=["no", "so", "yes"]),
        "many": task_of("TextClassifier", 2, problem_type="multi_label"),
        "regression": task_of("TextClassifier", 1, problem_type="regression"),
        "cross-encoder": task_of("TextClassifier", 1, problem_type="regression"),
        "tagger": task_of("TokenClassifier", len(TAGS), label_names=TAGS),
        "byte-tagger": task_of("TokenClassifier", 5, label_names=TAGS, tokenizer=byte_pairs),
        "unigram-tagger": task_of("TokenClassifier", 5, label_names=TAGS, tokenizer=unigrams),
        "filler": task_of("MaskedLM"),
        "byte-filler": task_of("MaskedLM", tokenizer=byte_pairs),
        "embedder": task_of("TextEmbedder", prompts={"query": "h g "}),
        "reader": task_of("QuestionAnswering", stride=4),
        "ranker": task_of("Reranker"),
    }
    for name, task in published.items():
        task.export_to_huggingface(folder / name)
    config = read_json(path := folder / "cross-encoder" / "config.json")
    del config["problem_type"]
    write_json(path, config)
    return folder


@pytest.fixture(scope="module")
def tasks(folder):
    return {path.name: serve.loaded(str(path), "keras") for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def address(tasks):
    with serving(tasks) as address:
        yield address


@contextlib.contextmanager
def posting(address):
    """Yields a function that returns the answer to a body, which has the expected status."""
    with httpx.Client(base_url=address, timeout=60) as session:

        def post(path, status=200, **body):
            response = session.post(path, json=body)
            assert response.status_code == status, response.text
            return response.json()

        yield post


@pytest.fixture(scope="module")
def post(address):
    with posting(address) as post:
        yield post


@functools.cache
def pipeline(folder, kind, name):
    transformers = pytest.importorskip("transformers")
    return transformers.pipeline(kind, model=str(folder / name))


def same(found, expected):
    """Compares lists of dicts; the clients' objects have further fields that are `None`.

    transformers sums in another order, so logits differ by some roundings of float32.
    """
    for one, other in zip(found, expected, strict=True):
        for key, value in other.items():
            value = value if isinstance(value, str) else pytest.approx(value, rel=1e-5, abs=2e-5)
            assert one[key] == value


@pytest.mark.parametrize("name", ["classifier", "many", "regression", "cross-encoder"])
@pytest.mark.parametrize("function", [None, "sigmoid", "softmax", "none"])
def test_classes_equal_those_of_transformers_pipeline(folder, address, name, function):
    theirs = pipeline(folder, "text-classification", name)
    options = {} if function is None else {"function_to_apply": function}
    expected = theirs(TEXT, top_k=None, **options)
    client = InferenceClient(model=f"{address}/models/{name}")
    same(client.text_classification(TEXT, function_to_apply=function), expected)
    pair = theirs({"text": TEXT, "text_pair": OTHER}, top_k=None, **options)
    body = {"inputs": {"text": TEXT, "text_pair": OTHER}, "parameters": options}
    same(httpx.post(f"{address}/models/{name}", json=body).json()[0], pair)


@pytest.mark.parametrize("ignored", [None, [], ["X", "B-X"]])
@pytest.mark.parametrize("strategy", ["none", "simple", "first", "average", "max"])
@pytest.mark.parametrize("name", ["tagger", "byte-tagger", "unigram-tagger"])
def test_entities_equal_those_of_transformers_pipeline(folder, address, name, strategy, ignored):
    theirs = pipeline(folder, "token-classification", name)
    theirs_options = {"ignore_labels": ["O"] if ignored is None else ignored}
    theirs_options["aggregation_strategy"] = strategy
    client = InferenceClient(model=f"{address}/models/{name}")
    options = {"aggregation_strategy": strategy, "ignore_labels": ignored}
    for text in (TEXT, "cabbed a dab, h", "bad é cab"):
        found = client.token_classification(text, **options)
        expected = theirs(text, **theirs_options)
        if name != "tagger" and strategy not in ("none", "simple"):
            for entity in expected:  # Theirs joins words without the spaces between them.
                del entity["word"]
        same(found, expected)


def test_fillers_of_masks_equal_those_of_transformers_pipeline(folder, address):
    theirs = pipeline(folder, "fill-mask", "filler")
    client = InferenceClient(model=f"{address}/models/filler")
    for options in ({}, {"top_k": 2}, {"targets": ["c", "d"]}, {"targets": ["b"], "top_k": 3}):
        expected = theirs("a [MASK] b", **options)
        for answer in expected:  # Theirs is normalized, and lacks special tokens.
            del answer["sequence"]
        found = client.fill_mask("a [MASK] b", **options)
        same(found, expected)
        assert found[0].sequence == f"a {found[0].token_str} b"


def test_tokens_that_read_alike_have_their_own_ids(folder, address):
    theirs = pipeline(folder, "fill-mask", "byte-filler")
    client = InferenceClient(model=f"{address}/models/byte-filler")
    expected = theirs("a <mask> b", top_k=100)
    assert len({each["token_str"].strip() for each in expected}) < 100
    found = client.fill_mask("a <mask> b", top_k=100)
    assert [each.token for each in found] == [each["token"] for each in expected]


def test_answers_may_be_shorter_impossible_or_several(tasks, address):
    client = InferenceClient(model=f"{address}/models/reader")
    reader, texts = tasks["reader"], {"question": "a", "context": "b c d e f"}
    [best] = reader.n_best((["a"], [texts["context"]]), 3)
    found, likely = client.question_answering(**texts), reader.answer("a", texts["context"])
    assert (found.answer, found.start) == (likely["answer"], likely["start"])
    found = client.question_answering(**texts, max_answer_len=1)
    assert len(found.answer.split()) == 1
    sure = client.question_answering(**texts, handle_impossible_answer=False)
    assert (sure.answer, sure.start) == (best.spans[0].text, best.spans[0].start)
    expected = sorted([*best.spans, best.no_answer], key=lambda x: -x.probability)
    parameters = {"handle_impossible_answer": True, "top_k": 3}
    body = {"inputs": texts, "parameters": parameters}
    found = httpx.post(f"{address}/models/reader", json=body).json()
    assert [x["answer"] for x in found] == [x.text for x in expected[:3]]
    assert (reader.max_answer_length, reader.no_answer_threshold) != (1, -np.inf)


def test_predict_takes_a_text_a_pair_or_a_batch_of_both(tasks, post):
    classify, predict = tasks["classifier"].classify, lambda x, **o: post("/predict", inputs=x, **o)
    expected = {
        text: sorted(classify(text)["probabilities"].items(), key=lambda x: -x[1])
        for text in (TEXT, OTHER, (TEXT, OTHER))
    }

    def scores(found):
        return [(x["label"], pytest.approx(x["score"], abs=1e-5)) for x in found]

    assert scores(predict(TEXT)) == scores(predict([TEXT])) == expected[TEXT]
    assert scores(predict([TEXT, OTHER])) == expected[TEXT, OTHER]
    assert scores(predict([[TEXT, OTHER]])[0]) == expected[TEXT, OTHER]
    mixed = predict([[TEXT], [TEXT, OTHER], [OTHER]])
    assert [scores(x) for x in mixed] == [expected[x] for x in (TEXT, (TEXT, OTHER), OTHER)]
    logits = tasks["classifier"].predict([TEXT], verbose=0)[0]
    raw = {x["label"]: x["score"] for x in predict(TEXT, raw_scores=True)}
    close([raw[name] for name in tasks["classifier"].label_names], logits)
    for wrong in ([], ["a", "b", "c"], ["a", ["b"]], [["a", "b", "c"]], [[]]):
        assert "[[" in post("/predict", 422, inputs=wrong)["error"]


def test_texts_are_ranked_by_a_reranker_before_other_classifiers(tasks, post):
    logits = tasks["ranker"].predict(([TEXT] * 3, ["a", "b c", "d"]), verbose=0)[:, 0]
    body = {"query": TEXT, "texts": ["a", "b c", "d"]}
    for raw, expected in ((False, 1 / (1 + np.exp(-logits))), (True, logits)):
        found = post("/rerank", raw_scores=raw, **body)
        order = [x["index"] for x in found]
        assert order == np.argsort(-logits).tolist()
        close([x["score"] for x in found], expected[order])
    found = post("/rerank", return_text=True, **body)
    assert [x["text"] for x in found] == [body["texts"][n] for n in order]
    refused = post("/rerank", 422, query="a", texts="b")
    assert "texts: Input should be a valid list" in refused["error"]


def test_embed_takes_the_fields_of_text_embeddings_inference(tasks, post, address):
    embed, long = tasks["embedder"].embed, " ".join("abcdefgh" * 4)
    vectors = embed([TEXT, long])
    unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    body = {"inputs": [TEXT, long], "truncate": None, "prompt_name": None}
    close(post("/embed", **body, dimensions=None, truncation_direction="Right"), unit)
    cut = vectors[:, :3] / np.linalg.norm(vectors[:, :3], axis=-1, keepdims=True)
    close(post("/embed", **body, dimensions=3), cut)
    client = InferenceClient(model=f"{address}/models/embedder")
    options = {"truncation_direction": "right", "dimensions": 3, "normalize": False}
    close(client.feature_extraction(long, **options)[0], vectors[1, :3])
    for wrong in ({"dimensions": 0}, {"dimensions": 99}, {"truncation_direction": "left"}):
        [field] = wrong
        assert field in post("/embed", 422, inputs="a", **wrong)["error"]
    similar = {"source_sentence": TEXT, "sentences": [long]}
    close(post("/similarity", inputs=similar), [unit[1] @ unit[0]])
    queries = embed([TEXT, long], prompt="query")
    expected = queries[0] @ queries[1] / np.prod(np.linalg.norm(queries, axis=-1))
    close(post("/similarity", inputs=similar, parameters={"prompt_name": "query"}), [expected])


@pytest.mark.once
def test_sparse_and_multi_vector_embedders_are_served(tmp_path):
    markers = {"query_marker": "g", "document_marker": "h", "query_length": 5}
    published = {
        "sparse": task_of("SparseTextEmbedder", prompts={"query": "h g "}),
        "tokens": task_of("MultiVectorEmbedder", dim=4, query_expansion=5, **markers),
    }
    tasks, texts = {}, [TEXT, "a b c d e f"]
    for name, task in published.items():
        task.save_to_preset(tmp_path / name)
        tasks[name] = serve.loaded(str(tmp_path / name), "keras")
    with serving(tasks) as address, posting(address) as post:
        for prompt in (None, "query"):
            found = post("/embed_sparse", inputs=texts, prompt_name=prompt)
            rows = tasks["sparse"].embed(texts, prompt)
            for row, weights in enumerate(found):
                indices = rows[[row]].indices
                assert [x["index"] for x in weights] == sorted(indices.tolist())
                close([x["value"] for x in weights], rows[[row]].toarray()[0, sorted(indices)])
        assert post("/embed_sparse", inputs=TEXT) == post("/embed_sparse", inputs=[TEXT])
        assert post("/answers/sparse", rows=TEXT)[0][0] == [
            pytest.approx(x, abs=1e-5) if isinstance(x, float) else x
            for x in tasks["sparse"].token_weights(TEXT)[0]
        ]
        for kind in ("document", "query"):
            found = post("/embed_all", inputs=texts, prompt_name=kind)
            for one, other in zip(found, tasks["tokens"].embed(texts, kind), strict=True):
                close(one, other)
            found = post("/answers/tokens", rows=TEXT, kind=kind)
            assert post("/embed_all", inputs=TEXT, prompt_name=kind) == found
        for path, status, words, options in [
            ("/embed", 422, "the method embed", {}),
            ("/embed_all", 422, "query or document", {"prompt_name": "title"}),
            ("/embed_all", 413, "at most 4", {"prompt_name": "query", "truncate": False}),
            ("/embed_sparse", 422, "one of ['query']", {"prompt_name": "title"}),
        ]:
            assert words in post(path, status, inputs=texts, **options)["error"]
        assert len(post("/embed_all", inputs=texts, truncate=False)) == 2


def test_texts_become_tokens(tasks, post):
    [tokens] = post("/tokens/classifier", inputs="a cab")
    encoding = tasks["classifier"].tokenizer.encode("a cab")
    assert [x["id"] for x in tokens] == list(encoding.ids)
    assert [(x["start"], x["stop"]) for x in tokens] == list(encoding.offsets)
    assert [x["text"] for x in tokens if x["special"]] == ["[CLS]", "[SEP]"]


def test_the_openai_client_finds_a_model_and_needs_none(tasks, address, post):
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
    assert client.models.retrieve("ranker").id == "ranker"
    assert {x.id for x in client.models.list()} == set(tasks)
    with pytest.raises(openai.NotFoundError, match="There are: "):
        client.models.retrieve("nothing")
    found = post("/v1/embeddings", input=TEXT)
    assert found["model"] == "embedder"
    vector = tasks["embedder"].embed(TEXT)
    close(found["data"][0]["embedding"], vector / np.linalg.norm(vector))


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/x-www-form-urlencoded"}])
def test_a_body_is_json_whatever_curl_says(address, headers):
    for content, status in ((b'{"inputs": "a"}', 200), (b"a=b", 422)):
        found = httpx.post(f"{address}/embed", content=content, headers=headers)
        assert found.status_code == status


def test_a_text_stands_for_a_row_of_one_field(post):
    for rows, texts in (([["a"], ["b"]], ["a", "b"]), ([["a"]], "a")):
        expected = post("/answers/classifier", rows=rows)
        assert post("/answers/classifier", rows=texts) == expected
    for wrong in ("a", ["a", "b"]):
        error = post("/answers/reader", 422, rows=wrong)["error"]
        assert '[["question", "context"]]' in error


@cases(
    ("tagger", {"aggregation_strategy": "mean"}, "'none', 'simple', 'first'"),
    ("tagger", {"ignore_labels": "O"}, "ignore_labels: Input should be a valid list"),
    ("tagger", {"stride": 3}, "stride"),
    ("filler", {"targets": ["nowhere"]}, "tokens of the vocabulary"),
    ("filler", {"targets": []}, "targets"),
    ("classifier", {"function_to_apply": "relu"}, "'sigmoid', 'softmax' or 'none'"),
    ("classifier", {"candidate_labels": ["a"]}, "named 'entailment'"),
    ("embedder", {"encoding_format": "base64"}, "/v1/embeddings"),
)
def test_a_parameter_that_cannot_be_followed_is_refused(post, path, parameters, words):
    inputs = "a [MASK]" if path == "filler" else "a"
    assert words in post(f"/models/{path}", 422, inputs=inputs, parameters=parameters)["error"]
