"""The arguments of `compile` change the weights as documented."""

import keras
import numpy as np
import pytest
from adapted import by_path
from checks import cases
from tiny import VOCABULARY, Batches, tiny_backbone, tiny_classifier, tiny_task

import bert_keras
from bert_keras.datasets import QuestionExample
from bert_keras.metrics import MaskedPerplexity
from bert_keras.tasks.question_examples import Answer
from bert_keras.training import Lamb, schedules

pytestmark = pytest.mark.once

READY = {"token_ids": np.arange(5, 37).reshape(8, 4) % len(VOCABULARY)}
LABELS = [0, 1, 1, 0, 1, 0, 0, 1]


def classifier(num_layers=2):
    keras.utils.set_random_seed(0)
    return tiny_classifier(tiny_backbone(num_layers=num_layers, dropout=0.0), dropout=0.0)


def weights(task):
    return by_path(task.trainable_variables)


def fit(task, batch_size=8, **options):
    options = {"epochs": 1, "shuffle": False, "verbose": 0, **options}
    task.fit(READY, LABELS, batch_size=batch_size, **options)


def test_each_layer_moves_by_its_multiple_of_the_rate():
    task = classifier()
    task.compile(
        learning_rate=1e-3,
        weight_decay=0.0,
        warmup=0,
        layerwise_lr_decay=0.5,
        head_lr_multiplier=3.0,
    )
    before = weights(task)
    fit(task)
    # The first step of Adam is the rate, in the direction of the sign.
    moved = {path: np.abs(value - before[path]).max() for path, value in weights(task).items()}
    expected = {"embeddings/": 0.125, "layer_0/": 0.25, "layer_1/": 0.5, "pooler/": 1, "head/": 3}
    for part, multiple in expected.items():
        steps = [step for path, step in moved.items() if part in path]
        assert steps and max(steps) == pytest.approx(multiple * 1e-3, rel=1e-2), part


def test_lamb_has_the_recipe_too(reloaded):
    task = classifier(num_layers=1)
    task.compile("lamb", learning_rate=1e-3, layerwise_lr_decay=0.5)
    fit(task, batch_size=4, epochs=2)
    assert type(task.optimizer) is Lamb
    assert task.optimizer._learning_rate.total_steps == 4
    again = reloaded(task)
    fit(again, batch_size=4)
    assert type(again.optimizer) is Lamb


def test_arguments_without_effect_are_refused():
    task = classifier(num_layers=1)
    with pytest.raises(ValueError, match=r"\['ema_momentum', 'layerwise_lr_decay'\].*AdamW"):
        task.compile(bert_keras.AdamW(1e-4), layerwise_lr_decay=0.9, ema_momentum=0.99)
    # What is refused changes nothing.
    assert task.recipe.makes_optimizer
    task.compile(keras.optimizers.SGD(0.1))
    fit(task)
    assert isinstance(task.optimizer, keras.optimizers.SGD)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_numbers_that_would_spoil_every_weight_are_refused(value):
    task = classifier(num_layers=1)
    for name in ("learning_rate", "weight_decay", "head_lr_multiplier", "ema_momentum"):
        with pytest.raises(ValueError, match=r"Received:.*(nan|inf|-1)"):
            task.compile(**{name: value})
    for name in ("epsilon", "clipnorm", "clipvalue", "global_clipnorm"):
        with pytest.raises(ValueError, match=name):
            bert_keras.AdamW(1e-3, **{name: value})


def peak(task):
    return task.optimizer._learning_rate.peak_learning_rate


@cases(
    ("TokenClassifier", {"num_classes": 2}, [["a", "b"]] * 2, [[0, 1]] * 2),
    ("TextClassifier", {"problem_type": "multi_label"}, ["a", "b"], [[0, 1], [1, 1]]),
    ("QuestionAnswering", {}, [QuestionExample("1", "a", "b", (Answer("b", 0),))] * 2, None),
)
def test_without_epochs_rare_targets_are_learned_in_more_steps(monkeypatch, name, options, x, y):
    monkeypatch.setattr(schedules, "LEAST_STEPS_OF_RARE", 4)
    history = tiny_task(name, **options).fit(x, y, batch_size=2, verbose=0).history
    assert len(history["loss"]) == 4


def test_without_epochs_and_rate_a_short_run_is_longer_and_faster(capsys, monkeypatch):
    monkeypatch.setattr(schedules, "LEAST_STEPS", 10)
    task = classifier(num_layers=1)  # 16 wide.
    history = task.fit(READY, LABELS, batch_size=4, verbose=2).history
    assert len(history["loss"]) == 5 and peak(task) == pytest.approx(5e-4)
    assert "Training for 5 epochs, 10 steps, at a peak rate of 0.0005" in capsys.readouterr().out
    # What the user chose stays as it is; a file keeps what the user left open.
    for rate, epochs, expected, run in (
        (1e-4, None, (5, 1e-4), "5 epochs, 10 steps, at a peak rate of 0.0001"),
        (None, 1, (1, 5e-4), "1 epoch, 2 steps, at a peak rate of 0.0005"),
    ):
        task.compile(learning_rate=rate)
        found = task.fit(READY, LABELS, batch_size=4, epochs=epochs, verbose=2).history["loss"]
        assert f"Training for {run}, since the paper's 3 epochs at" in capsys.readouterr().out
        assert (len(found), peak(task)) == (expected[0], pytest.approx(expected[1]))
    task.compile(gradient_accumulation_steps=2)
    assert len(task.fit(READY, LABELS, batch_size=4, verbose=0).history["loss"]) == 10
    # A dataset that knows its length is like arrays; a number of steps is the user's choice.
    batches = Batches([({"token_ids": READY["token_ids"][:4]}, np.array(LABELS[:4]))] * 5)
    task.compile(learning_rate=1e-3)
    assert len(task.fit(batches, verbose=0).history["loss"]) == 3
    assert len(task.fit(batches, steps_per_epoch=2, verbose=0).history["loss"]) == 1
    assert not capsys.readouterr().out


@cases(
    (classifier, {"optimizer": keras.optimizers.SGD(0.1)}),
    (classifier, {"lr_schedule": "constant", "warmup": 0}),
    (classifier, {"optimizer": "lamb"}),
    (lambda: tiny_task("NextSentencePrediction"), {}),
)
def test_other_recipes_and_pre_training_keep_one_epoch_and_the_paper_s_rate(make, arguments):
    task = make()
    task.compile(**arguments)
    assert len(task.fit(READY, LABELS, verbose=0).history["loss"]) == 1
    if "optimizer" not in arguments or arguments["optimizer"] == "lamb":
        rate = task.optimizer._learning_rate
        peak_rate = getattr(rate, "peak_learning_rate", rate)
        assert float(keras.ops.convert_to_numpy(peak_rate)) == pytest.approx(5e-5)


def test_a_file_keeps_the_arguments(reloaded):
    task = classifier(num_layers=1)
    task.compile(layerwise_lr_decay=0.9, ema_momentum=0.99, gradient_accumulation_steps=2)
    again = reloaded(task)
    assert again.get_compile_config()["recipe"] == task.get_compile_config()["recipe"]
    assert again.optimizer.get_config() == task.optimizer.get_config()


OF_TOKENS = [MaskedPerplexity(), keras.metrics.SparseTopKCategoricalAccuracy(2, "top")]
TEXTS = ["a b c", "d e", "f g h", "a"]


@cases(
    ("TextClassifier", TEXTS, [keras.metrics.F1Score("macro")], {"f1_score"}),
    (
        "Pretraining",
        (TEXTS, TEXTS[::-1]),
        {"masked_lm": OF_TOKENS, "next_sentence": [keras.metrics.F1Score("macro")]},
        {"masked_lm_perplexity", "masked_lm_top"},
    ),
)
def test_own_metrics_are_taken_and_a_file_keeps_them(reloaded, name, x, metrics, names):
    task, y = tiny_task(name), [0, 1, 1, 0]
    task.compile(weighted_metrics=metrics)
    history = task.fit(x, y, batch_size=4, epochs=1, verbose=0).history
    assert names <= set(history) and "accuracy" not in history
    again = reloaded(task)
    found, expected = (model.evaluate(x, y, verbose=0, return_dict=True) for model in (again, task))
    assert found == expected and names <= set(found)


def test_a_constant_rate_needs_no_number_of_steps():
    task = classifier()
    task.compile(learning_rate=1e-3, lr_schedule="constant", warmup=0)
    batches = (({"token_ids": READY["token_ids"][:4]}, np.array(LABELS[:4])) for _ in range(3))
    assert len(task.fit(batches, epochs=1, verbose=0).history["loss"]) == 1
    assert int(task.optimizer.iterations) == 3


def test_fit_makes_the_loss_anew_if_a_setting_has_changed():
    embedder = tiny_task("TextEmbedder", objective="similarity")
    before = type(embedder.loss)
    embedder.objective = "ranking"
    embedder.fit((["a b", "c d"], ["a", "c"]), epochs=1, verbose=0)
    assert type(embedder.loss) is type(tiny_task("TextEmbedder", objective="ranking").loss)
    assert type(embedder.loss) is not before
