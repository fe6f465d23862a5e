"""A server answers the clients that people have, and gives way where it must refuse."""

import asyncio
import contextlib
import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import keras
import langchain_openai
import numpy as np
import openai
import pytest
import tritonclient.http
import uvicorn
from huggingface_hub import InferenceClient
from tiny import VOCABULARY, tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.cli import serve
from bert_keras.export import runtime
from bert_keras.serving.app import make_app
from bert_keras.serving.batcher import Batcher, Overloaded
from bert_keras.serving.connection import Connection
from bert_keras.serving.guard import Guard
from bert_keras.serving.inside import attention, instruments_of
from bert_keras.serving.rows import Refusal
from bert_keras.serving.served import Served, Settings
from bert_keras.serving.server import Server

NAMES = ["no", "yes"]
SVG = "http://www.w3.org/2000/svg"  # A name, which nothing is fetched from.
HOSTILE = ["", "<script>alert(1)</script>", "\x00", "a" * 5000, "\ud7ff\U0010ffff", "[MASK] [CLS]"]


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


def test_langchains_embeddings_are_those_of_the_model(tasks, address):
    texts = ["a", "b c"]
    vectors = tasks["embedder"].embed(texts)
    unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    # Else it cuts texts into ids of another tokenizer.
    options = {"model": "embedder", "api_key": "none", "check_embedding_ctx_length": False}
    asked = langchain_openai.OpenAIEmbeddings(base_url=f"{address}/v1", **options)
    np.testing.assert_allclose(asked.embed_documents(texts), unit, atol=1e-5)
    np.testing.assert_allclose(asked.embed_query("b c"), unit[1], atol=1e-5)


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


def test_what_is_shown_of_a_models_inside_is_its_own(tasks, address, monkeypatch):
    def ask(path, **body):
        return httpx.post(address + path, json=body, timeout=60)

    found = ask("/saliency/classifier", row=["a cab b"], target="yes").json()
    expected = bert_keras.integrated_gradients(tasks["classifier"], "a cab b", "yes")
    pieces = expected.scores.tolist()  # [CLS] a c ##a ##b b [SEP]
    assert [x["text"] for x in found["words"]] == ["[CLS]", "a", "cab", "b", "[SEP]"]
    scores = [*pieces[:2], sum(pieces[2:5]), *pieces[5:]]
    assert [x["score"] for x in found["words"]] == pytest.approx(scores, abs=1e-4)
    assert found["logit"] == pytest.approx(expected.logit, abs=1e-5)
    likely = ask("/saliency/classifier", row=["a", "b c"]).json()["target"]
    assert likely == tasks["classifier"].classify(("a", "b c"))["label"]

    packed = tasks["reader"].preprocessor(["a"], ["b c"])
    outputs = tasks["reader"].backbone(packed, return_attentions=True)
    weights = keras.ops.convert_to_numpy(outputs["attentions"][0])[0]
    for head, expected in ((1, weights[1]), (None, weights.mean(0))):
        found = ask("/attention/reader", row=["a", "b c"], layer=0, head=head).json()
        assert found["tokens"] == ["[CLS]", "a", "[SEP]", "b", "c", "[SEP]"]
        np.testing.assert_allclose(found["weights"], expected, atol=1e-4)

    shown = {x["name"]: x["instruments"] for x in httpx.get(f"{address}/answers").json()}
    assert shown["classifier"]["saliency"] == {"labels": NAMES}
    assert all(x["attention"] == {"layers": 1, "heads": 2} for x in shown.values())
    assert {name for name, x in shown.items() if "saliency" in x} == {"classifier", "inference"}
    monkeypatch.setattr("bert_keras.serving.inside.MOST_TOKENS", 4)
    for path in ("/saliency/classifier", "/attention/classifier"):
        assert ask(path, row=["a b"]).status_code == 200
        refused = ask(path, row=["a b c"])
        assert refused.status_code == 413 and "at most 4 tokens" in refused.json()["error"]


def test_texts_are_ranked_by_one_score_and_read_whole_where_they_may_not_be_cut():
    options = {"num_classes": 3, "problem_type": "regression"}
    long = bert_keras.LongTextClassifier(
        tiny_backbone(), 2, tiny_preprocessor(max_length=6), num_windows=2
    )
    tasks = {"scores": tiny_classifier(**options), "long": long}
    with serving(tasks) as address, httpx.Client(base_url=address, timeout=60) as session:
        refused = session.post("/rerank", json={"query": "a", "texts": ["b"]})
        assert refused.status_code == 422 and "gives 3" in refused.json()["error"]
        found = session.post("/saliency/scores", json={"row": ["a"], "target": "2"}).json()
        [scores] = session.post("/answers/scores", json={"rows": [["a"]]}).json()
        assert found["logit"] == pytest.approx(scores["scores"][2], abs=1e-5)
        for number, status in ((8, 200), (9, 413)):  # Two windows of four tokens each.
            body = {"inputs": "a " * number, "parameters": {"truncation": False}}
            assert session.post("/models/long", json=body).status_code == status
            body["parameters"]["truncation"] = True
            assert session.post("/models/long", json=body).status_code == 200


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
        ("/embed", {"inputs": ["a", "a " * 15], "truncate": False}, 413, "inputs[1]: at most 16"),
        ("/predict", {"inputs": [["a", "a " * 13]], "truncate": False}, 413, "Received: 17"),
        ("/models/embedder", {"inputs": "a " * 15, "truncate": False}, 413, "at most 16 tokens"),
        ("/models/classifier", {"inputs": "a", "truncate": 3}, 422, "truncate"),
        ("/models/classifier", {"inputs": "a", "parameters": {"truncation": 1}}, 422, "truncation"),
        ("/models/embedder", {"inputs": "a", "parameters": {"normalize": 1}}, 422, "normalize"),
        ("/models/tagger", {"inputs": "a", "truncate": False}, 422, "truncate"),
        ("/models/classifier", {"inputs": "a", "options": {"use_gpu": True}}, 422, "use_gpu"),
        ("/saliency/tagger", {"row": ["a"]}, 422, "has: attention"),
        ("/saliency/classifier", {"row": ["a"], "target": "perhaps"}, 422, "no, yes"),
        ("/saliency/classifier", {"row": ["a", "b", "c"]}, 422, "1 to 2 texts"),
        ("/attention/classifier", {"row": [], "layer": 0}, 422, "1 to 2 texts"),
        ("/attention/classifier", {"row": ["a"], "layer": 1}, 422, "below 1 and 2"),
        ("/attention/classifier", {"row": ["a"], "head": 2}, 422, "below 1 and 2"),
        ("/attention/classifier", {"row": ["a"], "head": -1}, 422, "head"),
        ("/attention/nothing", {"row": ["a"]}, 404, "There are: classifier"),
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
    scripts = re.findall(r'src="([^"]+)"', page.text)
    assert len(scripts) == 5
    for script in scripts:
        text = httpx.get(address + script).text
        assert (
            "use strict" in text
            and "innerHTML" not in text
            and "http:" not in text.replace(SVG, "")
        )


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


class Held(Slow):
    """A task that says when it has begun, and answers when it is told to."""

    def __init__(self):
        super().__init__(0)
        self.begun, self.go = threading.Event(), threading.Event()
        self.go.set()

    def classify(self, texts, batch_size=None):
        self.begun.set()
        assert self.go.wait(60)
        return super().classify(texts)

    def hold(self):
        self.asked.clear()
        self.begun.clear()
        self.go.clear()


class Asker:
    """As much of a request as a server needs: it tells when its client goes."""

    def __init__(self):
        self.gone = asyncio.Event()

    async def receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}


def test_what_waits_too_long_or_too_many_or_for_nobody_is_not_computed():
    held, settings = Held(), Settings(max_waiting=2, max_batch=1, wait=0)
    served = Served("x", lambda: held, None, settings)
    patient, hasty = (Server([served], settings._replace(deadline=x)) for x in (60, 0.05))

    async def ask():
        served.start()
        held.hold()
        leaver, tasks = Asker(), {}

        def begin(text, server=patient, asker=None):
            asked = server.ask(asker or Asker(), served, "classify", [(text,)])
            tasks[text] = asyncio.create_task(asked)

        async def status_of(text):
            with pytest.raises(Refusal) as refused:
                await tasks[text]
            return refused.value.status

        begin("a")
        await asyncio.to_thread(held.begun.wait, 60)
        begin("b", asker=leaver)
        begin("c")
        while len(served.batcher.waiting) < 2:
            await asyncio.sleep(0)
        begin("d")
        assert await status_of("d") == 429
        leaver.gone.set()
        assert await status_of("b") == 499
        begin("e", server=hasty)
        assert await status_of("e") == 504
        held.go.set()
        await asyncio.gather(tasks["a"], tasks["c"])
        await served.batcher.close()
        assert held.asked == ["a", "c"]

    asyncio.run(ask())


def test_a_connection_that_is_closed_frees_its_place():
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


def test_only_fewer_rows_than_were_answered_before_wait_for_others():
    async def ask():
        batcher = Batcher(lambda key, rows: rows, wait=3600)
        many = [(text,) for text in "abc"]
        for rows in (many[:1], many, many):
            assert await asyncio.wait_for(batcher.ask("key", rows), 60) == rows
        asked = asyncio.create_task(batcher.ask("key", many[:2]))
        await asyncio.sleep(0.05)
        assert not asked.done() and len(batcher.waiting) == 2
        asked.cancel()
        batcher._task.cancel()

    asyncio.run(ask())


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


@contextlib.contextmanager
def commanded(*arguments, **environment):
    """Runs the command `serve`; yields its process and its address when it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "http://127.0.0.1:{1}".format(*free.getsockname())
    command = [sys.executable, "-m", "bert_keras", "serve", *map(str, arguments)]
    port = f"--port={address.rpartition(':')[2]}"
    process = subprocess.Popen([*command, port], env={**os.environ, **environment})
    try:
        while process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{address}/health").status_code == 200:
                    break
            time.sleep(0.1)
        yield process, address
    finally:
        process.kill()
        process.wait()


def test_the_command_answers_what_was_asked_before_it_ends(tmp_path):
    tiny_classifier(label_names=NAMES).save_to_preset(tmp_path / "preset")
    statuses = []
    with (
        commanded(
            tmp_path / "preset", "--runtime=keras", "--max_batch=1", BERT_KERAS_API_KEYS="key"
        ) as (process, address),
        httpx.Client(headers={"Authorization": "Bearer key"}, timeout=60) as session,
    ):
        body = {"inputs": ["a b c"] * 300}

        def ask():
            answer = session.post(address, json=body)
            statuses.append((answer.status_code, answer.headers.get("connection")))

        thread = threading.Thread(target=ask)
        thread.start()
        nothing = 'bert_keras_waiting_rows{model="preset"} 0.0'
        while nothing in session.get(f"{address}/metrics").text:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        thread.join()
        # Who keeps the connection is told that nothing more is answered on it.
        assert statuses == [(200, "close")]
        assert process.wait(60) in (0, -signal.SIGTERM)


@contextlib.contextmanager
def connected(address):
    """Yields a connection without any protocol."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as found:
        yield found


def post(path, body, **headers):
    """Returns the bytes of a request."""
    headers = {"Content-Type": "application/json", "Content-Length": len(body), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode() + body


def tensor(data='"data": ["a"]', further=""):
    """Returns a question of one text in the Open Inference Protocol, bytes."""
    named = '"name": "text", "datatype": "BYTES", "shape": [1]'
    return f'{{"inputs": [{{{named}, {data}}}]{further}}}'.encode()


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
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
        ("/answers/reader", b'{"rows": [["a", "b"]], "top_k": 1000000000}', 422),
        ("/answers/chooser", b'{"rows": [["a"' + b', "b"' * 1000 + b"]]}", 422),
        ("/answers/..%2F..%2Fetc%2Fpasswd", b'{"rows": [["a"]]}', 404),
        ("/answers/%0d%0aX-Header:%20a", b'{"rows": [["a"]]}', 404),
        ("/answers/classifier", b'{"rows": [["' + b"a" * 70000 + b'"]]}', 413),
        ("/tokens/classifier", b'{"inputs": [' + b'"",' * 2000 + b'""]}', 413),
        ("/embed", b'{"inputs": [' + b"1," * 9**6 + b"1]}", 422),
        ("/embed", json.dumps({"inputs": "a", **dict.fromkeys(map(str, range(99)))}).encode(), 422),
        ("/v2/models/classifier/infer", tensor(), 200),
        ("/v2/models/classifier/infer", tensor(further=', "outputs": 3'), 422),
        ("/v2/models/classifier/infer", tensor(further=', "id": NaN'), 422),
        ("/v2/models/classifier/infer", tensor('"data": ["a", "b"]'), 422),
        *(
            (
                "/v2/models/classifier/infer",
                tensor(f'"parameters": {{"binary_data_size": {size}}}'),
                422,
            )
            for size in (-1, 10**9, '"a"', "NaN", 0)
        ),
        ("/nowhere", b"{}", 404),
        ("/health", b"", 405),
    ],
)
def test_a_hostile_body_gets_a_status_and_a_reason(address, path, body, status):
    headers = {"Content-Type": "application/json"}
    response = httpx.post(address + path, content=body, headers=headers, timeout=20)
    assert response.status_code == status, response.text
    if status != 200:
        assert 0 < len(response.json()["error"]) <= 1000
    assert "x-header" not in response.headers


@pytest.mark.parametrize(
    ("length", "raw"),
    [("-5", b""), ("9" * 5000, b""), ("a", b""), (None, b"\x09\x00\x00\x00a"), (None, b"\x01")],
)
def test_bytes_behind_the_json_are_those_that_it_tells_of(address, length, raw):
    head = tensor(f'"parameters": {{"binary_data_size": {len(raw)}}}')
    headers = {"Inference-Header-Content-Length": length or str(len(head))}
    path = f"{address}/v2/models/classifier/infer"
    assert httpx.post(path, content=head + raw, headers=headers).status_code == 422


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 2**17, b"HTTP/1.1 400"),
        (b"GET /\x00 HTTP/1.1\r\n\r\n", b"HTTP/1.1 400"),
        (post("/embed", b"", **{"Content-Length": "-3"}), b"HTTP/1.1 400"),
        (
            b"POST /embed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            + (b"10000\r\n" + b"a" * 2**16 + b"\r\n") * 3,
            b"HTTP/1.1 413",
        ),
        (post("/embed", b"half", **{"Content-Length": 9}), b"HTTP/1.1 408"),
        (b"", b""),
        (b"GET / HTTP/1.1\r\nHo", b""),
        (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /hea", b"HTTP/1.1 200"),
    ],
)
def test_a_client_that_leaves_a_request_half_is_cut(impatient, sent, expected):
    with connected(impatient) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(sent)
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(2**16):
                received += part
    assert received.startswith(expected)
    assert bool(received) == bool(expected)


@pytest.fixture(scope="module")
def impatient(tasks):
    names = ("embedder",)
    some = {name: tasks[name] for name in names}
    with serving(some, patience=0.5, deadline=0.5, max_body=2**17, max_text=2**17) as found:
        yield found


def test_an_answer_that_nobody_reads_is_given_up_and_who_reads_slowly_gets_it_whole(impatient):
    wanted = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 500  # A longer answer than others.
    with connected(impatient) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)
        with contextlib.suppress(TimeoutError, ConnectionError):
            connection.settimeout(5)
            connection.sendall(wanted)
            for _ in range(50):  # It is cut in the middle.
                time.sleep(0.1)
                connection.send(b"x")
            pytest.fail("The connection is still there.")
    assert httpx.get(f"{impatient}/health").status_code == 200


def test_requests_in_one_packet_are_answered_in_their_order(address):
    bodies = [json.dumps({"rows": [[text]]}).encode() for text in ("a", "b b", "c")]
    expected = [
        httpx.post(
            f"{address}/answers/classifier", content=x, headers={"Content-Type": "application/json"}
        ).text
        for x in bodies
    ]
    with connected(address) as connection:
        ends = [{}, {}, {"Connection": "close"}]
        connection.sendall(
            b"".join(
                post("/answers/classifier", x, **end) for x, end in zip(bodies, ends, strict=True)
            )
        )
        received = b""
        while part := connection.recv(2**16):
            received += part
    places = [received.decode().find(text) for text in expected]
    assert -1 not in places
    assert places == sorted(places)


def test_paths_that_are_not_there_do_not_fill_the_metrics(address):
    for number in range(3):
        httpx.get(f"{address}/x{number}")
        httpx.post(f"{address}/models/x{number}", json={"inputs": "a"})
    found = httpx.get(f"{address}/metrics").text
    assert 'route="other",status="404"' in found
    assert "x1" not in found


def test_a_browser_may_send_the_key_as_its_password(tasks):
    with serving({"classifier": tasks["classifier"]}, api_keys=("one",)) as address:
        assert "Basic" in httpx.get(address).headers["www-authenticate"]
        assert httpx.get(address, auth=("anybody", "one")).status_code == 200
        for wrong in ("Basic ???", "Basic", "one", "Bearer"):
            assert httpx.get(address, headers={"Authorization": wrong}).status_code == 401


def test_half_bodies_of_many_are_bounded_together(monkeypatch):
    monkeypatch.setattr("bert_keras.serving.guard.MOST_BODIES", 2)
    settings, statuses = Settings(max_body=10, deadline=1.0), []
    guard = Guard(None, settings, lambda route, status, seconds: statuses.append(status))

    async def receive():
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"abc", "more_body": True}

    async def send(message):
        pass

    async def ask():
        scope = {"type": "http", "path": "/", "headers": []}
        await asyncio.gather(*(guard(scope, receive, send) for _ in range(8)))

    asyncio.run(ask())
    assert set(statuses) <= {413, 429}
    assert 429 in statuses
    assert guard.held == 0


def test_a_batch_that_cannot_be_counted_or_that_lacks_an_answer_ends_nothing():
    def observe(rows, seconds):
        raise RuntimeError("a metric")

    async def ask():
        batcher = Batcher(lambda key, rows: rows[: -key or None], observe=observe)
        with pytest.raises(ValueError, match="shorter"):
            await batcher.ask(1, [("a",), ("b",)])
        assert await batcher.ask(0, [("a",), ("b",)]) == [("a",), ("b",)]
        await batcher.close()

    asyncio.run(ask())


def test_who_goes_away_frees_places_at_once_and_what_is_computed_is_still_answered_at_the_end():
    begun, ended = threading.Event(), threading.Event()

    def answer(key, rows):
        begun.set()
        assert ended.wait(20)
        return rows

    async def ask():
        batcher = Batcher(answer, max_batch=1, wait=0, max_waiting=2)
        first = asyncio.create_task(batcher.ask("key", [("a",)]))
        await asyncio.to_thread(begun.wait, 20)
        gone = asyncio.create_task(batcher.ask("key", [("b",)] * 2))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await batcher.ask("key", [("c",)])
        gone.cancel()
        await asyncio.wait([gone])
        assert not batcher.waiting
        closed = asyncio.create_task(batcher.close())
        await asyncio.sleep(0)
        ended.set()
        assert await first == [("a",)]
        await closed

    asyncio.run(ask())


def test_a_stream_of_one_question_does_not_starve_another():
    answered = []

    def answer(key, rows):
        answered.append(key)
        return rows

    async def ask():
        batcher = Batcher(answer, max_batch=2, wait=0)
        many = [asyncio.create_task(batcher.ask("many", [("a",)])) for _ in range(6)]
        await asyncio.sleep(0)
        one = asyncio.create_task(batcher.ask("one", [("a",)]))
        await asyncio.sleep(0)
        many += [asyncio.create_task(batcher.ask("many", [("a",)])) for _ in range(20)]
        await asyncio.gather(one, *many)
        await batcher.close()

    asyncio.run(ask())
    assert answered.index("one") <= 3


def test_files_that_cannot_be_loaded_are_not_tried_again_before_they_change(tmp_path):
    path, tried = tmp_path / "model", []
    path.write_text("good")

    def load():
        tried.append(path.read_text())
        if "bad" in tried[-1]:
            raise ValueError("It is half written.")
        return Slow(0)

    served = Served("x", load, path)
    served.start()
    path.write_text("bad")
    with pytest.raises(ValueError, match="half"):
        asyncio.run(served.reload_if_changed())
    asyncio.run(served.reload_if_changed())
    path.write_text("good again")
    asyncio.run(served.reload_if_changed())
    assert tried == ["good", "bad", "good again"]


def test_a_program_answers_where_it_is_sooner_and_its_task_shows_the_inside(tasks, tmp_path):
    for name in ("classifier", "filler"):
        tasks[name].save_to_preset(tmp_path / name)
    program = serve.loaded(str(tmp_path / "classifier"))
    assert isinstance(program, runtime.ExportedTask)
    assert set(instruments_of(program)) == {"saliency", "attention"}
    assert attention(program, ("a",), 0)["tokens"] == ["[CLS]", "a", "[SEP]"]
    assert isinstance(serve.loaded(str(tmp_path / "filler")), bert_keras.MaskedLM)
    assert serve.loaded(str(tmp_path / "filler"), "keras").preprocessor.unpadded
    tasks["filler"].export(tmp_path / "program", format="onnx", verbose=False)
    with pytest.raises(ValueError, match="Serve its task"):
        serve.loaded(str(tmp_path / "program"), "keras")


def test_an_exported_program_answers_as_its_task_and_shows_nothing_of_its_inside(tasks, tmp_path):
    tasks["filler"].export(tmp_path / "filler", format="onnx", verbose=False)
    with commanded(tmp_path / "filler") as (_, address):
        [described] = httpx.get(f"{address}/answers").json()
        assert described["instruments"] == {}
        refused = httpx.post(f"{address}/attention/filler", json={"row": ["a"]})
        assert refused.status_code == 422 and "neither" in refused.json()["error"]
        body = {"rows": [["a [MASK] b"], ["[MASK]"]], "top_k": 3}
        found = httpx.post(f"{address}/answers/filler", json=body).json()
        expected = tasks["filler"].fill_mask(["a [MASK] b", "[MASK]"], top_k=3)
        assert _rounded(found) == _rounded(json.loads(json.dumps(expected)))
        found = client(address, "filler").fill_mask("a [MASK] b", top_k=3)
        assert [x.token for x in found] == [VOCABULARY.index(x) for x, _ in expected[0][0]]
        [found] = httpx.post(f"{address}/tokens/filler", json={"inputs": "a"}).json()
        assert [x["text"] for x in found] == ["[CLS]", "a", "[SEP]"]
        assert httpx.get(f"{address}/info").json()["max_input_length"] == 16


def test_an_address_that_is_taken_is_told_before_models_load():
    with serve.bound("127.0.0.1", 0) as first:
        first.listen()
        with pytest.raises(OSError, match=r"Choose another --port"):
            serve.bound(*first.getsockname())
    with pytest.raises(OSError, match="invalid"):
        serve.bound("no.such.host.invalid", 0)
    with serve.bound("::1", 0) as other:
        assert other.family == socket.AF_INET6
