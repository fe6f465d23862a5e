"""A server answers the clients that people have, and gives way where it must refuse."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import openai
import pytest
import tritonclient.http
import uvicorn
from huggingface_hub import InferenceClient
from tiny import LETTERS, tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.serving.app import make_app
from bert_keras.serving.batcher import Batcher, Overloaded
from bert_keras.serving.served import Served, Settings

NAMES = ["no", "yes"]
HOSTILE = ["", "<script>alert(1)</script>", "\x00", "a" * 5000, "\ud7ff\U0010ffff", "[MASK] [CLS]"]


@contextlib.contextmanager
def serving(tasks, **settings):
    """Runs a server of tasks by name in a thread; yields its address."""
    settings = Settings(**settings)
    models = [Served(name, lambda x=task: x, None, settings) for name, task in tasks.items()]
    for model in models:
        model.start()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(make_app(models, settings), log_level="warning")
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


@pytest.fixture(scope="module")
def tasks():
    options = {"preprocessor": tiny_preprocessor()}
    tags = ["O", "B-X", "I-X"]
    return {
        "classifier": tiny_classifier(label_names=NAMES),
        "inference": tiny_classifier(label_names=["contradiction", "entailment"]),
        "tagger": bert_keras.TokenClassifier(tiny_backbone(), 3, label_names=tags, **options),
        "reader": bert_keras.QuestionAnswering(tiny_backbone(), stride=4, **options),
        "filler": bert_keras.MaskedLM(tiny_backbone(), **options),
        "embedder": bert_keras.TextEmbedder(tiny_backbone(), **options),
        "chooser": bert_keras.MultipleChoice(tiny_backbone(), **options),
        "follower": bert_keras.NextSentencePrediction(tiny_backbone(), **options),
        "judge": bert_keras.ReplacedTokenDetector(tiny_backbone(), **options),
    }


@pytest.fixture(scope="module")
def address(tasks):
    with serving(tasks, api_keys=()) as found:
        yield found


def client(address, name):
    return InferenceClient(model=f"{address}/models/{name}")


@pytest.fixture(autouse=True)
def online(monkeypatch):
    # The client of the hub asks no address at all where it is told to stay offline.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.is_offline_mode", lambda: False, raising=False)


def test_hugging_faces_client_gets_what_each_task_answers(tasks, address):
    found = client(address, "classifier").text_classification("a b")
    expected = tasks["classifier"].classify("a b")["probabilities"]
    assert {x.label: pytest.approx(x.score, abs=1e-5) for x in found} == expected

    found = client(address, "filler").fill_mask("a [MASK] b", top_k=3)
    [expected] = tasks["filler"].fill_mask("a [MASK] b", top_k=3)
    assert [x.token_str for x in found] == [token for token, _ in expected]
    assert found[0].sequence == f"a {expected[0][0]} b"

    found = client(address, "tagger").token_classification("a b")
    expected = tasks["tagger"].tag("a b")["entities"]
    assert [(x.entity_group, x.start, x.end) for x in found] == [
        (x["type"], x["start"], x["end"]) for x in expected
    ]

    found = client(address, "reader").question_answering(question="a", context="b c d")
    expected = tasks["reader"].answer("a", "b c d")
    assert (found.answer, found.start) == (expected["answer"], expected["start"])

    vectors = tasks["embedder"].embed(["a", "b c", "d"])
    np.testing.assert_allclose(
        client(address, "embedder").feature_extraction("b c")[0], vectors[1], atol=1e-5
    )
    unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    found = client(address, "embedder").sentence_similarity("a", other_sentences=["b c", "d"])
    np.testing.assert_allclose(found, unit[1:] @ unit[0], atol=1e-5)

    found = client(address, "inference").zero_shot_classification("a", candidate_labels=["b", "c"])
    assert {x.label for x in found} == {"b", "c"}
    assert sum(x.score for x in found) == pytest.approx(1)


def test_openais_client_gets_vectors_of_texts_and_of_ids(tasks, address):
    vectors = tasks["embedder"].embed(["a", "b c"])
    unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    asked = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
    ids = tasks["embedder"].tokenizer(["a", "b c"])
    for given in (["a", "b c"], ids):
        for form in ({}, {"encoding_format": "float"}):  # By itself it asks for base64.
            found = asked.embeddings.create(model="embedder", input=given, **form)
            np.testing.assert_allclose([x.embedding for x in found.data], unit, atol=1e-5)
    assert found.usage.prompt_tokens == 3
    with pytest.raises(openai.NotFoundError, match="There are: classifier"):
        asked.embeddings.create(model="nothing", input="a")
    with pytest.raises(openai.UnprocessableEntityError, match="the model's own tokenizer"):
        asked.embeddings.create(model="embedder", input=[10**6])


@pytest.mark.parametrize("is_binary", [True, False])
def test_tritons_client_gets_answers_in_json_and_in_binary(tasks, address, is_binary):
    asked = tritonclient.http.InferenceServerClient(address.removeprefix("http://"))
    assert asked.is_server_ready()
    assert asked.is_model_ready("reader")
    texts = {"question": ["a", "b é"], "context": ["c d e", "f g"]}
    inputs = []
    for name, values in texts.items():
        inputs.append(tritonclient.http.InferInput(name, [2], "BYTES"))
        inputs[-1].set_data_from_numpy(np.array(values, object), binary_data=is_binary)
    wanted = [tritonclient.http.InferRequestedOutput("answer", binary_data=is_binary)]
    found = asked.infer("reader", inputs, outputs=wanted).as_numpy("answer")
    expected = tasks["reader"].answer(*texts.values())
    assert [json.loads(x)["answer"] for x in found] == [x["answer"] for x in expected]

    text = tritonclient.http.InferInput("text", [1], "BYTES")
    text.set_data_from_numpy(np.array(["a"], object), binary_data=is_binary)
    found = asked.infer("embedder", [text], outputs=wanted).as_numpy("answer")
    np.testing.assert_allclose(found, tasks["embedder"].embed(["a"]), atol=1e-5)


def test_the_routes_of_text_embeddings_inference_answer(tasks, address):
    def post(path, **body):
        return httpx.post(address + path, json=body).json()

    vectors = tasks["embedder"].embed(["a", "b"])
    np.testing.assert_allclose(
        post("/embed", inputs=["a", "b"], normalize=False), vectors, atol=1e-5
    )
    assert {x["label"] for x in post("/predict", inputs="a")} == set(NAMES)
    assert len(post("/predict", inputs=[["a", "b"], ["c", "d"]])) == 2
    ranked = post("/rerank", query="a", texts=["b", "c", "d"], return_text=True)
    assert [x["score"] for x in ranked] == sorted((x["score"] for x in ranked), reverse=True)
    assert {(x["index"], x["text"]) for x in ranked} == {(0, "b"), (1, "c"), (2, "d")}
    assert httpx.get(f"{address}/info").json()["models"]["tagger"] == "tag"
    assert httpx.get(f"{address}/health").status_code == 200
    assert "bert_keras_responses_total" in httpx.get(f"{address}/metrics").text


def test_every_tasks_own_answer_is_that_of_its_method(tasks, address):
    rows = {
        "reader": [["a", "b c"]],
        "chooser": [["a", "b", "c d"]],
        "follower": [["a", "b"]],
        "filler": [["a [MASK]"]],
    }
    for place in httpx.get(f"{address}/answers").json():
        name, method = place["name"], place["method"]
        given = rows.get(name, [["a b"]])
        found = httpx.post(f"{address}/answers/{name}", json={"rows": given}).json()
        row = given[0]
        row = [row[0], row[1:]] if method == "choose" else row
        expected = getattr(tasks[name], method)(*row)
        expected = json.loads(json.dumps(getattr(expected, "tolist", lambda x=expected: x)()))
        assert _rounded(found) == _rounded([expected]), name


def _rounded(value):
    if isinstance(value, dict):
        return {key: _rounded(x) for key, x in value.items()}
    if isinstance(value, list):
        return [_rounded(x) for x in value]
    return round(value, 3) if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/models/classifier", {"inputs": 3}, 422, "inputs"),
        ("/models/classifier", {"inputs": ["a", 3]}, 422, "inputs[1]"),
        ("/models/classifier", {"inputs": "a", "parameters": {"zzz": 1}}, 422, "zzz"),
        ("/models/nothing", {"inputs": "a"}, 404, "There are: classifier"),
        ("/models/filler", {"inputs": "a b"}, 422, "[MASK]"),
        ("/models/judge", {"inputs": "a b"}, 422, "/answers/judge"),
        ("/models/inference", {"inputs": "a", "parameters": {"candidate_labels": []}}, 422, "need"),
        ("/embed", {"inputs": []}, 422, "at least one text"),
        ("/embed", {"inputs": "a", "wrong": 1}, 422, "wrong"),
        ("/answers/reader", {"rows": [["a"]]}, 422, "question, context"),
        ("/answers/classifier", {"rows": [["a"]], "top_k": 3}, 422, "one answer"),
        ("/v2/models/reader/infer", {"inputs": []}, 422, "question, context"),
        ("/v2/models/reader/infer", {"inputs": 3}, 422, "inputs"),
        ("/embed", {"inputs": "a" * 2**22}, 413, "bytes"),
    ],
)
def test_a_mistake_is_told_by_its_field(address, path, body, status, words):
    response = httpx.post(address + path, json=body)
    assert response.status_code == status
    assert words in response.json()["error"]
    assert "Traceback" not in response.text


def test_any_text_gets_an_answer_and_the_page_brings_no_foreign_script(address):
    for text in HOSTILE:
        found = httpx.post(f"{address}/answers/classifier", json={"rows": [[text]]})
        assert found.status_code == 200, text
    page = httpx.get(address)
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert "http" not in page.text
    assert "innerHTML" not in httpx.get(f"{address}/pages/page.js").text


def test_keys_are_asked_for_but_not_of_those_who_watch(tasks):
    with serving({"classifier": tasks["classifier"]}, api_keys=("one", "two")) as address:
        for key, status in ((None, 401), ("three", 401), ("two", 200)):
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            body = {"inputs": "a"}
            assert httpx.post(address, json=body, headers=headers).status_code == status
        assert httpx.get(f"{address}/health").status_code == 200


class Slow:
    """A task that waits before it answers, and fails at a text."""

    preprocessor = tiny_preprocessor()
    tokenizer = preprocessor.tokenizer

    def __init__(self, seconds):
        self.seconds, self.asked = seconds, []

    def classify(self, texts, batch_size=None):
        time.sleep(self.seconds)
        self.asked += texts
        if "poison" in texts:
            raise RuntimeError("a secret of the code")
        return [{"label": "yes", "probabilities": {"yes": 1.0}} for _ in texts]


def test_a_poisoned_text_fails_alone_and_tells_nothing_of_the_code():
    with serving({"slow": Slow(0.01)}, wait=0.1) as address, httpx.Client() as session:
        bodies = [{"inputs": text} for text in ("a", "poison", "b")]
        threads, found = [], {}
        for body in bodies:
            ask = lambda x=body: found.setdefault(x["inputs"], session.post(address, json=x))  # noqa: E731
            threads.append(threading.Thread(target=ask))
            threads[-1].start()
        for thread in threads:
            thread.join()
        assert {text: x.status_code for text, x in found.items()} == {
            "a": 200, "poison": 500, "b": 200,
        }  # fmt: skip
        assert "secret" not in found["poison"].text


def test_what_waits_too_long_or_too_many_or_for_nobody_is_not_computed():
    slow = Slow(0.4)
    with serving({"slow": slow}, max_waiting=2, max_batch=1, deadline=0.6) as address:
        slow.asked.clear()
        statuses, threads = [], []

        def ask(text):
            response = httpx.post(address, json={"inputs": text})
            statuses.append(response.status_code)
            if response.status_code == 429:
                assert int(response.headers["retry-after"]) >= 1

        for text in LETTERS[:5]:
            threads.append(threading.Thread(target=ask, args=(text,)))
            threads[-1].start()
            time.sleep(0.03)
        with pytest.raises(httpx.ReadTimeout):  # Who goes away frees its place.
            time.sleep(0.5)
            httpx.post(address, json={"inputs": "gone"}, timeout=0.05)
        for thread in threads:
            thread.join()
        time.sleep(0.5)
        assert sorted(set(statuses)) == [200, 429, 504]
        assert "gone" not in slow.asked


def test_a_batch_is_of_like_length_and_begins_with_the_oldest():
    batches = []

    def answer(key, rows):
        batches.append([row[0] for row in rows])
        return rows

    async def ask():
        batcher = Batcher(answer, max_batch=2, wait=0.01)
        texts = ["a" * 9, "b", "c" * 8, "d" * 2]
        await asyncio.gather(*(batcher.ask("key", [(text,)]) for text in texts))
        await batcher.close()

    asyncio.run(ask())
    assert batches == [["a" * 9, "c" * 8], ["b", "d" * 2]]


def test_more_than_may_wait_is_refused_at_once():
    async def ask():
        batcher = Batcher(lambda key, rows: rows, max_waiting=2)
        with pytest.raises(Overloaded):
            await batcher.ask("key", [("a",)] * 3)
        assert await batcher.ask("key", [("a",)] * 2) == [("a",)] * 2
        await batcher.close()

    asyncio.run(ask())


def test_changed_files_are_answered_from_without_a_lost_request(tmp_path):
    path = tmp_path / "preset"
    tiny_classifier(label_names=["old", "older"]).save_to_preset(path)
    load = lambda: bert_keras.TextClassifier.from_preset(path)  # noqa: E731
    served = Served("x", load, path)

    async def ask():
        served.start()
        tiny_classifier(label_names=["new", "newer"]).save_to_preset(path)
        names, reload = set(), asyncio.create_task(served.reload_if_changed())
        for _ in range(20):
            [found] = await served.ask("classify", [("a",)])
            names.add(frozenset(found["probabilities"]))
        await reload
        [found] = await served.ask("classify", [("a",)])
        await served.batcher.close()
        return names, found

    names, found = asyncio.run(ask())
    assert names <= {frozenset({"old", "older"}), frozenset({"new", "newer"})}
    assert set(found["probabilities"]) == {"new", "newer"}


def test_the_command_answers_what_was_asked_before_it_ends(tmp_path):
    tiny_classifier(label_names=NAMES).save_to_preset(tmp_path / "preset")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bert_keras", "serve", str(tmp_path / "preset")]
    environment = {**os.environ, "BERT_KERAS_API_KEYS": "key"}
    process = subprocess.Popen([*command, f"--port={port}"], env=environment)
    try:
        address, statuses = f"http://127.0.0.1:{port}", []
        while process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{address}/health").status_code == 200:
                    break
            time.sleep(0.1)
        with httpx.Client(headers={"Authorization": "Bearer key"}, timeout=60) as session:
            body = {"inputs": ["a b c"] * 1000}
            ask = lambda: statuses.append(session.post(address, json=body).status_code)  # noqa: E731
            thread = threading.Thread(target=ask)
            thread.start()
            while "bert_keras_waiting_rows" not in session.get(f"{address}/metrics").text:
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            thread.join()
        assert statuses == [200]
        assert process.wait(60) in (0, -signal.SIGTERM)
    finally:
        process.kill()


def test_a_model_that_cannot_be_served_is_told_in_one_line(tmp_path):
    command = [sys.executable, "-m", "bert_keras", "serve", str(tmp_path / "nothing")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "nothing" in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
