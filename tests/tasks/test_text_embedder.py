import json
import shutil
import warnings

import keras
import numpy as np
import pytest
from checks import (
    assert_close,
    check_config_round_trip,
    check_everything_is_built,
    check_saved_and_reloaded,
    to_numpy,
)

import bert_keras
from bert_keras.training.contrastive import MultipleNegativesRanking, TripletLoss

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "cat", "barks", "meows"]
TEXTS = ["a dog", "a cat meows a cat meows a cat", "barks", ""]
PAIRS = (["dog", "a cat", "a dog", "cat"] * 2, ["barks", "meows", "a barks", "a meows"] * 2)


def tiny_embedder(**overrides):
    backbone = bert_keras.BertBackbone(
        vocabulary_size=len(VOCABULARY),
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=16,
        max_sequence_length=16,
        initializer_range=0.3,
    )
    preprocessor = bert_keras.TextPreprocessor(
        bert_keras.WordPieceTokenizer(VOCABULARY), max_length=16
    )
    return bert_keras.TextEmbedder(backbone, **{"preprocessor": preprocessor, **overrides})


def random_inputs(*shape, seed=0):
    rng = np.random.default_rng(seed)
    mask = np.arange(shape[-1]) < rng.integers(1, shape[-1] + 1, (*shape[:-1], 1))
    return {
        "token_ids": np.where(mask, rng.integers(5, len(VOCABULARY), shape), 0),
        "padding_mask": mask.astype(int),
    }


def test_everything_is_built_by_construction():
    check_everything_is_built(tiny_embedder())


def test_config_survives_the_round_trip():
    check_config_round_trip(tiny_embedder(pooling="max", normalize=False, objective="triplet"))


def test_a_keras_file_gives_the_same_vectors(tmp_path):
    embedder = tiny_embedder(pooling="cls")
    path = tmp_path / "embedder.keras"
    reloaded = check_saved_and_reloaded(embedder, random_inputs(3, 7), path)
    np.testing.assert_array_equal(reloaded.embed(TEXTS), embedder.embed(TEXTS))


@pytest.mark.once
def test_a_trained_embedder_goes_on_training_after_a_reload(tmp_path):
    embedder = tiny_embedder()
    embedder.compile(loss=MultipleNegativesRanking(symmetric=True))
    embedder.fit(PAIRS, epochs=1, verbose=0)
    embedder.save(tmp_path / "embedder.keras")
    reloaded = keras.models.load_model(tmp_path / "embedder.keras")
    np.testing.assert_array_equal(reloaded.embed(TEXTS), embedder.embed(TEXTS))
    assert reloaded.loss.symmetric
    assert int(to_numpy(reloaded.optimizer.iterations)) == 1


def test_a_preset_folder_gives_the_same_vectors(tmp_path):
    embedder = tiny_embedder(pooling="max", normalize=False)
    embedder.save_to_preset(tmp_path)
    again = bert_keras.TextEmbedder.from_preset(tmp_path)
    np.testing.assert_array_equal(again.embed(TEXTS), embedder.embed(TEXTS))


@pytest.mark.once
@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "pooler"])
def test_vectors_are_the_pooled_real_tokens(pooling):
    embedder = tiny_embedder(pooling=pooling, normalize=False)
    vectors = embedder.embed(TEXTS)
    assert vectors.dtype == "float32" and vectors.shape == (4, 8)
    inputs = embedder.preprocessor(TEXTS)
    outputs = embedder.backbone.predict(inputs, verbose=0)
    for row, length in enumerate(inputs["padding_mask"].sum(-1)):
        tokens = outputs["sequence_output"][row, :length]
        expected = {
            "mean": tokens.mean(0),
            "cls": tokens[0],
            "max": tokens.max(0),
            "pooler": outputs["pooled_output"][row],
        }
        assert_close(vectors[row], expected[pooling], 1e-5)
    unit = bert_keras.TextEmbedder(embedder.backbone, embedder.preprocessor, pooling)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    assert_close(unit.embed(TEXTS), vectors / lengths, 1e-5)


def test_one_text_gives_one_vector_and_none_gives_none():
    assert tiny_embedder().predict([]).shape == tiny_embedder().embed([]).shape
    embedder = tiny_embedder()
    assert_close(embedder.embed(TEXTS[0]), embedder.embed(TEXTS)[0], 1e-6)
    assert embedder.embed([]).shape == (0, 8)


@pytest.mark.once
def test_groups_may_be_names():
    embedder = tiny_embedder(objective="ranking")
    assert embedder.encode_labels([*"abca"]).tolist() == [0, 1, 2, 0]
    assert embedder.encode_labels(np.array([*"abca"], dtype=object)).tolist() == [0, 1, 2, 0]
    assert embedder.encode_labels([7.0, 3.0, 7.0]).tolist() == [1, 0, 1]


@pytest.mark.once
def test_columns_are_embedded_text_by_text():
    embedder = tiny_embedder()
    vectors = embedder.predict(PAIRS, verbose=0)
    assert vectors.shape == (8, 2, 8)
    assert_close(vectors[:, 1], embedder.embed(PAIRS[1]), 1e-6)
    inputs = random_inputs(3, 2, 7)
    first = {key: array[:, 0] for key, array in inputs.items()}
    assert_close(to_numpy(embedder(inputs))[:, 0], embedder(first), 1e-6)
    assert_close(embedder.predict(inputs, verbose=0), embedder(inputs), 1e-6)


def test_vectors_keep_float32_in_mixed_precision():
    backbone = tiny_embedder().backbone
    config = {**backbone.get_config(), "dtype": "mixed_bfloat16"}
    half = bert_keras.TextEmbedder(bert_keras.BertBackbone.from_config(config))
    vectors = half.predict(random_inputs(3, 7), verbose=0)
    assert vectors.dtype == "float32"
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1, atol=1e-5)


def test_search_finds_what_cosines_say():
    embedder = tiny_embedder(normalize=False)
    documents = [*PAIRS[0][:4], "meows a meows"]
    hits = embedder.semantic_search("a cat", documents, top_k=3)
    assert hits[0]["index"] == 1 and hits[0]["text"] == "a cat"
    assert hits[0]["score"] == pytest.approx(1, abs=1e-5)
    vectors = embedder.embed(documents)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = np.argsort(-unit @ unit[1], kind="stable")[:3]
    assert [hit["index"] for hit in hits] == expected.tolist()
    assert_close([hit["score"] for hit in hits], (unit @ unit[1])[expected], 1e-5)
    by_vectors = embedder.semantic_search(embedder.embed(["a cat"]), vectors, top_k=99)
    assert len(by_vectors) == 1 and len(by_vectors[0]) == 5 and "text" not in by_vectors[0][0]
    assert embedder.semantic_search(vectors[1], documents, top_k=1)[0]["index"] == 1
    assert embedder.semantic_search(["dog", "cat"], [], top_k=1) == [[], []]


@pytest.mark.once
@pytest.mark.parametrize(
    ("objective", "x", "y"),
    [
        ("ranking", (*PAIRS, PAIRS[1][::-1]), ["dog", "cat"] * 4),
        ("similarity", PAIRS, [1, 0.5, 0, -1] * 2),
        ("triplet", (*PAIRS, PAIRS[1][::-1]), None),
    ],
)
def test_each_objective_lowers_its_loss(objective, x, y):
    embedder = tiny_embedder(objective=objective)
    # There, compiling would take longer than the few steps.
    eagerly = keras.backend.backend() == "tensorflow"
    embedder.compile(learning_rate=3e-2, run_eagerly=eagerly)
    before = embedder.evaluate(x, y, verbose=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Gradients do not exist")
        embedder.fit(x, y, epochs=12, batch_size=4, verbose=0)
    assert embedder.evaluate(x, y, verbose=0) < 0.9 * before


@pytest.mark.once
def test_training_validates_on_the_last_rows():
    embedder = tiny_embedder(objective="triplet")
    embedder.compile(loss=TripletLoss(distance="euclidean"))
    x = tuple([f"{text} a" for text in column] for column in (*PAIRS, PAIRS[0]))
    history = embedder.fit(x, validation_split=0.25, batch_size=3, verbose=0)
    assert set(history.history) == {"loss", "val_loss"}


@pytest.mark.once
def test_a_last_batch_is_not_filled_up_with_false_negatives():
    """Five rows in batches of four give the mean of both batches' losses, weighted by size."""
    embedder = tiny_embedder()
    x = tuple(column[:5] for column in PAIRS)
    loss = MultipleNegativesRanking()
    vectors = embedder.predict(x, verbose=0)
    parts = [float(to_numpy(loss(np.arange(len(v)), v))) for v in (vectors[:4], vectors[4:])]
    expected = (4 * parts[0] + 1 * parts[1]) / 5
    assert embedder.evaluate(x, batch_size=4, verbose=0) == pytest.approx(expected, abs=1e-4)


def test_ready_columns_train_too():
    embedder = tiny_embedder(preprocessor=None, objective="similarity")
    history = embedder.fit(random_inputs(4, 2, 7), np.zeros(4), verbose=0)
    assert np.isfinite(history.history["loss"][0])


def reference_folder(folder):
    """Writes a sentence-transformers folder with random weights; returns the transformers model."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=40,
        max_position_embeddings=16,
        initializer_range=0.3,
    )
    reference = transformers.BertModel(config).eval()
    reference.save_pretrained(folder)
    folder.joinpath("vocab.txt").write_text("\n".join(VOCABULARY))
    write_json(
        folder / "modules.json",
        [
            {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ],
    )
    write_json(folder / "1_Pooling/config.json", {"pooling_mode_mean_tokens": True})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 9})
    return reference


def write_json(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))


def mean_pooled(reference, inputs):
    import torch

    mask = torch.tensor(inputs["padding_mask"])[..., None]
    with torch.no_grad():
        tokens = reference(
            input_ids=torch.tensor(inputs["token_ids"]), attention_mask=mask[..., 0]
        ).last_hidden_state
    return ((tokens * mask).sum(1) / mask.sum(1)).numpy()


def test_vectors_equal_transformers_mean_pooling(tmp_path):
    reference = reference_folder(tmp_path)
    embedder = bert_keras.TextEmbedder.from_preset(tmp_path)
    inputs = embedder.preprocessor(TEXTS)
    expected = mean_pooled(reference, inputs)
    np.testing.assert_allclose(embedder.embed(TEXTS), expected, atol=1e-5)
    unit = bert_keras.TextEmbedder.from_preset(tmp_path, normalize=True)
    lengths = np.linalg.norm(expected, axis=-1, keepdims=True)
    np.testing.assert_allclose(unit.embed(TEXTS), expected / lengths, atol=1e-5)


@pytest.mark.parametrize(
    ("pooling_config", "expected"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"embedding_dimension": 24, "pooling_mode": "cls"}, "cls"),
        ({}, "mean"),
    ],
)
def test_a_sentence_transformers_folder_brings_its_settings(tmp_path, pooling_config, expected):
    reference_folder(tmp_path)
    write_json(tmp_path / "1_Pooling/config.json", pooling_config)
    embedder = bert_keras.TextEmbedder.from_preset(tmp_path)
    assert (embedder.pooling, embedder.normalize) == (expected, False)
    assert embedder.preprocessor.max_length == 9
    modules = json.loads((tmp_path / "modules.json").read_text())
    modules.append({"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"})
    write_json(tmp_path / "modules.json", modules)
    embedder = bert_keras.TextEmbedder.from_preset(tmp_path, pooling="mean", max_length=12)
    assert (embedder.pooling, embedder.normalize) == ("mean", True)
    assert embedder.preprocessor.max_length == 12


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("1_Pooling/config.json", {"pooling_mode": ["mean", "max"]}, "pooling"),
        ("1_Pooling/config.json", {"pooling_mode_weightedmean_tokens": True}, "weightedmean"),
        ("1_Pooling/config.json", [], "JSON object"),
        ("modules.json", {"a": 1}, "JSON list"),
        ("modules.json", ["Transformer"], "must list modules"),
        ("modules.json", [{"type": "a.Transformer", "path": ""}], "Supported: Transformer"),
        (
            "modules.json",
            [{"type": "Transformer", "path": ""}, {"type": "Pooling", "path": "../other"}],
            "outside its folder",
        ),
    ],
)
def test_settings_that_cannot_be_met_are_refused(tmp_path, name, value, message):
    reference_folder(tmp_path)
    write_json(tmp_path / name, value)
    with pytest.raises(ValueError, match=message):
        bert_keras.TextEmbedder.from_preset(tmp_path)
    if name != "modules.json" or not isinstance(value, dict):
        embedder = bert_keras.TextEmbedder.from_preset(tmp_path, pooling="cls", normalize=True)
        assert embedder.pooling == "cls"
        assert embedder.preprocessor.max_length == 9


def test_an_exported_folder_is_one_of_sentence_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    embedder = tiny_embedder(normalize=False)
    embedder.export_to_huggingface(tmp_path)
    reference = transformers.AutoModel.from_pretrained(tmp_path).eval()
    expected = mean_pooled(reference, embedder.preprocessor(TEXTS))
    np.testing.assert_allclose(embedder.embed(TEXTS), expected, atol=1e-5)
    again = bert_keras.TextEmbedder.from_preset(tmp_path)
    np.testing.assert_allclose(again.embed(TEXTS), expected, atol=1e-5)
    assert again.preprocessor.max_length == 16 and not again.normalize
    shutil.rmtree(tmp_path)
    with pytest.raises(ValueError, match="pooling"):
        tiny_embedder(pooling="pooler").export_to_huggingface(tmp_path)


@pytest.mark.parametrize(
    ("objective", "x", "y", "message"),
    [
        ("ranking", TEXTS, None, "at least 2 columns.*Received: 1"),
        ("ranking", (PAIRS[0], PAIRS[1][:3]), None, "equally long"),
        ("ranking", PAIRS, [1, 2], "as many labels"),
        ("ranking", PAIRS, [0, 1, 2, 3, 4, 5, 6, np.nan], "nan at the index 7"),
        ("ranking", PAIRS, [*"abcdefg", None], "None at the index 7"),
        ("ranking", PAIRS, [*"abcdefg", np.nan], "nan at the index 7"),
        ("ranking", PAIRS, [*"abcdefg", 1], "1 at the index 7"),
        ("similarity", PAIRS, None, "needs labels"),
        ("similarity", PAIRS, [5.0] * 8, "Received 5.0 at the index 0"),
        ("similarity", PAIRS, [0.0] * 7 + [np.nan], "nan at the index 7"),
        ("similarity", PAIRS, ["a"] * 8, "dtype"),
        ("similarity", (*PAIRS, PAIRS[0]), [0.0] * 8, "2 columns.*Received: 3"),
        ("triplet", PAIRS, None, "3 columns.*Received: 2"),
        ("ranking", random_inputs(4, 7), None, "at least 2 columns"),
    ],
)
def test_examples_that_do_not_fit_are_refused(objective, x, y, message):
    with pytest.raises(ValueError, match=message):
        tiny_embedder(objective=objective).fit(x, y, verbose=0)


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="pooling"):
        tiny_embedder(pooling="median")
    with pytest.raises(ValueError, match="objective"):
        tiny_embedder(objective="guessing")
    with pytest.raises(ValueError, match="label_smoothing"):
        tiny_embedder().compile(label_smoothing=0.1)
    embedder = tiny_embedder()
    with pytest.raises(TypeError, match=r"texts\[1\]"):
        embedder.embed(["a", None])
    with pytest.raises(ValueError, match="top_k"):
        embedder.semantic_search("a", ["a"], top_k=0)
    with pytest.raises(TypeError, match="`documents` must be a column"):
        embedder.semantic_search("a", "b")
    with pytest.raises(ValueError, match="width 8"):
        embedder.semantic_search("a", np.zeros((3, 4)), top_k=1)


@pytest.mark.parametrize(("argument", "value"), [("normalize", "no"), ("frozen", "backbone")])
def test_arguments_without_meaning_are_refused(argument, value):
    with pytest.raises(ValueError, match=argument):
        tiny_embedder(**{argument: value})
