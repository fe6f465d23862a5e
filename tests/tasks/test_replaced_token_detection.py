import keras
import numpy as np
import pytest
import scipy.special
from checks import (
    check_config_round_trip,
    check_everything_is_built,
    check_saved_and_reloaded,
    check_task,
    perplexity,
    refusals,
    to_numpy,
)
from tiny import (
    VOCABULARY,
    Batches,
    ready_inputs,
    tiny_backbone,
    tiny_preprocessor,
    tiny_task,
)

import bert_keras
from bert_keras.tasks.replaced_token_detection import put_at

pytestmark = pytest.mark.once

TEXTS = ["a b c d e", "fgh ab", "a b c d e f g h a b c", "hh gg ff aab bba", "c", "d e f g h"]
SHARED = ("token_embedding", "position_embedding", "segment_embedding", "layer_norm")


def tiny_electra(**overrides):
    sizes = tiny_backbone().get_config()
    own = ("name", "causal", "dtype", "has_pooler")
    sizes = {name: sizes[name] for name in sizes if name not in own}
    return bert_keras.ElectraBackbone(
        **{**sizes, "embedding_dim": 8, "initializer_range": 0.3, **overrides}
    )


def tiny_pair(generator=None, discriminator=None, masking=None, **options):
    sizes = {"hidden_dim": 8, "num_heads": 1, **(generator or {})}
    masked_lm = tiny_task("MaskedLM", tiny_electra(**sizes), masking=masking)
    detector = tiny_detector(tiny_electra(**(discriminator or {})))
    return bert_keras.ReplacedTokenDetection(masked_lm, detector, **options)


def tiny_detector(backbone=None, **options):
    return tiny_task("ReplacedTokenDetector", backbone or tiny_electra(), **options)


def batch(seed=0):
    """A batch as `PretrainingBatches` yields it; the last row only fills it."""
    inputs, rng = ready_inputs(6, 10, least=6, seed=seed), np.random.default_rng(seed)
    columns = np.sort(rng.permuted(np.tile(np.arange(1, 5), (6, 1)), axis=1)[:, :3])
    exists = np.arange(3) < rng.integers(1, 4, (6, 1))
    inputs["mask_positions"] = np.where(exists, columns, 0)
    weights = exists * (np.arange(6)[:, None] < 5).astype("float32")
    return inputs, rng.integers(5, len(VOCABULARY), (6, 3)).astype("int32"), weights


PLAIN = {name: array for name, array in batch()[0].items() if name != "mask_positions"}
PARITY = (PLAIN["token_ids"] % 2) * PLAIN["padding_mask"]


# A pair that no test changes.
pair = pytest.fixture(tiny_pair, scope="module")


def values(variables):
    return [to_numpy(variable).copy() for variable in variables]


def test_a_pair_survives_its_config_and_its_file(tmp_path):
    model = tiny_pair(detection_weight=20.0)
    check_everything_is_built(model)
    check_config_round_trip(model)
    reloaded = check_saved_and_reloaded(model, batch()[0], tmp_path / "pair.keras")
    assert reloaded.discriminator.is_replaced(TEXTS[0]) == model.discriminator.is_replaced(TEXTS[0])
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


def test_the_tasks_share_their_embeddings_and_nothing_else():
    model = tiny_pair()
    check_shares(model)
    parts = [*model.trainable_variables, *model.non_trainable_variables]
    assert sorted(map(id, parts)) == sorted(map(id, model.variables))
    own = [{id(v) for v in task.variables} for task in model.tasks]
    shared = {id(v) for name in SHARED for v in getattr(model.backbone.embeddings, name).weights}
    assert own[0] & own[1] == shared
    again = bert_keras.ReplacedTokenDetection(*model.tasks)
    check_shares(again)


def test_weights_that_neither_task_trains_do_not_train():
    poolers = [tiny_backbone(name=name) for name in ("first", "second")]
    model = bert_keras.ReplacedTokenDetection(
        bert_keras.MaskedLM(poolers[0]), bert_keras.ReplacedTokenDetector(poolers[1], frozen=0)
    )
    trained = {id(variable) for variable in model.trainable_variables}
    idle = [*poolers[0].pooler.weights, *poolers[1].pooler.weights]
    assert not trained & {id(weight) for weight in [*idle, *poolers[0].embeddings.weights]}


@pytest.mark.each_backend
@pytest.mark.eager
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
    targets = model.loss_arguments(inputs, np.full_like(labels, 9), outputs, weights)
    assert not to_numpy(targets[0]["detection"]).any()


def test_nothing_is_put_at_the_first_token():
    rows = np.array([[2, 7, 8, 9], [2, 5, 3, 0]], "int32")
    placed = put_at(rows, np.array([[1, 3], [2, 0]]), np.array([[4, 0], [6, 1]]))
    np.testing.assert_array_equal(to_numpy(placed), [[2, 4, 8, 0], [2, 5, 6, 0]])


@pytest.mark.also_on("tensorflow")
@pytest.mark.eager  # Graphs of two models take long.
def test_no_gradient_of_the_detection_reaches_the_generator():
    model = tiny_pair(generator={"dropout": 0.0}, discriminator={"dropout": 0.0})
    weights = {"masked_lm": 0.0, "detection": 1.0}
    model.compile(keras.optimizers.SGD(1.0), loss_weights=weights)
    shared = {id(v) for name in SHARED for v in getattr(model.backbone.embeddings, name).weights}
    own = [v for v in model.generator.trainable_variables if id(v) not in shared]
    before = values(own), values(model.discriminator.trainable_variables)
    model.fit(Batches([batch(seed=seed) for seed in (0, 1)]), shuffle=False, verbose=0)
    np.testing.assert_equal(values(own), before[0])
    for old, variable in zip(before[1], model.discriminator.trainable_variables, strict=True):
        if not variable.path.endswith("key/bias"):  # has no influence on attention
            assert np.abs(to_numpy(variable) - old).max() > 0, variable.path


def test_a_seed_fixes_the_draws_of_training_and_evaluation_always_draws_the_same():
    inputs = {name: np.tile(array, (8, 1)) for name, array in batch()[0].items()}

    tasks = tiny_pair().tasks
    tasks[0].head.set_weights([0 * w for w in tasks[0].head.get_weights()])

    def drawn(seed, training=True):
        keras.utils.set_random_seed(seed)
        model = bert_keras.ReplacedTokenDetection(*tasks)
        return [to_numpy(model(inputs, training=training)["drawn_ids"]) for _ in range(2)]

    (first, second), again, other = drawn(1), drawn(1), drawn(2)
    np.testing.assert_array_equal(again, [first, second])
    assert (first != second).mean() > 0.5 and (first != other[0]).mean() > 0.5
    alike, at_evaluation = drawn(1, training=False), drawn(2, training=False)
    np.testing.assert_array_equal([alike[0]] * 3, [alike[1], *at_evaluation])


def test_both_parts_become_ordinary_presets(tmp_path):
    model = tiny_pair()
    model.save_to_preset(tmp_path)
    generator = bert_keras.MaskedLM.from_preset(tmp_path / "generator")
    assert generator.fill_mask("a [MASK]") == model.generator.fill_mask("a [MASK]")
    detector = bert_keras.ReplacedTokenDetector.from_preset(tmp_path)
    assert detector.is_replaced(TEXTS) == model.discriminator.is_replaced(TEXTS)
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
    with pytest.raises(TypeError, match=r"Pass .'generator', 'discriminator'. to `from_preset`"):
        bert_keras.ReplacedTokenDetection.from_preset(tmp_path)


def of_reversed_vocabulary(model):
    reversed_tokens = tiny_preprocessor(vocabulary=[*VOCABULARY[:5], *VOCABULARY[:4:-1]])
    detector = tiny_detector(preprocessor=reversed_tokens)
    return bert_keras.ReplacedTokenDetection(model.generator, detector)


WRONG = "needs a MaskedLM as generator"


test_what_does_not_fit_is_refused = refusals(
    (lambda m: bert_keras.ReplacedTokenDetection(*m.tasks[::-1]), TypeError, WRONG),
    (lambda m: bert_keras.ReplacedTokenDetection(m.backbone, m.backbone), TypeError, WRONG),
    (
        lambda m: bert_keras.ReplacedTokenDetection(
            bert_keras.Pretraining(tiny_backbone()), m.discriminator
        ),
        TypeError,
        WRONG,
    ),
    *(
        (
            lambda m, settings=settings: bert_keras.ReplacedTokenDetection(
                bert_keras.MaskedLM(tiny_electra(**settings)), m.discriminator
            ),
            f"the same vocabulary.*{name}",
        )
        for name, settings in {
            "vocabulary_size": {"vocabulary_size": 40},
            "embedding_dim": {"embedding_dim": 4},
            "max_sequence_length": {"max_sequence_length": 20},
            "input_names": {"num_segments": 1},
        }.items()
    ),
    (of_reversed_vocabulary, "They differ in: vocabulary"),
    (
        lambda m: bert_keras.ReplacedTokenDetection(*m.tasks, detection_weight=-1),
        "detection_weight",
    ),
    (lambda m: m.fit(PLAIN, *batch()[1:]), "needs the input 'mask_positions'"),
    (lambda m: m.predict(TEXTS), "is_replaced"),
    (lambda m: m.discriminator.is_replaced("a " * 15), "must fit whole"),
    (lambda m: m.discriminator.fit(PLAIN, PARITY + 1), "must be 0, or 1"),
    (lambda m: m.discriminator.fit(PLAIN, PARITY * 0.5), "must be 0, or 1"),
    (lambda m: m.discriminator.fit(PLAIN, PARITY[:, 0]), r"shape \(batch, seq_len\)"),
    (lambda m: m.discriminator.fit(TEXTS, [0] * 6), "ReplacedTokenDetection"),
    of="pair",
)


# The discriminator by itself


def test_a_detector_keeps_the_contract_of_tasks(tmp_path):
    check_task(tiny_detector(frozen=1), PLAIN, tmp_path, {"is_replaced": (TEXTS,)})


def test_an_answer_tells_each_token_with_its_place(pair):
    model, text = pair.discriminator, "Ab  c"
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
    assert model.is_replaced("") == []


def test_ready_inputs_train_a_detector_and_padding_does_not_count():
    model, is_real = tiny_detector(), PLAIN["padding_mask"] == 1
    labels = (PARITY, np.where(is_real, PARITY, 1))
    results = [model.evaluate(PLAIN, y, verbose=0, return_dict=True) for y in labels]
    assert results[0] == results[1]
    assert results[0]["fake_rate"] == pytest.approx(PARITY[is_real].mean())
    model.compile(learning_rate=1e-2)
    loss = model.fit(PLAIN, PARITY, epochs=15, verbose=0).history["loss"]
    assert loss[-1] < loss[0]
