"""GLiNER: logits, losses and entities of the reference package, its folders, and training.

`tests/gliner_tiny` was written by the package gliner 0.2.29: a random model, and for four texts its
logits, losses, and entities in six settings. All texts are invented.
"""

import json
import pathlib
import shutil

import keras
import numpy as np
import pytest
from checks import assert_close, cases, check_task, refused, to_numpy
from files import change_json, read_json
from tiny import batches_of, rows_of, tiny_backbone, tiny_task

import bert_keras
from bert_keras.heads.bidirectional_lstm import BidirectionalLSTM
from bert_keras.training.labelled_spans import LabelledSpanF1, LabelledSpanLoss

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "gliner_tiny"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
LABELS = ["person", "city", "park name"]
TEXTS = [each["text"] for each in EXPECTED]
# Texts of letters: each a and each run of b is an entity.
LETTERS = ["a c b b", "c a c", "b c c a", "c c", "b b b c", "a d c b"]
ENTITIES = [
    [(0, 1, "one a"), (4, 7, "many b")],
    [(2, 3, "one a")],
    [(0, 1, "many b"), {"start": 6, "end": 7, "type": "one a"}],
    [],
    [(0, 5, "many b")],
    [(0, 1, "one a"), (6, 7, "many b")],
]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", "one", "many"]


@pytest.fixture(scope="module")
def tagger():
    """The reference's model, which reads the first `max_words` words, as the reference does."""
    return bert_keras.ZeroShotTagger.from_preset(FOLDER, num_windows=1)


def tiny_tagger(**options):
    options = {"dim": 12, "max_width": 4, "max_words": 9, "dropout": 0.0, **options}
    return tiny_task("ZeroShotTagger", vocabulary=VOCABULARY, **options)


def shape_of(each):
    return len([x for x in each["words_mask"] if x]), 5, len(each["labels"])


def as_tuple(entity):
    return tuple(entity[x] for x in ("start", "end", "type")) if type(entity) is dict else entity


def as_tuples(answer):
    return [*map(as_tuple, answer["entities"])]


def inputs_of(each, marker=179):
    return {
        "token_ids": np.array([each["input_ids"]]),
        "padding_mask": np.ones((1, len(each["input_ids"])), int),
        "word_positions": np.flatnonzero(each["words_mask"])[None],
        "label_positions": np.flatnonzero(np.array(each["input_ids"]) == marker)[None],
    }


FEW = [0, *(pytest.param(index, marks=pytest.mark.once) for index in (1, 2)), 3]


@pytest.mark.eager
@pytest.mark.parametrize("index", FEW)
def test_logits_are_those_of_the_reference(tagger, index):
    each = EXPECTED[index]
    logits = tagger.predict(inputs_of(each), verbose=0)[0]
    assert_close(logits, np.reshape(each["logits"], shape_of(each)), 1e-5)


@pytest.mark.once
@pytest.mark.parametrize("index", range(4))
def test_entities_are_those_of_the_reference(tagger, index):
    each = EXPECTED[index]
    for case in each["decoded"]:
        answer = tagger.tag(each["text"], each["labels"], **case["args"])
        assert as_tuples(answer) == [tuple(entity[:3]) for entity in case["entities"]]
        scores = [entity["score"] for entity in answer["entities"]]
        assert_close(np.array(scores), [entity[3] for entity in case["entities"]], 1e-5)
        for entity in answer["entities"]:
            assert entity["text"] == each["text"][entity["start"] : entity["end"]]


@pytest.mark.parametrize("index", FEW)
def test_losses_are_those_of_the_reference(index):
    each = EXPECTED[index]
    num_words, width, _ = shape = shape_of(each)
    fits = np.add.outer(np.arange(num_words), np.arange(width)) < num_words
    target = np.full(shape, -1, "int8")
    target[fits] = 0
    target[tuple(np.transpose(each["target"]))] = 1
    logits = np.reshape(each["logits"], shape).astype("float32")
    for case in each["loss"]:
        alpha = case["alpha"] if case["alpha"] >= 0 else None
        loss = LabelledSpanLoss(alpha, case["gamma"])(target[None], logits[None])
        assert_close(to_numpy(loss), case["value"], 1e-4 * max(1, abs(case["value"])))
    metric = LabelledSpanF1()
    metric.update_state(np.stack([target, target]), np.stack([logits, logits]), [1.0, 0.0])
    found, true = logits > 0, target == 1
    found &= fits[..., None]
    f1 = 2 * (found & true).sum() / max(found.sum() + true.sum(), 1)
    assert_close(to_numpy(metric.result()), f1)


def test_the_lstm_is_pytorchs_on_packed_sequences():
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    theirs = torch.nn.LSTM(5, 3, batch_first=True, bidirectional=True)
    ours, rng = BidirectionalLSTM(3), np.random.default_rng(0)
    ours.build((None, None, 5))
    for ending, weights in zip(("", "_reverse"), ours.weights_of.values(), strict=True):
        named = (getattr(theirs, f"{x}_l0{ending}") for x in ("weight_ih", "weight_hh", "bias_ih"))
        for weight, value in zip(weights, named, strict=True):
            weight.assign(value.detach().numpy().T)
        getattr(theirs, f"bias_hh_l0{ending}").data.zero_()
    x, lengths = rng.normal(size=(3, 6, 5)).astype("float32"), np.array([4, 6, 1])
    packed = pack_padded_sequence(torch.tensor(x), lengths, True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(theirs(packed)[0], batch_first=True)
    assert_close(to_numpy(ours(x, lengths)), expected.detach().numpy(), 1e-6)
    if keras.backend.backend() == "jax":
        import jax

        with jax.no_tracing(True):  # Raises where a loop is traced, and compiled, again.
            ours(x, lengths)


@pytest.mark.once
def test_it_keeps_the_contract_of_tasks(tmp_path):
    rng, shape = np.random.default_rng(0), (3, 7)
    inputs = {
        "token_ids": rng.integers(5, 10, shape),
        "segment_ids": np.zeros(shape, int),
        "padding_mask": np.ones(shape, int),
        "word_positions": np.array([[3, 4, 5], [4, 5, 0], [3, 0, 0]]),
        "label_positions": np.array([[1], [1], [2]]),
    }
    options = {"num_windows": 3, "stride": 2, "max_labels": 2, "span_mode": "marker"}
    task = tiny_tagger(**options)
    loaded, preset = check_task(task, inputs, tmp_path, {})
    for copy in (loaded, preset):
        assert copy.tag(LETTERS, ["one a"]) == task.tag(LETTERS, ["one a"])


@pytest.mark.once
def test_a_folder_that_is_written_is_the_folder_that_was_read(tagger, tmp_path):
    tagger.export_to_huggingface(tmp_path)
    from safetensors.numpy import load_file

    read, written = (load_file(x / "model.safetensors") for x in (FOLDER, tmp_path))
    assert read.keys() == written.keys()
    for name, array in read.items():
        # The two biases of an LSTM are one here.
        if not name.startswith("rnn.lstm.bias"):
            np.testing.assert_array_equal(written[name], array)
    ours, theirs = (read_json(x / "gliner_config.json") for x in (tmp_path, FOLDER))
    ignored = ("encoder_config", "name", "model_name")
    assert {k: v for k, v in ours.items() if k not in ignored}.items() <= theirs.items()
    again = bert_keras.ZeroShotTagger.from_preset(tmp_path, num_windows=1)
    assert [*map(as_tuples, again.tag(TEXTS, LABELS))] == [
        *map(as_tuples, tagger.tag(TEXTS, LABELS))
    ]
    # The encoder alone, and the encoder with another head.
    backbone = bert_keras.DebertaV2Backbone.from_preset(tmp_path)
    assert_close(to_numpy(backbone.weights[0]), to_numpy(tagger.backbone.weights[0]), 0)


@pytest.mark.once
def test_an_old_folder_takes_config_and_tokenizer_from_its_encoder(tagger, tmp_path, monkeypatch):
    """The files of v2.1 lack both, and the ids of the markers."""
    import huggingface_hub

    encoder, old = tmp_path / "encoder", tmp_path / "old"
    old.mkdir()
    config = read_json(FOLDER / "gliner_config.json")
    sizes = {**config.pop("encoder_config"), "vocab_size": 178}
    for name in ("class_token_index", "vocab_size", "encoder_config"):
        config.pop(name, None)
    config["model_name"] = "owner/encoder"
    (old / "gliner_config.json").write_text(json.dumps(config))
    shutil.copy(FOLDER / "model.safetensors", old)
    tokenizer = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["added_tokens"] = tokenizer["added_tokens"][:-3]
    encoder.mkdir()
    (encoder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (encoder / "config.json").write_text(json.dumps(sizes))
    asked = []

    def download(name, revision, allow_patterns):
        asked.append((name, "config.json" in allow_patterns))
        return str(encoder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    loaded = bert_keras.ZeroShotTagger.from_preset(old, num_windows=1)
    assert set(asked) == {("owner/encoder", True)}
    assert loaded.tag(TEXTS, LABELS) == tagger.tag(TEXTS, LABELS)
    assert loaded.preprocessor.max_length == 8 * 32
    change_json(old / "gliner_config.json", model_name="../elsewhere")
    with pytest.raises(ValueError, match=r"no repository.*Copy config.json"):
        bert_keras.ZeroShotTagger.from_preset(old)


@pytest.mark.once
@cases(
    ({"labels_encoder": "BAAI/bge-small-en"}, "labels_encoder"),
    ({"span_mode": "token_level"}, "token_level"),
    ({"relations_layer": "biaffine"}, "relations"),
    ({"subtoken_pooling": "mean"}, "subtoken_pooling.*'first'"),
    ({"num_rnn_layers": 2}, "num_rnn_layers.*\\(1, 0\\)"),
    ({"class_token_index": 178}, "class_token_index"),
    ({"max_width": 6000}, "max_width"),
    ({"max_len": 10**9}, "`max_len` in"),
    ({"hidden_size": 18}, "Shapes that differ"),
    ({"num_rnn_layers": 0}, "Tensors without a weight"),
)
def test_other_models_are_refused_by_name(tmp_path, changes, message):
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    change_json(tmp_path / "gliner_config.json", **changes)
    with pytest.raises(ValueError, match=message):
        bert_keras.ZeroShotTagger.from_preset(tmp_path)


@pytest.mark.once
@refused(
    (("a", []), ValueError, "`labels` must be names, at least one"),
    (("a", [" "]), ValueError, "`labels` must be names, at least one"),
    (("a", ["<<ENT>>"]), ValueError, "none of the markers"),
    (("a", "person"), TypeError, "`labels` must be a list"),
    (("a", [3]), TypeError, "`labels` must be a list"),
    (("a", {"a": 3}), TypeError, "`labels` must be a list"),
    ((3, ["a"]), TypeError, "`sentences` must be a list"),
    (("a", ["a"], "high"), ValueError, "`threshold` must be a finite number"),
    (("a", ["a"], 2), ValueError, "`threshold` must be .* from 0 to 1. Received: 2"),
    (("a", ["a"], 0.5, 1), ValueError, "`flat_ner` must be one of"),
    (("a", [f"number {i}" for i in range(200)]), ValueError, "leave a quarter"),
)
def test_bad_questions_are_refused(tagger, arguments):
    tagger.tag(*arguments)


@pytest.mark.once
def test_labels_may_be_repeated_described_and_have_their_own_thresholds(tagger):
    expected = tagger.tag(TEXTS, LABELS, 0.3)
    assert tagger.tag(TEXTS, [*LABELS, "city"], 0.3) == expected
    described = tagger.tag(TEXTS, {"A": "person", "B": "city", "C": "park name"}, 0.3)
    names = dict(zip("ABC", LABELS, strict=True))
    found = [[(s, e, names[kind]) for s, e, kind in as_tuples(each)] for each in described]
    assert found == [*map(as_tuples, expected)]
    only = tagger.tag(TEXTS, LABELS, {"person": 0.3, "city": 1.0, "park name": 1.0})
    assert {kind for each in only for *_, kind in as_tuples(each)} == {"person"}


@pytest.mark.once
def test_words_without_tokens_shift_nothing():
    """The reference code counts them as words of the text, but not of the row."""
    task = tiny_tagger(num_windows=1)
    plain, odd = (task.tag(text, ["one"], 0.0) for text in ("a b c", "a \u200b b c"))
    assert [*map(odd["text"].__getitem__, range(3))] == ["a", " ", "\u200b"]
    assert [(x["text"], x["score"]) for x in odd["entities"]] == [
        (x["text"], x["score"]) for x in plain["entities"]
    ]
    with pytest.raises(ValueError, match="A label must have tokens"):
        task.tag("a", ["\u200b"])


@pytest.mark.once
def test_texts_are_words_and_answers_have_their_tags(tagger):
    answer = tagger.tag("Ada-Mae met x@y.", ["person"], 0.0)
    assert [word for word, _ in answer["words"]] == ["Ada-Mae", "met", "x", "@", "y", "."]
    assert answer["words"][0][1].startswith("B-person")
    split = tagger.tag([["Ada", "Mae"], []], ["person"], 0.0)
    assert split[0]["text"] == "Ada Mae" and split[1] == {"text": "", "words": [], "entities": []}
    assert tagger.tag([], ["person"]) == []


@pytest.mark.once
@pytest.mark.parametrize("options", [{}, {"stride": 3}, {"max_words": 5}])
def test_each_span_of_a_long_text_is_read_once(options):
    task = tiny_tagger(**options)
    text = " ".join("abcdefgh" * 4)
    rows = task.answerer(labels=["one"]).encode([text])
    count = np.zeros((32, 4), int)
    for (_, first), is_counted in zip(rows.places, rows.is_counted, strict=True):
        count[first:][: len(is_counted)] += is_counted
        assert len(is_counted) <= task.max_words
    assert rows.lengths.max() <= 16
    expected = np.add.outer(np.arange(32), np.arange(4)) < 32
    np.testing.assert_array_equal(count, expected)
    assert len(tiny_tagger(**options, num_windows=1).answerer(labels=["one"]).encode([text])) == 1


@pytest.mark.eager
def test_training_finds_entities():
    # Wide enough to learn one label in about 40 steps; these are 60.
    sizes = {"hidden_dim": 64, "intermediate_dim": 128, "initializer_range": 0.1}
    sizes["dropout"] = 0.0
    task = tiny_tagger(backbone=tiny_backbone(vocabulary_size=len(VOCABULARY), **sizes), dim=64)
    task.compile(learning_rate=5e-3)
    entities = [[(*place, "one a") for *place, _ in map(as_tuple, each)] for each in ENTITIES]
    # The others are slow, and only begin to learn.
    epochs = 60 if keras.backend.backend() == "torch" else 12
    options = {"epochs": epochs, "batch_size": 6, "verbose": 0}
    losses = task.fit(LETTERS, entities, **options).history["loss"]
    assert losses[-1] < (0.1 if epochs == 60 else 0.7) * losses[0]
    if epochs < 60:
        return
    assert task.evaluate(LETTERS, entities, return_dict=True, verbose=0)["f1"] > 0.95
    assert [*map(as_tuples, task.tag(LETTERS, ["one a"]))] == entities


@pytest.mark.once
def test_labels_of_training_are_gold_and_sampled():
    task = tiny_tagger(max_labels=2, max_words=4)
    names = [f"one {x}" for x in "abcdefgh"]
    texts = list("abcdefgh")
    entities = [[(0, 1, name)] for name in names]
    batches = batches_of(task, texts, entities, batch_size=8, shuffle=True)
    seen = set()
    for epoch in range(6):
        batches.epoch = epoch
        inputs, targets = batches[0]
        again = batches[0]
        np.testing.assert_array_equal(again[1], targets)
        assert (targets == 1).sum(axis=(1, 2, 3)).tolist() == [1] * 8
        markers = inputs["label_positions"]
        assert markers.shape[1] <= 2
        # The label of the text's letter, "one" and the letter, is the one that is right.
        for row, ids in enumerate(inputs["token_ids"]):
            right = markers[row, targets[row].max(axis=(0, 1)) == 1]
            assert ids[right + 2] == ids[inputs["word_positions"][row, :1]]
        seen.add(targets.tobytes() + inputs["token_ids"].tobytes())
    assert len(seen) == 6
    fixed = batches_of(task, texts, entities, batch_size=8)
    np.testing.assert_array_equal(fixed[0][1], fixed[0][1])


@pytest.mark.once
def test_entities_may_be_tags_and_wide_ones_are_left_out():
    task = tiny_tagger()
    words = [["a", "c", "b", "b"], ["c", "a", "c"]]
    tags = [["B-one a", "O", "B-many b", "I-many b"], ["O", "B-one a", "O"]]
    by_tags, by_characters = (
        batches_of(task, x, y, batch_size=2)[0]
        for x, y in ((words, tags), (LETTERS[:2], ENTITIES[:2]))
    )
    np.testing.assert_array_equal(by_tags[1], by_characters[1])
    wide = [[(0, 9, "many b"), (0, 1, "one a")]]
    with pytest.warns(UserWarning, match="1 entities were left out.*'a b c d e' in text 0"):
        rows_of(task, ["a b c d e"], wide)
    for wrong, message in [
        ([[(0, 99, "one a")]], "characters of its text.*has 9 characters"),
        ([[(1, 2, "one a")]], "characters of its text"),
        ([[(0, 1)]], "must be \\(start, end, label\\)"),
        ([[("a", 1, "b")]], "must be \\(start, end, label\\)"),
        ([[]], "There must be entities"),
    ]:
        with pytest.raises(ValueError, match=message):
            rows_of(task, ["a b c d e"], wrong)
    with pytest.raises(ValueError, match="Call `tag\\(texts, labels\\)`"):
        task.predict(LETTERS)
