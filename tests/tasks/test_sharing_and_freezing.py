"""What trains: tasks that share a backbone, idle poolers, frozen weights, runs that go on."""

import keras
import numpy as np
import pytest
from tiny import VOCABULARY, tiny_backbone, tiny_classifier

import bert_keras
from bert_keras.tasks.user_columns import num_examples

TEXTS = ["a b c", "d e", "h a g g", "", "b c", "a", "c d e", "e", "f g"]
LABELS = [0, 1, 1, 0, 1, 0, 0, 1, 0]


def values(variables):
    return [keras.ops.convert_to_numpy(variable).copy() for variable in variables]


def pooler_of(task):
    return task.backbone.pooler.dense.kernel


@pytest.mark.once
def test_a_task_that_ignores_the_pooler_leaves_it_to_the_next_task():
    first = tiny_classifier()
    masked = bert_keras.MaskedLM(first.backbone, preprocessor=first.preprocessor)
    assert not any(variable is pooler_of(masked) for variable in masked.trainable_variables)
    second = bert_keras.TextClassifier(first.backbone, preprocessor=first.preprocessor)
    assert any(variable is pooler_of(second) for variable in second.trainable_variables)
    before = values([pooler_of(second)])
    second.fit(TEXTS, LABELS, verbose=0)
    assert np.abs(values([pooler_of(second)])[0] - before[0]).max() > 0


@pytest.mark.parametrize(
    "make",
    [
        lambda backbone: bert_keras.TextClassifier(backbone, pooling="mean"),
        lambda backbone: bert_keras.TextClassifier(backbone),
        lambda backbone: bert_keras.MultipleChoice(backbone, pooling="cls"),
        lambda backbone: bert_keras.TokenClassifier(backbone, num_classes=3),
        lambda backbone: bert_keras.QuestionAnswering(backbone),
        lambda backbone: bert_keras.MaskedLM(backbone),
        lambda backbone: bert_keras.NextSentencePrediction(backbone),
        lambda backbone: bert_keras.Pretraining(backbone),
        lambda backbone: bert_keras.SpanBoundary(backbone),
        lambda backbone: bert_keras.ReplacedTokenDetector(backbone),
        lambda backbone: bert_keras.TextEmbedder(backbone),
    ],
)
def test_every_variable_is_either_trainable_or_not(make):
    task = make(tiny_classifier().backbone)
    parts = [*task.trainable_variables, *task.non_trainable_variables]
    assert {id(v) for v in parts} == {id(v) for v in task.variables}
    assert len(parts) == len(task.variables)
    is_trained = any(v is pooler_of(task) for v in task.trainable_variables)
    reads = getattr(task, "pooling", None) == "pooler" or type(task).__name__ in (
        "NextSentencePrediction",
        "Pretraining",
    )
    assert is_trained == reads


@pytest.mark.once
def test_an_idle_pooler_does_not_move_and_causes_no_warning(recwarn):
    source = tiny_classifier()
    task = bert_keras.TextClassifier(
        source.backbone, preprocessor=source.preprocessor, pooling="mean"
    )
    task.compile(learning_rate=1e-2, weight_decay=0.1)
    before = values([pooler_of(task)])
    task.fit(TEXTS, LABELS, epochs=3, verbose=0)
    np.testing.assert_array_equal(values([pooler_of(task)])[0], before[0])
    assert not [w for w in recwarn if "radients" in str(w.message)]


@pytest.mark.once
def test_a_finished_run_goes_on_where_epochs_are_added():
    task = tiny_classifier()
    task.compile(learning_rate=1e-2)
    task.fit(TEXTS, LABELS, epochs=1, verbose=0)
    before = values(task.trainable_variables)
    task.fit(TEXTS, LABELS, epochs=3, initial_epoch=1, verbose=0)
    after = values(task.trainable_variables)
    assert max(np.abs(a - b).max() for a, b in zip(after, before, strict=True)) > 1e-3
    rate = keras.ops.convert_to_numpy(task.optimizer.learning_rate)
    np.testing.assert_allclose(rate, 0, atol=1e-9)


def test_a_run_in_two_parts_equals_one_in_one():
    def run(*parts):
        keras.utils.set_random_seed(1)
        task = tiny_classifier(dropout=0.0)
        for epochs, initial_epoch, stop in parts:
            stopping = keras.callbacks.LambdaCallback(
                on_epoch_end=lambda epoch, logs, stop=stop: setattr(
                    task, "stop_training", epoch + 1 >= stop
                )
            )
            task.fit(
                TEXTS,
                LABELS,
                batch_size=4,
                epochs=epochs,
                initial_epoch=initial_epoch,
                callbacks=[stopping],
                verbose=0,
            )
        return values(task.trainable_variables)

    for whole, halves in zip(run((3, 0, 3)), run((3, 0, 1), (3, 1, 3)), strict=True):
        np.testing.assert_allclose(halves, whole, atol=1e-6)


@pytest.mark.once
def test_what_the_optimizer_froze_before_fit_stays_frozen():
    task = tiny_classifier()
    task.optimizer.build(task.trainable_variables)
    task.optimizer.freeze("embeddings/")
    before = values(task.backbone.embeddings.weights)
    for _ in range(2):  # The second has a new optimizer.
        task.fit(TEXTS, LABELS, verbose=0)
        for old, new in zip(before, values(task.backbone.embeddings.weights), strict=True):
            np.testing.assert_array_equal(new, old)
    assert all("embeddings/" in path for path in task.optimizer.frozen_paths)
    task.backbone.embeddings.trainable = False
    task.fit(TEXTS, LABELS, verbose=0)
    for old, new in zip(before, values(task.backbone.embeddings.weights), strict=True):
        np.testing.assert_array_equal(new, old)


@pytest.mark.once
@pytest.mark.filterwarnings("error:Skipping variable loading")
def test_a_layer_frozen_by_hand_is_frozen_after_loading(tmp_path):
    task = tiny_classifier(tiny_backbone(num_layers=2))
    task.backbone.encoder.blocks[0].trainable = False
    task.compile()
    task.fit(TEXTS, LABELS, verbose=0)
    task.save(tmp_path / "task.keras")
    again = keras.models.load_model(tmp_path / "task.keras")
    assert len(again.trainable_variables) == len(task.trainable_variables)
    assert int(again.optimizer.iterations) == int(task.optimizer.iterations)


@pytest.mark.parametrize("num_segments", [0, 1])
def test_pairs_without_segments_are_told_apart_by_what_stands_between_them(num_segments):
    source = tiny_classifier()
    backbone = bert_keras.BertBackbone(
        len(VOCABULARY), 1, 2, 16, 16, max_sequence_length=16, num_segments=num_segments
    )
    task = bert_keras.TextClassifier(backbone, preprocessor=source.preprocessor)
    pairs = (TEXTS, TEXTS[::-1])
    assert num_examples(pairs) == len(TEXTS)
    assert "segment_ids" not in task.preprocessor(pairs)
    assert "segment_ids" in source.preprocessor(pairs)
    assert np.isfinite(task.predict(pairs, verbose=0)).all()
    assert np.isfinite(task.predict(TEXTS, verbose=0)).all()
    with pytest.raises(ValueError, match="segment_ids"):
        task.predict(source.preprocessor(pairs), verbose=0)


@pytest.mark.once
def test_what_one_task_froze_trains_in_the_next_on_the_same_backbone():
    source = tiny_classifier()
    frozen = bert_keras.TextClassifier(
        source.backbone, preprocessor=source.preprocessor, frozen="backbone"
    )
    before = values(source.backbone.weights)
    frozen.fit(TEXTS, LABELS, verbose=0)
    for old, new in zip(before, values(source.backbone.weights), strict=True):
        np.testing.assert_array_equal(new, old)
    other = bert_keras.TextClassifier(source.backbone, preprocessor=source.preprocessor)
    for task in (other, source):
        task.fit(TEXTS, LABELS, verbose=0)
        moved = [
            np.abs(new - old).max()
            for old, new in zip(before, values(source.backbone.weights), strict=True)
        ]
        assert max(moved) > 0
        before = values(source.backbone.weights)
    assert source.backbone.trainable


class Batches(keras.utils.PyDataset):
    """Two good batches, then one with an id beyond the vocabulary."""

    def __init__(self, last_id):
        super().__init__()
        self.last_id = last_id

    def __len__(self):
        return 3

    def __getitem__(self, index):
        ids = np.full((4, 5), self.last_id if index == 2 else 6, "int32")
        return {"token_ids": ids}, np.zeros(4, "int32")


@pytest.mark.parametrize("method", ["fit", "evaluate", "predict"])
def test_an_id_outside_the_vocabulary_in_a_dataset_is_an_error_and_the_weights_survive(method):
    task = tiny_classifier()
    with pytest.raises(Exception, match="must be from 0 to"):
        getattr(task, method)(Batches(10_000), verbose=0)
    assert all(np.isfinite(value).all() for value in values(task.weights))
    assert np.isfinite(task.predict(TEXTS, verbose=0)).all()
    getattr(task, method)(Batches(7), verbose=0)


@pytest.mark.parametrize(
    ("x", "told"),
    [
        ([None, None], "column of str"),
        (5, "beginning with 5"),
        ([b"x"], "beginning with"),
        ([("a", "b"), ("c", "d")], r"zip\(\*rows\)"),
    ],
)
def test_what_is_no_text_is_told_what_is(x, told):
    task = tiny_classifier()
    with pytest.raises(TypeError, match=told):
        task.predict(x, verbose=0)
    with pytest.raises(TypeError, match=told):
        task.fit(x, [0, 1], verbose=0)


def test_label_names_say_how_many_classes_there_are(tmp_path):
    tiny_classifier(num_classes=3, label_names=["x", "y", "z"]).save_to_preset(tmp_path)
    with pytest.warns(UserWarning, match="num_classes"):
        task = bert_keras.TextClassifier.from_preset(tmp_path, label_names=["bad", "good"])
    assert task.num_classes == 2
    with pytest.raises(ValueError, match="in the order"):
        bert_keras.TextClassifier.from_preset(tmp_path, label_names=["z", "y", "x"])


def test_another_pooling_keeps_the_classes_and_makes_a_new_head(tmp_path):
    tiny_classifier(num_classes=3, label_names=["x", "y", "z"]).save_to_preset(tmp_path)
    with pytest.warns(UserWarning, match="pooling"):
        task = bert_keras.TextClassifier.from_preset(tmp_path, pooling="mean")
    assert task.label_names == ("x", "y", "z")


@pytest.mark.once
def test_a_constructor_that_raises_leaves_no_adapters():
    backbone = tiny_backbone()
    with pytest.raises(ValueError, match="num_classes"):
        tiny_classifier(backbone, num_classes=1, lora_rank=2)
    assert backbone.lora is None and all(weight.trainable for weight in backbone.weights)


@pytest.mark.once
def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    backbone = tiny_backbone()
    frozen = tiny_classifier(backbone, frozen="embeddings")
    tiny_classifier(backbone, lora_rank=2)
    with pytest.raises(ValueError, match="`frozen` must be None"):
        frozen.save(tmp_path / "task.keras")
    with pytest.raises(ValueError, match="without_adapters"):
        backbone.save(tmp_path / "backbone.keras")


@pytest.mark.once
def test_what_was_frozen_by_hand_stays_so_when_adapters_are_merged(tmp_path):
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
