"""A server answers the clients that people use, and refuses what it must."""

import asyncio
import contextlib
import functools
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from concurrent import futures

import httpx
import keras
import numpy as np
import onnx
import openai
import pytest
import uvicorn
import yaml
from checks import cases
from huggingface_hub import InferenceClient
from prometheus_client.parser import text_string_to_metric_families
from starlette.exceptions import HTTPException
from tiny import VOCABULARY, guide_to_tasks, tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.answers.classes import ClassAnswerer
from bert_keras.cli import main, serve
from bert_keras.export import program_formats, runtime
from bert_keras.serving.app import make_app
from bert_keras.serving.batcher import Batcher, Overloaded
from bert_keras.serving.explain import attention, instruments_of
from bert_keras.serving.guard import OPEN, Connection, Guard
from bert_keras.serving.model_handle import Served, Settings
from bert_keras.serving.server import Server

NAMES = ["no", "yes"]
PROMPTS = {"query": "h g "}
TEXTS = ["a", "b c", "d"]
SVG = "http://www.w3.org/2000/svg"  # A namespace; nothing is fetched from it.
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples/serving"
HOSTILE = ["", "<script>alert(1)</script>", "\x00", "a" * 5000, "\ud7ff\U0010ffff", "[MASK] [CLS]"]
close = functools.partial(np.testing.assert_allclose, atol=1e-5)
# Clients of `http` addresses read the certificates too.
certificates = functools.cache(ssl.create_default_context)


def coroutine(test):
    """Lets pytest run a coroutine as a test."""
    return functools.wraps(test)(lambda **fixtures: asyncio.run(test(**fixtures)))


@contextlib.contextmanager
def serving(tasks, patience=30.0, **settings):
    """Runs a server of tasks by name in a thread; yields its address."""
    settings = Settings(**settings)
    models = [Served(name, lambda x=task: x, None, settings) for name, task in tasks.items()]
    for model in models:
        model.start()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        http = functools.partial(Connection, patience)
        config = uvicorn.Config(make_app(models, settings), http=http, log_level="warning")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            assert thread.is_alive(), "The server did not start."
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextlib.contextmanager
def asking(tasks, **settings):
    """Runs a server of tasks; yields a client."""
    with (
        serving(tasks, **settings) as address,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        yield client


def is_refused(session, status, words, path, **body):
    """Whether a request is refused with this status and these words."""
    response = session.post(path, json=body)
    assert response.status_code == status and "Traceback" not in response.text
    return words in response.json()["error"]


@pytest.fixture(scope="module")
def tasks():
    options = {"preprocessor": tiny_preprocessor()}
    tags, shared = ["O", "B-X", "I-X"], tiny_backbone()
    return {
        "classifier": tiny_classifier(shared, label_names=NAMES),
        "inference": tiny_classifier(label_names=["contradiction", "entailment"]),
        "tagger": bert_keras.TokenClassifier(tiny_backbone(), 3, label_names=tags, **options),
        "reader": bert_keras.QuestionAnswering(tiny_backbone(), stride=4, **options),
        "filler": bert_keras.MaskedLM(shared, **options),
        "embedder": bert_keras.TextEmbedder(tiny_backbone(), prompts=PROMPTS, **options),
        "chooser": bert_keras.MultipleChoice(tiny_backbone(), **options),
        "ranker": bert_keras.Reranker(tiny_backbone(), **options),
        "follower": bert_keras.NextSentencePrediction(tiny_backbone(), **options),
        "judge": bert_keras.ReplacedTokenDetector(tiny_backbone(), **options),
    }


@pytest.fixture(scope="module")
def session(tasks):
    with asking(tasks, api_keys=()) as session:
        yield session


@pytest.fixture(scope="module")
def address(session):
    return str(session.base_url).rstrip("/")


@pytest.fixture(scope="module")
def unit_vectors(tasks):
    vectors = tasks["embedder"].embed(TEXTS)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def client(address, name):
    return InferenceClient(model=f"{address}/models/{name}")


@pytest.fixture(autouse=True)
def online(monkeypatch):
    monkeypatch.setattr(ssl, "create_default_context", certificates)
    # The hub's client sends no request at all, not even to this machine, in offline mode.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.is_offline_mode", lambda: False, raising=False)


def test_the_hugging_face_client_compares_sentences_and_takes_any_labels(address, unit_vectors):
    """Its other methods: test_clients.py."""
    found = client(address, "embedder").sentence_similarity("a", other_sentences=["b c", "d"])
    close(found, unit_vectors[1:] @ unit_vectors[0])
    found = client(address, "inference").zero_shot_classification("a", candidate_labels=["b", "c"])
    assert {x.label for x in found} == {"b", "c"}
    assert sum(x.score for x in found) == pytest.approx(1)


def test_the_openai_client_embeds_texts_but_no_ids_of_tokens(tasks, address, unit_vectors):
    embeddings = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0).embeddings
    for encoding in ({}, {"encoding_format": "float"}):  # The default is base64.
        found = embeddings.create(model="embedder", input=TEXTS, **encoding)
        close([x.embedding for x in found.data], unit_vectors)
    # As those that read them count, two of each text are special, and texts are cut to 16.
    assert found.usage.prompt_tokens == sum(map(len, tasks["embedder"].tokenizer(TEXTS))) + 6 == 10
    assert embeddings.create(model="embedder", input="a " * 99).usage.prompt_tokens == 16
    with pytest.raises(openai.NotFoundError, match="There are: classifier"):
        embeddings.create(model="nothing", input="a")
    with pytest.raises(openai.UnprocessableEntityError, match="valid string"):
        embeddings.create(model="embedder", input=[5])


def test_each_api_of_embeddings_takes_the_name_of_a_prompt(session, tasks):
    expected = tasks["embedder"].embed(TEXTS, prompt="query")
    body = {"inputs": TEXTS, "prompt_name": "query"}
    close(session.post("/embed", json=body).json(), expected)
    parameters = {"parameters": {"prompt_name": "query"}, "inputs": TEXTS}
    close(session.post("/models/embedder", json=parameters).json(), expected)
    body = {"input": TEXTS, "model": "embedder", "prompt_name": "query"}
    found = session.post("/v1/embeddings", json=body).json()
    close([x["embedding"] for x in found["data"]], expected)
    assert found["usage"]["prompt_tokens"] == 10 + 2 * len(TEXTS)  # The prompt has two tokens.
    body = {"inputs": {"source_sentence": "a", "sentences": ["b c"]}, "prompt_name": "query"}
    [cosine] = session.post("/models/embedder", json={**body, "dimensions": 2}).json()
    first, second = np.array(expected)[:2, :2]
    close(cosine, first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def _rounded(value):
    """Returns what JSON makes of a value, with floats rounded."""
    return json.loads(json.dumps(value), parse_float=lambda x: round(float(x), 3))


def test_each_tasks_route_gives_the_answer_of_its_method(tasks, session):
    rows = {
        "reader": ["a", "b c"],
        "chooser": ["a", "b", "c d"],
        "ranker": ["a", "b", "c d"],
        "follower": ["a", "b"],
        "filler": ["a [MASK]"],
    }
    for model in session.get("/answers").json():
        name, method = model["name"], model["method"]
        row = rows.get(name, ["a b"])
        found = session.post(f"/answers/{name}", json={"rows": [row]}).json()
        row = [row[0], row[1:]] if method in ("choose", "rank") else row
        expected = getattr(tasks[name], method)(*row)
        expected = expected.tolist() if hasattr(expected, "tolist") else expected
        assert _rounded(found) == _rounded([expected]), name


@pytest.mark.also_on("jax")
def test_compiled_models_compute_in_batches_of_8_and_pytorch_all_rows_at_once(tasks, monkeypatch):
    model, sizes = tasks["classifier"], []
    compute, served = model.predict_batches, Served("x", lambda: tasks["classifier"])
    served.start()

    def noted(batches):
        batches = list(batches)
        sizes.extend(len(batch["token_ids"]) for batch in batches)
        return compute(batches)

    monkeypatch.setattr(model, "predict_batches", noted)
    texts = ["a", "b c", "d", "a b c d"] * 3
    answers = served.batcher.answer(("classify", None, ()), [(text,) for text in texts[:11]])
    assert sizes == ([11] if keras.backend.backend() == "torch" else [8, 8])
    assert _rounded(answers) == _rounded(model.classify(texts)[:11])


def test_the_server_shows_the_models_own_saliency_and_attention(tasks, session, monkeypatch):
    def ask(path, **body):
        return session.post(path, json=body)

    found = ask("/saliency/classifier", row=["a cab b"], target="yes").json()
    expected = bert_keras.integrated_gradients(tasks["classifier"], "a cab b", "yes")
    pieces = expected.scores.tolist()  # [CLS] a c ##a ##b b [SEP]
    assert [x["text"] for x in found["words"]] == ["[CLS]", "a", "cab", "b", "[SEP]"]
    scores = [*pieces[:2], sum(pieces[2:5]), *pieces[5:]]
    assert [x["score"] for x in found["words"]] == pytest.approx(scores, abs=1e-4)
    assert found["logit"] == pytest.approx(expected.logit, abs=1e-5)
    likely = ask("/saliency/classifier", row=["a", "b c"]).json()["target"]
    assert likely == tasks["classifier"].classify(("a", "b c"))["label"]

    packed = tasks["reader"].preprocessor(["a"], ["b c"], length=6)
    outputs = tasks["reader"].backbone(packed, return_attentions=True)
    weights = keras.ops.convert_to_numpy(outputs["attentions"][0])[0]
    for head, expected in ((1, weights[1]), (None, weights.mean(0))):
        found = ask("/attention/reader", row=["a", "b c"], layer=0, head=head).json()
        assert found["tokens"] == ["[CLS]", "a", "[SEP]", "b", "c", "[SEP]"]
        errors = np.abs(np.subtract(found["weights"], expected))
        assert errors.max() < 5.1e-5  # The server rounds to four digits.

    # The page compares vectors as the model does.
    for described in session.get("/answers").json():
        similarity = getattr(tasks[described["name"]], "similarity", None)
        assert described["similarity"] == similarity
    shown = {x["name"]: x["instruments"] for x in session.get("/answers").json()}
    assert shown["classifier"]["saliency"] == {"labels": NAMES}
    assert all(x["attention"] == {"layers": 1, "heads": 2} for x in shown.values())
    with_saliency = {name for name, x in shown.items() if "saliency" in x}
    assert with_saliency == {"classifier", "inference", "ranker"}
    monkeypatch.setattr("bert_keras.serving.explain.MOST_TOKENS", 4)
    for path in ("/saliency/classifier", "/attention/classifier"):
        assert ask(path, row=["a b"]).status_code == 200
        assert is_refused(session, 413, "at most 4 tokens", path, row=["a b c"])


def test_ranking_needs_a_single_score_and_truncation_can_be_turned_off():
    options = {"num_classes": 3, "problem_type": "regression"}
    preprocessor = tiny_preprocessor(max_length=6)
    long = bert_keras.LongTextClassifier(tiny_backbone(), 2, preprocessor, num_windows=2)
    tasks = {"scores": tiny_classifier(**options), "long": long}
    with asking(tasks) as session:
        assert is_refused(session, 422, "a single score", "/rerank", query="a", texts=["b"])
        found = session.post("/saliency/scores", json={"row": ["a"], "target": "2"}).json()
        [scores] = session.post("/answers/scores", json={"rows": [["a"]]}).json()
        assert found["logit"] == pytest.approx(scores["scores"][2], abs=1e-5)
        for number, status in ((8, 200), (9, 413)):  # Two windows of four tokens each.
            body = {"inputs": "a " * number, "parameters": {"truncation": False}}
            assert session.post("/models/long", json=body).status_code == status
            body["parameters"]["truncation"] = True
            assert session.post("/models/long", json=body).status_code == 200


@cases(
    ("/models/classifier", {}, 422, "inputs: Field required"),
    ("/models/classifier", {"inputs": None}, 422, "inputs: Field required"),
    ("/models/classifier", {"inputs": []}, 422, "inputs: a text is needed"),
    ("/models/classifier", {"inputs": 3}, 422, "inputs"),
    ("/models/classifier", {"inputs": ["a", 3]}, 422, "inputs[1]"),
    ("/models/classifier", {"inputs": "a", "parameters": {"zzz": 1}}, 422, "zzz"),
    ("/models/classifier", {"inputs": {"text": "a", "pair": "b"}}, 422, "`text_pair`"),
    ("/models/classifier", {"inputs": {"text_pair": "b"}}, 422, "`text`"),
    ("/models/reader", {"inputs": {"question": "a", "context": "b", "c": 1}}, 422, "alone"),
    ("/models/embedder", {"inputs": {"source_sentence": "a", "texts": []}}, 422, "`sentences`"),
    ("/models/nothing", {"inputs": "a"}, 404, "There are: classifier"),
    ("/models/filler", {"inputs": "a b"}, 422, "[MASK]"),
    ("/models/judge", {"inputs": "a b"}, 422, "/answers/judge"),
    ("/models/inference", {"inputs": "a", "parameters": {"candidate_labels": []}}, 422, "need"),
    ("/embed", {"inputs": []}, 422, "At least one text"),
    ("/answers/classifier", {"rows": []}, 422, "At least one text"),
    ("/answers/classifier", {"rows": [3]}, 422, "rows.0: "),
    ("/answers/classifier", {"rows": ["a", ["b", 3]]}, 422, "rows.1.1: "),
    ("/embed", {"inputs": ["a", 3, "b"]}, 422, "inputs.1: "),
    ("/predict", {"inputs": [["a"], ["a", "b", "c"]]}, 422, "3 texts in row 1"),
    ("/predict", {"inputs": ["a", "b", "c"]}, 422, "is a list of lists"),
    ("/models/filler", {"inputs": "a", "targets": ["a", 3]}, 422, "parameters.targets.1: "),
    ("/embed", {"inputs": "a", "wrong": 1}, 422, "wrong"),
    ("/embed", {"inputs": "a", "prompt_name": "passage"}, 422, "one of ['query']"),
    ("/embed", {"inputs": "a", "prompt_name": "x", "truncate": False}, 422, "['query']"),
    ("/embed", {"inputs": "a " * 13, "prompt_name": "query", "truncate": False}, 413,
     "Received: 17"),
    ("/answers/reader", {"rows": [["a"]]}, 422, "question, context"),
    ("/answers/classifier", {"rows": [["a"]], "top_k": 3}, 422, "takes threshold"),
    ("/answers/classifier", {"rows": [["a"]], "treshold": None}, 422, "takes threshold"),
    ("/answers/classifier", {"rows": [["a"]], "threshold": 2}, 422, "number from 0 to 1"),
    ("/embed", {"inputs": ["a", "a " * 15], "truncate": False}, 413, "inputs[1]: at most 16"),
    ("/predict", {"inputs": [["a", "a " * 13]], "truncate": False}, 413, "Received: 17"),
    ("/predict", {"inputs": [["a"], ["a", "a " * 13]], "truncate": False}, 413, "inputs[1]"),
    ("/models/embedder", {"inputs": "a " * 15, "truncate": False}, 413, "at most 16 tokens"),
    ("/models/classifier", {"inputs": "a", "truncate": 3}, 422, "truncate"),
    ("/models/classifier", {"inputs": "a", "parameters": {"truncation": 1}}, 422, "truncation"),
    ("/models/embedder", {"inputs": "a", "parameters": {"normalize": 1}}, 422, "normalize"),
    ("/models/tagger", {"inputs": "a", "truncate": False}, 422, "truncate"),
    ("/models/classifier", {"inputs": "a", "options": {"use_gpu": True}}, 422, "use_gpu"),
    ("/saliency/tagger", {"row": ["a"]}, 422, "not compute saliency. It computes attention"),
    ("/saliency/classifier", {"row": ["a"], "target": "perhaps"}, 422, "no, yes"),
    ("/saliency/classifier", {"row": ["a", "b", "c"]}, 422, "1 to 2 texts"),
    ("/attention/classifier", {"row": [], "layer": 0}, 422, "1 to 2 texts"),
    ("/attention/classifier", {"row": ["a"], "layer": 1}, 422, "below 1 and 2"),
    ("/attention/classifier", {"row": ["a"], "head": 2}, 422, "below 1 and 2"),
    ("/attention/classifier", {"row": ["a"], "head": -1}, 422, "head"),
    ("/attention/nothing", {"row": ["a"]}, 404, "There are: classifier"),
)  # fmt: skip
def test_an_error_names_the_wrong_field(session, path, body, status, words):
    assert is_refused(session, status, words, path, **body)


def test_any_text_gets_an_answer_and_the_page_loads_no_foreign_script(session):
    for text in HOSTILE:
        found = session.post("/answers/classifier", json={"rows": [[text]]})
        assert found.status_code == 200, text
    page = session.get("/")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert "http" not in page.text
    scripts = re.findall(r'src="([^"]+)"', page.text)
    assert len(scripts) == 5
    for script in scripts:
        text = session.get(script).text.replace(SVG, "")
        assert "use strict" in text and "innerHTML" not in text and "http:" not in text


@pytest.mark.parametrize("path", ["/", "/health", "/info", "/answers", "/v1/models", "/metrics"])
def test_head_gets_the_head_of_the_answer_to_get(session, path):
    head, answer = session.head(path), session.get(path)
    assert (head.status_code, head.content) == (200, b"") and answer.content
    names = ("content-type", "content-security-policy")
    assert [head.headers.get(x) for x in names] == [answer.headers.get(x) for x in names]
    assert session.head("/embed").status_code == session.get("/embed").status_code == 405


@cases(("Identity", 200), ("gzip", 415), ("br", 415), ("gzip, gzip", 415))
def test_a_compressed_body_is_refused_by_the_name_of_its_encoding(session, encoding, status):
    headers = {"Content-Encoding": encoding}
    response = session.post("/embed", content=b'{"inputs": "a"}', headers=headers)
    assert response.status_code == status, response.text
    assert status == 200 or f"Received: {encoding}." in response.json()["error"]


def test_large_answers_are_compressed_for_clients_that_ask_for_it(session):
    body = {"inputs": ["a b c"] * 200}
    plain = session.post("/embed", json=body, headers={"Accept-Encoding": "identity"})
    small = session.post("/embed", json=body, headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip" and small.json() == plain.json()
    assert int(small.headers["content-length"]) < len(plain.content) / 2
    assert "content-encoding" not in session.post("/embed", json={"inputs": "a"}).headers


def test_parameters_may_be_null_and_each_route_answers_an_empty_text(session):
    bodies = {
        "/models/classifier": {"inputs": "", "parameters": None, "options": None},
        "/models/embedder": {"inputs": ""},
        "/models/tagger": {"inputs": [""]},
        "/models/inference": {"inputs": "", "parameters": {"candidate_labels": ["a"]}},
        "/embed": {"inputs": "", "normalize": None, "dimensions": None},
        "/predict": {"inputs": "", "raw_scores": None},
        "/rerank": {"query": "", "texts": [""], "return_text": None},
        "/similarity": {"inputs": {"source_sentence": "", "sentences": [""]}},
        "/v1/embeddings": {"input": "", "model": "embedder", "encoding_format": None},
        "/answers/classifier": {"rows": ""},
        "/tokens/classifier": {"inputs": ""},
    }
    found = {path: session.post(path, json=body) for path, body in bodies.items()}
    assert {path: x.status_code for path, x in found.items()} == dict.fromkeys(bodies, 200)


def test_texts_are_compared_by_the_models_similarity():
    options = {"normalize": False, "similarity": "euclidean"}
    embedder = bert_keras.TextEmbedder(tiny_backbone(), tiny_preprocessor(), **options)
    wanted = embedder.similarities(*map(embedder.embed, (TEXTS[:1], TEXTS[1:])))[0]
    with asking({"x": embedder}) as session:
        inputs = {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS[1:]}}
        for path in ("/similarity", "/models/x"):
            close(session.post(path, json=inputs).json(), wanted)
        assert is_refused(session, 422, "x (embed)", "/rerank", query=TEXTS[0], texts=TEXTS[1:])


@pytest.fixture(scope="module")
def guarded(tasks):
    with serving({"classifier": tasks["classifier"]}, api_keys=("one", "two")) as address:
        yield address


@cases(
    *((None, 401), ("Bearer two", 200), ("Bearer three", 401), ("Bearer", 401), ("one", 401)),
    # A browser sends the key as a password.
    *(("Basic YW55Ym9keTpvbmU=", 200), ("Basic ???", 401), ("Basic", 401)),
)
def test_a_key_is_required_except_for_health_checks(guarded, authorization, status):
    headers = {"Authorization": authorization} if authorization else {}
    response = httpx.post(guarded, json={"inputs": "a"}, headers=headers)
    assert response.status_code == status
    assert status == 200 or "Basic" in response.headers["www-authenticate"]
    assert httpx.get(guarded, headers=headers).status_code == status
    assert httpx.get(f"{guarded}/health", headers=headers).status_code == 200


def test_a_task_of_the_user_is_served_with_its_options():
    grader = guide_to_tasks().Grader(tiny_backbone(), tiny_preprocessor(), num_grades=3)
    with asking({"grader": grader}) as session:
        [described] = session.get("/answers").json()
        wanted = {"method": "grade", "fields": ["text"], "options": ["confidence"]}
        assert described | wanted == described
        path, body = "/answers/grader", {"rows": TEXTS, "confidence": 0.4}
        assert session.post(path, json=body).json() == grader.grade(TEXTS, confidence=0.4)
        assert is_refused(session, 422, "from 0", path, rows=TEXTS, confidence=-1)
        assert is_refused(session, 422, "takes confidence", path, rows=TEXTS, top_k=2)


def test_a_model_starts_whatever_its_rows_need():
    pairs = tiny_classifier(preprocessor=tiny_preprocessor(truncation="only_second"))
    spans = bert_keras.ZeroShotTagger(tiny_backbone(), tiny_preprocessor(), max_width=3)
    bodies = {"pairs": {"rows": [["a", "b"]]}, "spans": {"rows": [["a"]], "labels": ["b"]}}
    with asking({"pairs": pairs, "spans": spans}) as session:
        for name, body in bodies.items():
            assert session.post(f"/answers/{name}", json=body).status_code == 200


class Slow:
    """A task that takes some seconds for each answer and fails on one text."""

    preprocessor = tiny_preprocessor()
    tokenizer = preprocessor.tokenizer

    def __init__(self, seconds):
        self.seconds, self.asked = seconds, []

    answerers = (ClassAnswerer,)

    def answer_settings(self):
        return {}

    def ask_rows(self, method, rows, **options):
        return self.classify([text for (text,) in rows])

    def classify(self, texts):
        time.sleep(self.seconds)
        self.asked += texts
        if "poison" in texts:
            raise RuntimeError("a secret of the code")
        return [{"label": "yes", "probabilities": {"yes": 1.0}} for _ in texts]


def test_a_poisoned_text_fails_alone_and_leaks_nothing_about_the_code():
    with (
        asking({"slow": Slow(0.01)}, wait=0.1) as session,
        futures.ThreadPoolExecutor(3) as threads,
    ):
        bodies = [{"inputs": text} for text in ("a", "poison", "b")]
        found = list(threads.map(lambda body: session.post("/", json=body), bodies))
        assert [x.status_code for x in found] == [200, 500, 200]
        assert "secret" not in found[1].text


class Held(Slow):
    """A task that says when it has begun, and answers when it is released."""

    def __init__(self):
        super().__init__(0)
        self.begun, self.go = threading.Event(), threading.Event()
        self.go.set()

    def classify(self, texts):
        self.begun.set()
        assert self.go.wait(60)
        return super().classify(texts)

    def hold(self):
        self.asked.clear()
        self.begun.clear()
        self.go.clear()


class Request:
    """As much of a request as a server needs: it says when its client leaves."""

    def __init__(self):
        self.gone, self.scope = asyncio.Event(), {}

    async def receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}


@coroutine
async def test_requests_that_are_late_too_many_or_abandoned_are_not_computed():
    held, settings = Held(), Settings(max_waiting=2, max_batch=1, wait=0)
    served = Served("x", lambda: held, None, settings)
    patient, hasty = (Server([served], settings._replace(deadline=x)) for x in (60, 0.05))
    served.start()
    held.hold()
    abandoned, tasks = Request(), {}

    def begin(text, server=patient, request=None):
        answer = server.ask(request or Request(), served, "classify", [(text,)])
        tasks[text] = asyncio.create_task(answer)

    async def status_of(text):
        with pytest.raises(HTTPException) as refused:
            await tasks[text]
        return refused.value.status_code

    begin("a")
    await asyncio.to_thread(held.begun.wait, 60)
    begin("b", request=abandoned)
    begin("c")
    while len(served.batcher.waiting) < 2:
        await asyncio.sleep(0)
    begin("d")
    assert await status_of("d") == 429
    abandoned.gone.set()
    assert await status_of("b") == 499
    begin("e", server=hasty)
    assert await status_of("e") == 504
    held.go.set()
    await asyncio.gather(tasks["a"], tasks["c"])
    await served.batcher.close()
    assert held.asked == ["a", "c"]


def test_a_closed_connection_frees_its_place():
    held = Held()
    with serving({"slow": held}, max_batch=1) as address:
        held.hold()
        with connected(address) as first:
            first.sendall(post("/", b'{"inputs": "a"}'))
            assert held.begun.wait(60)
            with connected(address) as other:
                other.sendall(post("/", b'{"inputs": "gone"}'))
                _wait_for(address, 1)
            _wait_for(address, 0)
            held.go.set()
            assert first.recv(2**16).startswith(b"HTTP/1.1 200")
    assert held.asked == ["a"]


def _wait_for(address, number):
    while f'waiting_rows{{model="slow"}} {number}.0' not in httpx.get(f"{address}/metrics").text:
        time.sleep(0.01)


class Echo:
    """Answers rows with themselves, when it may, and notes the batches."""

    def __init__(self, may_go=True):
        self.batches, self.begun, self.go = [], threading.Event(), threading.Event()
        if may_go:
            self.go.set()

    def __call__(self, key, rows):
        self.begun.set()
        assert self.go.wait(20)
        self.batches.append((key, [row[0] for row in rows]))
        return rows


@coroutine
async def test_a_batch_holds_rows_of_similar_length_and_starts_with_the_oldest():
    batcher = Batcher(Echo(), max_batch=2, wait=0.01)
    texts = ["a" * 9, "b", "c" * 8, "d" * 2]
    await asyncio.gather(*(batcher.ask("key", [(text,)]) for text in texts))
    await batcher.close()
    assert [rows for _, rows in batcher.answer.batches] == [["a" * 9, "c" * 8], ["b", "d" * 2]]


@coroutine
async def test_only_batches_smaller_than_the_last_one_wait_for_more_rows():
    batcher = Batcher(lambda key, rows: rows, wait=3600)
    many = [(text,) for text in "abc"]
    for rows in (many[:1], many, many):
        assert await asyncio.wait_for(batcher.ask("key", rows), 60) == rows
    answer = asyncio.create_task(batcher.ask("key", many[:2]))
    await asyncio.sleep(0.05)
    assert not answer.done() and len(batcher.waiting) == 2
    answer.cancel()
    batcher._task.cancel()


@coroutine
async def test_a_batch_with_a_missing_answer_does_not_end_the_batcher():
    batcher = Batcher(lambda key, rows: rows[: -key or None])
    with pytest.raises(ValueError, match="shorter"):
        await batcher.ask(1, [("a",), ("b",)])
    assert await batcher.ask(0, [("a",), ("b",)]) == [("a",), ("b",)]
    await batcher.close()


@coroutine
async def test_a_cancelled_request_frees_its_rows_and_closing_still_answers_the_running_batch():
    batcher = Batcher(echo := Echo(may_go=False), max_batch=1, wait=0, max_waiting=2)
    with pytest.raises(Overloaded):
        await batcher.ask("key", [("a",)] * 3)
    first = asyncio.create_task(batcher.ask("key", [("a",)]))
    await asyncio.to_thread(echo.begun.wait, 20)
    cancelled = asyncio.create_task(batcher.ask("key", [("b",)] * 2))
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await batcher.ask("key", [("c",)])
    cancelled.cancel()
    await asyncio.wait([cancelled])
    assert not batcher.waiting
    closed = asyncio.create_task(batcher.close())
    await asyncio.sleep(0)
    echo.go.set()
    assert await first == [("a",)]
    await closed


@coroutine
async def test_clients_take_turns_though_one_of_them_asks_for_many_texts():
    batcher = Batcher(echo := Echo(may_go=False), max_batch=8, wait=0)
    many = asyncio.create_task(batcher.ask("key", [("aaaa",)] * 99, "greedy"))
    await asyncio.sleep(0)
    few = [batcher.ask(key, [(name,)], name) for name, key in (("b", "key"), ("c", "another"))]
    few = [asyncio.create_task(answer) for answer in few]
    echo.go.set()
    await asyncio.gather(*few, many)
    await batcher.close()
    # The first batch may have begun before the others asked. Each then gets its turn.
    assert ("another", ["c"]) in echo.batches[:4]
    [beside] = [rows for _, rows in echo.batches[:4] if "b" in rows]
    assert beside.count("aaaa") <= 2


@coroutine
async def test_a_client_that_fills_the_queue_loses_its_newest_request_to_another():
    batcher = Batcher(echo := Echo(may_go=False), max_batch=1, wait=0, max_waiting=10)
    greedy = [asyncio.create_task(batcher.ask("key", [(x,)] * 5, "greedy")) for x in "ab"]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await batcher.ask("key", [("c",)] * 5, "greedy")
    other = asyncio.create_task(batcher.ask("key", [("d",)] * 2, "other"))
    with pytest.raises(Overloaded):
        await greedy[1]
    with pytest.raises(Overloaded):  # The other would have more than the greedy one then.
        await batcher.ask("key", [("e",)] * 6, "other")
    echo.go.set()
    assert await other == [("d",)] * 2
    assert await greedy[0] == [("a",)] * 5
    await batcher.close()


def test_a_terminated_command_first_answers_pending_requests(tmp_path):
    tiny_classifier(label_names=NAMES).save_to_preset(tmp_path / "preset")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    options = ("--runtime=keras", "--max_batch=1", f"--port={address.rpartition(':')[2]}")
    command = [sys.executable, "-m", "bert_keras", "serve", str(tmp_path / "preset"), *options]
    # JAX is imported soonest.
    environment = {**os.environ, "BERT_KERAS_API_KEYS": "key", "KERAS_BACKEND": "jax"}
    process = subprocess.Popen(command, env=environment)
    with (
        httpx.Client(headers={"Authorization": "Bearer key"}, timeout=60) as session,
        futures.ThreadPoolExecutor(1) as threads,
    ):
        try:
            while process.poll() is None:
                with contextlib.suppress(httpx.TransportError):
                    if session.get(f"{address}/health").status_code == 200:
                        break
                time.sleep(0.1)
            asked = threads.submit(session.post, address, json={"inputs": ["a b c " * 20] * 300})
            nothing = 'bert_keras_waiting_rows{model="preset"} 0.0'
            while nothing in session.get(f"{address}/metrics").text:
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            answer = asked.result()
            # A client that keeps its connection learns that it ends.
            assert (answer.status_code, answer.headers.get("connection")) == (200, "close")
            assert process.wait(60) in (0, -signal.SIGTERM)
        finally:
            process.kill()
            process.wait()


@contextlib.contextmanager
def connected(address):
    """Yields a raw TCP connection."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        yield connection


def post(path, body, **headers):
    """Returns the bytes of a request."""
    headers = {"Content-Type": "application/json", "Content-Length": len(body), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode() + body


def test_a_small_body_is_read_before_it_is_refused():
    # The system resets a connection that closes before its body was read, and drops the answer.
    events = []

    async def receive():
        events.append("read")
        return {"type": "http.request", "body": b"a" * 9, "more_body": len(events) < 3}

    async def send(message):
        events.append(message.get("status", "body"))

    settings = Settings(api_keys=("key",), max_body=100, deadline=1)
    scope = {"type": "http", "method": "POST", "path": "/embed", "headers": []}
    asyncio.run(Guard(None, settings, lambda *_: None)(scope, receive, send))
    assert events == ["read", "read", "read", 401, "body"]


def labels(names, template="{}"):
    """Returns a question with labels and the template of their hypotheses, bytes."""
    parameters = {"candidate_labels": names, "hypothesis_template": template}
    return json.dumps({"inputs": "a", "parameters": parameters}).encode()


@cases(
    ("/models/classifier", b"{", 422),
    ("/models/classifier", b'{"inputs": ' + b"[" * 10**5, 400),
    ("/models/classifier", b'{"inputs": "\xff"}', 400),
    ("/models/classifier", '{"inputs": "a"}'.encode("utf-16"), 200),
    ("/models/classifier", rb'{"inputs": "\ud800"}', 422),
    ("/models/classifier", rb'{"inputs": "a", "parameters": {"\ud800": 1}}', 422),
    ("/models/classifier", b'{"inputs": "a", "parameters": {"top_k": NaN}}', 422),
    ("/models/classifier", b'{"inputs": "a", "parameters": {"top_k": -1}}', 422),
    ("/models/classifier", b'{"inputs": [["a", "b", "c"]]}', 422),
    ("/models/classifier", b'{"inputs": [["a", "b"], "c"]}', 422),
    ("/models/tagger", b'{"inputs": [["a", "b"]]}', 422),
    ("/models/tagger", b'{"inputs": [[]]}', 422),
    ("/models/filler", b'{"inputs": "[MASK]", "parameters": {"top_k": 0}}', 422),
    ("/models/filler", b'{"inputs": "[MASK]", "parameters": {"top_k": 1000000000}}', 422),
    ("/models/filler", b'{"inputs": "' + b"[MASK]" * 9000 + b'"}', 413),
    ("/models/inference", b'{"inputs": ["a"], "parameters": {"candidate_labels": [3]}}', 422),
    ("/models/inference", b'{"inputs": [], "parameters": {"candidate_labels": ["a"]}}', 422),
    ("/models/inference", labels(list(map(str, range(200_000)))), 413),
    ("/models/inference", labels(["a" * 10**6], "{}" * 4 * 10**5), 413),
    ("/answers/reader", b'{"rows": [["a", "b"]], "top_k": 1000000000}', 422),
    ("/answers/chooser", b'{"rows": [["a"' + b', "b"' * 1000 + b"]]}", 422),
    ("/answers/..%2F..%2Fetc%2Fpasswd", b'{"rows": [["a"]]}', 404),
    ("/answers/%0d%0aX-Header:%20a", b'{"rows": [["a"]]}', 404),
    ("/answers/classifier", b'{"rows": [["' + b"a" * 70000 + b'"]]}', 413),
    ("/tokens/classifier", b'{"inputs": [' + b'"",' * 2000 + b'""]}', 413),
    ("/embed", b'{"inputs": [' + b"1," * 9**6 + b"1]}", 422),
    ("/embed", json.dumps({"inputs": "a", **dict.fromkeys(map(str, range(99)))}).encode(), 422),
    ("/nowhere", b"{}", 404),
    ("/health", b"", 405),
)
def test_a_hostile_body_gets_a_status_and_a_reason(session, path, body, status):
    headers = {"Content-Type": "application/json"}
    response = session.post(path, content=body, headers=headers)
    assert response.status_code == status, response.text
    if status != 200:
        assert 0 < len(response.json()["error"]) <= 1000
    assert "x-header" not in response.headers


CHUNKED = b"POST /embed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def impatient(tasks):
    some = {"embedder": tasks["embedder"]}
    with serving(some, patience=0.5, deadline=0.5, max_body=2**17, max_text=2**17) as address:
        yield address


@cases(
    (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 2**17, b"HTTP/1.1 400"),
    (b"GET /\x00 HTTP/1.1\r\n\r\n", b"HTTP/1.1 400"),
    (post("/embed", b"", **{"Content-Length": "-3"}), b"HTTP/1.1 400"),
    (CHUNKED + (b"10000\r\n" + b"a" * 2**16 + b"\r\n") * 3, b"HTTP/1.1 413"),
    (post("/embed", b"", **{"Content-Length": 2**22}), b"HTTP/1.1 413"),
    (post("/embed", b"half", **{"Content-Length": 9}), b"HTTP/1.1 408"),
    (b"", b""),
    (b"GET / HTTP/1.1\r\nHo", b""),
    (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /hea", b"HTTP/1.1 200"),
)
def test_a_client_that_sends_half_a_request_is_disconnected(impatient, sent, expected):
    received = b""
    with connected(impatient) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(sent)
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(2**16):
                received += part
    assert received.startswith(expected)
    assert b" 413" not in expected or b"bytes" in received
    assert bool(received) == bool(expected)


def test_a_client_that_never_reads_its_answer_is_disconnected(impatient):
    wanted = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 500  # A long answer.
    with connected(impatient) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)
        with contextlib.suppress(TimeoutError, ConnectionError):
            connection.settimeout(5)
            connection.sendall(wanted)
            for _ in range(50):  # The server closes it meanwhile.
                time.sleep(0.1)
                connection.send(b"x")
            pytest.fail("The connection is still there.")
    assert httpx.get(f"{impatient}/health").status_code == 200


def test_unknown_paths_do_not_fill_the_metrics(session):
    for number in range(3):
        session.get(f"/x{number}")
        session.post(f"/models/x{number}", json={"inputs": "a"})
    found = session.get("/metrics").text
    assert 'route="other",status="404"' in found
    assert "x1" not in found


def test_the_manifest_for_kubernetes_names_what_the_server_has(session):
    text = (EXAMPLES / "kubernetes.yaml").read_text(encoding="utf-8")
    deployment, service = yaml.safe_load_all(text)
    template, wanted = deployment["spec"]["template"], deployment["spec"]["selector"]["matchLabels"]
    assert service["spec"]["selector"] == wanted == template["metadata"]["labels"]
    [container], [port] = template["spec"]["containers"], service["spec"]["ports"]
    defaults = {option.name: option.default for option in serve.OPTIONS}
    assert container["ports"] == [{"name": port["targetPort"], "containerPort": defaults["port"]}]
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = container[name]["httpGet"]
        assert probe["port"] == port["targetPort"] and probe["path"] in OPEN
        for ask in (session.get, session.head):
            assert ask(probe["path"]).status_code == 200
    flags = dict(x[2:].split("=") for x in container["args"] if x.startswith("--"))
    assert flags.keys() <= defaults.keys()
    assert int(flags["deadline"]) + 1 < template["spec"]["terminationGracePeriodSeconds"]
    assert container["env"][0]["name"] == serve.KEYS
    [mounted], [volume] = container["volumeMounts"], template["spec"]["volumes"]
    assert mounted["name"] == volume["name"]
    sources = [x.partition("=")[2] for x in container["args"] if not x.startswith("--")]
    assert all(x.startswith(mounted["mountPath"]) for x in sources) and len(sources) == 2


def example(name):
    return yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))


def test_prometheus_asks_for_the_metrics_that_are_listed(session):
    [job] = example("prometheus.yaml")["scrape_configs"]
    session.post("/embed", json={"inputs": "a"})
    families = text_string_to_metric_families(session.get(job["metrics_path"]).text)
    found = {}
    for family in families:
        name = family.name + "_total" * (family.type == "counter")
        labels = set().union(*(sample.labels for sample in family.samples)) - {"le"}
        if not name.endswith("_created"):
            found[name] = family.type, labels
    row = r"(?m)^\| `(bert_keras_\w+)` \| (\w+) \| (.*?) \|"
    rows = re.findall(row, (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    assert found == {name: (kind, {*re.findall(r"`(\w+)`", x)}) for name, kind, x in rows}


def test_a_client_behind_a_proxy_is_the_one_that_the_proxy_names(monkeypatch):
    clients, ask = [], Served.ask

    async def noted(self, method, rows, client=None, **options):
        clients.append(client)
        return await ask(self, method, rows, client, **options)

    monkeypatch.setattr(Served, "ask", noted)
    with serving({"slow": Slow(0)}) as address:
        for headers in ({}, {"X-Forwarded-For": "192.0.2.7"}):
            httpx.post(address, json={"inputs": "a"}, headers=headers).raise_for_status()
    assert clients == ["127.0.0.1", "192.0.2.7"]
    assert "X-Forwarded-For $remote_addr;" in (EXAMPLES / "nginx.conf").read_text(encoding="utf-8")
    replicas = example("compose.yaml")["services"]
    assert replicas["server"]["environment"]["FORWARDED_ALLOW_IPS"] == "*"


@coroutine
async def test_the_sum_of_unfinished_bodies_is_bounded(monkeypatch):
    monkeypatch.setattr("bert_keras.serving.guard.MOST_BODIES", 2)
    settings, statuses = Settings(max_body=10, deadline=1.0), []
    guard = Guard(None, settings, lambda route, status, seconds: statuses.append(status))

    async def receive():
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"abc", "more_body": True}

    async def send(message):
        pass

    scope = {"type": "http", "path": "/", "headers": []}
    await asyncio.gather(*(guard(dict(scope), receive, send) for _ in range(8)))
    assert set(statuses) <= {413, 429}
    assert 429 in statuses
    assert guard.held == 0


def write_table(format, model, path, verbose=None):
    """Writes a program that looks tokens up in a table: PyTorch takes seconds for a model's own.

    tests/export/test_runtime.py compares the answers of tasks' own programs with the tasks'.
    """
    names, value = list(program_formats.signature_of(model)[0]), onnx.helper.make_tensor_value_info
    table = np.random.default_rng(0).normal(size=[len(VOCABULARY)] * 2).astype("float32")
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Gather", ["table", "token_ids"], ["logits"])],
        "table",
        [value(name, onnx.TensorProto.INT32, ["batch", "length"]) for name in names],
        [value("logits", onnx.TensorProto.FLOAT, ["batch", "length", len(VOCABULARY)])],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    opsets = [onnx.helper.make_opsetid("", 18)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


@pytest.fixture(scope="module")
def exported(tasks, tmp_path_factory):
    """The folder of an exported task."""
    folder = tmp_path_factory.mktemp("exported") / "filler"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program_formats, "write", write_table)
        tasks["filler"].export(folder, format="onnx", verbose=False)
        yield str(folder)


def test_a_preset_is_served_as_a_program_where_that_is_faster(
    tasks, tmp_path, capsys, exported, monkeypatch
):
    monkeypatch.setattr(program_formats, "write", write_table)
    for name in ("classifier", "filler"):
        tasks[name].save_to_preset(tmp_path / name)
    program = serve.loaded(str(tmp_path / "classifier"))
    assert isinstance(program, runtime.ExportedTask)
    assert capsys.readouterr().out.startswith("Exporting a program for ONNX Runtime; --runtime=")
    assert set(instruments_of(program)) == {"saliency", "attention"}
    assert attention(program, ("a",), 0)["tokens"] == ["[CLS]", "a", "[SEP]"]
    assert isinstance(serve.loaded(str(tmp_path / "filler")), bert_keras.MaskedLM)
    with pytest.raises(ValueError, match="Leave out --runtime=keras"):
        serve.loaded(exported, "keras")
    tasks["filler"].backbone.save_to_preset(tmp_path / "bare")
    tasks["filler"].tokenizer.save(tmp_path / "bare")
    advice = "Train a model first: `bert-keras train text_classification --preset .*bare --train_f"
    with pytest.raises(ValueError, match=advice):
        serve.loaded(str(tmp_path / "bare"), task="classify")
    with pytest.raises(ValueError, match="Or name a checkpoint that was trained for `fill-mask`"):
        serve.loaded(str(tmp_path / "bare"), task="fill-mask")


def test_an_exported_program_is_served_but_has_no_instruments(exported):
    program = serve.loaded(exported)
    assert isinstance(program, runtime.ExportedTask)
    with asking({"filler": program}) as session:
        [described] = session.get("/answers").json()
        assert described["instruments"] == {}
        assert is_refused(session, 422, "neither", "/attention/filler", row=["a"])
        body = {"rows": [["a [MASK] b"], ["[MASK]"]], "top_k": 3}
        found = session.post("/answers/filler", json=body).json()
        expected = program.fill_mask(["a [MASK] b", "[MASK]"], top_k=3)
        assert _rounded(found) == _rounded(expected)
        found = client(session.base_url, "filler").fill_mask("a [MASK] b", top_k=3)
        assert [x.token for x in found] == [VOCABULARY.index(x) for x, _ in expected[0][0]]
        [found] = session.post("/tokens/filler", json={"inputs": "a"}).json()
        assert [x["text"] for x in found] == ["[CLS]", "a", "[SEP]"]
        found = session.get("/info").json()
        assert (found["models"], found["max_input_length"]) == ({"filler": "fill_mask"}, 16)


def test_a_taken_address_ends_the_command_before_models_load():
    with (
        socket.create_server(("127.0.0.1", 0)) as first,
        pytest.raises(OSError, match=r"in use.* Choose another --port"),
    ):
        main.main(["serve", "no/such/model", f"--port={first.getsockname()[1]}"])
