"""The arguments of `compile` change the weights as documented."""

import keras
import numpy as np
import pytest
from tiny import VOCABULARY, tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.metrics import MaskedPerplexity, SparseF1Score
from bert_keras.training import Lamb

READY = {"token_ids": np.arange(5, 37).reshape(8, 4) % len(VOCABULARY)}
LABELS = [0, 1, 1, 0, 1, 0, 0, 1]
JIT = keras.backend.backend() == "jax"
EAGERLY = keras.backend.backend() == "tensorflow"


def classifier(num_layers=2):
    keras.utils.set_random_seed(0)
    return tiny_classifier(tiny_backbone(num_layers=num_layers, dropout=0.0), dropout=0.0)


def weights(task):
    return {
        variable.path.split("/", 1)[1]: keras.ops.convert_to_numpy(variable).copy()
        for variable in task.trainable_variables
    }


def fit(task, batch_size=8, **options):
    task.fit(READY, LABELS, batch_size=batch_size, shuffle=False, verbose=0, **options)


def test_each_layer_moves_by_its_multiple_of_the_rate():
    task = classifier()
    task.compile(
        learning_rate=1e-3,
        weight_decay=0.0,
        warmup=0,
        layer_decay=0.5,
        head_multiplier=3.0,
        jit_compile=JIT,
    )
    before = weights(task)
    fit(task)
    # The first step of Adam is the rate, in the direction of the sign.
    moved = {path: np.abs(value - before[path]).max() for path, value in weights(task).items()}
    expected = {"embeddings/": 0.125, "layer_0/": 0.25, "layer_1/": 0.5, "pooler/": 1, "head/": 3}
    for part, multiple in expected.items():
        steps = [step for path, step in moved.items() if part in path]
        assert steps and max(steps) == pytest.approx(multiple * 1e-3, rel=1e-2), part


@pytest.mark.once
def test_accumulated_gradients_make_the_step_of_the_large_batch():
    results = []
    for batch_size, steps in ((8, None), (4, 2)):
        task = classifier(num_layers=1)
        task.compile(
            learning_rate=1e-3, warmup=0, gradient_accumulation_steps=steps, jit_compile=JIT
        )
        # A constant rate: what is compared is the gradient.
        task.optimizer.learning_rate = 1e-3
        task.recipe.is_own = False
        fit(task, batch_size)
        results.append(weights(task))
    for path, value in results[0].items():
        np.testing.assert_allclose(results[1][path], value, rtol=0, atol=1e-6, err_msg=path)


def test_the_schedule_is_as_the_arguments_say():
    task = classifier(num_layers=1)
    task.compile(
        learning_rate=1e-3, warmup=0, decay="polynomial", decay_power=2.0, run_eagerly=EAGERLY
    )
    fit(task, batch_size=4, epochs=2)
    schedule = task.optimizer._learning_rate
    rates = [float(schedule(step)) for step in range(5)]
    expected = [1e-3 * (1 - step / 4) ** 2 for step in range(5)]
    np.testing.assert_allclose(rates, expected, rtol=1e-6, atol=1e-12)
    with pytest.raises(ValueError, match="decay='polynomial'"):
        task.compile(decay_power=2.0)


@pytest.mark.once
def test_lamb_has_the_recipe_too(tmp_path):
    task = classifier(num_layers=1)
    task.compile("lamb", learning_rate=1e-3, layer_decay=0.5, run_eagerly=EAGERLY)
    fit(task, batch_size=4, epochs=2)
    assert type(task.optimizer) is Lamb
    assert task.optimizer._learning_rate.total_steps == 4
    task.save(tmp_path / "task.keras")
    again = keras.models.load_model(tmp_path / "task.keras")
    fit(again, batch_size=4)
    assert type(again.optimizer) is Lamb


@pytest.mark.once
def test_arguments_without_effect_are_refused():
    task = classifier(num_layers=1)
    with pytest.raises(ValueError, match=r"\['ema_momentum', 'layer_decay'\].*AdamW"):
        task.compile(bert_keras.AdamW(1e-4), layer_decay=0.9, ema_momentum=0.99)
    # What is refused changes nothing.
    assert task.recipe.is_own
    task.compile(keras.optimizers.SGD(0.1))
    with pytest.raises(ValueError, match="decay='polynomial'"):
        task.compile(decay_power=2.0)
    fit(task)
    assert isinstance(task.optimizer, keras.optimizers.SGD)


@pytest.mark.once
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
@pytest.mark.parametrize(
    "name", ["learning_rate", "weight_decay", "head_multiplier", "ema_momentum"]
)
def test_numbers_that_would_spoil_every_weight_are_refused(name, value):
    task = classifier(num_layers=1)
    with pytest.raises(ValueError, match=r"Received:.*(nan|inf|-1)"):
        task.compile(**{name: value})
    for argument in ("epsilon", "clipnorm", "clipvalue", "global_clipnorm"):
        with pytest.raises(ValueError, match=argument):
            bert_keras.AdamW(1e-3, **{argument: value})


@pytest.mark.once
def test_averages_equal_those_of_an_optimizer_with_ema():
    results = []
    schedule = bert_keras.WarmupDecay(1e-2, total_steps=4, warmup=0.1)
    averaging = bert_keras.AdamW(schedule, use_ema=True, ema_momentum=0.5)
    for arguments in (
        {"learning_rate": 1e-2, "ema_momentum": 0.5},
        {"optimizer": averaging},
        {"learning_rate": 1e-2},
    ):
        task = classifier(num_layers=1)
        task.compile(**arguments, jit_compile=JIT)
        fit(task, batch_size=4, epochs=2)
        results.append(weights(task))
    for path, value in results[0].items():
        np.testing.assert_array_equal(value, results[1][path], err_msg=path)
    assert any(np.abs(value - results[2][path]).max() > 1e-4 for path, value in results[0].items())


def test_a_file_keeps_the_arguments(tmp_path):
    task = classifier(num_layers=1)
    task.compile(layer_decay=0.9, ema_momentum=0.99, gradient_accumulation_steps=2)
    task.save(tmp_path / "task.keras")
    again = keras.models.load_model(tmp_path / "task.keras")
    assert again.get_compile_config()["recipe"] == task.get_compile_config()["recipe"]
    assert again.optimizer.get_config() == task.optimizer.get_config()


def of_classes():
    x, y = [" ".join(text) for text in ("abc", "de", "fgh", "a")], [0, 1, 1, 0]
    return classifier(num_layers=1), x, y, [SparseF1Score(2, average="macro")], {"f1"}


def of_both_objectives():
    task = bert_keras.Pretraining(tiny_backbone(), tiny_preprocessor(), masking={"rate": 0.5})
    metrics = {
        "masked_lm": [MaskedPerplexity(), keras.metrics.SparseTopKCategoricalAccuracy(2, "top")],
        "next_sentence": [SparseF1Score(2)],
    }
    x = (["a b c", "d e", "f g h", "a"], ["b c", "d", "e", "f"])
    return task, x, [0, 1, 1, 0], metrics, {"masked_lm_perplexity", "masked_lm_top"}


@pytest.mark.once
@pytest.mark.parametrize(
    "make", [of_classes, pytest.param(of_both_objectives, marks=pytest.mark.once)]
)
def test_own_metrics_are_taken_and_a_file_keeps_them(make, tmp_path):
    task, x, y, metrics, names = make()
    task.compile(weighted_metrics=metrics, jit_compile=JIT)
    history = task.fit(x, y, batch_size=4, verbose=0).history
    assert names <= set(history) and "accuracy" not in history
    task.save(tmp_path / "task.keras")
    again = keras.models.load_model(tmp_path / "task.keras")
    found, expected = (model.evaluate(x, y, verbose=0, return_dict=True) for model in (again, task))
    assert found == expected and names <= set(found)
