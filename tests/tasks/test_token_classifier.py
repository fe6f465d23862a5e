import re
import warnings

import numpy as np
import pytest
import scipy.special
from checks import check_task, refusals, to_numpy
from theirs import reference_model
from tiny import Batches, as_tensorflow, batches_of, ready_inputs, tiny_preprocessor, tiny_task
from tiny import tiny_backbone as tiny_bert

import bert_keras
from bert_keras.answers.tagged_texts import tagged_texts
from bert_keras.metrics.entities import entity_scores
from bert_keras.training.losses import SparseCrossentropy

pytestmark = pytest.mark.once

VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *("ada", "love", "##lace", "lived", "in", "london", "paris", "she", "met", "bob", "."),
    *("北", "京", "很", "大"),
]
NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
SENTENCES = [
    ["Ada", "Lovelace", "lived", "in", "London"],
    ["She", "met", "Bob", "in", "Paris", "."],
    ["Bob", "met", "Ada", "Lovelace"],
    ["London"],
]
TAGS = [
    ["B-PER", "I-PER", "O", "O", "B-LOC"],
    ["O", "O", "B-PER", "O", "B-LOC", "O"],
    ["B-PER", "O", "B-PER", "I-PER"],
    ["B-LOC"],
]


def tiny_tagger(backbone=None, max_length=16, **options):
    preprocessor = tiny_preprocessor(max_length, VOCABULARY)
    names = {"num_classes": len(NAMES), "label_names": NAMES, "preprocessor": preprocessor}
    return tiny_task("TokenClassifier", backbone or tiny_backbone(), **{**names, **options})


def tiny_backbone(**overrides):
    return tiny_bert(vocabulary_size=len(VOCABULARY), initializer_range=0.2, **overrides)


# A tagger that no test changes: it is compiled once for all.
shared = pytest.fixture(tiny_tagger, scope="module")


@pytest.fixture(scope="module")
def shared_chain():
    """A tagger with a chain that no test changes."""
    return with_random_chain(tiny_tagger(crf=True))


def with_random_chain(tagger):
    rng = np.random.default_rng(0)
    for weight in tagger.head.crf.weights:
        weight.assign(rng.normal(size=weight.shape) * 2)
    return tagger


def batch_of(tagger, sentences, tags):
    """The one batch that training would see."""
    return batches_of(tagger, sentences, tags, batch_size=16)[0]


# The contract of models


def test_it_keeps_the_contract_of_tasks(tmp_path):
    tagger = tiny_tagger(crf=True, dropout=0.3, stride=3, frozen="embeddings")
    with_random_chain(tagger)
    text = "Ada Lovelace met Bob in Paris."
    answers = {"tag": (SENTENCES,), "predict_tags": (SENTENCES,)}
    loaded, _ = check_task(tagger, ready_inputs(3, 7), tmp_path, answers)
    assert loaded.tag(text) == tagger.tag(text)
    loss = tagger.evaluate(SENTENCES, TAGS, verbose=0)[0]
    np.testing.assert_allclose(loaded.evaluate(SENTENCES, TAGS, verbose=0)[0], loss, rtol=1e-5)


# Training


@pytest.mark.parametrize("crf", [False, True])
def test_it_learns_a_handful_of_sentences_by_heart(crf):
    tagger = tiny_tagger(crf=crf, dropout=0.0, backbone=tiny_backbone(dropout=0.0))
    tagger.compile(learning_rate=1e-2)
    pooler = to_numpy(tagger.backbone.pooler.dense.kernel.value).copy()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*[Gg]radient.*")
        tagger.fit(SENTENCES, TAGS, epochs=60, verbose=0)
    assert tagger.predict_tags(SENTENCES) == TAGS
    scores = tagger.evaluate_tags(SENTENCES, TAGS)
    assert scores["accuracy"] == scores["f1"] == 1
    # What no tag depends on stays, without weight decay and without a warning.
    np.testing.assert_array_equal(to_numpy(tagger.backbone.pooler.dense.kernel.value), pooler)
    if crf:
        # The chain learns faster than the encoder, or it would not move.
        multipliers = tagger.optimizer.get_config()["learning_rate_multipliers"]
        assert multipliers == [["head/crf/", 100.0]]
        assert np.abs(to_numpy(tagger.head.crf.transitions.value)).max() > 0.1


def test_first_pieces_carry_the_labels_and_other_pieces_have_weight_0(shared):
    _, labels, weights = batch_of(shared, SENTENCES[:1], TAGS[:1])
    # [CLS] ada love ##lace lived in london [SEP]
    assert labels[0, :8].tolist() == [0, 1, 2, 0, 0, 0, 3, 0]
    assert weights[0].tolist() == [0, 1, 1, 0, 1, 1, 1] + [0] * (weights.shape[1] - 7)


def test_each_word_has_the_weight_of_its_sentence(shared):
    batches = batches_of(shared, SENTENCES, TAGS, sample_weight=[0.5, 0, 1, 2], batch_size=16)
    _, _, weights = batches[0]
    rows, _ = batches.batches[0]
    expected = dict(enumerate([2.5, 0, 4, 2]))
    assert {row: weights[i].sum() for i, row in enumerate(rows)} == expected


@pytest.mark.each_backend
@pytest.mark.eager
def test_the_loss_is_the_mean_over_words(shared):
    logits = np.concatenate(shared.predict(SENTENCES, verbose=0))
    labels = [NAMES.index(tag) for tags in TAGS for tag in tags]
    expected = SparseCrossentropy()(np.array(labels), logits)
    loss, accuracy = shared.evaluate(SENTENCES, TAGS, verbose=0)
    np.testing.assert_allclose(loss, to_numpy(expected), rtol=1e-5)
    np.testing.assert_allclose(accuracy, (logits.argmax(-1) == labels).mean(), rtol=1e-6)


def test_a_tag_may_be_a_probability_of_each():
    tagger = tiny_tagger()
    logits = np.concatenate(tagger.predict(SENTENCES, verbose=0)).astype("float64")
    log_p = scipy.special.log_softmax(logits, axis=-1)
    shares = np.random.default_rng(0).dirichlet(np.ones(5), len(log_p))
    shares[0] = np.eye(5)[3]  # A number beside probabilities is a probability of 1.
    rows = np.split(shares, np.cumsum([*map(len, SENTENCES)])[:-1])
    rows = [[*row] for row in rows]
    rows[0][0] = 3
    tagger.compile(metrics=["categorical_crossentropy"])
    found = tagger.evaluate(SENTENCES, rows, verbose=0, return_dict=True)
    expected = -(shares * log_p).sum(axis=-1).mean()
    assert found["loss"] == pytest.approx(expected, rel=1e-5)
    assert found["categorical_crossentropy"] == pytest.approx(expected, rel=1e-5)
    likeliest = shares.argmax(-1) == logits.argmax(-1)
    assert found["accuracy"] == pytest.approx(likeliest.mean(), rel=1e-6)
    history = tagger.fit(SENTENCES, rows, class_weight={0: 2.0}, epochs=1, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    inputs, labels, weights = batch_of(tagger, SENTENCES, rows)
    tagger.fit(inputs, labels, class_weight={0: 2.0}, verbose=0)
    loss = tagger.evaluate(inputs, labels, sample_weight=weights, verbose=0)[0]
    again = tagger.evaluate(SENTENCES, rows, verbose=0)[0]
    assert loss == pytest.approx(again, rel=1e-5)
    with pytest.raises(ValueError, match=r"5, one of each tag.*index 1"):
        tagger.fit([["a", "b"]], [[0, [0.5, 0.5]]])
    with pytest.raises(ValueError, match="crf=False"):
        tiny_tagger(crf=True).fit([["a"]], [[[0.2] * 5]])


def test_the_chain_s_loss_is_the_negative_log_likelihood_per_word(shared_chain):
    total = 0
    for emissions, tags in zip(shared_chain.predict(SENTENCES, verbose=0), TAGS, strict=True):
        labels = np.array([[NAMES.index(tag) for tag in tags]])
        total -= float(to_numpy(shared_chain.head.crf.log_likelihood(emissions[None], labels))[0])
    loss = shared_chain.evaluate(SENTENCES, TAGS, verbose=0)[0]
    np.testing.assert_allclose(loss, total / sum(map(len, TAGS)), rtol=1e-5)
    weighted = shared_chain.evaluate(SENTENCES, TAGS, sample_weight=[1, 1, 1, 0], verbose=0)[0]
    short = shared_chain.evaluate(SENTENCES[:3], TAGS[:3], verbose=0)[0]
    np.testing.assert_allclose(weighted, short, rtol=1e-5)


def ready_batch():
    inputs = ready_inputs(3, 7)
    return inputs, np.random.default_rng(1).integers(0, 5, inputs["token_ids"].shape)


def of_torch(inputs, labels):
    import torch

    class Rows(torch.utils.data.IterableDataset):  # Of unknown length.
        def __iter__(self):
            for row, tags in enumerate(labels):
                yield {name: array[row] for name, array in inputs.items()}, tags

    return torch.utils.data.DataLoader(Rows(), batch_size=3)


@pytest.mark.also_on("tensorflow")
@pytest.mark.eager
def test_padding_weighs_nothing_in_a_dataset_without_weights(shared, shared_chain):
    inputs, labels = ready_batch()
    weights = inputs["padding_mask"].astype("float32")
    for task in (shared, shared_chain):
        expected = task.evaluate(inputs, labels, sample_weight=weights, verbose=0)
        np.testing.assert_allclose(task.evaluate(inputs, labels, verbose=0), expected, rtol=1e-6)
        datasets = [Batches([(inputs, labels)]), as_tensorflow((inputs, labels), 3)]
        datasets.append(of_torch(inputs, labels))
        for found in [task.evaluate(x, verbose=0) for x in datasets]:
            np.testing.assert_allclose(found, expected, rtol=1e-5)
        np.testing.assert_allclose(task.test_on_batch(inputs, labels), expected, rtol=1e-5)


@pytest.mark.also_on("jax")
@pytest.mark.eager
def test_the_weight_of_an_example_is_that_of_each_of_its_words(shared, shared_chain):
    inputs, labels = ready_batch()
    examples = np.array([1.0, 0.0, 3.0], "float32")
    for task in (shared, shared_chain):
        weights = examples[:, None] * inputs["padding_mask"]
        expected = task.evaluate(inputs, labels, sample_weight=weights, verbose=0)
        for example_weights in (examples, examples[:, None]):
            found = [
                task.evaluate(Batches([(inputs, labels, example_weights)]), verbose=0),
                task.evaluate(inputs, labels, sample_weight=example_weights, verbose=0),
                task.test_on_batch(inputs, labels, example_weights),
            ]
            np.testing.assert_allclose(found, [expected] * 3, rtol=1e-5)
    # Without a mask each token is real.
    without = {name: inputs[name] for name in ("token_ids", "segment_ids")}
    expected = shared.evaluate(
        {**without, "padding_mask": np.ones_like(labels)}, labels, sample_weight=examples, verbose=0
    )
    found = shared.evaluate(without, labels, sample_weight=examples, verbose=0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


# Long sentences


def test_words_beyond_the_length_limit_are_predicted_and_trained_once():
    tagger, words = tiny_tagger(max_length=8), [SENTENCES[0] * 5, ["Bob"]]
    assert [len(rows) for rows in tagger.predict(words, verbose=0)] == [25, 1]
    assert [len(tags) for tags in tagger.predict_tags(words)] == [25, 1]
    _, labels, weights = batch_of(tagger, words, [TAGS[0] * 5, ["B-PER"]])
    assert weights.sum() == 26
    counts = np.bincount(labels[weights > 0], minlength=5)
    assert counts.tolist() == [10, 6, 5, 5, 0]


# Answers


def test_an_answer_names_words_and_entities_with_their_places():
    tagger = tiny_tagger()
    set_tags(tagger, {"ada": 1, "love": 2, "bob": 1, "paris": 3})
    text = "Ada  Lovelace met\tBob in Paris."
    answer = tagger.tag(text)
    assert answer["text"] == text
    assert answer["words"] == [
        *(("Ada", "B-PER"), ("Lovelace", "I-PER"), ("met", "O"), ("Bob", "B-PER")),
        *(("in", "O"), ("Paris", "B-LOC"), (".", "O")),
    ]
    found = [(e["type"], e["text"], e["start"], e["end"]) for e in answer["entities"]]
    assert found == [
        ("PER", "Ada  Lovelace", 0, 13),
        ("PER", "Bob", 18, 21),
        ("LOC", "Paris", 25, 30),
    ]
    assert all(text[e["start"] : e["end"]] == e["text"] for e in answer["entities"])
    assert all(0.9 < e["score"] <= 1 for e in answer["entities"])


def set_tags(tagger, tags):
    """Makes the model give each token of the vocabulary a tag of its own, whatever surrounds it."""
    table = np.zeros((len(VOCABULARY), 16), "float32")
    for token, tag in {**dict.fromkeys(VOCABULARY, 0), **tags}.items():
        table[VOCABULARY.index(token), tag] = 10
    backbone = tagger.backbone
    for weight in [*backbone.embeddings.weights, *backbone.encoder.weights]:
        if weight.name not in ("gamma",):
            weight.assign(np.zeros(weight.shape))
    backbone.embeddings.token_embedding.embeddings.assign(table)
    kernel = np.zeros((16, len(NAMES)), "float32")
    kernel[range(len(NAMES)), range(len(NAMES))] = 5
    tagger.head.dense.kernel.assign(kernel)


def test_the_chain_decides_over_the_whole_sentence():
    tagger = tiny_tagger(crf=True, max_length=8)
    # I-PER follows a person only.
    transitions, start = np.zeros((5, 5)), np.zeros(5)
    transitions[[0, 3, 4], 2] = start[2] = -1000
    tagger.head.crf.transitions.assign(transitions)
    tagger.head.crf.start.assign(start)
    for tags in tagger.predict_tags([SENTENCES[0] * 6, SENTENCES[1]]):
        pairs = zip(["O", *tags[:-1]], tags, strict=True)
        assert all(before in ("B-PER", "I-PER") for before, tag in pairs if tag == "I-PER")


def test_parts_of_speech_mark_no_entities():
    tagger = tiny_tagger(num_classes=3, label_names=["NOUN", "VERB", "X"])
    answer = tagger.tag("Ada met Bob")
    assert answer["entities"] == []
    assert {tag for _, tag in answer["words"]} <= {"NOUN", "VERB", "X"}
    scores = tagger.evaluate_tags([["Ada", "met"]], [["NOUN", "VERB"]])
    assert set(scores) == {"accuracy"}


@pytest.mark.parametrize("odd", ["0", "B_PER", "[PAD]"])
def test_a_mistyped_tag_of_entities_is_refused_by_name(odd):
    tagger = tiny_tagger(num_classes=4, label_names=["O", "B-PER", "I-PER", odd])
    with pytest.raises(ValueError, match=re.escape(f"Received: {odd!r}")):
        tagger.evaluate_tags([["Ada", "met"]], [["B-PER", "O"]])
    # `tag` reads it as O.
    words = [("Ada met Eve", [(0, 3), (4, 7), (8, 11)])]
    (answer,) = tagged_texts(words, [np.eye(4)[[1, 3, 1]]], tagger.label_names)
    assert [entity["text"] for entity in answer["entities"]] == ["Ada", "Eve"]


def test_words_without_types_are_scored_as_entities():
    tagger = tiny_tagger(num_classes=4, label_names=["B", "M", "E", "S"])
    assert "f1" in tagger.evaluate_tags([["北", "京", "很"]], [["B", "E", "S"]])


def test_without_names_tags_are_numbers():
    tagger = tiny_tagger(label_names=None)
    tagger.fit([["Ada", "met"]], [[1, 0]], epochs=1, verbose=0)
    assert all(isinstance(tag, int) for tag in tagger.predict_tags([["Ada", "met"]])[0])
    assert tagger.tag("Ada")["entities"] == []


def test_scores_are_those_of_the_predicted_tags(shared):
    predicted = shared.predict_tags(SENTENCES)
    scores = shared.evaluate_tags(SENTENCES, TAGS)
    right = [
        p == t for ps, ts in zip(predicted, TAGS, strict=True) for p, t in zip(ps, ts, strict=True)
    ]
    assert scores == {"accuracy": np.mean(right), **entity_scores(TAGS, predicted)}
    assert shared.evaluate_tags(SENTENCES, TAGS, predicted=predicted) == scores
    perfect = shared.evaluate_tags(SENTENCES, TAGS, predicted=TAGS)
    assert perfect["accuracy"] == perfect["f1"] == 1
    # Batches of unequal lengths, whose words count alike.
    logged = shared.evaluate(SENTENCES, TAGS, batch_size=1, verbose=0, return_dict=True)
    assert logged["accuracy"] == pytest.approx(np.mean(right))


def test_sentences_come_as_lists_arrays_columns_and_texts(shared):
    expected, scores = shared.predict_tags(SENTENCES), shared.evaluate(SENTENCES, TAGS, verbose=0)
    column = np.empty(4, object)
    column[:] = [np.array(words) for words in SENTENCES]
    texts = list(map(" ".join, SENTENCES))
    tuples = [tuple(words) for words in SENTENCES]
    for form in (column, tuples, texts, np.array(texts), [texts[0], *SENTENCES[1:]]):
        assert shared.predict_tags(form) == expected
        np.testing.assert_allclose(shared.evaluate(form, TAGS, verbose=0), scores, rtol=1e-5)


def test_empty_sentences_have_no_words(shared, shared_chain):
    for tagger in (shared, shared_chain):
        assert tagger.predict([], verbose=0) == []
        assert tagger.tag("") == {"text": "", "words": [], "entities": []}
        assert tagger.predict_tags([[], ["Ada"]])[0] == []
        assert np.isfinite(tagger.evaluate([[], ["Ada"]], [[], ["O"]], verbose=0)[0])


def test_words_without_pieces_are_tagged_too(shared):
    assert [len(tags) for tags in shared.predict_tags([["Ada", "", "\x00", "met"]])] == [4]


# Bad input


LABELS = np.zeros((3, 7), int)
SHORT = [TAGS[0], TAGS[1][:-1], *TAGS[2:]]


test_what_does_not_fit_is_refused = refusals(
    (lambda t: t.fit(SENTENCES, SHORT), "6 words and 5 tags in sentence 1"),
    (lambda t: t.evaluate(SENTENCES, SHORT), "6 words and 5 tags in sentence 1"),
    (lambda t: t.evaluate_tags(SENTENCES, SHORT), "6 words and 5 tags in sentence 1"),
    (lambda t: t.fit(SENTENCES, TAGS[:3]), "4 examples, 3 labels"),
    (lambda t: t.fit(SENTENCES, TAGS, sample_weight={"x": [1] * 4}), "names of outp"),
    (lambda t: t.fit(SENTENCES, TAGS, sample_weight=np.ones((4, 2))), "one weight for"),
    (lambda t: t.fit(SENTENCES, ["O"] * 4), TypeError, r"`y\[0\]` .* of tags"),
    (lambda t: t.fit(SENTENCES), "labels"),
    (lambda t: t.fit([["Ada", None]], [["O", "O"]]), TypeError, r"sentence 0\[1\] is None"),
    (lambda t: t.fit([["Ada"], 3], [["O"], ["O"]]), TypeError, "`sentence 1` .*: 3"),
    (lambda t: t.fit([], []), "There must be words"),
    (lambda t: t.fit([[], []], [[], []]), "There must be words"),
    (lambda t: t.fit(ready_inputs(3, 7), LABELS[:, 0]), "seq_len"),
    (
        lambda t: t.fit(ready_inputs(3, 7), LABELS - 100 * (np.arange(7) == 5)),
        r"-100 at the index \(0, 5\).*sample_weight 0",
    ),
    (
        lambda t: tiny_tagger(t.backbone, crf=True).fit(SENTENCES, TAGS, class_weight={0: 0.0}),
        r"must be above 0.*Received: \{0: 0\.0\}",
    ),
    (lambda t: t.fit(SENTENCES, TAGS, class_weight={5: 1.0}), r"from 0 to 4.*: 5"),
    (
        lambda t: t.fit(Batches([batch_of(t, SENTENCES, TAGS)]), class_weight={1: 2.0}),
        "all examples at once",
    ),
    (lambda t: tiny_tagger(t.backbone, label_names=None).fit(SENTENCES, TAGS), "label_names"),
    (lambda t: tiny_tagger(t.backbone, crf=True).compile(loss="mse"), "crf=False"),
    (lambda t: tiny_tagger(t.backbone, crf=True).compile(loss=None), "crf=False"),
    (
        lambda t: t.evaluate_tags(SENTENCES, TAGS, predicted=TAGS, batch=3),
        TypeError,
        "`evaluate_tags` has no argument 'batch'",
    ),
    (lambda t: t.evaluate(ready_inputs(2, 3), [[0, 1, 2], [0]]), "of different.*Fill up rows"),
    (lambda t: t.evaluate({"token_ids": [[5, 6], [5]]}, [[0], [0]]), "`token_ids` .*Pad them"),
    (lambda t: t.fit(SENTENCES[:1], [None]), TypeError, "Drop the rows with missing values"),
    (lambda t: tiny_tagger(t.backbone, crf=True).compile(label_smoothing=0.1), "smooth"),
    (
        lambda t: tiny_tagger(t.backbone, crf=True).export_to_huggingface("not_written"),
        "head/crf/transitions",
    ),
    (lambda t: tiny_tagger(t.backbone, num_classes=1), "num_classes"),
    (lambda t: tiny_tagger(t.backbone, num_classes=4), "label_names"),
    (lambda t: tiny_tagger(t.backbone, stride=0), "stride"),
    of="shared",
)


@pytest.mark.parametrize("tag", ["B-ORG", 5, -1, 0.0])
def test_an_unknown_tag_names_its_word(shared, tag):
    message = f"Received {tag!r} for the word 'met', number 1 of .* 2"
    with pytest.raises(ValueError, match=message):
        shared.fit(SENTENCES, [*TAGS[:2], ["O", tag, "O", "O"], TAGS[3]])


# Hugging Face


ARCHITECTURE = "BertForTokenClassification"
OF_NAMES = {"num_labels": 5, "id2label": dict(enumerate(NAMES)), "classifier_dropout": 0.25}


def test_entities_equal_transformers_pipeline(tmp_path):
    transformers = pytest.importorskip("transformers")
    tagger = tiny_tagger()
    set_tags(tagger, {"ada": 1, "love": 2, "bob": 1, "paris": 3, "london": 4})
    # The words of an entity have unequal probabilities.
    tagger.head.dense.set_weights([tagger.head.dense.get_weights()[0] / 5, np.eye(5)[1]])
    tagger.export_to_huggingface(tmp_path)
    text = "Ada Lovelace met Bob in Paris. London"
    theirs = transformers.pipeline(
        "token-classification", model=str(tmp_path), aggregation_strategy="first"
    )(text)
    ours = tagger.tag(text)["entities"]
    assert [(e["type"], e["start"], e["end"]) for e in ours] == [
        (e["entity_group"], e["start"], e["end"]) for e in theirs
    ]
    np.testing.assert_allclose([e["score"] for e in ours], [e["score"] for e in theirs], rtol=1e-5)


def test_a_chain_on_a_checkpoint_without_one_starts_as_a_softmax(tmp_path):
    reference_model(ARCHITECTURE, tmp_path, VOCABULARY, **OF_NAMES)
    with pytest.warns(UserWarning, match="head/crf"):
        chained = bert_keras.TokenClassifier.from_preset(tmp_path, crf=True)
    plain = bert_keras.TokenClassifier.from_preset(tmp_path)
    assert chained.predict_tags(SENTENCES) == plain.predict_tags(SENTENCES)


def test_sizes_and_names_of_numpy_can_be_saved(tmp_path):
    options = {"label_names": np.array(["O", "B-X"]), "stride": np.int64(3)}
    tiny_tagger(num_classes=np.int64(2), **options).save_to_preset(tmp_path)
    again = bert_keras.TokenClassifier.from_preset(tmp_path)
    assert (again.num_classes, again.label_names, again.stride) == (2, ("O", "B-X"), 3)
