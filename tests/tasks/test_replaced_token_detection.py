import keras
import numpy as np
import pytest
import scipy.special
from checks import (
    check_config_round_trip,
    check_everything_is_built,
    check_saved_and_reloaded,
    perplexity,
    to_numpy,
)
from tiny import VOCABULARY, tiny_backbone, tiny_preprocessor

import bert_keras
from bert_keras.preprocessing import Masking
from bert_keras.tasks.replaced_token_detection import put

TEXTS = ["a b c d e", "fgh ab", "a b c d e f g h a b c", "hh gg ff aab bba", "c", "d e f g h"]
# Graphs of two models take TensorFlow long, and each test would make its own.
EAGERLY = keras.backend.backend() == "tensorflow"
SHARED = ("token_embedding", "position_embedding", "segment_embedding", "layer_norm")


def tiny_electra(**overrides):
    sizes = tiny_backbone().get_config()
    sizes = {name: sizes[name] for name in sizes if name not in ("name", "causal", "dtype")}
    return bert_keras.ElectraBackbone(
        **{**sizes, "embedding_dim": 8, "initializer_range": 0.3, **overrides}
    )


def tiny_pair(generator=None, discriminator=None, masking=None, **options):
    generator = {"hidden_dim": 8, "num_heads": 1, **(generator or {})}
    return bert_keras.ReplacedTokenDetection(
        bert_keras.MaskedLM(tiny_electra(**generator), tiny_preprocessor(), masking=masking),
        bert_keras.ReplacedTokenDetector(
            tiny_electra(**(discriminator or {})), tiny_preprocessor()
        ),
        **options,
    )


def batch(size=6, seq_len=10, num_predictions=3, seed=0):
    """A batch as `PretrainingBatches` yields it; the last row only fills it."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, seq_len + 1, size)
    mask = np.arange(seq_len) < lengths[:, None]
    counts = rng.integers(1, num_predictions + 1, size)
    positions = np.zeros((size, num_predictions), "int32")
    for row, (count, length) in enumerate(zip(counts, lengths, strict=True)):
        positions[row, :count] = np.sort(rng.choice(np.arange(1, length - 1), count, False))
    weights = (positions > 0).astype("float32")
    weights[-1] = 0
    ids = rng.integers(5, len(VOCABULARY), (size, seq_len))
    inputs = {
        "token_ids": np.where(mask, ids, 0).astype("int32"),
        "segment_ids": np.zeros((size, seq_len), "int32"),
        "padding_mask": mask.astype("int32"),
        "mask_positions": positions,
    }
    labels = rng.integers(5, len(VOCABULARY), (size, num_predictions)).astype("int32")
    return inputs, labels, weights


class Batches(keras.utils.PyDataset):
    num_batches = None

    def __init__(self, start=0):
        super().__init__()
        self.start = start

    def __getitem__(self, index):
        return batch(seed=(self.start + index) % 3)


def values(variables):
    return [to_numpy(variable).copy() for variable in variables]


def test_a_pair_survives_its_config_and_its_file(tmp_path):
    model = tiny_pair(detection_weight=20.0, seed=7)
    check_everything_is_built(model)
    check_config_round_trip(model)
    reloaded = check_saved_and_reloaded(model, batch()[0], tmp_path / "pair.keras")
    assert reloaded.is_replaced(TEXTS[0]) == model.is_replaced(TEXTS[0])
    check_shares(reloaded)


def check_shares(model):
    of_generator, of_discriminator = (task.backbone.embeddings for task in model.tasks)
    assert of_generator.projection is not of_discriminator.projection
    for name in SHARED:
        assert getattr(of_generator, name) is getattr(of_discriminator, name)
    assert len({id(v) for v in model.variables}) == len(model.variables)
    if keras.backend.backend() == "torch":
        held = {id(p) for p in model.parameters()}
        assert held == {id(v.value) for v in model.variables}


@pytest.mark.once
def test_embeddings_are_one_and_everything_else_is_each_one_s_own():
    model = tiny_pair()
    check_shares(model)
    parts = [*model.trainable_variables, *model.non_trainable_variables]
    assert sorted(map(id, parts)) == sorted(map(id, model.variables))
    own = [{id(v) for v in task.variables} for task in model.tasks]
    shared = {id(v) for name in SHARED for v in getattr(model.backbone.embeddings, name).weights}
    assert own[0] & own[1] == shared
    again = bert_keras.ReplacedTokenDetection(*model.tasks)
    check_shares(again)


@pytest.mark.once
def test_what_the_parts_leave_as_it_is_does_not_train():
    poolers = [tiny_backbone(name=name) for name in ("first", "second")]
    model = bert_keras.ReplacedTokenDetection(
        bert_keras.MaskedLM(poolers[0]), bert_keras.ReplacedTokenDetector(poolers[1], frozen=0)
    )
    trained = {id(variable) for variable in model.trainable_variables}
    idle = [*poolers[0].pooler.weights, *poolers[1].pooler.weights]
    assert not trained & {id(weight) for weight in [*idle, *poolers[0].embeddings.weights]}


def test_losses_and_metrics_are_those_of_the_formulas():
    model = tiny_pair(detection_weight=3.0)
    inputs, labels, weights = batch()
    results = model.evaluate(inputs, labels, sample_weight=weights, batch_size=6, return_dict=True)
    outputs = model.predict(inputs, batch_size=6, verbose=0)
    drawn, counts = outputs["drawn_ids"], weights > 0
    replaced = np.zeros(inputs["token_ids"].shape)
    for row, column in zip(*np.nonzero(counts), strict=True):
        replaced[row, inputs["mask_positions"][row, column]] = (
            drawn[row, column] != labels[row, column]
        )
    is_real = inputs["padding_mask"].astype(bool)
    is_real[-1] = False
    logits, truth = outputs["detection"][is_real].astype("float64"), replaced[is_real]
    detection = -np.mean(scipy.special.log_expit(np.where(truth == 1, logits, -logits)))
    masked_lm = np.log(perplexity(labels, outputs["masked_lm"], weights))
    assert results["loss"] == pytest.approx(masked_lm + 3 * detection, rel=1e-5)
    assert results["detection_fake_rate"] == pytest.approx(truth.mean())
    # The rate of fakes is that of masked tokens times that of tokens drawn wrong.
    wrong = 1 - np.mean((drawn == labels)[counts])
    assert truth.mean() == pytest.approx(counts.sum() / is_real.sum() * wrong)
    pairs = logits[truth == 1][:, None] - logits[truth == 0]
    area = np.mean((pairs > 0) + 0.5 * (pairs == 0))
    assert results["detection_auc"] == pytest.approx(area, abs=0.02)


def test_the_discriminator_reads_what_was_drawn_and_learns_what_differs():
    model = tiny_pair()
    inputs, labels, weights = batch()
    bias = np.zeros(len(VOCABULARY))
    bias[9] = 1e4
    model.generator.head.bias.assign(bias)
    outputs = model(inputs)
    assert np.all(to_numpy(outputs["drawn_ids"]) == 9)
    expected = inputs["token_ids"].copy()
    rows, columns = np.nonzero(inputs["mask_positions"])
    expected[rows, inputs["mask_positions"][rows, columns]] = 9
    plain = {name: inputs[name] for name in model.backbone.input_names}
    logits = model.discriminator({**plain, "token_ids": expected})
    np.testing.assert_allclose(to_numpy(outputs["detection"]), to_numpy(logits), atol=1e-6)
    targets = model._targets(inputs, np.full_like(labels, 9), outputs, weights)
    assert not to_numpy(targets[0]["detection"]).any()


@pytest.mark.once
def test_nothing_is_put_at_the_first_token():
    rows = np.array([[2, 7, 8, 9], [2, 5, 3, 0]], "int32")
    placed = put(rows, np.array([[1, 3], [2, 0]]), np.array([[4, 0], [6, 1]]))
    np.testing.assert_array_equal(to_numpy(placed), [[2, 4, 8, 0], [2, 5, 6, 0]])


def test_no_gradient_of_the_detection_reaches_the_generator():
    model = tiny_pair(generator={"dropout": 0.0}, discriminator={"dropout": 0.0})
    weights = {"masked_lm": 0.0, "detection": 1.0}
    model.compile(
        learning_rate=1e-2,
        weight_decay=0.0,
        warmup=0.0,
        loss_weights=weights,
        run_eagerly=EAGERLY,
    )
    shared = {id(v) for name in SHARED for v in getattr(model.backbone.embeddings, name).weights}
    own = [v for v in model.generator.trainable_variables if id(v) not in shared]
    before = values(own), values(model.discriminator.trainable_variables)
    model.fit(Batches(), steps_per_epoch=2, shuffle=False, verbose=0)
    for old, variable in zip(before[0], own, strict=True):
        np.testing.assert_array_equal(to_numpy(variable), old)
    for old, variable in zip(before[1], model.discriminator.trainable_variables, strict=True):
        if not variable.path.endswith("key/bias"):  # has no influence on attention
            assert np.abs(to_numpy(variable) - old).max() > 0, variable.path


@pytest.mark.once
def test_a_seed_decides_what_is_drawn_in_training_and_evaluation_draws_alike():
    inputs = {name: np.tile(array, (8, 1)) for name, array in batch()[0].items()}

    def drawn(seed, training=True):
        model = tiny_pair(seed=seed)
        model.generator.head.set_weights([0 * w for w in model.generator.head.get_weights()])
        return [to_numpy(model(inputs, training=training)["drawn_ids"]) for _ in range(2)]

    (first, second), again, other = drawn(1), drawn(1), drawn(2)
    np.testing.assert_array_equal(again, [first, second])
    assert (first != second).mean() > 0.5 and (first != other[0]).mean() > 0.5
    alike, at_evaluation = drawn(1, training=False), drawn(2, training=False)
    np.testing.assert_array_equal([alike[0]] * 3, [alike[1], *at_evaluation])


@pytest.mark.once
def test_replaced_tokens_are_found_better_than_by_their_rate_alone():
    """Of a generator that learns nothing, on texts in alphabetical order."""
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    starts = rng.integers(0, 8, 256)
    texts = [" ".join("abcdefgh"[(s + i) % 8] for i in range(10)) for s in starts]
    model = tiny_pair(
        generator={"dropout": 0.0, "initializer_range": 0.1},
        discriminator={"dropout": 0.0, "initializer_range": 0.2},
        masking=Masking(0.2, 1.0, 0.0),
    )
    weights = {"masked_lm": 0.0, "detection": 1.0}
    model.compile(learning_rate=1e-2, loss_weights=weights)
    model.fit(texts, epochs=10, batch_size=32, verbose=0)
    results = model.evaluate(texts, verbose=0, return_dict=True)
    rate = results["detection_fake_rate"]
    entropy = scipy.special.entr([rate, 1 - rate]).sum()
    assert 0.1 < rate < 0.2
    assert results["detection_loss"] < 0.7 * entropy and results["detection_auc"] > 0.8


@pytest.mark.once
def test_both_parts_become_ordinary_presets(tmp_path):
    model = tiny_pair()
    model.save_to_preset(tmp_path)
    generator = bert_keras.MaskedLM.from_preset(tmp_path / "generator")
    assert generator.fill_mask("a [MASK]") == model.generator.fill_mask("a [MASK]")
    detector = bert_keras.ReplacedTokenDetector.from_preset(tmp_path)
    assert detector.is_replaced(TEXTS) == model.is_replaced(TEXTS)
    with pytest.warns(UserWarning, match="random"):
        classifier = bert_keras.TextClassifier.from_preset(tmp_path, num_classes=2)
    np.testing.assert_array_equal(
        to_numpy(classifier.backbone.token_embedding.embeddings),
        to_numpy(model.backbone.token_embedding.embeddings),
    )
    again = bert_keras.ReplacedTokenDetection(generator, detector)
    arrays = batch()[0]
    for name, expected in model.predict(arrays, verbose=0).items():
        np.testing.assert_array_equal(again.predict(arrays, verbose=0)[name], expected)
    with pytest.raises(TypeError, match="made of tasks"):
        bert_keras.ReplacedTokenDetection.from_preset(tmp_path)


@pytest.mark.once
def test_what_does_not_fit_is_an_error_before_anything_is_computed():
    model = tiny_pair()
    for parts in (
        model.tasks[::-1],
        (tiny_electra(), tiny_electra()),
        (bert_keras.Pretraining(tiny_backbone()), model.discriminator),
    ):
        with pytest.raises(TypeError, match="needs a MaskedLM as generator"):
            bert_keras.ReplacedTokenDetection(*parts)
    others = {
        "vocabulary_size": {"vocabulary_size": 40},
        "embedding_dim": {"embedding_dim": 4},
        "max_sequence_length": {"max_sequence_length": 20},
        "input_names": {"num_segments": 1},
    }
    for name, settings in others.items():
        with pytest.raises(ValueError, match=f"the same vocabulary.*{name}"):
            tiny_pair(generator=settings)
    tokenizer = bert_keras.WordPieceTokenizer([*VOCABULARY[:5], *VOCABULARY[:4:-1]])
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=16)
    detector = bert_keras.ReplacedTokenDetector(tiny_electra(), preprocessor)
    with pytest.raises(ValueError, match="They differ in: vocabulary"):
        bert_keras.ReplacedTokenDetection(model.generator, detector)
    with pytest.raises(ValueError, match="detection_weight"):
        tiny_pair(detection_weight=-1)
    with pytest.raises(ValueError, match="`seed` must be an int"):
        tiny_pair(seed=-1)
    inputs, labels, weights = batch()
    del inputs["mask_positions"]
    with pytest.raises(ValueError, match="must have 'mask_positions'"):
        model.fit(inputs, labels, sample_weight=weights)
    with pytest.raises(ValueError, match="is_replaced"):
        model.predict(TEXTS)


# The discriminator by itself


def tiny_detector(**options):
    return bert_keras.ReplacedTokenDetector(
        tiny_electra(), **{"preprocessor": tiny_preprocessor(), **options}
    )


def test_a_detector_survives_its_config_and_its_file(tmp_path):
    model = tiny_detector(frozen=1)
    check_everything_is_built(model)
    check_config_round_trip(model)
    inputs = batch()[0]
    del inputs["mask_positions"]
    check_saved_and_reloaded(model, inputs, tmp_path / "detector.keras")


@pytest.mark.once
def test_an_answer_tells_each_token_with_its_place():
    model = tiny_detector()
    text = "Ab  c"
    answer = model.is_replaced(text)
    assert [token["token"] for token in answer] == ["a", "##b", "c"]
    assert [text[token["start"] : token["end"]] for token in answer] == ["A", "b", "c"]
    (logits,) = model.predict([text], verbose=0)
    assert logits.shape == (5,)
    probabilities = [token["probability"] for token in answer]
    np.testing.assert_allclose(probabilities, scipy.special.expit(logits[1:4]), rtol=1e-5)
    alone = [token["probability"] for text in TEXTS for token in model.is_replaced(text)]
    together = [token["probability"] for row in model.is_replaced(TEXTS) for token in row]
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert model.is_replaced([]) == [] and model.is_replaced("") == []
    with pytest.raises(ValueError, match="must fit whole"):
        model.is_replaced("a " * 15)
    with pytest.raises(ValueError, match="no preprocessor"):
        tiny_detector(preprocessor=None).is_replaced("a")


@pytest.mark.once
def test_ready_inputs_train_a_detector_and_padding_does_not_count():
    model = tiny_detector()
    inputs = batch()[0]
    del inputs["mask_positions"]
    is_real = inputs["padding_mask"] == 1
    labels = (inputs["token_ids"] % 2) * is_real
    other = np.where(is_real, labels, 1)
    results = [model.evaluate(inputs, y, verbose=0, return_dict=True) for y in (labels, other)]
    assert results[0] == results[1]
    assert results[0]["fake_rate"] == pytest.approx(labels[is_real].mean())
    model.compile(learning_rate=1e-2)
    history = model.fit(inputs, labels, epochs=15, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    for wrong, message in (
        (labels + 1, "must be 0, or 1"),
        (labels[:, 0], r"shape \(batch, seq_len\)"),
        (labels * 0.5, "must be 0, or 1"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(inputs, wrong)
    with pytest.raises(ValueError, match="ReplacedTokenDetection"):
        model.fit(TEXTS, [0] * len(TEXTS))
