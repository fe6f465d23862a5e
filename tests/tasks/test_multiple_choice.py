import numpy as np
import pytest
import scipy.special
from checks import assert_close, check_task, refusals, to_numpy
from tiny import batches_of, ready_inputs, tiny_task

pytestmark = pytest.mark.once

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "cat", "barks", "meows"]
CONTEXTS = ["the dog", "the cat", "the dog the dog"]
CHOICES = [["barks", "meows", "the"], ["the cat barks", "meows"], ["meows", "barks"]]


def tiny_model(**options):
    return tiny_task("MultipleChoice", vocabulary=VOCABULARY, **options)


# A task that no test changes: it is compiled once for all.
shared = pytest.fixture(tiny_model, scope="module")


def test_it_keeps_the_contract_of_tasks(tmp_path):
    model = tiny_model(dropout=0.3, pooling="mean", frozen=1)
    check_task(model, ready_inputs(3, 4, 7), tmp_path, {"choose": (CONTEXTS, CHOICES)})


def test_a_choice_s_logit_is_that_of_its_pair_alone(shared):
    logits = shared.predict((CONTEXTS[:1], CHOICES[:1]), verbose=0)
    inputs = shared.preprocessor((CONTEXTS[:1] * 3, CHOICES[0]))
    pooled = shared.backbone(inputs)["pooled_output"]
    assert_close(logits[0], to_numpy(shared.head.dense(pooled))[:, 0])


def test_absent_choices_and_padding_have_no_probability_and_change_no_other(shared):
    logits = shared.predict((CONTEXTS, CHOICES), verbose=0)
    assert logits.shape == (3, 3)
    np.testing.assert_array_equal(logits[1:, 2], -1e9)
    alone = shared.predict((CONTEXTS[1:2], CHOICES[1:2]), verbose=0)
    assert_close(logits[1, :2], alone[0], 1e-5)
    inputs = ready_inputs(3, 4, 7)
    padded = {key: np.pad(array, ((0, 0), (0, 0), (0, 3))) for key, array in inputs.items()}
    assert_close(shared(padded), shared(inputs), 1e-5)
    fewer = {key: array[:, :3] for key, array in inputs.items()}
    inputs["padding_mask"][:, 3] = 0
    assert_close(shared(inputs)[:, :3], shared(fewer), 1e-5)


def test_choose_answers_one_context_and_a_column_alike(shared):
    answers = shared.choose(CONTEXTS, CHOICES)
    assert [len(answer["probabilities"]) for answer in answers] == [3, 2, 2]
    for answer, choices in zip(answers, CHOICES, strict=True):
        assert sum(answer["probabilities"]) == pytest.approx(1)
        assert answer["choice"] == choices[answer["index"]]
        assert answer["index"] == int(np.argmax(answer["probabilities"]))
    one = shared.choose(CONTEXTS[1], CHOICES[1])
    assert one["choice"] == answers[1]["choice"]
    assert one["probabilities"] == pytest.approx(answers[1]["probabilities"], abs=1e-5)


@pytest.mark.also_on("jax")
def test_it_learns_that_somebody_barks_from_lists_of_unequal_length():
    x = (["the dog", "the cat"] * 8, [["barks", "meows", "the"], ["meows", "barks"]] * 8)
    y = [0, 1] * 8
    model = tiny_model()
    model.compile(learning_rate=5e-3)
    history = model.fit(x, y, batch_size=8, epochs=8, validation_data=(x, y), verbose=0)
    assert history.history["val_accuracy"][-1] == 1
    assert history.history["val_loss"][-1] < history.history["val_loss"][0]
    assert model.choose("the cat", ("the", "barks", "meows"))["choice"] == "barks"


def test_arrays_of_choices_are_taken_like_lists(shared):
    choices = [row[:2] for row in CHOICES]
    forms = [(CONTEXTS, choices), (np.array(CONTEXTS), np.array(choices))]
    np.testing.assert_array_equal(*(shared.predict(x, verbose=0) for x in forms))


def test_labels_may_be_shares_of_the_choices(shared):
    shares = np.array([[0.5, 0.25, 0.25], [0.75, 0.25, 0], [0, 1, 0]])
    logits = shared.predict(BOTH, verbose=0).astype("float64")
    expected = -(shares * scipy.special.log_softmax(logits, axis=-1)).sum(axis=-1).mean()
    assert shared.evaluate(BOTH, shares, verbose=0)[0] == pytest.approx(expected, abs=1e-5)
    of_positions, of_rows = (
        shared.evaluate(BOTH, y, verbose=0) for y in ([2, 1, 0], np.eye(3, dtype=int)[::-1])
    )
    assert of_rows == pytest.approx(of_positions, abs=1e-6)


def smoothed():
    model = tiny_model()
    model.compile(label_smoothing=0.1)
    return model


BOTH, PACKED = (CONTEXTS, CHOICES), ready_inputs(3, 4, 7)
NOT_3D = {"token_ids": np.ones((3, 4), int)}
INTS = r"ints of the shape \(num_examples,\).*position of the right choice"


test_what_does_not_fit_is_refused = refusals(
    (lambda m: m.fit(BOTH, [0, 2, 0]), "from 0 to 1.*index 1"),
    (lambda m: m.fit(BOTH, [0, 0, -1]), "Received -1 at the index 2"),
    (lambda m: m.fit(BOTH, [0.5, 0, 0]), INTS),
    (lambda m: m.fit(BOTH, np.eye(3)[[0, 2, 0]]), "from 0 to 1.*index 1"),
    (lambda m: m.fit(BOTH, np.eye(2)[[0, 1, 0]]), r"shape \(num_examples, 3\)"),
    (lambda m: m.fit(BOTH), "needs labels"),
    (lambda m: m.fit(BOTH, [0, 1]), "as many labels"),
    (lambda m: m.fit((CONTEXTS, CHOICES[:2]), [0, 1, 0]), "one list of choices for"),
    (lambda m: m.choose([], [["a"]]), "must be equally many"),
    (
        lambda m: m.fit((CONTEXTS, [["a"], [], ["b"]]), [0, 0, 0]),
        r"at least one choice.*\[\] at the index 1",
    ),
    (lambda m: m.fit(CONTEXTS, [0, 0, 0]), "tuple of contexts"),
    (lambda m: m.fit(PACKED, [0, 4, 0]), "from 0 to 3.*Received 4 at the index 1"),
    (lambda m: m.fit(NOT_3D, [0, 0, 0]), r"\(batch, num_choices, seq_len\)"),
    (lambda m: m.predict((CONTEXTS, ["barks", "meows", "the"])), TypeError, r"choices\["),
    (lambda m: m.predict((CONTEXTS, [["barks", None]] * 3)), TypeError, r"choices\["),
    (lambda m: m.predict((CONTEXTS, [["barks"], "meows", ["the"]])), TypeError, r"choices\["),
    (lambda m: smoothed().fit(BOTH, [0, 0, 0]), "same number of choices"),
    (
        lambda m: smoothed().fit(batches_of(m, BOTH, batch_size=3)[0][0], [0] * 3),
        "same number of choices",
    ),
    of="shared",
)
