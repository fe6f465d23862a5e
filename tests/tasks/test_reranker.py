"""Cross-encoders: scores of pairs, rankings, and the activation that a checkpoint names."""

import itertools
import json
import shutil

import numpy as np
import pytest
from checks import cases, compute, refused, to_numpy
from tiny import ready_inputs, tiny_backbone, tiny_preprocessor

import bert_keras
from bert_keras.training import (
    LambdaLoss,
    ListwiseCrossentropy,
    MarginMSE,
    RelevanceCrossentropy,
    TeacherDivergence,
)

pytestmark = pytest.mark.once

QUERIES, TEXTS = ["a b", "c", "a b"], ["c d", "e f g", "h"]
TORCH = "torch.nn.modules"
FUNCTIONS = {"linear": lambda x: x, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "tanh": np.tanh}


def tiny_reranker(dropout=0.1, **options):
    backbone = tiny_backbone(initializer_range=0.5, dropout=dropout)
    return bert_keras.Reranker(backbone, tiny_preprocessor(), **options)


# A reranker that no test trains.
shared = pytest.fixture(tiny_reranker, scope="module")


@pytest.mark.parametrize("activation", FUNCTIONS)
def test_scores_are_activated_logits_in_every_format(activation, tmp_path, reloaded):
    reranker = tiny_reranker(activation=activation)
    logits = reranker.predict((QUERIES, TEXTS), verbose=0)[:, 0]
    expected = FUNCTIONS[activation](logits)
    assert np.ptp(logits) > 0.1
    models = [reranker, reloaded(reranker)]
    for write in (reranker.save_to_preset, reranker.export_to_huggingface):
        write(tmp_path / "folder")
        models.append(bert_keras.Reranker.from_preset(tmp_path / "folder"))
        shutil.rmtree(tmp_path / "folder")
    for model in models:
        assert model.activation == activation
        np.testing.assert_allclose(model.score(QUERIES, TEXTS), expected, atol=1e-6)
        found = [answer["score"] for answer in model.classify((QUERIES, TEXTS))]
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_prompt_goes_before_each_query(tmp_path):
    plain, prompts = tiny_reranker(), {"find": "h g ", "none": ""}
    reranker = tiny_reranker(prompts=prompts, default_prompt="find")
    reranker.set_weights(plain.get_weights())
    asked = [f"h g {query}" for query in QUERIES]
    expected, bare = plain.score(asked, TEXTS), plain.score(QUERIES, TEXTS)
    assert np.abs(expected - bare).max() > 1e-4
    reranker.export_to_huggingface(tmp_path / "theirs")
    settings = json.loads((tmp_path / "theirs/config_sentence_transformers.json").read_text())
    assert settings["prompts"] == prompts and settings["default_prompt_name"] == "find"
    assert settings["model_type"] == "CrossEncoder"
    reranker.save_to_preset(tmp_path / "ours")
    for folder in ("theirs", "ours"):
        found = bert_keras.Reranker.from_preset(tmp_path / folder)
        np.testing.assert_allclose(found.score(QUERIES, TEXTS), expected, atol=1e-6)
    scores = [answer["score"] for answer in reranker.classify((QUERIES, TEXTS))]
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    logits = reranker.predict((QUERIES, TEXTS), verbose=0)
    np.testing.assert_array_equal(logits, plain.predict((asked, TEXTS), verbose=0))
    for prompt in ("", "none", "h g "):
        wanted = expected if prompt.strip() and prompt != "none" else bare
        np.testing.assert_allclose(reranker.score(QUERIES, TEXTS, prompt=prompt), wanted, atol=1e-6)
    assert reranker.rank(QUERIES[0], TEXTS) == plain.rank(asked[0], TEXTS)
    assert reranker.rank(QUERIES[0], TEXTS, prompt="") == plain.rank(QUERIES[0], TEXTS)
    labels = [0.5, 0.0, 1.0]
    losses = [
        reranker.evaluate((QUERIES, TEXTS), labels, verbose=0)[0],
        plain.evaluate((asked, TEXTS), labels, verbose=0)[0],
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)
    lists = (QUERIES[:2], [TEXTS[:2], TEXTS[1:]])
    asked_lists = (asked[:2], lists[1])
    one, other = (
        x.evaluate(y, [[1, 0], [0, 1]], verbose=0)[0]
        for x, y in ((reranker, lists), (plain, asked_lists))
    )
    assert one == pytest.approx(other, abs=1e-6)
    with pytest.raises(ValueError, match="`prompt` must be a name"):
        reranker.score(QUERIES, TEXTS, prompt="nowhere")
    with pytest.raises(ValueError, match="`prompt` must be a text that"):  # There are no prompts.
        plain.rank(QUERIES[0], TEXTS, prompt="query")
    with pytest.raises(ValueError, match="`default_prompt` must be one of"):
        tiny_reranker(default_prompt="find")
    reranker.preprocessor = None
    with pytest.raises(ValueError, match="has no preprocessor"):
        reranker.score(QUERIES, TEXTS, prompt="find")


def test_texts_are_ranked_for_a_query():
    reranker = tiny_reranker()
    scores = reranker.score("a b", TEXTS)
    np.testing.assert_allclose(scores, reranker.score(["a b"] * 3, TEXTS), atol=1e-6)
    with pytest.raises(TypeError, match="texts"):
        reranker.score("a b", TEXTS[0])
    with pytest.raises(TypeError, match=r"for each query \(one is a str\)"):
        reranker.rank(["a b"], TEXTS[:1])
    ranked = reranker.rank("a b", TEXTS)
    assert [hit["index"] for hit in ranked] == list(np.argsort(-scores))
    np.testing.assert_allclose([hit["score"] for hit in ranked], np.sort(scores)[::-1], atol=1e-6)
    assert reranker.rank("a b", TEXTS, top_k=1) == ranked[:1]
    assert reranker.rank("a b", []) == [] and reranker.score("a b", []).shape == (0,)
    with pytest.raises(ValueError, match="top_k"):
        reranker.rank("a b", TEXTS, top_k=0)
    with pytest.raises(ValueError, match="activation"):
        tiny_reranker(activation="relu")


def test_training_lowers_the_cross_entropy_of_relevance():
    reranker = tiny_reranker()
    reranker.compile(learning_rate=1e-2)
    labels = [1.0, 0.0, 0.25]
    logits = reranker.predict((QUERIES, TEXTS), verbose=0)[:, 0].astype("float64")
    expected = np.mean(np.log1p(np.exp(logits)) - labels * logits)
    before = reranker.evaluate((QUERIES, TEXTS), labels, verbose=0)[0]
    assert before == pytest.approx(expected, abs=1e-5)
    reranker.fit((QUERIES, TEXTS), labels, epochs=10, verbose=0)
    assert reranker.evaluate((QUERIES, TEXTS), labels, verbose=0)[0] < before


def test_one_batch_has_the_loss_of_its_pairs(shared):
    inputs, labels = ready_inputs(4, 6), np.array([0.0, 1.0, 1.0, 0.25])
    expected = shared.evaluate(inputs, labels, verbose=0)
    np.testing.assert_allclose(shared.test_on_batch(inputs, labels), expected, rtol=1e-5)


def test_another_loss_takes_labels_of_any_size():
    reranker = tiny_reranker()
    with pytest.raises(ValueError, match=r"from 0 to 1.*Received 2"):
        reranker.fit((QUERIES, TEXTS), [0, 1, 2], verbose=0)
    reranker.compile("sgd", loss="mse")
    reranker.fit((QUERIES, TEXTS), [0, 1, 2], epochs=1, verbose=0)


SIGMOID, IDENTITY = f"{TORCH}.activation.Sigmoid", f"{TORCH}.linear.Identity"


def cross_encoder(reranker, folder, config, beside=None):
    """Writes the folder of a cross-encoder; returns its logits."""
    reranker.export_to_huggingface(folder)
    path = folder / "config.json"
    saved = json.loads(path.read_text())
    del saved["sentence_transformers"], saved["problem_type"]
    path.write_text(json.dumps(saved | config))
    if beside is not None:
        (folder / "config_sentence_transformers.json").write_text(json.dumps(beside))
    return reranker.predict((QUERIES, TEXTS), verbose=0)[:, 0]


@cases(
    ({}, None, "sigmoid"),
    ({"sentence_transformers": {"activation_fn": IDENTITY}}, None, "linear"),
    ({"sbert_ce_default_activation_function": IDENTITY}, None, "linear"),
    ({"sbert_ce_default_activation_function": SIGMOID}, None, "sigmoid"),
    ({}, {"activation_fn": f"{TORCH}.activation.Tanh"}, "tanh"),
    (
        {"sentence_transformers": {"activation_fn": SIGMOID}},
        {"activation_fn": IDENTITY},
        "linear",
    ),
)
def test_the_activation_of_a_checkpoint_is_read_wherever_it_is(
    shared, tmp_path, recwarn, config, beside, activation
):
    logits = cross_encoder(shared, tmp_path, config, beside)
    reranker = bert_keras.Reranker.from_preset(tmp_path)
    assert not [x for x in recwarn if x.category is UserWarning]
    assert reranker.activation == activation
    expected = FUNCTIONS[activation](logits)
    np.testing.assert_allclose(reranker.score(QUERIES, TEXTS), expected, atol=1e-5)


def test_a_classifier_of_a_cross_encoder_gives_its_outputs_and_says_so(shared, tmp_path):
    logits = cross_encoder(shared, tmp_path, {"sentence_transformers": {"activation_fn": SIGMOID}})
    with pytest.warns(UserWarning, match="Load it as a `Reranker`"):
        classifier = bert_keras.TextClassifier.from_preset(tmp_path)
    found = [answer["score"] for answer in classifier.classify((QUERIES, TEXTS))]
    np.testing.assert_allclose(found, logits, atol=1e-5)
    classifier.export_to_huggingface(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    assert saved["sentence_transformers"] == {"activation_fn": IDENTITY}


def test_the_files_of_an_embedder_do_not_stay_beside_a_reranker(tmp_path):
    bert_keras.TextEmbedder(tiny_backbone(), tiny_preprocessor()).export_to_huggingface(tmp_path)
    tiny_reranker().export_to_huggingface(tmp_path)
    assert not list(tmp_path.glob("modules.json")) + list(tmp_path.glob("*sentence*"))


def test_an_unknown_activation_is_refused_and_other_classes_get_a_new_head(shared, tmp_path):
    unknown = {"activation_fn": f"{TORCH}.Softshrink"}
    cross_encoder(shared, tmp_path, {"sentence_transformers": unknown})
    with pytest.raises(ValueError, match="'Softshrink'"):
        bert_keras.Reranker.from_preset(tmp_path)
    bert_keras.TextClassifier(tiny_backbone(), 3, tiny_preprocessor()).save_to_preset(tmp_path)
    with pytest.warns(UserWarning, match="other \\['num_classes'\\]"):
        assert bert_keras.Reranker.from_preset(tmp_path).score("a", ["b"]).shape == (1,)


CANDIDATES = (["a b", "c"], [["c d", "e f g"], ["h", "a", "b c"]])
GRADES = [[1, 0], [0, 2, 1]]
TRIPLES = (["a b", "c"], ["c d", "h"], ["e f g", "a"], ["g", "b c"])


@pytest.mark.eager
@cases(
    ("auto", TRIPLES, None),
    ("auto", CANDIDATES, [[1, 0], [0, 1, 0.5]]),
    (ListwiseCrossentropy(), TRIPLES, None),
    pytest.param(LambdaLoss(), CANDIDATES, GRADES, marks=pytest.mark.each_backend),
    (MarginMSE(), CANDIDATES, [[2.5, -1], [3, 0, 4]]),
    (TeacherDivergence(), TRIPLES, np.arange(6.0).reshape(2, 3)),
    (RelevanceCrossentropy(3.0), TRIPLES, None),
)
def test_lists_of_candidates_are_scored_like_pairs(loss, x, y):
    reranker = tiny_reranker(dropout=0.0)
    reranker.compile(learning_rate=2e-3, loss=loss)
    lists = x[1] if len(x) == 2 else list(zip(*x[1:], strict=True))
    logits = np.full((2, 3), 7.0, "float32")
    labels = np.full((2, 3), -np.inf, "float32")
    pairs = [(query, text) for query, texts in zip(x[0], lists, strict=True) for text in texts]
    scores = iter(reranker.predict(tuple(zip(*pairs, strict=True)), verbose=0)[:, 0])
    for row, texts in enumerate(lists):
        logits[row, : len(texts)] = [*itertools.islice(scores, len(texts))]
        labels[row, : len(texts)] = [1, 0, 0] if y is None else y[row]
    function = reranker.loss if loss == "auto" else loss
    expected = float(to_numpy(compute(function, labels, logits)))
    before, *accuracy = reranker.evaluate(x, y, verbose=0)
    assert before == pytest.approx(expected, rel=1e-4)
    exists = np.isfinite(labels)
    assert accuracy == [pytest.approx(((logits > 0) == (labels > 0.5))[exists].mean())]
    reranker.fit(x, y, epochs=4, verbose=0)
    assert reranker.evaluate(x, y, verbose=0)[0] < before


@refused(
    (CANDIDATES, None, "needs labels.*y=None"),
    ((QUERIES, TEXTS), None, "needs labels.*y=None"),
    (CANDIDATES, [[1, 0], [1]], "Each text of a query needs a label"),
    (CANDIDATES, [[1, 0], [0, 2, 0]], "from 0 to 1.*Received 2"),
    (CANDIDATES, [[1, 0], [0, np.nan, 0]], "finite number"),
    ((["a", "b"], [["c"], []]), [[1], []], "at least one text"),
    ((["a"], ["b"], ["b"]), None, "must differ from the positive"),
    ((["a"], ["b"], ["c", "d"]), None, "equally long"),
)
def test_candidates_that_do_not_fit_are_refused(shared, x, y):
    shared.fit(x, y, verbose=0)


def test_losses_of_lists_refuse_pairs_and_predict_refuses_lists():
    reranker = tiny_reranker()
    with pytest.raises(ValueError, match="Call `score"):
        reranker.predict(CANDIDATES)
    reranker.compile(loss=ListwiseCrossentropy())
    with pytest.raises(ValueError, match="one candidate a row"):
        reranker.fit((QUERIES, TEXTS), [0, 1, 0], verbose=0)
