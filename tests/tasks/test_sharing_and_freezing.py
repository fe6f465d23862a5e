"""What trains: tasks that share a backbone, idle poolers, frozen weights, runs that go on."""

import keras
import numpy as np
import pytest
from adapted import array, assert_equal, by_path
from checks import cases
from tiny import tiny_backbone, tiny_classifier, tiny_task

from bert_keras.tasks.user_columns import num_examples

pytestmark = pytest.mark.once

TEXTS = ["a b c", "d e", "h a g g", "", "b c", "a", "c d e", "e", "f g"]
LABELS = [0, 1, 1, 0, 1, 0, 0, 1, 0]


def pooler_of(task):
    return task.backbone.pooler.dense.kernel


def moved(before, variables):
    """Returns how far the variables moved at most."""
    after = by_path(variables)
    return max(np.abs(after[path] - value).max() for path, value in before.items())


def test_a_task_that_ignores_the_pooler_leaves_it_to_the_next_task():
    backbone = tiny_backbone()
    tiny_task("MaskedLM", backbone)
    task = tiny_classifier(backbone)
    before = array(pooler_of(task))
    task.fit(TEXTS, LABELS, epochs=1, verbose=0)
    assert np.abs(array(pooler_of(task)) - before).max() > 0


@pytest.mark.filterwarnings("error:Skipping variable loading")
def test_a_layer_frozen_by_hand_is_frozen_after_loading(reloaded):
    task = tiny_classifier(tiny_backbone(num_layers=2))
    task.backbone.encoder.blocks[0].trainable = False
    task.compile()
    task.fit(TEXTS, LABELS, epochs=1, verbose=0)
    again = reloaded(task)
    assert len(again.trainable_variables) == len(task.trainable_variables)
    assert int(again.optimizer.iterations) == int(task.optimizer.iterations)


@pytest.mark.parametrize("num_segments", [0, 1])
def test_without_segments_separators_tell_the_texts_of_a_pair_apart(num_segments):
    source, pairs = tiny_classifier(), (TEXTS, TEXTS[::-1])
    task = tiny_classifier(tiny_backbone(num_segments=num_segments))
    assert num_examples(pairs) == len(TEXTS)
    assert "segment_ids" not in task.preprocessor(pairs)
    assert "segment_ids" in source.preprocessor(pairs)
    for x in (pairs, TEXTS):
        assert np.isfinite(task.predict(x, verbose=0)).all()
    with pytest.raises(ValueError, match="segment_ids"):
        task.predict(source.preprocessor(pairs), verbose=0)


def test_weights_that_one_task_freezes_train_in_another_on_the_same_backbone():
    source = tiny_classifier()
    frozen, other = (tiny_classifier(source.backbone, frozen=x) for x in ("backbone", None))
    weights = source.backbone.weights
    before = by_path(weights)
    frozen.fit(TEXTS, LABELS, epochs=1, verbose=0)
    assert_equal(by_path(weights), before)
    for task in (other, source):
        before = by_path(weights)
        task.fit(TEXTS, LABELS, epochs=1, verbose=0)
        assert moved(before, weights) > 0
    assert source.backbone.trainable


def test_a_constructor_that_raises_leaves_no_adapters():
    backbone = tiny_backbone()
    with pytest.raises(ValueError, match="num_classes"):
        tiny_classifier(backbone, num_classes=1, lora_rank=2)
    assert backbone.lora is None and all(weight.trainable for weight in backbone.weights)


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    backbone = tiny_backbone()
    frozen = tiny_classifier(backbone, frozen="embeddings")
    tiny_classifier(backbone, lora_rank=2)
    with pytest.raises(ValueError, match="`frozen` must be None"):
        frozen.save(tmp_path / "task.keras")
    with pytest.raises(ValueError, match="without_adapters"):
        backbone.save(tmp_path / "backbone.keras")


def test_weights_frozen_by_hand_stay_frozen_when_adapters_are_merged(tmp_path):
    backbone = tiny_backbone()
    backbone.embeddings.trainable = False
    task = tiny_classifier(backbone, lora_rank=2)
    task.save(tmp_path / "task.keras")
    for _ in range(2):
        again = keras.models.load_model(tmp_path / "task.keras")
        again.save(tmp_path / "task.keras")
    task.merge_lora()
    again.merge_lora()
    assert len(again.trainable_weights) == len(task.trainable_weights)


@pytest.mark.each_backend
@cases(
    ("on_epoch_begin", lambda x: x.enable_lora(2)),
    ("on_train_begin", lambda x: setattr(x, "trainable", 0)),
)
def test_a_callback_that_changes_which_weights_train_is_refused(hook, change):
    task = tiny_classifier()
    callback = keras.callbacks.LambdaCallback(**{hook: lambda *_: change(task.head.dense)})
    with pytest.raises(ValueError, match=r"head/dense/.* in all. Do so before `fit`"):
        task.fit(["a", "b"], [0, 1], epochs=2, verbose=0, callbacks=[callback])
