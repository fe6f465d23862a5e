import keras
import numpy as np
import pytest
from checks import (
    assert_close,
    check_config_round_trip,
    check_everything_is_built,
    check_saved_and_reloaded,
)
from tiny import VOCABULARY, tiny_backbone, tiny_preprocessor

import bert_keras

FIRST, SECOND = ["a b", "c d", "e f", "g h"], ["b a", "d c c c", "f e", "h"]


def tiny_model(**options):
    return bert_keras.NextSentencePrediction(
        tiny_backbone(initializer_range=0.3), **{"preprocessor": tiny_preprocessor(), **options}
    )


def inputs():
    return {"token_ids": np.random.default_rng(0).integers(5, len(VOCABULARY), (3, 6))}


def test_everything_is_built_and_the_config_survives():
    check_everything_is_built(tiny_model())
    check_config_round_trip(tiny_model(frozen=1))


@pytest.mark.once
def test_a_keras_file_and_a_preset_give_the_same_answers(tmp_path):
    model = tiny_model()
    reloaded = check_saved_and_reloaded(model, inputs(), tmp_path / "model.keras")
    assert reloaded.is_next(FIRST, SECOND) == model.is_next(FIRST, SECOND)
    model.save_to_preset(tmp_path / "preset")
    again = bert_keras.NextSentencePrediction.from_preset(tmp_path / "preset")
    assert again.is_next(FIRST, SECOND) == model.is_next(FIRST, SECOND)


def test_class_0_is_next():
    model = tiny_model()
    logits = model.predict((FIRST, SECOND), verbose=0)
    answers = model.is_next(FIRST, SECOND)
    expected = 1 / (1 + np.exp(logits[:, 1] - logits[:, 0]))
    np.testing.assert_allclose([a["probability"] for a in answers], expected, atol=1e-6)
    assert [a["is_next"] for a in answers] == (logits[:, 0] > logits[:, 1]).tolist()
    one = model.is_next(FIRST[1], SECOND[1])
    assert one["probability"] == pytest.approx(expected[1], abs=1e-5)


@pytest.mark.once
def test_it_learns_which_text_follows():
    first, second = ["a a", "c c", "e e", "h h"] * 4, ["b b", "g g", "b", "g"] * 4
    labels = [0, 1, 0, 1] * 4
    model = tiny_model()
    model.compile(
        learning_rate=1e-2, warmup=0.0, run_eagerly=keras.backend.backend() == "tensorflow"
    )
    model.fit((first, second), labels, batch_size=16, epochs=30, verbose=0)
    scores = model.evaluate((first, second), labels, verbose=0, return_dict=True)
    assert scores["accuracy"] == 1
    assert model.is_next("e e", "b")["is_next"]
    assert not model.is_next("h h", "g")["is_next"]


@pytest.mark.once
def test_ready_inputs_train():
    history = tiny_model(preprocessor=None).fit(inputs(), [0, 1, 1], verbose=0)
    assert "accuracy" in history.history


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((FIRST, SECOND), [0, 1, 2, 0], "0 is next, 1 is random.*values"),
        ((FIRST, SECOND), [True, False, True, True], "dtype bool"),
        ((FIRST, SECOND), None, "needs labels"),
        (FIRST, [0, 1, 1, 0], "takes pairs"),
        ((FIRST, SECOND[:2]), [0, 1, 1, 0], "equally many"),
    ],
)
def test_examples_that_do_not_fit_are_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        tiny_model().fit(x, y)


def test_one_text_and_a_column_are_no_pair():
    with pytest.raises(TypeError, match="both"):
        tiny_model().is_next("a", ["b"])


def test_logits_stand_on_the_pooled_output():
    model = tiny_model()
    pooled = model.backbone(inputs())["pooled_output"]
    assert_close(model(inputs()), model.head.dense(pooled))


def test_no_pairs_have_no_answers():
    assert tiny_model().is_next([], []) == []
    with pytest.raises(ValueError, match="equally many"):
        tiny_model().is_next([], ["a"])
